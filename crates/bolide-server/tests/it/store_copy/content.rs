//! Everything that a store has is at the target, as it was.

use bson::{RawDocumentBuf, rawdoc};
use serde_json::{Value, json};

use super::{CLOCK, OPEN, Place, copied};
use crate::client::{Client, Request, create_container, create_item};
use crate::mongo_client::MongoClient;
use crate::server::Server;

/// What clients have seen of a store, and what they keep to go on.
struct Seen {
    items: Vec<Value>,
    /// Where the first page of a feed has ended.
    continuation: String,
    session: String,
    /// Where the change feed has ended, before the last item.
    changes: String,
    documents: RawDocumentBuf,
    indexes: RawDocumentBuf,
    token: RawDocumentBuf,
}

fn mongo(server: &Server) -> MongoClient {
    MongoClient::connect(server.mongo_port()).expect("the server listens")
}

fn run(client: &mut MongoClient, command: &RawDocumentBuf) -> RawDocumentBuf {
    let reply = client.run(command).expect("a reply");
    assert_eq!(reply.get_f64("ok").ok(), Some(1.0), "{command:?}: {reply:?}");
    reply
}

fn first_batch(reply: &RawDocumentBuf) -> RawDocumentBuf {
    let cursor = reply.get_document("cursor").expect("a cursor");
    let batch = cursor.get_array("firstBatch").expect("a batch");
    rawdoc! { "batch": batch.to_owned() }
}

