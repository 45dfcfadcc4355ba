//! Clients that hold connections open take no descriptors, slots or memory from others.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use tempfile::TempDir;

use crate::client::{Client, Request, create_container, create_item};
use crate::http2::{DATA, GOAWAY, HEADERS, Http2, STATUS_200};
use crate::server::Server;

const CERTIFICATE: &str = "/_explorer/emulator.pem";

fn idle(server: &Server, count: usize) -> Vec<TcpStream> {
    let connect = |_| TcpStream::connect(("127.0.0.1", server.port())).expect("the server listens");
    (0..count).map(connect).collect()
}

fn is_served(client: &mut Client) -> bool {
    client
        .try_send(&Request::get("/"))
        .is_ok_and(|response| response.status == 200)
}

#[test]
fn idle_connections_without_a_key_leave_descriptors_to_the_store() {
    let data = TempDir::new().expect("a temporary directory");
    let server = Server::with_open_files(256, data.path(), &["--request-timeout", "600"]);
    let mut early = server.client();
    create_container(&mut early);
    // More than the process has descriptors.
    let held = idle(&server, 400);
    let mut late = server.client();
    for n in 0..50 {
        create_item(&mut late, &format!("late-{n}"));
        create_item(&mut early, &format!("early-{n}"));
    }
    let read = |id: &str| Request::get(&format!("/dbs/d/colls/c/docs/{id}")).pk();
    late.send(&read("early-49")).expect(200);
    early.send(&read("late-49")).expect(200);
    assert_eq!(held.len(), 400);
}

#[test]
fn the_store_starts_and_serves_with_few_descriptors() {
    let data = TempDir::new().expect("a temporary directory");
    let server = Server::with_open_files(96, data.path(), &[]);
    let _held = idle(&server, 200);
    let mut client = server.client();
    create_container(&mut client);
    create_item(&mut client, "a");
}

#[test]
fn when_all_places_are_taken_the_longest_idle_makes_room() {
    let server = Server::in_memory(&["--max-connections", "3"]);
    let (mut first, mut second, mut third) = (server.client(), server.client(), server.client());
    for client in [&mut first, &mut second, &mut third] {
        assert!(is_served(client));
    }
    // Several requests, so that the server has finished the responses of the others.
    for _ in 0..20 {
        assert!(is_served(&mut first));
    }
    let mut new = server.client();
    assert!(is_served(&mut new), "a new connection has a place at once");
    assert!(!is_served(&mut second), "the longest idle has made room");
    for (client, name) in [(&mut first, "first"), (&mut third, "third")] {
        assert!(is_served(client), "{name}");
    }
}

#[test]
fn a_connection_without_a_key_ends_before_an_idle_one() {
    let server = Server::in_memory(&["--max-connections", "8"]);
    let mut client = server.client();
    assert!(is_served(&mut client));
    let mut refused = server.client();
    refused.send(&Request::get("/").unsigned()).expect(401);
    let held = idle(&server, 100);
    assert!(is_served(&mut client), "an old connection is kept");
    assert!(is_served(&mut server.client()), "a new one is accepted");
    assert!(refused.try_send(&Request::get("/").unsigned()).is_err());
    assert_eq!(held.len(), 100);
}

#[test]
fn an_idle_http2_connection_ends() {
    let server = Server::in_memory(&["--idle-timeout", "1"]);
    let mut client = Http2::connect(&server, 65_535);
    client.get(1, CERTIFICATE, "localhost");
    let frames = client.receive_all();
    let of_kind = |kind| frames.iter().filter(|frame| frame.kind == kind).collect::<Vec<_>>();
    assert_eq!(of_kind(HEADERS)[0].payload[0], STATUS_200);
    assert!(!of_kind(DATA).is_empty() && !of_kind(GOAWAY).is_empty(), "{frames:?}");
}

