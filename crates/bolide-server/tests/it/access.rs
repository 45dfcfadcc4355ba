//! Access rights.

use crate::client::{Request, create_container, create_item};
use crate::server::Server;

const SECONDARY: &str = "c2Vjb25kYXJ5LXNlY29uZGFyeS1zZWNvbmRhcnk=";
const READONLY: &str = "cmVhZG9ubHktcmVhZG9ubHktcmVhZG9ubHk=";
const SECONDARY_READONLY: &str = "b3RoZXItcmVhZG9ubHktb3RoZXItcmVhZG9ubHk=";
const STRANGER: &str = "c3RyYW5nZXItc3RyYW5nZXItc3RyYW5nZXI=";

#[test]
fn only_keys_of_the_account_open_it() {
    let server = Server::in_memory(&["--secondary-key", SECONDARY]);
    let mut client = server.client();
    client.send(&Request::get("/")).expect(200);
    client.send(&Request::get("/").key(SECONDARY)).expect(200);
    client.send(&Request::get("/").key(STRANGER)).expect_error(401);
    client
        .send(&Request::get("/").header("authorization", ""))
        .expect_error(401);
    client
        .send(&Request::get("/").header("authorization", "garbage"))
        .expect_error(401);
}

#[test]
fn a_signature_made_for_another_resource_is_refused() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    let other = String::from_utf8(Request::get("/dbs").to_bytes()).expect("ASCII");
    let header = |name: &str| {
        let line = other
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .expect("it is signed");
        line.trim_start_matches(": ").to_owned()
    };
    let tampered = Request::get("/dbs/d")
        .header("authorization", &header("authorization"))
        .header("x-ms-date", &header("x-ms-date"));
    client.send(&tampered).expect_error(401);
}

#[test]
fn dates_more_than_fifteen_minutes_from_now_are_stale() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    for seconds in [-14 * 60, 14 * 60] {
        client.send(&Request::get("/").dated(seconds)).expect(200);
    }
    for seconds in [-16 * 60, 16 * 60] {
        client.send(&Request::get("/").dated(seconds)).expect_error(403);
    }
}

#[test]
fn dates_are_judged_by_real_time_under_a_virtual_clock() {
    // TTL-206
    let server = Server::in_memory(&["--virtual-clock=2001-01-01T00:00:00Z"]);
    server.client().send(&Request::get("/")).expect(200);
}

#[test]
fn read_only_keys_read_and_query_but_change_nothing() {
    let server = Server::in_memory(&[
        "--readonly-key",
        READONLY,
        "--secondary-readonly-key",
        SECONDARY_READONLY,
    ]);
    let mut client = server.client();
    create_container(&mut client);
    create_item(&mut client, "a");
    for key in [READONLY, SECONDARY_READONLY] {
        client
            .send(&Request::get("/dbs/d/colls/c/docs/a").pk().key(key))
            .expect(200);
        let query = Request::post("/dbs/d/colls/c/docs", r#"{"query":"SELECT * FROM c"}"#).query();
        client.send(&query.key(key)).expect(200);
        client
            .send(&Request::post("/dbs", r#"{"id":"e"}"#).key(key))
            .expect_error(403);
        client
            .send(&Request::new("DELETE", "/dbs/d/colls/c/docs/a").pk().key(key))
            .expect_error(403);
        client.send(&Request::get("/_bolide/clock").key(key)).expect(200);
        client
            .send(&Request::post("/_bolide/dbs/d/colls/c/verify", "").key(key))
            .expect_error(403);
    }
    client.send(&Request::get("/dbs/d/colls/c/docs/a").pk()).expect(200);
}
