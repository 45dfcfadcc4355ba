//! `bolide demo`: a sample database in which things expire.

use bson::rawdoc;
use serde_json::{Value, json};

use crate::client::Request;
use crate::mongo_client::MongoClient;
use crate::server::{Server, command, run};

/// The number of items that a container shows.
fn count(server: &Server, container: &str) -> u64 {
    let endpoint = format!("http://127.0.0.1:{}", server.port());
    let place = ["--database", "demo", "--container", container, "--endpoint", &endpoint];
    let output = command()
        .args(["query", "SELECT VALUE COUNT(1) FROM c"])
        .args(place)
        .output();
    let output = output.expect("the binary runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.trim()
        .parse()
        .unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

fn advance(server: &Server, seconds: i64) {
    let body = json!({"advanceMs": seconds * 1000}).to_string();
    server.client().send(&Request::put("/_bolide/clock", body)).expect(200);
}

#[test]
fn items_of_each_kind_of_container_end_or_stay() {
    let server = Server::demo(&["--virtual-clock"]);
    let counts = || ["codes", "sessions", "audit", "orders"].map(|container| count(&server, container));
    assert_eq!(counts(), [60, 40, 20, 12]);
    advance(&server, 5);
    assert_eq!(counts(), [59, 40, 20, 12], "the first code has a ttl of 5 seconds");
    advance(&server, 55);
    // The ttls of sessions are 12, 24, … 120, of entries 30, 60, … 300.
    assert_eq!(counts(), [48, 35, 18, 12]);
    advance(&server, 120);
    // The default of sessions is 180 seconds; a quarter of them never ends.
    assert_eq!(counts(), [24, 10, 14, 12]);
    advance(&server, 10_000);
    assert_eq!(counts(), [0, 10, 10, 12], "orders stay although some have a ttl");
}

#[test]
fn a_collection_has_a_ttl_index() {
    let server = Server::demo(&["--virtual-clock", "--mongo-no-auth"]);
    let documents = || {
        let mut client = MongoClient::connect(server.mongo_port()).expect("it listens");
        let reply = client.run(&rawdoc! {"count": "carts", "$db": "demo"}).expect("a reply");
        reply.get_i32("n").unwrap_or_else(|_| panic!("{reply:?}"))
    };
    assert_eq!(documents(), 30);
    advance(&server, 9);
    assert_eq!(documents(), 30);
    advance(&server, 2);
    assert_eq!(documents(), 29, "its date has passed");
    let mut client = MongoClient::connect(server.mongo_port()).expect("it listens");
    let reply = client
        .run(&rawdoc! {"listIndexes": "carts", "$db": "demo"})
        .expect("a reply");
    let text = String::from_utf8_lossy(reply.as_bytes());
    assert!(text.contains("expireAfterSeconds"), "{text}");
}

#[test]
fn without_mongodb_there_is_no_collection() {
    let server = Server::demo(&["--no-mongo"]);
    assert_eq!(server.ready()["mongo"], Value::Null);
    assert_eq!(count(&server, "orders"), 12);
    server.client().send(&Request::get("/dbs/demo/colls/carts")).expect(404);
}

#[test]
fn a_data_directory_is_refused() {
    let ended = run(&[
        "demo",
        "--port",
        "0",
        "--mongo-port",
        "0",
        "--data-dir",
        "/nowhere/to/be/made",
    ]);
    assert!(
        !ended.status.success() && ended.stderr.contains("--data-dir"),
        "{}",
        ended.stderr
    );
}
