//! A normal stop ends within seconds, whatever clients do.

use std::io::Write as _;
use std::time::{Duration, Instant};

use crate::client::{Request, create_container, create_item};
use crate::server::Server;

#[test]
fn a_server_at_rest_stops_at_once_with_status_zero() {
    let mut server = Server::in_memory(&[]);
    let mut resting = server.client();
    resting.send(&Request::get("/")).expect(200);
    let started = Instant::now();
    assert_eq!(server.stop().code(), Some(0));
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
}

#[test]
fn clients_that_hang_do_not_keep_it() {
    let mut server = Server::in_memory(&["--enable-faults"]);
    let mut client = server.client();
    create_container(&mut client);
    create_item(&mut client, "a");
    let delay = r#"[{"match":{"operation":"ReadItem"},"delayMs":600000}]"#;
    client.send(&Request::put("/_bolide/faults/rules", delay)).expect(200);
    let mut waiting = server.client().into_stream();
    waiting
        .write_all(&Request::get("/dbs/d/colls/c/docs/a").pk().to_bytes())
        .expect("it can be sent");
    let mut half = server.client().into_stream();
    half.write_all(b"POST /dbs HTTP/1.1\r\ncontent-length: 10\r\n\r\n{")
        .expect("it can be sent");
    let _silent = server.client();
    let started = Instant::now();
    assert_eq!(server.stop().code(), Some(0));
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[test]
fn the_worst_queries_do_not_keep_it() {
    let mut server = Server::in_memory(&[]);
    let mut client = server.client();
    create_container(&mut client);
    let xs: Vec<u32> = (0..300).collect();
    let item = serde_json::json!({"id": "a", "pk": "p", "xs": xs, "t": "a".repeat(8_000)});
    client
        .send(&Request::post("/dbs/d/colls/c/docs", item.to_string()).pk())
        .expect(201);
    let text = "SELECT VALUE COUNT(1) FROM c JOIN a IN c.xs JOIN b IN c.xs WHERE RegexMatch(c.t, '(?=(a+)+b)x')";
    let query = serde_json::json!({"query": text, "parameters": []}).to_string();
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let mut stream = server.client().into_stream();
            let request = Request::post("/dbs/d/colls/c/docs", &query).query().pk();
            stream.write_all(&request.to_bytes()).expect("it can be sent");
            stream
        })
        .collect();
    // Other requests are served meanwhile, so the queries have begun or are about to.
    client.send(&Request::get("/dbs/d/colls/c/docs/a").pk()).expect(200);
    assert_eq!(server.stop().code(), Some(0));
    drop(clients);
}

#[test]
fn the_end_of_standard_input_stops_it_if_that_was_asked_for() {
    let mut server = Server::with_piped_stdin(&["--memory", "--stop-with-stdin"]);
    server.write_to_stdin(&[b'x'; 100_000]);
    server.client().send(&Request::get("/")).expect(200);
    server.close_stdin();
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn the_end_of_standard_input_means_nothing_otherwise() {
    let mut server = Server::with_piped_stdin(&["--memory"]);
    server.close_stdin();
    server.client().send(&Request::get("/")).expect(200);
    assert_eq!(server.stop().code(), Some(0));
}
