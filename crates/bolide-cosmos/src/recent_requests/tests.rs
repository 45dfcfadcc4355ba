use bolide_model::RequestUnits;
use http::{Method, Request, StatusCode};

use super::*;

fn noted(requests: &RecentRequests, method: &str, path: &str, status: u16) {
    let (head, ()) = Request::builder()
        .method(method)
        .uri(path)
        .body(())
        .unwrap()
        .into_parts();
    let mut reply = Reply::empty(StatusCode::from_u16(status).unwrap());
    reply.charge = RequestUnits(1.5);
    reply.header(&headers::SUB_STATUS, "1002".parse().unwrap());
    let at = UnixMillis(1_700_000_000_000);
    requests.note(
        &head,
        Some(Operation::ReadItem),
        &reply,
        at,
        Duration::from_micros(2_500),
    );
}

fn numbers(found: &Value) -> Vec<u64> {
    let requests = found["requests"].as_array().expect("a list");
    requests
        .iter()
        .map(|request| request["number"].as_u64().expect("a number"))
        .collect()
}

#[test]
fn a_request_is_told_with_its_answer_and_without_its_query_string() {
    let requests = RecentRequests::default();
    assert_eq!(requests.after(0), json!({"last": 0, "requests": []}));
    noted(&requests, "GET", "/dbs/d/colls/c/docs/a?secret=x", 404);
    assert_eq!(
        requests.after(0),
        json!({"last": 1, "requests": [{
            "number": 1,
            "atMs": 1_700_000_000_000_u64,
            "method": "GET",
            "path": "/dbs/d/colls/c/docs/a",
            "operation": "ReadItem",
            "status": 404,
            "subStatus": 1002,
            "charge": 1.5,
            "ms": 2.5,
        }]})
    );
}

#[test]
fn the_last_ones_are_kept_and_those_after_a_number_are_told() {
    let requests = RecentRequests::default();
    for number in 1..=KEPT + 7 {
        noted(&requests, "GET", &format!("/{number}"), 200);
    }
    let all = requests.after(0);
    assert_eq!(numbers(&all), (8..=507).collect::<Vec<_>>());
    assert_eq!(all["requests"][0]["path"], "/8");
    assert_eq!(numbers(&requests.after(505)), [506, 507]);
    assert!(numbers(&requests.after(507)).is_empty());
    assert!(numbers(&requests.after(u64::MAX)).is_empty());
}

#[test]
fn what_is_long_is_cut() {
    let requests = RecentRequests::default();
    let long = "x".repeat(10 * TEXT_BYTES);
    noted(&requests, "GET", &format!("/{long}"), 200);
    noted(&requests, &long, "/", 405);
    noted(&requests, "GET", &format!("/a{}", "é".repeat(TEXT_BYTES)), 200);
    let kept = requests.0.lock();
    for answered in &kept.kept {
        assert!(answered.text.len() <= TEXT_BYTES + 1, "{}", answered.text.len());
    }
    assert!(Method::from_bytes(long.as_bytes()).is_ok());
}
