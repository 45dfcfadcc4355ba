use super::*;

fn noted(requests: &RecentRequests, method: &str, path: &str, status: u32) {
    requests.note(&AnsweredRequest {
        protocol: Protocol::Cosmos,
        at: UnixMillis(1_700_000_000_000),
        method,
        path,
        operation: Some("ReadItem"),
        status,
        sub_status: 1002,
        charge: RequestUnits(1.5),
        duration: Duration::from_micros(2_500),
    });
}

fn numbers(found: &Value) -> Vec<u64> {
    let requests = found["requests"].as_array().expect("a list");
    requests
        .iter()
        .map(|request| request["number"].as_u64().expect("a number"))
        .collect()
}

#[test]
fn a_request_is_told_with_its_answer() {
    let requests = RecentRequests::default();
    assert_eq!(requests.after(0)["last"], 0);
    assert_eq!(requests.after(0)["requests"], json!([]));
    noted(&requests, "GET", "/dbs/d/colls/c/docs/a", 404);
    assert_eq!(
        requests.after(0)["requests"],
        json!([{
            "number": 1,
            "protocol": "cosmos",
            "atMs": 1_700_000_000_000_u64,
            "method": "GET",
            "path": "/dbs/d/colls/c/docs/a",
            "operation": "ReadItem",
            "status": 404,
            "subStatus": 1002,
            "charge": 1.5,
            "ms": 2.5,
        }])
    );
}

#[test]
fn every_start_is_another_run() {
    let (one, another) = (RecentRequests::default(), RecentRequests::default());
    let first = one.after(0)["run"].clone();
    noted(&one, "GET", "/", 200);
    assert_eq!(one.after(0)["run"], first);
    assert_ne!(another.after(0)["run"], first);
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
    let ring = requests.ring.lock();
    assert_eq!(ring.kept.len(), 3);
    for kept in &ring.kept {
        assert!(kept.text.len() <= TEXT_BYTES + 1, "{}", kept.text.len());
    }
}
