//! Bodies and responses use one memory budget; bodies only of clients with a key.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{Client, Request, create_container, create_item};
use crate::server::Server;

const DOCS: &str = "/dbs/d/colls/c/docs";

/// A request's head, which declares a body.
fn head_only(request: &Request, body_bytes: usize) -> Vec<u8> {
    let text = String::from_utf8(request.to_bytes()).expect("text");
    let claimed = format!("content-length: {body_bytes}\r\n");
    text.replace("content-length: 0\r\n", &claimed).into_bytes()
}

fn send(server: &Server, bytes: &[u8]) -> Client {
    let mut stream = server.client().into_stream();
    stream.write_all(bytes).expect("sent");
    Client::over(stream)
}

#[test]
fn a_client_without_a_key_is_refused_before_its_body() {
    let server = Server::in_memory(&[]);
    for path in [DOCS, "/dbs", "/_bolide/dbs/d/colls/c/import", "/_bolide/clock"] {
        for bytes in [100, 2_000_000, 200_000_000] {
            let request = Request::post(path, "").unsigned();
            let response = send(&server, &head_only(&request, bytes)).receive(false);
            response.expect("a response before the body").expect_error(401);
        }
    }
    let other_key = Request::post(DOCS, "").pk().key("MDEyMzQ1Njc4OWFiY2RlZg==");
    let response = send(&server, &head_only(&other_key, 2_000_000)).receive(false);
    response.expect("a response before the body").expect_error(401);
}

#[test]
fn a_body_that_claims_to_be_too_large_is_refused_before_it_is_sent() {
    let server = Server::in_memory(&[]);
    let request = Request::post(DOCS, "").pk();
    let response = send(&server, &head_only(&request, 3_000_000)).receive(false);
    response.expect("a response before the body").expect_error(413);
}

#[test]
fn a_refused_client_that_has_sent_its_body_reads_the_response_and_continues() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    let body = vec![b' '; 1_500_000];
    client.send(&Request::post(DOCS, body).unsigned()).expect_error(401);
    client.send(&Request::get("/")).expect(200);
}

#[test]
fn a_client_may_ask_before_it_sends_its_body() {
    let server = Server::in_memory(&[]);
    create_container(&mut server.client());
    let body = r#"{"id":"a","pk":"p"}"#;
    let asking = Request::post(DOCS, "").pk().header("expect", "100-continue");
    let mut client = send(&server, &head_only(&asking, body.len()));
    assert_eq!(client.receive(true).expect("a response").status, 100);
    let mut stream = client.into_stream();
    stream.write_all(body.as_bytes()).expect("sent");
    Client::over(stream).receive(false).expect("a response").expect(201);

    let mut refused = send(&server, &head_only(&asking.unsigned(), body.len()));
    refused.receive(false).expect("a response").expect_error(401);
}

/// Items that fill more than a page of a feed.
fn fill(client: &mut Client) {
    create_container(client);
    for id in ["a", "b", "c"] {
        let body = json!({"id": id, "pk": "p", "text": "x".repeat(1_800_000)});
        client.send(&Request::post(DOCS, body.to_string()).pk()).expect(201);
    }
    create_item(client, "small");
}

fn metric(client: &mut Client, name: &str) -> f64 {
    let text = client.send(&Request::get("/_bolide/metrics")).expect(200).text();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("no {name} in {text}"))
        .parse()
        .expect("a number")
}

/// Sends requests until the condition holds.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(60), "it does not come to that");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn unread_responses_are_dropped_for_other_requests() {
    let server = Server::in_memory(&["--memory-limit", "20", "--request-timeout", "600"]);
    let mut client = server.client();
    fill(&mut client);
    let limit = metric(&mut client, "bolide_memory_limit_bytes");
    assert!((limit - 20.0 * 1024.0 * 1024.0).abs() < 1.0, "{limit}");

    // Their clients never read. While many pages are prepared, some are short or refused, so some more requests may be needed.
    let feed = Request::get(DOCS).pk();
    let mut held: Vec<TcpStream> = Vec::new();
    wait_until(|| {
        held.push(send(&server, &feed.to_bytes()).into_stream());
        metric(&mut client, "bolide_memory_used_bytes") > limit / 2.0
    });

    // Requests that need little memory still work.
    client.send(&Request::get(&format!("{DOCS}/small")).pk()).expect(200);
    create_item(&mut client, "another");

    wait_until(|| {
        let used = metric(&mut client, "bolide_memory_used_bytes");
        assert!(used <= limit, "{used}");
        let response = client.send(&feed);
        if response.status != 200 {
            let refusal = response.expect_error(429);
            assert!(refusal.header("x-ms-retry-after-ms").is_some());
            return false;
        }
        true
    });
    drop(held);
    wait_until(|| metric(&mut client, "bolide_memory_used_bytes") < 1.0);
}

