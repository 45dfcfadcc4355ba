//! The log line of each request, and secrets that never appear in it.

use std::path::Path;

use bolide_model::account_key::WELL_KNOWN_KEY;

use crate::client::{Request, create_container};
use crate::server::Server;

const SECRET_TEXT: &str = "nobody-else-s-business";
const ACTIVITY: &str = "0d7a9c3e-0000-0000-0000-00000000abcd";

/// The log of a server after several requests, each with a secret in it.
fn log_of(arguments: &[&str]) -> String {
    let files = tempfile::TempDir::new().expect("a temporary directory");
    let file = files.path().join("log");
    let mut server = Server::logging_to(&file, &[&["--memory"], arguments].concat());
    ask(&server);
    server.stop();
    read(&file)
}

fn ask(server: &Server) {
    let mut client = server.client();
    create_container(&mut client);
    let create = Request::post(
        "/dbs/d/colls/c/docs",
        format!(r#"{{"id":"a","pk":"p","text":"{SECRET_TEXT}"}}"#),
    );
    client
        .send(
            &create
                .pk()
                .header("x-ms-activity-id", ACTIVITY)
                .header("cookie", SECRET_TEXT),
        )
        .expect(201);
    client.send(&Request::get("/dbs/d/colls/x/docs")).expect(404);
    client
        .send(&Request::get("/_bolide/dbs/d/colls/c/ttl/why?id=a&pk=%5B%22p%22%5D"))
        .expect(200);
    client
        .send(&Request::get("/dbs").header("authorization", SECRET_TEXT))
        .expect(401);
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).expect("the log is text")
}

fn check_secrets(log: &str) {
    for secret in [SECRET_TEXT, WELL_KNOWN_KEY, "sig%3D", "Bearer "] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}

#[test]
fn at_info_each_request_has_a_line() {
    let log = log_of(&["--log", "info"]);
    let created = log
        .lines()
        .find(|line| line.contains("POST /dbs/d/colls/c/docs 201/0"))
        .unwrap_or_else(|| panic!("no line: {log}"));
    for part in ["charge=", "ms=", ACTIVITY] {
        assert!(created.contains(part), "{created}");
    }
    for line in [
        "GET /dbs/d/colls/x/docs 404/1003 ",
        "GET /_bolide/dbs/d/colls/c/ttl/why 200/0 ",
        "GET /dbs 401/",
    ] {
        assert_eq!(log.matches(line).count(), 1, "{line}: {log}");
    }
    assert!(!log.contains("x-ms-version"), "{log}");
    check_secrets(&log);
}

#[test]
fn headers_are_shown_when_asked_for_without_their_secrets() {
    let log = log_of(&["--log-requests"]);
    for part in [
        r#"x-ms-documentdb-partitionkey: "[\"p\"]""#,
        "authorization: (left out)",
        "cookie: (left out)",
        "x-ms-session-token: ",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
    check_secrets(&log);
}

#[test]
fn a_start_with_server_time_ahead_of_the_clock_is_warned_of() {
    let files = tempfile::TempDir::new().expect("a temporary directory");
    let (data, file) = (files.path().join("data"), files.path().join("log"));
    let dir = data.to_str().expect("UTF-8");
    let started_at = |clock: &str| {
        let mut server = Server::logging_to(&file, &["--data-dir", dir, clock]);
        server.client().send(&Request::get("/dbs")).expect(200);
        server.stop();
        read(&file)
    };
    assert!(!started_at("--virtual-clock=2100-01-01T00:00:00Z").contains("server time"));
    let log = started_at("--virtual-clock=2099-12-31T23:50:00Z");
    assert!(
        log.contains("server time is ahead") && log.contains("seconds=600"),
        "{log}"
    );
}

#[test]
fn by_default_requests_are_not_logged() {
    let log = log_of(&[]);
    assert!(!log.contains("/dbs"), "{log}");
}
