//! The admin API, route by route.

use serde_json::{Value, json};

use crate::client::{Client, Request, create_container, create_item};
use crate::server::Server;

const CONTAINER: &str = "/_bolide/dbs/d/colls/c";

/// A server whose clock shows 2023-11-14T22:13:20Z, and an empty container whose items live for ten seconds.
fn started(arguments: &[&str]) -> (Server, Client) {
    let server = Server::in_memory(&[&["--virtual-clock=2023-11-14T22:13:20Z"], arguments].concat());
    let mut client = server.client();
    client.send(&Request::post("/dbs", r#"{"id":"d"}"#)).expect(201);
    let definition = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":10}"#;
    client.send(&Request::post("/dbs/d/colls", definition)).expect(201);
    (server, client)
}

fn get(client: &mut Client, path: &str) -> Value {
    client
        .send(&Request::get(&format!("{CONTAINER}/{path}")))
        .expect(200)
        .json()
}

fn post(client: &mut Client, path: &str, body: &Value) -> Value {
    client
        .send(&Request::post(&format!("{CONTAINER}/{path}"), body.to_string()))
        .expect(200)
        .json()
}

fn advance(client: &mut Client, ms: i64) {
    client
        .send(&Request::put("/_bolide/clock", json!({ "advanceMs": ms }).to_string()))
        .expect(200);
}

#[test]
fn health_needs_no_key_and_everything_else_does() {
    let (_server, mut client) = started(&[]);
    let health = client
        .send(&Request::get("/_bolide/health").header("authorization", ""))
        .expect(200)
        .json();
    assert_eq!((&health["status"], &health["engine"]), (&json!("ok"), &json!("memory")));
    for path in ["/_bolide/clock", "/_bolide/metrics", "/_bolide/nothing"] {
        client
            .send(&Request::get(path).header("authorization", ""))
            .expect_error(401);
    }
    client.send(&Request::get("/_bolide/nothing")).expect_error(404);
    client.send(&Request::new("DELETE", "/_bolide/clock")).expect_error(405);
    client
        .send(&Request::get("/_bolide/dbs/d/colls/nothing/ttl"))
        .expect_error(404);
}

#[test]
fn a_virtual_clock_is_set_and_advanced_and_server_time_never_goes_back() {
    let (_server, mut client) = started(&[]);
    let clock = client.send(&Request::get("/_bolide/clock")).expect(200).json();
    assert_eq!(
        clock,
        json!({"mode": "virtual", "nowMs": 1_700_000_000_000_i64, "now": "2023-11-14T22:13:20Z"})
    );
    let put = |client: &mut Client, body: Value| {
        client
            .send(&Request::put("/_bolide/clock", body.to_string()))
            .expect(200)
            .json()["nowMs"]
            .clone()
    };
    assert_eq!(put(&mut client, json!({"advanceMs": 1500})), 1_700_000_001_500_i64);
    // TTL-202
    assert_eq!(put(&mut client, json!({"setMs": 5})), 1_700_000_001_500_i64);
    for malformed in [
        "{}",
        r#"{"setMs":1,"advanceMs":1}"#,
        r#"{"setMs":"1"}"#,
        r#"{"setMs":1.5}"#,
        "[]",
        "{",
    ] {
        client
            .send(&Request::put("/_bolide/clock", malformed))
            .expect_error(400);
    }
}

#[test]
fn the_system_clock_cannot_be_moved() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    assert_eq!(
        client.send(&Request::get("/_bolide/clock")).expect(200).json()["mode"],
        "system"
    );
    client
        .send(&Request::put("/_bolide/clock", r#"{"advanceMs":1}"#))
        .expect_error(409);
}

#[test]
fn expired_items_wait_in_the_backlog_until_they_are_purged() {
    let (_server, mut client) = started(&[]);
    for id in ["a", "b", "c"] {
        create_item(&mut client, id);
    }
    assert_eq!(get(&mut client, "ttl")["backlogItems"], 0);
    advance(&mut client, 10_000);
    client
        .send(&Request::get("/dbs/d/colls/c/docs/a").pk())
        .expect_error(404);
    let report = get(&mut client, "ttl");
    assert_eq!(
        (&report["backlogItems"], &report["defaultTtl"], &report["credit"]),
        (&json!(3), &json!(10), &Value::Null)
    );
    assert_eq!(
        post(&mut client, "verify", &json!({})),
        json!({"ok": true, "stored": 3, "live": 0, "problems": []})
    );
    assert_eq!(
        post(&mut client, "purge", &json!({"mode": "force", "max": 2})),
        json!({"purged": 2})
    );
    assert_eq!(post(&mut client, "purge", &json!({})), json!({"purged": 1}));
    let report = get(&mut client, "ttl");
    assert_eq!(
        (&report["backlogItems"], &report["purgedTotal"]),
        (&json!(0), &json!(3))
    );
    client
        .send(&Request::post(&format!("{CONTAINER}/purge"), r#"{"mode":"soon"}"#))
        .expect_error(400);
}

#[test]
fn a_preview_changes_nothing() {
    let (_server, mut client) = started(&[]);
    create_item(&mut client, "a");
    advance(&mut client, 5_000);
    assert_eq!(get(&mut client, "ttl/preview?defaultTtl=5")["expireNow"], 1);
    assert_eq!(get(&mut client, "ttl/preview?defaultTtl=100")["expireWithinHour"], 1);
    for never in ["off", "-1"] {
        assert_eq!(
            get(&mut client, &format!("ttl/preview?defaultTtl={never}"))["neverExpire"],
            1,
            "{never}"
        );
    }
    client.send(&Request::get("/dbs/d/colls/c/docs/a").pk()).expect(200);
    for malformed in ["", "?defaultTtl=0", "?defaultTtl=soon"] {
        client
            .send(&Request::get(&format!("{CONTAINER}/ttl/preview{malformed}")))
            .expect_error(400);
    }
}

#[test]
fn indexes_are_shown() {
    let (_server, mut client) = started(&[]);
    assert_eq!(get(&mut client, "indexes")["indexes"], json!([]));
    let named = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},
        "indexingPolicy":{"includedPaths":[{"path":"/status/?"},{"path":"/*"}]}}"#;
    client.send(&Request::put("/dbs/d/colls/c", named)).expect(200);
    let shown = (0..1_000).map(|_| get(&mut client, "indexes"));
    let ready = json!([{"path": "/status/?", "state": "ready", "automatic": false}]);
    let found = shown
        .map(|shown| shown["indexes"].clone())
        .find(|indexes| *indexes == ready);
    assert!(found.is_some(), "it is built at some time");
}

#[test]
fn an_item_that_never_expires_differs_from_a_container_without_ttl() {
    let (_server, mut client) = started(&[]);
    let own = Request::post("/dbs/d/colls/c/docs", r#"{"id":"b","pk":"p","ttl":-1}"#).pk();
    client.send(&own).expect(201);
    assert_eq!(get(&mut client, "ttl/why?id=b&pk=p")["rule"], "never");
    let off = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    client.send(&Request::put("/dbs/d/colls/c", off)).expect(200);
    let why = get(&mut client, "ttl/why?id=b&pk=p");
    assert_eq!((&why["rule"], &why["defaultTtl"]), (&json!("off"), &Value::Null));
}

#[test]
fn the_admin_api_explains_why_an_item_is_live_or_not() {
    let (_server, mut client) = started(&[]);
    create_item(&mut client, "a");
    let own = Request::post("/dbs/d/colls/c/docs", r#"{"id":"b","pk":"p","ttl":-1}"#).pk();
    client.send(&own).expect(201);
    let why = |client: &mut Client, id: &str| get(client, &format!("ttl/why?id={id}&pk=%5B%22p%22%5D"));
    let live = why(&mut client, "a");
    assert_eq!(
        (&live["state"], &live["rule"], &live["expiresAtSeconds"]),
        (&json!("live"), &json!("default"), &json!(1_700_000_010))
    );
    assert_eq!(why(&mut client, "b")["rule"], "never");
    let plain = get(&mut client, "ttl/why?id=b&pk=p");
    assert_eq!(plain, why(&mut client, "b"), "a plain value is a string");
    let malformed = client
        .send(&Request::get(&format!("{CONTAINER}/ttl/why?id=b&pk=%5Bp%5D")))
        .expect_error(400);
    assert!(malformed.text().contains("JSON array"), "{}", malformed.text());
    assert_eq!(why(&mut client, "x")["state"], "absent");
    advance(&mut client, 10_000);
    assert_eq!(why(&mut client, "a")["state"], "expired");
    client
        .send(&Request::get(&format!("{CONTAINER}/ttl/why?id=a")))
        .expect_error(400);
}

#[test]
fn imported_items_keep_their_age_and_an_export_has_the_live_ones() {
    let (_server, mut client) = started(&[]);
    let lines =
        "{\"id\":\"old\",\"pk\":\"p\",\"_ts\":1699999980}\n{\"id\":\"young\",\"pk\":\"p\",\"_ts\":1699999995}\n";
    let imported = client
        .send(&Request::post(&format!("{CONTAINER}/import"), lines))
        .expect(200)
        .json();
    assert_eq!(imported, json!({"imported": 2}));
    let export = client
        .send(&Request::get(&format!("{CONTAINER}/export")))
        .expect(200)
        .text();
    let items: Vec<Value> = export
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    assert_eq!(items.len(), 1, "{export}");
    assert_eq!(
        (&items[0]["id"], &items[0]["_ts"]),
        (&json!("young"), &json!(1_699_999_995))
    );
    // TTL-275
    client
        .send(&Request::post(&format!("{CONTAINER}/import"), lines))
        .expect_error(400);
}

/// As described in docs/operations.md: a clock was a year ahead, and the store's server time has stood still since.
#[test]
fn an_export_into_a_new_store_brings_server_time_back_and_nothing_that_expired() {
    let data = tempfile::TempDir::new().expect("a temporary directory");
    let definition = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":60}"#;
    let create = |client: &mut Client, item: &str| {
        let create = Request::post("/dbs/d/colls/c/docs", item).pk();
        client.send(&create).expect(201);
    };
    {
        let mut server = Server::on(data.path(), &["--virtual-clock=2029-01-01T00:00:00Z"]);
        let mut client = server.client();
        client.send(&Request::post("/dbs", r#"{"id":"d"}"#)).expect(201);
        client.send(&Request::post("/dbs/d/colls", definition)).expect(201);
        create(&mut client, r#"{"id":"expired","pk":"p"}"#);
        advance(&mut client, 365 * 24 * 60 * 60 * 1000);
        create(&mut client, r#"{"id":"written ahead","pk":"p"}"#);
        server.stop();
    }
    const RIGHT: &str = "--virtual-clock=2029-01-01T00:00:30Z";
    let old = Server::on(data.path(), &[RIGHT]);
    let export = old
        .client()
        .send(&Request::get(&format!("{CONTAINER}/export")))
        .expect(200);
    assert!(!export.text().contains("expired"), "{}", export.text());

    let new = Server::in_memory(&[RIGHT]);
    let mut client = new.client();
    client.send(&Request::post("/dbs", r#"{"id":"d"}"#)).expect(201);
    client.send(&Request::post("/dbs/d/colls", definition)).expect(201);
    let import = Request::post(&format!("{CONTAINER}/import"), export.body);
    assert_eq!(client.send(&import).expect(200).json(), json!({"imported": 1}));
    let why = get(&mut client, "ttl/why?id=written%20ahead&pk=p");
    let now = get_clock(&mut client);
    assert_eq!((&why["_ts"], &why["expiresAtSeconds"]), (&json!(now), &json!(now + 60)));
    assert_eq!(get(&mut client, "ttl/why?id=expired&pk=p")["state"], "absent");
}

/// The clock, in whole seconds.
fn get_clock(client: &mut Client) -> i64 {
    let clock = client.send(&Request::get("/_bolide/clock")).expect(200).json();
    clock["nowMs"].as_i64().expect("milliseconds") / 1000
}

#[test]
fn an_import_may_be_larger_than_an_item() {
    let (_server, mut client) = started(&[]);
    let filler = "x".repeat(1024 * 1024);
    let lines: String = (0..3)
        .map(|n| format!("{{\"id\":\"{n}\",\"pk\":\"p\",\"_ts\":1699999999,\"filler\":\"{filler}\"}}\n"))
        .collect();
    let imported = client
        .send(&Request::post(&format!("{CONTAINER}/import"), lines))
        .expect(200)
        .json();
    assert_eq!(imported, json!({"imported": 3}));
}

#[test]
fn a_bad_line_is_named_and_nothing_is_imported() {
    let (_server, mut client) = started(&[]);
    let lines = "{\"id\":\"a\",\"pk\":\"p\",\"_ts\":1699999999}\nnonsense\n";
    let refused = client
        .send(&Request::post(&format!("{CONTAINER}/import"), lines))
        .expect_error(400);
    assert!(refused.text().contains("line 2"), "{}", refused.text());
    assert_eq!(post(&mut client, "verify", &json!({}))["stored"], 0);
}

#[test]
fn load_is_refused_above_the_throughput() {
    let (_server, mut client) = started(&[]);
    let put = Request::put(
        &format!("{CONTAINER}/throughput"),
        r#"{"mode":"provisioned","ru":100,"deleteRu":1,"countOnlyLoad":true}"#,
    );
    client.send(&put).expect(200);
    post(&mut client, "load", &json!({"ru": 60}));
    let refused = client
        .send(&Request::post(&format!("{CONTAINER}/load"), r#"{"ru":60}"#))
        .expect_error(429);
    assert_eq!(refused.header("x-ms-substatus"), Some("3200"));
    assert!(refused.header("x-ms-retry-after-ms").is_some());
    post(&mut client, "load", &json!({"ru": 40}));
    for malformed in [
        "{}",
        r#"{"mode":"provisioned"}"#,
        r#"{"mode":"fast"}"#,
        r#"{"mode":"unlimited","countOnlyLoad":1}"#,
    ] {
        client
            .send(&Request::put(&format!("{CONTAINER}/throughput"), malformed))
            .expect_error(400);
    }
}

#[test]
fn faults_are_injected_only_where_allowed() {
    let rules = r#"[{"match":{"operation":"ReadItem"},"status":503,"subStatus":21,"times":1}]"#;
    let (_server, mut client) = started(&[]);
    client
        .send(&Request::put("/_bolide/faults/rules", rules))
        .expect_error(403);
    client
        .send(&Request::put(
            "/_bolide/faults",
            r#"{"point":"purge-commit","after":1}"#,
        ))
        .expect_error(403);

    let (_server, mut client) = started(&["--enable-faults"]);
    create_item(&mut client, "a");
    client.send(&Request::put("/_bolide/faults/rules", rules)).expect(200);
    let read = Request::get("/dbs/d/colls/c/docs/a").pk();
    assert_eq!(
        client.send(&read).expect_error(503).header("x-ms-substatus"),
        Some("21")
    );
    client.send(&read).expect(200);
}

#[test]
fn an_injected_fault_ends_the_process_after_a_number_of_purges() {
    let (mut server, mut client) = started(&["--enable-faults"]);
    for id in ["a", "b", "c"] {
        create_item(&mut client, id);
    }
    advance(&mut client, 10_000);
    client
        .send(&Request::put(
            "/_bolide/faults",
            r#"{"point":"purge-commit","after":2}"#,
        ))
        .expect(200);
    let response = client.try_send(&Request::post(&format!("{CONTAINER}/purge"), "{}"));
    assert!(response.is_err(), "{response:?}");
    assert!(!server.wait().success());
}

#[test]
fn metrics_count_requests_and_items() {
    let (_server, mut client) = started(&[]);
    create_item(&mut client, "a");
    client
        .send(&Request::get("/dbs/d/colls/c/docs/nothing").pk())
        .expect_error(404);
    let metrics = client.send(&Request::get("/_bolide/metrics")).expect(200).text();
    for line in [
        "bolide_requests_total{operation=\"CreateItem\",status=\"2xx\"} 1",
        "bolide_requests_total{operation=\"ReadItem\",status=\"4xx\"} 1",
        "bolide_request_duration_seconds_count{operation=\"CreateItem\"} 1",
        "bolide_container_items{database=\"d\",container=\"c\"} 1",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line} is missing in\n{metrics}"
        );
    }
}

#[test]
fn metrics_show_the_lag_and_the_credit_of_the_purge() {
    // TTL-272
    let server = Server::in_memory(&["--virtual-clock=2030-01-01T00:00:00Z"]);
    let mut client = server.client();
    create_container(&mut client);
    let definition = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":10}"#;
    client.send(&Request::put("/dbs/d/colls/c", definition)).expect(200);
    create_item(&mut client, "a");
    let mut line = |name: &str| {
        let metrics = client.send(&Request::get("/_bolide/metrics")).expect(200).text();
        let found = metrics
            .lines()
            .find(|line| line.starts_with(&format!("{name}{{")))
            .map(str::to_owned);
        found.map(|line| line.rsplit(' ').next().unwrap_or_default().to_owned())
    };
    assert_eq!(line("bolide_ttl_oldest_pending_seconds").as_deref(), Some("0"));
    assert_eq!(line("bolide_ttl_credit"), None, "there is no limit yet");
    let mut other = server.client();
    other
        .send(&Request::put("/_bolide/clock", r#"{"advanceMs":17000}"#))
        .expect(200);
    let limited = r#"{"mode":"provisioned","ru":400}"#;
    other
        .send(&Request::put("/_bolide/dbs/d/colls/c/throughput", limited))
        .expect(200);
    assert_eq!(line("bolide_ttl_oldest_pending_seconds").as_deref(), Some("7"));
    assert!(line("bolide_ttl_credit").is_some());
    assert_eq!(line("bolide_ttl_purge_rate").as_deref(), Some("0"));
    other
        .send(&Request::post("/_bolide/dbs/d/colls/c/purge", r#"{"mode":"force"}"#))
        .expect(200);
    assert_eq!(
        line("bolide_ttl_purge_rate").as_deref(),
        Some("0.016666666666666666"),
        "one in a minute"
    );
    let metrics = other.send(&Request::get("/_bolide/metrics")).expect(200).text();
    let idle = "bolide_ttl_state{database=\"d\",container=\"c\",state=\"idle\"} 1";
    assert!(metrics.lines().any(|line| line == idle), "{metrics}");
}

#[test]
fn settings_take_a_boolean() {
    let (_server, mut client) = started(&[]);
    client
        .send(&Request::put("/_bolide/settings", r#"{"mongoDocumentTtl":false}"#))
        .expect(200);
    client
        .send(&Request::put("/_bolide/settings", r#"{"mongoDocumentTtl":1}"#))
        .expect_error(400);
}

#[test]
fn containers_are_checked_by_everybody_alike() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    create_container(&mut client);
    create_item(&mut client, "a");
    assert_eq!(
        post(&mut client, "verify", &json!({})),
        json!({"ok": true, "stored": 1, "live": 1, "problems": []})
    );
}

#[test]
fn the_rules_of_faults_that_still_apply_are_shown_as_they_were_set() {
    let (_server, mut client) = started(&["--enable-faults"]);
    let shown = |client: &mut Client| client.send(&Request::get("/_bolide/faults/rules")).expect(200).json();
    assert_eq!(shown(&mut client), json!([]));
    let rules = json!([
        {"match": {"operation": "CreateItem"}, "status": 429, "retryAfterMs": 5, "times": 2},
        {"match": {"container": "other"}, "delayMs": 1},
    ]);
    client
        .send(&Request::put("/_bolide/faults/rules", rules.to_string()))
        .expect(200);
    assert_eq!(shown(&mut client), rules);
    let create = Request::post("/dbs/d/colls/c/docs", r#"{"id":"a","pk":"p"}"#).pk();
    client.send(&create).expect_error(429);
    let mut left = rules.clone();
    left[0]["times"] = json!(1);
    assert_eq!(shown(&mut client), left);
    client.send(&create).expect_error(429);
    assert_eq!(shown(&mut client), json!([rules[1]]));
    let (_server, mut client) = started(&[]);
    client.send(&Request::get("/_bolide/faults/rules")).expect_error(403);
}

#[test]
fn the_last_requests_are_told_with_their_answers() {
    let (_server, mut client) = started(&[]);
    create_item(&mut client, "a");
    client
        .send(&Request::get("/dbs/d/colls/c/docs/missing").pk())
        .expect_error(404);
    client.send(&Request::get("/dbs/d").unsigned()).expect_error(401);
    // Those of a browser that opens the data explorer are not among them.
    let page = Request::get("/").unsigned().header("accept", "text/html");
    client.send(&page).expect(200);
    let told = client
        .send(&Request::get("/_bolide/requests?after=2"))
        .expect(200)
        .json();
    assert_eq!(told["last"], 5);
    let requests = told["requests"].as_array().expect("a list");
    let of: Vec<_> = requests
        .iter()
        .map(|request| {
            (
                &request["operation"],
                &request["method"],
                &request["path"],
                &request["status"],
            )
        })
        .collect();
    assert_eq!(
        of,
        [
            (
                &json!("CreateItem"),
                &json!("POST"),
                &json!("/dbs/d/colls/c/docs"),
                &json!(201)
            ),
            (
                &json!("ReadItem"),
                &json!("GET"),
                &json!("/dbs/d/colls/c/docs/missing"),
                &json!(404)
            ),
            (&Value::Null, &json!("GET"), &json!("/dbs/d"), &json!(401)),
        ]
    );
    assert_eq!(requests[0]["atMs"], 1_700_000_000_000_u64);
    assert!(requests[0]["charge"].as_f64() > Some(1.0) && requests[0]["ms"].as_f64() > Some(0.0));
    client
        .send(&Request::get("/_bolide/requests?after=x"))
        .expect_error(400);
}