#[test]
fn a_body_waits_for_memory_and_is_refused_when_there_is_none() {
    let server = Server::in_memory(&["--memory-limit", "16", "--request-timeout", "60"]);
    let mut client = server.client();
    create_container(&mut client);
    // Decoded, these need ten times the budget.
    let numbers = format!(r#"{{"id":"n","pk":"p","v":[{}0]}}"#, "0,".repeat(900_000));
    let refused = client.send(&Request::post(DOCS, numbers).pk());
    assert!([413, 429].contains(&refused.status), "{}", refused.text());
    let text = json!({"id": "t", "pk": "p", "v": "x".repeat(1_800_000)}).to_string();
    client.send(&Request::post(DOCS, text).pk()).expect(201);
}

#[test]
fn bodies_that_never_come_hold_no_memory() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    create_container(&mut client);
    let request = head_only(&Request::post(DOCS, "").pk(), 2_000_000);
    let mut held: Vec<_> = (0..100).map(|_| send(&server, &request).into_stream()).collect();
    create_item(&mut client, "a");
    assert!(metric(&mut client, "bolide_memory_used_bytes") < 1.0);
    // None was refused: the server waits for them.
    held[0].set_nonblocking(true).expect("it can be set");
    assert!(held[0].read(&mut [0; 1]).is_err());
}

/// Operations that all read the same item.
fn reads(id: &str, count: usize) -> String {
    let read = json!({"operationType": "Read", "id": id, "partitionKey": "[\"p\"]"});
    json!(vec![read; count]).to_string()
}

#[test]
fn results_of_a_bulk_end_where_an_answer_is_full() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    fill(&mut client);
    let bulk = Request::post(DOCS, reads("a", 50))
        .header("x-ms-cosmos-is-batch-request", "True")
        .header("x-ms-cosmos-batch-continue-on-error", "True");
    let results = client.send(&bulk).expect(207).json();
    let results = results.as_array().expect("results");
    let read = results.iter().filter(|result| result["statusCode"] == 200).count();
    assert_eq!(read, 3, "items of 1.8 MB until 4 MiB are full");
    for refused in &results[read..] {
        assert_eq!(
            (&refused["statusCode"], &refused["subStatusCode"]),
            (&json!(413), &json!(3402)),
            "so that clients send it again"
        );
    }
}

#[test]
fn a_batch_reads_no_more_than_an_answer_holds() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    fill(&mut client);
    let batch = |count| {
        Request::post(DOCS, reads("a", count))
            .pk()
            .header("x-ms-cosmos-is-batch-request", "True")
            .header("x-ms-cosmos-batch-atomic", "True")
    };
    client.send(&batch(2)).expect(200);
    let results = client.send(&batch(3)).expect(207).json();
    assert_eq!(results[2]["statusCode"], 413, "{results}");
}

#[test]
fn a_refusal_without_a_key_is_short_whatever_it_echoes() {
    let server = Server::in_memory(&[]);
    let long = "x".repeat(30_000);
    for request in [
        Request::get("/").header("origin", &format!("http://{long}")),
        Request::get(&format!("/dbs/{long}")).key("MDEyMzQ1Njc4OWFiY2RlZg=="),
    ] {
        let response = server.client().send(&request);
        assert!(response.status >= 400, "{}", response.status);
        assert!(response.body.len() < 3_000, "{} bytes", response.body.len());
    }
}

#[test]
fn a_body_sent_byte_by_byte_does_not_keep_its_memory_for_long() {
    let server = Server::in_memory(&["--request-timeout", "1"]);
    create_container(&mut server.client());
    let mut stream = send(&server, &head_only(&Request::post(DOCS, "").pk(), 1_000)).into_stream();
    stream
        .set_read_timeout(Some(Duration::from_millis(200)))
        .expect("a timeout");
    let mut byte = [0];
    let answered_after = (0..40).find(|_| {
        let sent = stream.write_all(b" ");
        sent.is_err() || stream.read(&mut byte).is_ok()
    });
    assert!(
        answered_after.is_some_and(|bytes| bytes < 30),
        "the whole body would have ten seconds: {answered_after:?}"
    );
}

#[test]
fn metrics_show_what_definitions_take_and_may_take() {
    let server = Server::in_memory(&["--memory-limit", "1024"]);
    let mut client = server.client();
    let used = |client: &mut Client| metric(client, "bolide_definitions_used_bytes");
    let limit = metric(&mut client, "bolide_definitions_limit_bytes");
    assert!((limit - 256.0 * 1024.0 * 1024.0).abs() < 1.0, "{limit}");
    assert!(used(&mut client) < 1.0);
    create_container(&mut client);
    assert!(used(&mut client) > 0.0);
    client.send(&Request::new("DELETE", "/dbs/d")).expect(204);
    assert!(used(&mut client) < 1.0);
}