#[test]
fn half_a_preface_of_http2_does_not_wait_for_the_idle_timeout() {
    let server = Server::in_memory(&["--request-timeout", "1"]);
    let mut stream = server.client().into_stream();
    stream.write_all(b"PRI * HTTP/2.0\r\n").expect("sent");
    let mut rest = Vec::new();
    // The read ends with the connection; a timeout of the client would be an error.
    match stream.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
}

#[test]
fn clients_without_a_key_do_not_keep_others_from_reading_refusals() {
    const BODY_BYTES: usize = 3 * 1024 * 1024;
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    create_container(&mut client);
    // Refused by their heads; the server waits for their bodies, which never come.
    let _held: Vec<_> = (0..80)
        .map(|_| {
            let head = String::from_utf8(Request::post("/dbs", "").unsigned().to_bytes()).expect("text");
            let head = head.replace("content-length: 0", "content-length: 1000000");
            let mut stream = server.client().into_stream();
            stream.write_all(head.as_bytes()).expect("sent");
            let mut refused = Client::over(stream);
            assert_eq!(refused.receive(true).expect("a response").status, 401);
            refused
        })
        .collect();
    let body = format!(r#"{{"id":"large","pk":"p","text":"{}"}}"#, "x".repeat(BODY_BYTES));
    for _ in 0..5 {
        let mut client = server.client();
        let response = client.send(&Request::post("/dbs/d/colls/c/docs", &body).pk());
        response.expect(413);
        assert!(is_served(&mut client), "the connection goes on behind the refusal");
    }
}

#[test]
fn an_http2_connection_that_does_not_take_its_response_is_ended() {
    let server = Server::in_memory(&["--request-timeout", "1"]);
    let mut client = Http2::connect(&server, 0);
    client.get(1, CERTIFICATE, "localhost");
    let frames = client.receive_all();
    assert!(frames.iter().any(|frame| frame.kind == HEADERS));
    assert!(!frames.iter().any(|frame| frame.kind == DATA), "there was no window");
}

#[test]
fn unread_refusals_do_not_pile_up() {
    let server = Server::in_memory(&[]);
    let mut client = Http2::connect(&server, 0);
    for n in 0..60 {
        client.get(2 * n + 1, "/dbs", "localhost");
    }
    // Each is answered or reset; resets begin when too many refusals are untaken.
    let mut answered = 0;
    let mut reset = 0;
    while answered + reset < 60 {
        match client.receive().expect("the connection is open").kind {
            HEADERS => answered += 1,
            3 => reset += 1,
            _ => {}
        }
    }
    assert!((1..=40).contains(&answered), "{answered}");
}

#[test]
fn a_connection_that_only_sends_requests_without_a_key_ends() {
    let server = Server::in_memory(&[]);
    let mut client = Http2::connect(&server, 0);
    // Not more at a time than a connection may have open.
    for n in 0..200 {
        if client.try_get(2 * n + 1, "/dbs", "localhost").is_err() {
            break;
        }
    }
    let frames = client.receive_all();
    let answered = frames.iter().filter(|frame| frame.kind == HEADERS).count();
    assert!(answered <= 8, "{answered}");
    assert!(is_served(&mut server.client()));
}

#[test]
fn a_connection_that_keeps_the_server_waiting_can_be_ended() {
    let server = Server::in_memory(&["--max-connections", "2", "--request-timeout", "600"]);
    let waiting = Request::post("/dbs", "").header("expect", "100-continue");
    let head = String::from_utf8(waiting.to_bytes()).expect("text");
    let head = head.replace("content-length: 0", "content-length: 100");
    let held: Vec<_> = (0..2)
        .map(|_| {
            let mut stream = server.client().into_stream();
            stream.write_all(head.as_bytes()).expect("sent");
            let mut client = Client::over(stream);
            // Its sender was authorized, and the server waits for its body.
            assert_eq!(client.receive(true).expect("a response").status, 100);
            client
        })
        .collect();
    assert!(is_served(&mut server.client()));
    assert_eq!(held.len(), 2);
}
