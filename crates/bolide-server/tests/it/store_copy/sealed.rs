//! What a sealed store answers, while its last rows are copied and after it has moved.

use bson::{RawDocumentBuf, rawdoc};
use serde_json::json;

use super::{CLOCK, OPEN, Place, ask, begin, copied, endpoint, seal};
use crate::client::{Client, Request, create_container, create_item};
use crate::mongo_client::MongoClient;
use crate::server::{Server, run};

fn mongo(client: &mut MongoClient, command: &RawDocumentBuf) -> RawDocumentBuf {
    client.run(command).expect("a reply")
}

fn insert(id: i32) -> RawDocumentBuf {
    rawdoc! { "insert": "docs", "documents": [{ "_id": id }], "$db": "m" }
}

/// Checks that all kinds of writes are refused in one way, and that reads are not.
fn check_refusals(client: &mut Client, documents: &mut MongoClient, (status, sub_status): (u16, &str), code: i32) {
    let post = |path: &str, body: &str| Request::post(path, body);
    let container = r#"{"id":"x","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    let writes = [
        post("/dbs/d/colls/c/docs", r#"{"id":"x","pk":"p"}"#).pk(),
        Request::new("DELETE", "/dbs/d/colls/c/docs/a").pk(),
        post("/dbs", r#"{"id":"x"}"#),
        post("/dbs/d/colls", container),
        post("/dbs/d/users", r#"{"id":"x"}"#),
        post("/dbs/d/colls/c/sprocs", r#"{"id":"x","body":"function () {}"}"#),
        post("/dbs/d/colls/c/sprocs/s", r#"[]"#).pk(),
        Request::new("DELETE", "/dbs/d"),
        post("/_bolide/reset", ""),
        post("/_bolide/snapshots/before/restore", ""),
        post("/_bolide/dbs/d/colls/c/split", ""),
    ];
    for write in &writes {
        let refused = client.send(write).expect(status);
        assert_eq!(refused.header("x-ms-substatus"), Some(sub_status), "{}", refused.text());
        assert_eq!(refused.header("x-ms-retry-after-ms").is_some(), status == 503);
    }
    let refused = mongo(documents, &insert(7));
    assert_eq!(refused.get_i32("code").ok(), Some(code), "{refused:?}");
    let created = mongo(documents, &rawdoc! { "create": "more", "$db": "m" });
    assert_eq!(created.get_i32("code").ok(), Some(code), "{created:?}");

    client.send(&Request::get("/dbs/d/colls/c/docs/a").pk()).expect(200);
    client.send(&Request::get("/dbs")).expect(200);
    client
        .send(
            &Request::get("/dbs/d/colls/c/docs")
                .pk()
                .header("a-im", "Incremental Feed"),
        )
        .expect(200);
    let found = mongo(documents, &rawdoc! { "find": "docs", "$db": "m" });
    assert_eq!(found.get_f64("ok").ok(), Some(1.0));
    ask(client, "snapshots/during", "").expect(200);
    client.send(&Request::get("/_bolide/metrics")).expect(200);
    client.send(&Request::get("/_bolide/dbs/d/colls/c/ttl")).expect(200);
}

/// A server with an item, a procedure, a snapshot, a document, and a change stream.
fn filled() -> (Server, Client, MongoClient, i64) {
    let server = Server::in_memory(&[CLOCK, OPEN]);
    let mut client = server.client();
    create_container(&mut client);
    create_item(&mut client, "a");
    let procedure = r#"{"id":"s","body":"function s() { getContext().getCollection().createDocument(getContext().getCollection().getSelfLink(), {id: 'made', pk: 'p'}); }"}"#;
    client
        .send(&Request::post("/dbs/d/colls/c/sprocs", procedure))
        .expect(201);
    ask(&mut client, "snapshots/before", "").expect(200);
    let mut documents = MongoClient::connect(server.mongo_port()).expect("the server listens");
    mongo(&mut documents, &insert(1));
    let watch = rawdoc! { "aggregate": "docs", "pipeline": [{ "$changeStream": {} }], "cursor": {}, "$db": "m" };
    let stream = mongo(&mut documents, &watch);
    let cursor = stream.get_document("cursor").and_then(|cursor| cursor.get_i64("id"));
    let cursor = cursor.unwrap_or_else(|error| panic!("{error}: {stream:?}"));
    (server, client, documents, cursor)
}

fn changes(documents: &mut MongoClient, cursor: i64) -> usize {
    let more = rawdoc! { "getMore": cursor, "collection": "docs", "maxTimeMS": 10, "$db": "m" };
    let reply = mongo(documents, &more);
    let batch = reply
        .get_document("cursor")
        .and_then(|cursor| cursor.get_array("nextBatch"));
    batch
        .unwrap_or_else(|error| panic!("{error}: {reply:?}"))
        .into_iter()
        .count()
}

#[test]
fn a_sealed_store_is_read_and_refuses_writes_until_it_is_written_again() {
    let (server, mut client, mut documents, cursor) = filled();
    assert_eq!(seal(&mut client), (false, false));
    mongo(&mut documents, &insert(2));
    let id = begin(&mut client);
    ask(&mut client, &format!("copies/{id}/partitions"), "{}").expect(200);
    ask(&mut client, &format!("copies/{id}/seal"), "{}").expect(200);
    assert_eq!(seal(&mut client), (true, false));
    check_refusals(&mut client, &mut documents, (503, "11602"), 11602);
    // A stream still tells what was written before.
    assert_eq!(changes(&mut documents, cursor), 1);
    ask(&mut client, &format!("copies/{id}/seal"), r#"{"renew":true}"#).expect(200);
    ask(&mut client, &format!("copies/{id}/finish"), "{}").expect(200);
    assert_eq!(seal(&mut client), (true, true));
    check_refusals(&mut client, &mut documents, (403, "10107"), 10107);
    assert_eq!(changes(&mut documents, cursor), 0);
    // It has moved, so it cannot be moved again.
    ask(&mut client, "copies", "").expect_error(403);

    let lifted = run(&["unseal", "--endpoint", &endpoint(server.port())]);
    assert!(lifted.status.success(), "{}", lifted.stderr);
    assert_eq!(seal(&mut client), (false, false));
    create_item(&mut client, "after");
    let inserted = mongo(&mut documents, &insert(7));
    assert_eq!(inserted.get_f64("ok").ok(), Some(1.0), "{inserted:?}");
    assert_eq!(changes(&mut documents, cursor), 1);
    // What has moved is the store, and not what is made of its snapshot.
    ask(&mut client, "snapshots/during/restore", "").expect(200);
    assert_eq!(seal(&mut client), (false, false));
    create_item(&mut client, "restored");
    ask(&mut client, "reset", "").expect(200);
    assert_eq!(seal(&mut client), (false, false));
}

#[test]
fn writes_go_on_by_themselves_when_the_lease_of_a_dead_copy_ends() {
    let (_server, mut client, _, _) = filled();
    let id = begin(&mut client);
    ask(&mut client, &format!("copies/{id}/seal"), "{}").expect(200);
    let advance = |client: &mut Client, ms: u32| {
        client
            .send(&Request::put("/_bolide/clock", format!(r#"{{"advanceMs":{ms}}}"#)))
            .expect(200);
    };
    let write = |client: &mut Client| {
        let upsert = Request::post("/dbs/d/colls/c/docs", r#"{"id":"a","pk":"p"}"#).pk();
        client.send(&upsert.header("x-ms-documentdb-is-upsert", "True")).status
    };
    advance(&mut client, 19_999);
    assert_eq!((write(&mut client), seal(&mut client)), (503, (true, false)));
    advance(&mut client, 1);
    assert_eq!(seal(&mut client), (false, false));
    assert_eq!(write(&mut client), 200);
    // What it has copied is not the whole store, so it cannot end.
    ask(&mut client, &format!("copies/{id}/finish"), "{}").expect_error(409);
    assert_eq!(write(&mut client), 200);
}

#[test]
fn a_copy_ends_when_another_begins_and_takes_its_seal_with_it() {
    let (_server, mut client, _, _) = filled();
    let first = begin(&mut client);
    ask(&mut client, &format!("copies/{first}/seal"), "{}").expect(200);
    let second = begin(&mut client);
    create_item(&mut client, "between");
    for route in ["partitions", "seal", "finish"] {
        ask(&mut client, &format!("copies/{first}/{route}"), "{}").expect_error(404);
    }
    ask(&mut client, &format!("copies/{second}/seal"), "{}").expect(200);
    client
        .send(&Request::new("DELETE", &format!("/_bolide/copies/{second}")))
        .expect(200);
    create_item(&mut client, "after");
    for (route, body) in [("rows", json!({"partition": 0})), ("changes", json!({}))] {
        let third = begin(&mut client);
        ask(&mut client, &format!("copies/{third}/{route}"), &body.to_string()).expect_error(400);
    }
}

#[test]
fn a_container_that_is_removed_while_the_store_is_copied_does_not_end_the_copy() {
    let (_server, mut client, _, _) = filled();
    let id = begin(&mut client);
    let listed = ask(&mut client, &format!("copies/{id}/partitions"), "{}").expect(200);
    create_item(&mut client, "b");
    client.send(&Request::new("DELETE", "/dbs/d/colls/c")).expect(204);
    let listed = listed.json();
    for partition in listed["partitions"].as_array().expect("partitions") {
        let body = json!({"partition": partition}).to_string();
        ask(&mut client, &format!("copies/{id}/changes"), &body).expect(200);
    }
}

#[test]
fn a_store_that_has_moved_is_still_so_after_a_restart_and_is_read() {
    let (from, to) = (Place::directory(), Place::directory());
    let mut source = from.serve(&[CLOCK, OPEN]);
    create_container(&mut source.client());
    create_item(&mut source.client(), "a");
    let shared = r#"{"id":"gone","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    source.client().send(&Request::post("/dbs/d/colls", shared)).expect(201);
    copied(&source, &to, &[]);
    source.stop();
    let again = from.serve(&[CLOCK, OPEN]);
    let mut client = again.client();
    assert_eq!(seal(&mut client), (true, true));
    client.send(&Request::get("/dbs/d/colls/c/docs/a").pk()).expect(200);
    client.send(&Request::new("DELETE", "/dbs/d/colls/gone")).expect(403);
    client.send(&Request::new("DELETE", "/_bolide/seal")).expect(200);
    client.send(&Request::new("DELETE", "/dbs/d/colls/gone")).expect(204);
}

/// A seal is found by all servers of a store, and taken away through any.
#[test]
fn servers_over_one_store_refuse_writes_together() {
    let (from, to) = (Place::database(), Place::directory());
    let (source, other) = (from.serve(&[OPEN]), from.serve(&[OPEN]));
    let (mut here, mut there) = (source.client(), other.client());
    create_container(&mut here);
    create_item(&mut there, "a");
    copied(&source, &to, &[]);
    for client in [&mut here, &mut there] {
        let refused = client.send(&Request::post("/dbs/d/colls/c/docs", r#"{"id":"b","pk":"p"}"#).pk());
        assert_eq!(refused.expect(403).header("x-ms-substatus"), Some("10107"));
        assert_eq!(seal(client), (true, true));
    }
    there.send(&Request::new("DELETE", "/_bolide/seal")).expect(200);
    create_item(&mut here, "b");
    create_item(&mut there, "c");
}
