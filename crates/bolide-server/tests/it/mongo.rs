//! The listener of MongoDB's protocol. Commands are tested in `bolide-mongo`.

use std::io::{Read, Write};
use std::net::TcpListener;

use bson::{RawDocumentBuf, rawdoc};
use serde_json::json;

use crate::client::Request;
use crate::listening::{certificate, tls_stream};
use crate::mongo_client::MongoClient;
use crate::server::{Server, run};

/// The port of the MongoDB listener.
pub fn port(server: &Server) -> u16 {
    let url = server.ready()["mongo"].as_str().expect("a URL");
    url.rsplit(':').next().expect("a port").parse().expect("a port number")
}

fn connect(port: u16) -> MongoClient {
    MongoClient::connect(port).expect("the server listens")
}

/// Sends a command; returns the reply.
fn send(client: &mut MongoClient<impl Read + Write>, command: &RawDocumentBuf) -> RawDocumentBuf {
    client.run(command).expect("a reply")
}

fn hello() -> RawDocumentBuf {
    rawdoc! { "hello": 1, "$db": "admin" }
}

#[test]
fn clients_with_and_without_tls_share_a_port() {
    let server = Server::in_memory(&[]);
    let port = port(&server);
    let me = format!("127.0.0.1:{port}");
    let reply = send(&mut connect(port), &hello());
    assert_eq!(reply.get_str("me").expect("an address"), me);
    let pem = certificate(&server);
    let reply = send(&mut MongoClient::over(tls_stream(port, &pem, "localhost")), &hello());
    assert_eq!(reply.get_str("me").expect("an address"), me);
}

#[test]
fn data_needs_authentication_unless_it_is_switched_off() {
    let list = rawdoc! { "listCommands": 1, "$db": "admin" };
    let server = Server::in_memory(&[]);
    let refused = send(&mut connect(port(&server)), &list);
    assert_eq!(refused.get_i32("code").expect("an error"), 13);
    let open = Server::in_memory(&["--mongo-no-auth"]);
    let reply = send(&mut connect(port(&open)), &list);
    assert_eq!(reply.get_f64("ok").ok(), Some(1.0));
}

#[test]
fn the_replica_set_is_named_and_advertised_as_configured() {
    let server = Server::in_memory(&["--mongo-set-name", "rs0", "--mongo-advertise", "db.example:27017"]);
    let reply = send(&mut connect(port(&server)), &hello());
    assert_eq!(reply.get_str("setName").expect("a name"), "rs0");
    assert_eq!(reply.get_str("me").expect("an address"), "db.example:27017");
}

#[test]
fn a_server_may_do_without_the_listener() {
    let server = Server::in_memory(&["--no-mongo"]);
    assert!(server.ready()["mongo"].is_null());
}

#[test]
fn a_port_that_is_taken_is_named_with_its_option() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let ended = run(&["--memory", "--port", "0", "--mongo-port", &port]);
    assert!(!ended.status.success());
    for part in [&port, "--mongo-port", "--no-mongo"] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
}

#[test]
fn a_stop_does_not_wait_for_idle_connections() {
    let mut server = Server::in_memory(&[]);
    let mut stream = connect(port(&server));
    send(&mut stream, &hello());
    assert!(server.stop().success());
    assert_eq!(stream.stream().read(&mut [0; 1]).expect("an orderly end"), 0);
}

#[test]
fn connections_that_send_nonsense_are_closed_and_others_are_served() {
    let server = Server::in_memory(&[]);
    let port = port(&server);
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0; 16],
        &[0xff; 16],
        &[0x16, 0x03, 0x01, 0xff, 0xff, 0, 0, 0],
    ] {
        let mut stream = connect(port);
        stream.send_bytes(bytes).expect("the server reads");
        stream
            .stream()
            .shutdown(std::net::Shutdown::Write)
            .expect("half closed");
        let mut rest = Vec::new();
        // A reset or an end: both are the end of this connection.
        let _ = stream.stream().read_to_end(&mut rest);
    }
    let reply = send(&mut connect(port), &hello());
    assert_eq!(reply.get_f64("ok").ok(), Some(1.0));
}

#[test]
fn documents_written_through_one_api_are_items_of_the_other() {
    // docs/mongodb.md, "One data set through both APIs".
    let server = Server::in_memory(&["--mongo-no-auth"]);
    let mut mongo = connect(port(&server));
    let insert = rawdoc! { "insert": "c", "$db": "db", "documents": [{"_id": "a", "n": 1}, {"_id": 5_i64, "n": 2.5}] };
    assert_eq!(send(&mut mongo, &insert).get_i32("n").ok(), Some(2));

    let mut client = server.client();
    let item = client
        .send(&Request::get("/dbs/db/colls/c/docs/a").pk())
        .expect(200)
        .json();
    assert_eq!(
        (&item["id"], &item["_id"], &item["n"]),
        (&json!("a"), &json!("a"), &json!(1))
    );
    let feed = client.send(&Request::get("/dbs/db/colls/c/docs")).expect(200).json();
    assert_eq!(feed["Documents"][1]["id"], r#"{"$numberLong":"5"}"#);
    let query = Request::post(
        "/dbs/db/colls/c/docs",
        r#"{"query": "SELECT VALUE c.n FROM c WHERE c.n > 1"}"#,
    )
    .query();
    assert_eq!(client.send(&query).expect(200).json()["Documents"], json!([2.5]));
    let definition = client.send(&Request::get("/dbs/db/colls/c")).expect(200).json();
    assert_eq!(definition["partitionKey"]["systemKey"], true);
    let ranges = client
        .send(&Request::get("/dbs/db/colls/c/pkranges"))
        .expect(200)
        .json();
    assert_eq!(ranges["PartitionKeyRanges"].as_array().map(Vec::len), Some(1));

    let create = Request::post("/dbs/db/colls/c/docs", r#"{"id": "b"}"#).pk();
    let refused = client.send(&create).expect_error(400).json();
    assert!(
        refused["message"].as_str().expect("a text").contains("MongoDB API"),
        "{refused}"
    );
    let definition = r#"{"id": "c", "partitionKey": {"paths": ["/_partitionKey"], "kind": "Hash"}, "defaultTtl": 1}"#;
    client
        .send(&Request::put("/dbs/db/colls/c", definition))
        .expect_error(400);
    let count = rawdoc! { "count": "c", "$db": "db" };
    assert_eq!(send(&mut mongo, &count).get_i32("n").ok(), Some(2));

    client.send(&Request::new("DELETE", "/dbs/db/colls/c")).expect(204);
    assert_eq!(send(&mut mongo, &count).get_i32("n").ok(), Some(0));
}