fn fill(server: &Server) -> Seen {
    let mut client = server.client();
    create_container(&mut client);
    let ttl = r#"{"id":"t","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":100}"#;
    client
        .send(&Request::post("/dbs/d/colls", ttl).header("x-ms-offer-throughput", "30000"))
        .expect(201);
    for n in 0..30 {
        create_item(&mut client, &format!("i{n:02}"));
    }
    for body in [r#"{"id":"short","pk":"p"}"#, r#"{"id":"long","pk":"p","ttl":1000}"#] {
        client
            .send(&Request::post("/dbs/d/colls/t/docs", body).pk())
            .expect(201);
    }
    client
        .send(&Request::new("DELETE", "/dbs/d/colls/c/docs/i07").pk())
        .expect(204);
    client
        .send(&Request::post("/dbs/d/users", r#"{"id":"ada"}"#))
        .expect(201);
    let feed = || Request::get("/dbs/d/colls/c/docs").pk();
    let page = client.send(&feed().header("x-ms-max-item-count", "10")).expect(200);
    let continuation = page.header("x-ms-continuation").expect("more").to_owned();
    let changes = client.send(&feed().header("a-im", "Incremental Feed")).expect(200);
    let changes = changes.header("etag").expect("a place").to_owned();
    create_item(&mut client, "last");
    let all = client.send(&feed()).expect(200);
    let session = all.header("x-ms-session-token").expect("a token").to_owned();

    let mut documents = mongo(server);
    let index = rawdoc! { "key": { "n": 1 }, "name": "n_1", "unique": true };
    run(
        &mut documents,
        &rawdoc! { "createIndexes": "docs", "indexes": [index], "$db": "m" },
    );
    run(
        &mut documents,
        &rawdoc! { "createUser": "ann", "pwd": "secret", "roles": ["read"], "$db": "m" },
    );
    let watch = rawdoc! { "aggregate": "docs", "pipeline": [{ "$changeStream": {} }], "cursor": {}, "$db": "m" };
    let stream = run(&mut documents, &watch);
    let token = stream
        .get_document("cursor")
        .and_then(|cursor| cursor.get_document("postBatchResumeToken"));
    let token = token.expect("a token").to_owned();
    let inserted =
        rawdoc! { "insert": "docs", "documents": [{ "_id": 1, "n": 1 }, { "_id": 2, "n": 2.5 }], "$db": "m" };
    run(&mut documents, &inserted);
    Seen {
        items: items(&mut client),
        continuation,
        session,
        changes,
        documents: first_batch(&run(&mut documents, &find())),
        indexes: first_batch(&run(&mut documents, &rawdoc! { "listIndexes": "docs", "$db": "m" })),
        token,
    }
}

fn find() -> RawDocumentBuf {
    rawdoc! { "find": "docs", "sort": { "_id": 1 }, "$db": "m" }
}

/// All items of both containers, with their resource ids, etags and times.
fn items(client: &mut Client) -> Vec<Value> {
    let docs = ["/dbs/d/colls/c/docs", "/dbs/d/colls/t/docs"];
    let feeds = docs.map(|path| client.send(&Request::get(path).pk()).expect(200).json());
    feeds
        .into_iter()
        .flat_map(|feed| feed["Documents"].as_array().expect("a list").clone())
        .collect()
}

fn ids(feed: &Value) -> Vec<&str> {
    let items = feed["Documents"].as_array().expect("a list").iter();
    items.map(|item| item["id"].as_str().expect("an id")).collect()
}

/// What clients have kept goes on at the target.
fn check(server: &Server, seen: &Seen) {
    let mut client = server.client();
    assert_eq!(items(&mut client), seen.items);
    let feed = |client: &mut Client, header: &str, value: &str| {
        let request = Request::get("/dbs/d/colls/c/docs").pk().header(header, value);
        client.send(&request.header("x-ms-session-token", &seen.session))
    };
    let rest = feed(&mut client, "x-ms-continuation", &seen.continuation)
        .expect(200)
        .json();
    assert_eq!((rest["_count"].as_u64(), ids(&rest)[0]), (Some(20), "i11"), "{rest}");
    let request = Request::get("/dbs/d/colls/c/docs")
        .pk()
        .header("a-im", "Incremental Feed");
    let changes = client
        .send(&request.header("if-none-match", &seen.changes))
        .expect(200)
        .json();
    assert_eq!(ids(&changes), ["last"]);
    client.send(&Request::get("/dbs/d/users/ada")).expect(200);
    for container in ["c", "t"] {
        let verify = Request::post(&format!("/_bolide/dbs/d/colls/{container}/verify"), "");
        let verified = client.send(&verify).expect(200).json();
        assert_eq!(verified["problems"], json!([]), "{verified}");
    }

    let mut documents = mongo(server);
    assert_eq!(first_batch(&run(&mut documents, &find())), seen.documents);
    let indexes = run(&mut documents, &rawdoc! { "listIndexes": "docs", "$db": "m" });
    assert_eq!(first_batch(&indexes), seen.indexes);
    let users = run(&mut documents, &rawdoc! { "usersInfo": "ann", "$db": "m" });
    assert_eq!(users.get_array("users").expect("users").into_iter().count(), 1);
    let resume = rawdoc! { "$changeStream": { "resumeAfter": seen.token.clone() } };
    let watch = rawdoc! { "aggregate": "docs", "pipeline": [resume], "cursor": {}, "$db": "m" };
    let events = first_batch(&run(&mut documents, &watch));
    assert_eq!(
        events.get_array("batch").expect("events").into_iter().count(),
        2,
        "{events:?}"
    );
    let twice = rawdoc! { "insert": "docs", "documents": [{ "_id": 3, "n": 1 }], "$db": "m" };
    let refused = documents.run(&twice).expect("a reply");
    assert!(
        refused.get_array("writeErrors").is_ok(),
        "the unique index: {refused:?}"
    );
}

/// TTL countdowns go on: one item ends 100 seconds after it was written, the other after 1000.
fn check_ends(server: &Server) {
    let mut client = server.client();
    let read = |client: &mut Client, id: &str| {
        client
            .send(&Request::get(&format!("/dbs/d/colls/t/docs/{id}")).pk())
            .status
    };
    let advance = |client: &mut Client, ms: u32| {
        client
            .send(&Request::put("/_bolide/clock", format!(r#"{{"advanceMs":{ms}}}"#)))
            .expect(200);
    };
    advance(&mut client, 98_000);
    assert_eq!((read(&mut client, "short"), read(&mut client, "long")), (200, 200));
    advance(&mut client, 2_000);
    assert_eq!((read(&mut client, "short"), read(&mut client, "long")), (404, 200));
    advance(&mut client, 900_000);
    assert_eq!(read(&mut client, "long"), 404);
}

#[test]
fn a_store_moves_from_a_directory_to_postgresql_and_back_with_all_that_it_has() {
    let (first, second, third) = (Place::directory(), Place::database(), Place::directory());
    let mut source = first.serve(&[CLOCK, OPEN]);
    let seen = fill(&source);
    let summary = copied(&source, &second, &[]);
    assert!(summary.starts_with("moved "), "{summary}");
    assert!(summary.contains("`bolide unseal`"), "{summary}");
    source.stop();
    let mut there = second.serve(&[CLOCK, OPEN]);
    check(&there, &seen);
    copied(&there, &third, &["--unseal"]);
    create_item(&mut there.client(), "written-on");
    there.stop();
    let back = third.serve(&[CLOCK, OPEN]);
    check(&back, &seen);
    check_ends(&back);
}

#[test]
fn a_store_moves_from_memory_to_a_directory() {
    let target = Place::directory();
    let source = Server::in_memory(&[CLOCK, OPEN]);
    let seen = fill(&source);
    copied(&source, &target, &[]);
    let there = target.serve(&[CLOCK, OPEN]);
    check(&there, &seen);
    // Numbers go on: nothing gets the resource id of something else.
    let mut client = there.client();
    let made = client
        .send(&Request::post("/dbs", r#"{"id":"new"}"#))
        .expect(201)
        .json();
    let known = client.send(&Request::get("/dbs/d")).expect(200).json();
    assert_ne!(made["_rid"], known["_rid"]);
    create_item(&mut client, "new");
    check_ends(&there);
}
