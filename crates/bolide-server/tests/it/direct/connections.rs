//! Connections, addresses, refusals, and frames that lie.

use std::io::Read as _;
use std::time::{Duration, Instant};

use bolide_rntbd::frame::{HEAD_BYTES, Outgoing};
use bolide_rntbd::token::{Kind, TokenWriter};
use serde_json::json;

use super::frames::{ACTIVITY_ID, Answer, Direct};

use crate::client::{Client, Request, create_container, create_item};
use crate::listening::{certificate, tls_client};
use crate::server::Server;

// Types of resources and operations (rntbd.md §4.1, §4.2).
const DOCUMENT: u16 = 3;
const CREATE: u16 = 0x01;
const READ: u16 = 0x03;
const READ_FEED: u16 = 0x04;
const DELETE: u16 = 0x05;
const QUERY: u16 = 0x0F;
const UPSERT: u16 = 0x13;

/// What a request is, besides its tokens.
struct Sent<'a> {
    resource: u16,
    operation: u16,
    /// The request over HTTP that it is, for its signature.
    as_http: Request,
    container: &'a str,
    body: &'a str,
}

impl Direct {
    /// Sends a request with more tokens; returns its number.
    fn send(&mut self, sent: &Sent<'_>, more: impl FnOnce(&mut TokenWriter)) -> u32 {
        self.last += 1;
        let (authorization, date) = sent.as_http.authorization();
        let mut tokens = TokenWriter::default();
        tokens.byte(0x02, u8::from(!sent.body.is_empty()));
        tokens.u_long(0x4D, self.last);
        text(&mut tokens, 0x01, &authorization);
        assert!(tokens.counted(0x03, Kind::SmallString, date.as_bytes()));
        text(&mut tokens, 0x13, "/apps/bolide/services/s/partitions/p0/replicas/0p");
        text(&mut tokens, 0x15, "d");
        text(&mut tokens, 0x16, sent.container);
        more(&mut tokens);
        let frame = Outgoing::request(sent.resource, sent.operation, ACTIVITY_ID, &tokens);
        let bytes = match sent.body {
            "" => frame.write(),
            body => frame.with_payload(body.len()).write(),
        };
        self.write(&bytes.expect("a frame"));
        self.write(sent.body.as_bytes());
        self.last
    }

    /// Sends a request, and receives its answer.
    fn ask(&mut self, sent: &Sent<'_>, more: impl FnOnce(&mut TokenWriter)) -> Answer {
        let number = self.send(sent, more);
        let answer = self.receive().expect("an answer");
        assert_eq!(
            (answer.number(0x35), answer.head.activity_id),
            (number.into(), ACTIVITY_ID)
        );
        answer
    }
}

fn text(tokens: &mut TokenWriter, id: u16, text: &str) {
    assert!(tokens.counted(id, Kind::String, text.as_bytes()));
}

/// A request for items with the partition key `p`.
fn items(operation: u16, body: &str) -> Sent<'_> {
    let method = match operation {
        READ_FEED => "GET",
        _ => "POST",
    };
    Sent {
        resource: DOCUMENT,
        operation,
        as_http: Request::new(method, "/dbs/d/colls/c/docs"),
        container: "c",
        body,
    }
}

fn item(operation: u16, id: &str) -> Sent<'static> {
    let method = match operation {
        DELETE => "DELETE",
        _ => "GET",
    };
    Sent {
        resource: DOCUMENT,
        operation,
        as_http: Request::new(method, "/").signing_as("docs", &format!("dbs/d/colls/c/docs/{id}")),
        container: "c",
        body: "",
    }
}

fn key(tokens: &mut TokenWriter) {
    text(tokens, 0x2B, "[\"p\"]");
}

fn named(id: &str) -> impl FnOnce(&mut TokenWriter) {
    move |tokens| {
        key(tokens);
        text(tokens, 0x17, id);
    }
}

fn connected(server: &Server, pem: &[u8]) -> Direct {
    Direct::connect(server.port(), pem, "2020-07-15")
}

fn started() -> (Server, Client, Vec<u8>) {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    create_container(&mut client);
    let pem = certificate(&server);
    (server, client, pem)
}

