//! Copies of stores that are written all the time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use serde_json::Value;

use super::{OPEN, Place, copied, copy_from};
use crate::client::{Client, Request, create_container, create_item};
use crate::server::Server;

/// Items that each writer writes.
const ITEMS: usize = 50;

/// What was acknowledged: the version of each item, or that it was deleted.
type Model = BTreeMap<String, Option<u64>>;

/// Writes items until the store has moved, or until it is told to end. Returns what was acknowledged.
fn write(mut client: Client, writer: usize, is_over: Arc<AtomicBool>) -> JoinHandle<Model> {
    std::thread::spawn(move || {
        let mut model = Model::new();
        for version in 0_u64.. {
            let id = format!("w{writer}-{}", usize::try_from(version).expect("few") * 7 % ITEMS);
            let is_delete = version % 5 == 4 && model.get(&id).is_some_and(Option::is_some);
            let request = match is_delete {
                true => Request::new("DELETE", &format!("/dbs/d/colls/c/docs/{id}")),
                false => Request::post(
                    "/dbs/d/colls/c/docs",
                    format!(r#"{{"id":"{id}","pk":"p","v":{version}}}"#),
                )
                .header("x-ms-documentdb-is-upsert", "True"),
            };
            let response = client.send(&request.pk());
            match response.status {
                200 | 201 => drop(model.insert(id, Some(version))),
                204 => drop(model.insert(id, None)),
                503 => assert_eq!(response.header("x-ms-substatus"), Some("11602"), "{}", response.text()),
                403 => {
                    assert_eq!(response.header("x-ms-substatus"), Some("10107"), "{}", response.text());
                    return model;
                }
                status => panic!("{status}: {}", response.text()),
            }
            if is_over.load(Ordering::SeqCst) {
                return model;
            }
        }
        model
    })
}

fn stored(client: &mut Client) -> Model {
    let mut stored = Model::new();
    let mut continuation = String::new();
    loop {
        let request = Request::get("/dbs/d/colls/c/docs")
            .pk()
            .header("x-ms-continuation", &continuation);
        let page = client.send(&request).expect(200);
        for item in page.json()["Documents"].as_array().expect("a list") {
            let id = item["id"].as_str().expect("an id").to_owned();
            if id.starts_with('w') {
                assert!(
                    stored.insert(id.clone(), item["v"].as_u64()).is_none(),
                    "{id} is there twice"
                );
            }
        }
        match page.header("x-ms-continuation") {
            Some(next) => continuation = next.to_owned(),
            None => return stored,
        }
    }
}

/// Moves the store of a server while several clients of `written` write it, and compares.
fn move_under_load(source: &Server, written: &[&Server], target: &Place) {
    let mut client = source.client();
    create_container(&mut client);
    for n in 0..200 {
        create_item(&mut client, &format!("i{n}"));
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let writers = written.iter().enumerate().flat_map(|(at, server)| {
        let over = is_over.clone();
        (0..2).map(move |nth| write(server.client(), 10 * at + nth, over.clone()))
    });
    let writers: Vec<_> = writers.collect();
    copied(source, target, &[]);
    let mut model = Model::new();
    for writer in writers {
        model.extend(writer.join().expect("a writer ends when the store has moved"));
    }
    model.retain(|_, version| version.is_some());
    assert!(!model.is_empty(), "something was written meanwhile");
    let there = target.serve(&[OPEN]);
    let mut client = there.client();
    assert_eq!(stored(&mut client), model);
    let verified: Value = client
        .send(&Request::post("/_bolide/dbs/d/colls/c/verify", ""))
        .expect(200)
        .json();
    assert_eq!(verified["problems"], serde_json::json!([]), "{verified}");
    assert_eq!(verified["stored"], 200 + model.len(), "{verified}");
}

#[test]
fn nothing_that_is_written_during_a_copy_is_lost_or_doubled() {
    let (from, to) = (Place::directory(), Place::directory());
    let source = from.serve(&[OPEN]);
    move_under_load(&source, &[&source], &to);
}

/// The server that is copied does not see the commits of the other before it seals the store.
#[test]
fn what_another_server_writes_during_a_copy_is_not_lost() {
    let (from, to) = (Place::database(), Place::directory());
    let (source, other) = (from.serve(&[OPEN]), from.serve(&[OPEN]));
    move_under_load(&source, &[&source, &other], &to);
}

/// Containers come and go while a store is copied: the copy has those that are there at its end.
#[test]
fn containers_that_are_made_and_deleted_during_a_copy_are_at_the_target_as_at_the_source() {
    let (from, to) = (Place::directory(), Place::database());
    let source = from.serve(&[OPEN]);
    let mut client = source.client();
    client.send(&Request::post("/dbs", r#"{"id":"d"}"#)).expect(201);
    let changing = std::thread::spawn(move || {
        let mut there = Vec::new();
        for n in 0_u32.. {
            let id = format!("k{n}");
            let body = format!(r#"{{"id":"{id}","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}}}}"#);
            let made = client.send(&Request::post("/dbs/d/colls", body));
            match made.status {
                201 => there.push(id),
                503 => {}
                403 => break,
                status => panic!("{status}: {}", made.text()),
            }
            if n % 3 == 2 && there.len() > 1 {
                let gone = client.send(&Request::new("DELETE", &format!("/dbs/d/colls/{}", there[0])));
                if gone.status == 204 {
                    there.remove(0);
                }
            }
        }
        there
    });
    // Some containers are there before the copy begins.
    while source.client().send(&Request::get("/dbs/d/colls")).expect(200).json()["_count"] == 0 {}
    let output = copy_from(source.port(), &to, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut expected = changing.join().expect("it ends when the store has moved");
    expected.sort();
    let listed = to
        .serve(&[OPEN])
        .client()
        .send(&Request::get("/dbs/d/colls"))
        .expect(200)
        .json();
    let listed = listed["DocumentCollections"].as_array().expect("a list").iter();
    let mut listed: Vec<String> = listed
        .map(|found| found["id"].as_str().expect("an id").to_owned())
        .collect();
    listed.sort();
    assert_eq!(listed, expected);
}