#[test]
fn items_are_the_same_in_both_modes() {
    let (server, mut client, pem) = started();
    let mut direct = connected(&server, &pem);
    // Nothing was written yet: not even then is a position nought.
    let missing = direct.ask(&item(READ, "ü x+%2F"), named("ü x+%2F")).expect(404);
    assert_eq!(missing.json()["code"], "NotFound");
    let created = direct
        .ask(&items(CREATE, r#"{"id":"ü x+%2F","pk":"p","n":1}"#), key)
        .expect(201);
    assert!(
        created
            .head
            .tokens
            .required(0x15)
            .expect("a charge")
            .double()
            .expect("a double")
            > 1.0
    );
    assert_eq!(created.json()["n"], 1);
    let twice = direct
        .ask(&items(CREATE, r#"{"id":"ü x+%2F","pk":"p"}"#), key)
        .expect(409);
    assert_eq!(twice.text(0x3E), created.text(0x3E));
    let read = direct.ask(&item(READ, "ü x+%2F"), named("ü x+%2F")).expect(200);
    assert_eq!(
        (read.json(), read.text(0x04)),
        (created.json(), created.json()["_etag"].as_str().expect("text"))
    );
    let unchanged = direct.ask(&item(READ, "ü x+%2F"), |tokens| {
        named("ü x+%2F")(tokens);
        text(tokens, 0x08, read.text(0x04));
    });
    assert!(unchanged.expect(304).body.is_empty());

    let upserted = direct
        .ask(&items(UPSERT, r#"{"id":"b","pk":"p","n":2}"#), key)
        .expect(201);
    let over_http = client.send(&Request::get("/dbs/d/colls/c/docs/b").pk()).expect(200);
    assert_eq!(over_http.json(), upserted.json());
    assert_eq!(
        over_http.header("x-ms-session-token"),
        Some(&*format!("0:{}", upserted.text(0x3E)))
    );
    let query = r#"{"query":"SELECT VALUE c.n FROM c ORDER BY c.n DESC"}"#;
    let found = direct
        .ask(&items(QUERY, query), |tokens| text(tokens, 0x2C, "0"))
        .expect(200);
    assert_eq!(found.json()["Documents"], json!([2, 1]));
    let page = direct.ask(&items(READ_FEED, ""), |tokens| {
        text(tokens, 0x2C, "0");
        tokens.u_long(0x04, 1);
    });
    let page = page.expect(200);
    assert_eq!((page.number(0x14), page.json()["_count"].clone()), (1, json!(1)));
    assert!(!page.text(0x03).is_empty());
    let mut changes = |etag: &str| {
        direct.ask(&items(READ_FEED, ""), |tokens| {
            text(tokens, 0x2C, "0");
            text(tokens, 0x3F, "Incremental Feed");
            if !etag.is_empty() {
                text(tokens, 0x08, etag);
            }
        })
    };
    let all = changes("").expect(200);
    assert_eq!(all.json()["_count"], 2);
    assert!(changes(all.text(0x04)).expect(304).body.is_empty());
    direct.ask(&item(DELETE, "b"), named("b")).expect(204);
    client.send(&Request::get("/dbs/d/colls/c/docs/b").pk()).expect(404);
}

#[test]
fn https_is_served_on_the_same_port() {
    let (server, _, pem) = started();
    let mut https = tls_client(&server, &pem, "localhost");
    for _ in 0..2 {
        https.send(&Request::get("/dbs/d")).expect(200);
    }
    // The account says how many replicas clients see.
    let account = https.send(&Request::get("/")).expect(200).json();
    assert_eq!(account["userReplicationPolicy"]["maxReplicasetSize"], 2);
}

#[test]
fn addresses_are_told_to_those_who_may_use_them() {
    let (server, mut client, pem) = started();
    let mut https = tls_client(&server, &pem, "localhost");
    let coll = client.send(&Request::get("/dbs/d/colls/c")).expect(200).json();
    let rid = coll["_rid"].as_str().expect("text");
    let path = format!(
        "//addresses/?$resolveFor=dbs%2fx%2fcolls%2f{}%2fdocs&$filter=protocol%20eq%20rntbd&$partitionKeyRangeIds=0,7",
        rid.replace('=', "%3d")
    );
    let ask = |link: &str| Request::get(&path).signing_as("docs", link).host("localhost:8443");
    let told = https.send(&ask(&rid.to_lowercase())).expect(200).json();
    let addresses = told["Addresss"].as_array().expect("a list");
    assert_eq!(addresses.len(), 2);
    assert_eq!(
        addresses[0]["physcialUri"],
        "rntbd://localhost:8443/apps/bolide/services/s/partitions/p0/replicas/0p/"
    );
    assert_eq!(
        (&addresses[0]["isPrimary"], &addresses[1]["isPrimary"]),
        (&json!(true), &json!(false))
    );
    let master = "//addresses/?$resolveFor=dbs&$filter=protocol%20eq%20rntbd";
    let master = https
        .send(&Request::get(master).signing_as("dbs", ""))
        .expect(200)
        .json();
    assert_eq!(master["Addresss"][0]["partitionKeyRangeId"], "M");
    https.send(&ask("another")).expect_error(401);
    https.send(&ask("x").header("authorization", "")).expect_error(401);
    let unknown = path.replace(&rid.replace('=', "%3d"), "AAAAAIoLAfg%3d");
    https
        .send(&Request::get(&unknown).signing_as("docs", "aaaaaiolafg="))
        .expect_error(404);

    // A token of the container, and one of another.
    let mut token_of = |container: &str| {
        let definition = json!({"id": container, "partitionKey": {"paths": ["/pk"]}}).to_string();
        client.send(&Request::post("/dbs/d/colls", definition));
        client
            .send(&Request::post("/dbs/d/users", json!({"id": container}).to_string()))
            .expect(201);
        let permission = json!({"id": "p", "permissionMode": "Read", "resource": format!("dbs/d/colls/{container}")});
        let made = client.send(&Request::post(
            &format!("/dbs/d/users/{container}/permissions"),
            permission.to_string(),
        ));
        made.expect(201).json()["_token"]
            .as_str()
            .expect("text")
            .replace('=', "%3D")
            .replace('&', "%26")
    };
    let (own, other) = (token_of("c"), token_of("other"));
    https.send(&ask("x").header("authorization", &own)).expect(200);
    https.send(&ask("x").header("authorization", &other)).expect_error(403);

    let without = Server::in_memory(&["--no-direct"]);
    let refused = without
        .client()
        .send(&Request::get("//addresses/?$resolveFor=dbs").signing_as("dbs", ""));
    assert!(refused.expect_error(400).text().contains("gateway mode"));
}

#[test]
fn a_container_that_was_made_anew_is_not_taken_for_the_old_one() {
    let (server, mut client, pem) = started();
    create_item(&mut client, "a");
    let coll = client.send(&Request::get("/dbs/d/colls/c")).expect(200).json();
    let rid = coll["_rid"].as_str().expect("text").to_owned();
    let mut direct = connected(&server, &pem);
    let with_rid = || {
        let rid = rid.clone();
        move |tokens: &mut TokenWriter| {
            named("a")(tokens);
            text(tokens, 0x35, &rid);
        }
    };
    direct.ask(&item(READ, "a"), with_rid()).expect(200);
    client.send(&Request::new("DELETE", "/dbs/d/colls/c")).expect(204);
    let definition = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    client.send(&Request::post("/dbs/d/colls", definition)).expect(201);
    let stale = direct.ask(&item(READ, "a"), with_rid()).expect(410);
    assert_eq!(stale.number(0x1C), 1000);
}

#[test]
fn many_requests_are_under_way_at_once_and_each_has_its_answer() {
    let (server, mut client, pem) = started();
    for id in 0..10 {
        create_item(&mut client, &id.to_string());
    }
    let mut direct = connected(&server, &pem);
    let mut expected: Vec<(u32, String)> = (0..200)
        .map(|number| {
            let id = (number % 10).to_string();
            (direct.send(&item(READ, &id), named(&id)), id)
        })
        .collect();
    let mut answered: Vec<(u32, String)> = (0..200)
        .map(|_| {
            let answer = direct.receive().expect("an answer").expect(200);
            let id = answer.json()["id"].as_str().expect("text").to_owned();
            (u32::try_from(answer.number(0x35)).expect("a number"), id)
        })
        .collect();
    answered.sort();
    expected.sort();
    assert_eq!(answered, expected);
}

#[test]
fn who_has_no_key_is_refused_and_the_connection_goes_on() {
    let (server, _, pem) = started();
    let mut direct = connected(&server, &pem);
    let mut wrong = items(CREATE, "");
    let large = format!(r#"{{"id":"a","pk":"p","text":"{}"}}"#, "x".repeat(1_000_000));
    wrong.body = &large;
    wrong.as_http = wrong.as_http.signing("dbs/d/colls/other");
    let refused = direct.ask(&wrong, key).expect(401);
    assert_eq!(refused.number(0x13), 1);
    // It learns no more of what is there than it has said itself.
    let session = direct.ask(&wrong, |tokens| {
        key(tokens);
        text(tokens, 0x05, "3:-1#77");
    });
    let session = session.expect(401);
    assert_eq!(
        (session.number(0x13), session.text(0x21), session.text(0x3E)),
        (77, "3", "-1#77")
    );
    let too_large = format!(r#"{{"id":"a","pk":"p","text":"{}"}}"#, "x".repeat(3_000_000));
    direct.ask(&items(CREATE, &too_large), key).expect(413);
    direct.ask(&items(CREATE, r#"{"id":"a","pk":"p"}"#), key).expect(201);
    // What is not served, with the reason.
    let mut strange = items(CREATE, "{}");
    strange.operation = 0x0C;
    let why = direct.ask(&strange, key).expect(400).json();
    let message = why["message"].as_str().expect("text");
    assert!(message.starts_with("operation type 0x0c is not served"), "{message}");
    direct.ask(&item(READ, "a"), named("a")).expect(200);
}

#[test]
fn a_body_that_is_much_too_large_is_refused_and_the_requests_beside_it_are_answered() {
    let (server, mut client, pem) = started();
    create_item(&mut client, "a");
    let mut direct = connected(&server, &pem);
    direct.ask(&item(READ, "a"), named("a")).expect(200);
    let large = format!(r#"{{"id":"b","pk":"p","text":"{}"}}"#, "x".repeat(20_000_000));
    let first = direct.send(&item(READ, "a"), named("a"));
    let second = direct.send(&items(CREATE, &large), key);
    let third = direct.send(&item(READ, "a"), named("a"));
    let mut statuses: Vec<(i128, u32)> = (0..3)
        .map(|_| direct.receive().expect("an answer"))
        .map(|answer| (answer.number(0x35), answer.head.status()))
        .collect();
    statuses.sort_unstable();
    assert_eq!(
        statuses,
        [(first.into(), 200), (second.into(), 413), (third.into(), 200)]
    );
}

#[test]
fn what_a_client_has_asked_ends_when_it_leaves() {
    let (server, mut client, pem) = started();
    let worst = json!({"id": "a", "pk": "p", "xs": vec![1; 3_163], "t": "a".repeat(100)}).to_string();
    client
        .send(&Request::post("/dbs/d/colls/c/docs", worst).pk())
        .expect(201);
    let open = |client: &mut Client| {
        let metrics = client.send(&Request::get("/_bolide/metrics")).expect(200).text();
        let line = metrics
            .lines()
            .find_map(|line| line.strip_prefix("bolide_connections "));
        line.expect("a figure").parse::<u32>().expect("a number")
    };
    let before = open(&mut client);
    let mut direct = connected(&server, &pem);
    direct.ask(&item(READ, "a"), named("a")).expect(200);
    // Ten million rows, for longer than this test waits.
    let long = r#"{"query":"SELECT VALUE COUNT(1) FROM c JOIN a IN c.xs JOIN b IN c.xs WHERE CONTAINS(c.t, CONCAT(c.t, 'b'), true)"}"#;
    for _ in 0..8 {
        direct.send(&items(QUERY, long), |tokens| text(tokens, 0x2C, "0"));
    }
    drop(direct);
    let deadline = Instant::now() + Duration::from_secs(10);
    while open(&mut client) > before {
        assert!(Instant::now() < deadline, "the connection goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_answer_does_not_wait_for_the_rest_of_the_next_frame() {
    let (mut server, mut client, pem) = started();
    create_item(&mut client, "a");
    let mut direct = connected(&server, &pem);
    direct.ask(&item(READ, "a"), named("a")).expect(200);
    let patience = Some(Duration::from_secs(5));
    direct.stream.sock.set_read_timeout(patience).expect("a timeout");
    direct.send(&items(CREATE, r#"{"id":"b","pk":"p"}"#), key);
    // A length, and some of what it says.
    direct.write(&[&200_u32.to_le_bytes()[..], &[3, 0, 3, 0, 7]].concat());
    direct.receive().expect("the first answer").expect(201);
    assert!(server.stop().success());
    assert!(direct.is_closed());
}

#[test]
fn lying_frames_end_the_connection_and_nothing_else() {
    let (server, _, pem) = started();
    // A request before the context is not carried out.
    let mut direct = Direct::opened(server.port(), &pem);
    direct.send(&items(CREATE, r#"{"id":"first","pk":"p"}"#), key);
    while direct.stream.read(&mut [0; 1024]).is_ok_and(|bytes| bytes > 0) {}
    connected(&server, &pem)
        .ask(&item(READ, "first"), named("first"))
        .expect(404);
    // A context without what it needs is answered.
    let mut direct = Direct::opened(server.port(), &pem);
    let empty = TokenWriter::default();
    let first = Outgoing::request(0, 0, [3; 16], &empty).write().expect("a frame");
    direct.write(&first);
    let refused = direct.receive().expect("a refusal");
    assert_eq!((refused.head.status(), refused.head.activity_id), (400, [3; 16]));
    assert!(refused.json()["message"].as_str().expect("text").contains("is missing"));
    assert!(direct.is_closed());
    let frame = |length: u32, rest: &[u8]| [&length.to_le_bytes()[..], rest].concat();
    for bytes in [
        frame(0, &[0; 20]),
        frame(23, &[0; 19]),
        frame(200 * 1024, &[0; 20]),
        frame(u32::MAX, &[0; 20]),
        // A token that is cut off; one of an unknown type; no number.
        frame(30, &[&[3, 0, 3, 0][..], &[0; 16], &[1, 0, 8, 9, 0, b'a']].concat()),
        frame(27, &[&[3, 0, 3, 0][..], &[0; 16], &[1, 0, 0xEE]].concat()),
        frame(
            u32::try_from(HEAD_BYTES).expect("short"),
            &[&[3, 0, 3, 0][..], &[0; 16]].concat(),
        ),
    ] {
        let mut direct = connected(&server, &pem);
        direct.write(&bytes);
        assert!(direct.is_closed(), "{bytes:?}");
    }
    let mut direct = connected(&server, &pem);
    direct.ask(&items(CREATE, r#"{"id":"a","pk":"p"}"#), key).expect(201);
}

#[test]
fn who_has_no_key_does_not_learn_what_is_there() {
    let (server, mut client, pem) = started();
    create_item(&mut client, "a");
    // Refused before anybody looks at its signature.
    let answers: Vec<_> = ["c", "none"]
        .map(|container| {
            let mut direct = connected(&server, &pem);
            let mut sent = items(READ_FEED, "");
            sent.as_http = sent.as_http.signing("nobody");
            sent.container = container;
            let answer = direct.ask(&sent, |tokens| {
                assert!(tokens.counted(0x28, Kind::SmallString, b"x"));
            });
            let answer = answer.expect(400);
            (
                answer.number(0x13),
                answer.text(0x21).to_owned(),
                answer.text(0x3E).to_owned(),
            )
        })
        .into();
    assert_eq!(answers, vec![(1, "0".to_owned(), "-1#1".to_owned()); 2]);
}

#[test]
fn a_server_that_stops_waits_for_no_connection_that_has_said_nothing() {
    let (mut server, _, pem) = started();
    let mut silent = Direct::opened(server.port(), &pem);
    silent
        .stream
        .conn
        .complete_io(&mut silent.stream.sock)
        .expect("a handshake");
    let mut idle = connected(&server, &pem);
    idle.ask(&items(CREATE, r#"{"id":"a","pk":"p"}"#), key).expect(201);
    assert!(server.stop().success());
    assert!(idle.is_closed());
}
