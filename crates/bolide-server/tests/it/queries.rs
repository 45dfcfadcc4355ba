//! Queries over the wire: the headers of their responses, and errors.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::client::{Client, Request, Response, create_container, create_item};
use crate::server::Server;

fn query(text: &str) -> Request {
    Request::post("/dbs/d/colls/c/docs", json!({ "query": text }).to_string()).query()
}

fn with_items(server: &Server, count: usize) -> Client {
    let mut client = server.client();
    create_container(&mut client);
    for n in 0..count {
        create_item(&mut client, &format!("i{n}"));
    }
    client
}

/// The pairs of the metrics header.
fn metrics(response: &Response) -> HashMap<String, f64> {
    let header = response
        .header("x-ms-documentdb-query-metrics")
        .expect("metrics were asked for");
    let pairs = header
        .split(';')
        .map(|pair| pair.split_once('=').expect("each is a pair"));
    pairs
        .map(|(name, value)| (name.to_owned(), value.parse().expect("each value is a number")))
        .collect()
}

#[test]
fn metrics_come_when_they_are_asked_for_and_count_what_happened() {
    let server = Server::in_memory(&[]);
    let mut client = with_items(&server, 5);
    let plain = client.send(&query("SELECT * FROM c")).expect(200);
    assert_eq!(plain.header("x-ms-documentdb-query-metrics"), None);
    assert_eq!(plain.header("x-ms-cosmos-index-utilization"), None);

    let asked = |text: &str| query(text).header("x-ms-documentdb-populatequerymetrics", "True");
    let response = client
        .send(&asked("SELECT VALUE c.id FROM c WHERE c.id > 'i2'"))
        .expect(200);
    let figures = metrics(&response);
    assert_eq!(
        (figures["retrievedDocumentCount"], figures["outputDocumentCount"]),
        (5.0, 2.0)
    );
    assert_eq!(figures["outputDocumentSize"], 8.0, "\"i3\" and \"i4\"");
    assert!(figures["retrievedDocumentSize"] > 5.0 * 100.0);
    assert!(figures["totalExecutionTimeInMs"] >= figures["queryCompileTimeInMs"]);

    // A count reads no documents, as clients' tests expect.
    let count = metrics(&client.send(&asked("SELECT VALUE COUNT(1) FROM c").pk()).expect(200));
    assert_eq!(
        (count["retrievedDocumentCount"], count["retrievedDocumentSize"]),
        (0.0, 0.0)
    );
    assert_eq!(
        (count["outputDocumentCount"], count["indexUtilizationRatio"]),
        (1.0, 1.0)
    );
}

#[test]
fn the_used_index_is_reported_in_base64() {
    let server = Server::in_memory(&[]);
    let mut client = with_items(&server, 1);
    let asked = query("SELECT * FROM c")
        .pk()
        .header("x-ms-cosmos-populateindexmetrics", "True");
    let response = client.send(&asked).expect(200);
    let header = response
        .header("x-ms-cosmos-index-utilization")
        .expect("it was asked for");
    let used: Value = serde_json::from_slice(&STANDARD.decode(header).expect("base64")).expect("JSON");
    assert_eq!(used["UtilizedSingleIndexes"][0]["IndexSpec"], "/pk/?");
}

/// The document in an error's message.
fn document(response: Response) -> Value {
    let body = response.expect(400).json();
    let message = body["message"].as_str().expect("a message");
    let (document, _) = message
        .strip_prefix("Message: ")
        .and_then(|rest| rest.split_once("\r\nActivityId: "))
        .expect("a document between `Message` and `ActivityId`");
    serde_json::from_str(document).expect("the document is JSON")
}

#[test]
fn the_indexing_policy_is_checked_when_a_query_runs_and_not_when_it_is_planned() {
    let server = Server::in_memory(&[]);
    let mut client = with_items(&server, 1);
    for text in [
        "SELECT * FROM c ORDER BY c.a, c.b",
        "SELECT TOP 3 VALUE c.id FROM c ORDER BY c.a, c.b DESC",
    ] {
        let refusal = document(client.send(&query(text)));
        assert!(
            refusal["Errors"][0].as_str().is_some_and(|why| why.contains("index")),
            "{refusal}"
        );
        let plan = Request::post("/dbs/d/colls/c/docs", json!({ "query": text }).to_string())
            .header("x-ms-cosmos-is-query-plan-request", "True")
            .header(
                "x-ms-cosmos-supported-query-features",
                "OrderBy, MultipleOrderBy, Top, HybridSearch",
            );
        client.send(&plan).expect(200);
    }
}

#[test]
fn a_query_may_be_deep_or_long_and_is_answered_or_refused() {
    let server = Server::in_memory(&[]);
    let mut client = with_items(&server, 1);
    let nested = |open: &str, close: &str| format!("SELECT VALUE {}1{}", open.repeat(100_000), close.repeat(100_000));
    for text in [
        nested("[", "]"),
        nested("-  ", ""),
        format!("SELECT VALUE c{} FROM c", ".a".repeat(200_000)),
        format!("SELECT VALUE 1{}", " + 1".repeat(100_000)),
        format!("SELECT VALUE {}1{}", "ABS(".repeat(80_000), ")".repeat(80_000)),
    ] {
        let refusal = document(client.send(&query(&text)));
        let why = refusal["errors"][0]["message"].as_str().expect("a sentence").to_owned();
        assert!(why.contains("maximum"), "{why}");
    }
    let longest = format!("SELECT VALUE '{}'", "a".repeat(512 * 1024 - 15));
    client.send(&query(&longest)).expect(200);
    let refusal = document(client.send(&query(&format!("{longest} "))));
    assert_eq!(
        refusal["errors"][0]["message"],
        "The SQL query text exceeded the maximum limit of 524288 characters"
    );
    let wide: Vec<String> = (0..20_000).map(|n| format!("1 AS a{n}")).collect();
    client.send(&query(&format!("SELECT {}", wide.join(",")))).expect(200);
}

#[test]
fn continuations_have_a_limit_of_at_least_a_kilobyte() {
    let server = Server::in_memory(&[]);
    let mut client = with_items(&server, 2);
    let limited = |limit: &str| {
        query("SELECT * FROM c")
            .header("x-ms-max-item-count", "1")
            .header("x-ms-documentdb-responsecontinuationtokenlimitinkb", limit)
    };
    client.send(&limited("1")).expect(200);
    let refusal = client.send(&limited("0")).expect(400).json();
    let message = refusal["message"].as_str().expect("a message");
    assert!(
        message.contains("continuation token limit specified is not large enough"),
        "{message}"
    );
}

/// The rows of a page of two, and the continuation.
fn page(client: &mut Client, request: &Request, continuation: Option<&str>) -> (Vec<Value>, Option<String>) {
    page_of(
        client,
        &request.clone().header("x-ms-max-item-count", "2"),
        continuation,
    )
}

fn page_of(client: &mut Client, request: &Request, continuation: Option<&str>) -> (Vec<Value>, Option<String>) {
    let request = request.clone();
    let request = match continuation {
        Some(continuation) => request.header("x-ms-continuation", continuation),
        None => request,
    };
    let response = client.send(&request).expect(200);
    let rows = response.json()["Documents"].as_array().expect("documents").clone();
    (rows, response.header("x-ms-continuation").map(str::to_owned))
}

fn rest(client: &mut Client, request: &Request, mut from: Option<String>) -> Vec<Value> {
    let mut rows = Vec::new();
    while let Some(continuation) = from {
        let (more, next) = page(client, request, Some(&continuation));
        rows.extend(more);
        from = next;
    }
    rows
}

#[test]
fn continuations_continue_in_the_children_of_a_split() {
    for text in [
        "SELECT VALUE c.id FROM c",
        "SELECT VALUE c.id FROM c ORDER BY c.id DESC",
        "SELECT DISTINCT VALUE c.id FROM c",
        "SELECT VALUE c.id FROM c GROUP BY c.id",
        "SELECT VALUE c.id FROM c OFFSET 0 LIMIT 20",
    ] {
        let server = Server::in_memory(&[]);
        let mut client = server.client();
        create_container(&mut client);
        for n in 0..12 {
            let item = json!({"id": format!("i{n:02}"), "pk": format!("k{n}")}).to_string();
            let key = format!(r#"["k{n}"]"#);
            let create = Request::post("/dbs/d/colls/c/docs", item).header("x-ms-documentdb-partitionkey", &key);
            client.send(&create).expect(201);
        }
        let whole = query(text).header("x-ms-documentdb-query-enablecrosspartition", "True");
        let of_range = |range: &str| query(text).header("x-ms-documentdb-partitionkeyrangeid", range);
        let (all_begun, all_from) = page(&mut client, &whole, None);
        let (range_begun, range_from) = page(&mut client, &of_range("0"), None);
        client
            .send(&Request::post("/_bolide/dbs/d/colls/c/split", "{}"))
            .expect(200);

        let gone = of_range("0").header("x-ms-continuation", range_from.as_deref().expect("more"));
        client.send(&gone).expect(410);
        let over_all = [all_begun, rest(&mut client, &whole, all_from)].concat();
        let mut over_children = range_begun;
        for child in ["1", "2"] {
            over_children.extend(rest(&mut client, &of_range(child), range_from.clone()));
        }
        let expected: Vec<Value> = (0..12).map(|n| json!(format!("i{n:02}"))).collect();
        for mut rows in [over_all, over_children] {
            rows.sort_by_key(Value::to_string);
            assert_eq!(rows, expected, "{text}");
        }
    }
}

/// A query of an SDK that can merge with a plan.
fn of_sdk(text: &str) -> Request {
    query(text).header("x-ms-cosmos-sdk-supportedcapabilities", "1")
}

/// Source: `TestCrossPartitionQueryFailsIfGatewayCannotSatisfyRequest` of the Go SDK and `test_partition_split_query.py` of the Python SDK.
#[test]
fn one_range_leaves_the_merge_over_all_keys_to_sdks() {
    let server = Server::in_memory(&[]);
    let mut client = with_items(&server, 5);
    for text in [
        "SELECT * FROM c ORDER BY c.id",
        "SELECT * FROM c WHERE c.id = 'i1' ORDER BY c.id",
        "SELECT TOP 2 * FROM c",
        "SELECT * FROM c OFFSET 1 LIMIT 2",
        "SELECT DISTINCT VALUE c.id FROM c",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT COUNT(1) AS n FROM c",
        "SELECT c.id, COUNT(1) AS n FROM c GROUP BY c.id",
        "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.id FROM c) AS d",
    ] {
        let refusal = client.send(&of_sdk(text)).expect(400);
        assert_eq!(refusal.header("x-ms-substatus"), Some("1004"), "{text}");
        let body = refusal.json();
        let message = body["message"].as_str().expect("a message");
        assert!(
            message.contains("cross partition query can not be directly served by the gateway"),
            "{message}"
        );
        let plan = body["additionalErrorInfo"].as_str().expect("a plan");
        assert!(plan.contains("\"queryRanges\":"), "{plan}");
        // Clients that cannot use a plan, and SDKs that follow it.
        client.send(&query(text)).expect(200);
        client
            .send(&of_sdk(text).header("x-ms-documentdb-partitionkeyrangeid", "0"))
            .expect(200);
    }
}

/// Sources: `TestCrossPartitionQuery` of the Go SDK; `asyncIterator` over four items in pages of two in JavaScript's `query.spec.ts`.
#[test]
fn the_last_page_over_one_range_has_a_continuation_for_sdks_if_it_is_full() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    create_container(&mut client);
    for n in 0..4 {
        let item = json!({"id": format!("i{n}"), "pk": "p", "tags": ["a", "b"]});
        let create = Request::post("/dbs/d/colls/c/docs", item.to_string()).pk();
        client.send(&create).expect(201);
    }
    let mut pages = |request: Request| {
        let mut sizes = Vec::new();
        let mut continuation = None;
        loop {
            let (rows, next) = page_of(&mut client, &request, continuation.as_deref());
            sizes.push(rows.len());
            continuation = next;
            if continuation.is_none() {
                return sizes;
            }
        }
    };
    let sized = |request: Request, rows: usize| request.header("x-ms-max-item-count", &rows.to_string());
    for (text, rows, expected) in [
        ("SELECT * FROM c", 2, vec![2, 2, 0]),
        ("SELECT * FROM c", 4, vec![4, 0]),
        ("SELECT * FROM c", 3, vec![3, 1]),
        ("SELECT VALUE c.id FROM c WHERE c.id > 'i1'", 1, vec![1, 1, 0]),
        ("SELECT VALUE t FROM c JOIN t IN c.tags", 4, vec![4, 4, 0]),
        ("SELECT * FROM c WHERE c.pk = 'p'", 2, vec![2, 2]),
    ] {
        assert_eq!(pages(sized(of_sdk(text), rows)), expected, "{text}");
        let no_sdk = pages(sized(query(text), rows));
        assert_eq!(
            no_sdk,
            expected.into_iter().filter(|rows| *rows > 0).collect::<Vec<_>>(),
            "{text}"
        );
    }
    assert_eq!(pages(sized(of_sdk("SELECT * FROM c ORDER BY c.id").pk(), 2)), [2, 2]);
}

/// Resembles the test of the queries that are left to SDKs, on purpose: each is a list of statements with their response.
#[test]
fn one_range_answers_sdks_what_needs_no_merge_over_all_keys() {
    let server = Server::in_memory(&[]);
    let mut client = with_items(&server, 5);
    for text in [
        "SELECT * FROM c",
        "SELECT * FROM c WHERE c.pk = 'p' ORDER BY c.id",
        "SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'p'",
        "SELECT COUNT(1) AS n FROM c WHERE c.pk = 'p'",
        "SELECT * FROM c WHERE c.pk IN ('p', 'q') ORDER BY c.id",
        "SELECT TOP 1 * FROM c WHERE c.pk = 'p' AND c.pk = 'q'",
        // No client can merge this.
        "SELECT VALUE SUM(LENGTH(d)) FROM (SELECT DISTINCT VALUE c.id FROM c) AS d",
    ] {
        client.send(&of_sdk(text)).expect(200);
    }
    client.send(&of_sdk("SELECT * FROM c ORDER BY c.id").pk()).expect(200);
}

/// A container with an index on `/n`, and ten items whose `n` is their number.
fn with_numbers(server: &Server) -> Client {
    let mut client = server.client();
    client.send(&Request::post("/dbs", r#"{"id": "d"}"#)).expect(201);
    let definition = json!({
        "id": "c",
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "indexingPolicy": {"includedPaths": [{"path": "/n/?"}, {"path": "/*"}]},
    });
    client
        .send(&Request::post("/dbs/d/colls", definition.to_string()))
        .expect(201);
    for n in 0..10 {
        let item = json!({"id": n.to_string(), "pk": "p", "n": n, "even": n % 2 == 0}).to_string();
        let create = Request::post("/dbs/d/colls/c/docs", item).header("x-ms-documentdb-partitionkey", r#"["p"]"#);
        client.send(&create).expect(201);
    }
    client
}

#[test]
fn a_test_says_how_a_page_uses_indexes() {
    let server = Server::in_memory(&["--enable-faults"]);
    let mut client = with_numbers(&server);
    let mut read = |text: &str, word: &str| {
        let asked = query(text)
            .header("x-ms-documentdb-populatequerymetrics", "True")
            .header("x-bolide-index-use", word);
        let response = client.send(&asked).expect(200);
        let rows = response.json()["Documents"].clone();
        (rows, metrics(&response)["retrievedDocumentCount"])
    };
    let equal = "SELECT VALUE c.n FROM c WHERE c.n = 7";
    assert_eq!(read(equal, "never"), (json!([7]), 10.0));
    assert_eq!(read(equal, "always"), (json!([7]), 0.0), "the entry has all of the row");
    assert_eq!(
        read("SELECT VALUE c.even FROM c WHERE c.n = 7", "always"),
        (json!([false]), 1.0)
    );
    assert_eq!(
        read(equal, "order"),
        (json!([7]), 1.0),
        "there is no order, so a condition"
    );
    // The condition finds two items, of which one passes the filter; the order begins with those two, and the first read takes a few more than a row needs.
    let sorted = "SELECT TOP 1 VALUE c.n FROM c WHERE c.n IN (3, 8) AND c.even ORDER BY c.n";
    for word in ["never", "parallel", "always", "order"] {
        assert_eq!(read(sorted, word).0, json!([8]), "{word}");
    }
    assert_eq!(read(sorted, "always").1, 2.0);
    let refused = client.send(&query(equal).header("x-bolide-index-use", "sometimes"));
    let refused = refused.expect_error(400);
    assert!(refused.text().contains("never"), "{}", refused.text());
}

#[test]
fn a_page_says_how_it_uses_indexes_only_in_tests() {
    let server = Server::in_memory(&[]);
    let mut client = with_numbers(&server);
    let asked = query("SELECT * FROM c").header("x-bolide-index-use", "never");
    let refused = client.send(&asked).expect_error(403);
    assert!(refused.text().contains("--enable-faults"), "{}", refused.text());
}

#[test]
fn the_admin_query_tells_its_work_and_the_use_of_indexes_when_it_is_asked() {
    let server = Server::in_memory(&[]);
    let mut client = with_items(&server, 5);
    let policy = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash"},"indexingPolicy":{"excludedPaths":[{"path":"/size/*"}]}}"#;
    client.send(&Request::put("/dbs/d/colls/c", policy)).expect(200);
    let asked = |more: Value| {
        let mut body = json!({"query": "SELECT VALUE c.id FROM c WHERE c.id > 'i2' AND (c.size = 1 OR true)"});
        body.as_object_mut()
            .expect("it is one")
            .extend(more.as_object().cloned().expect("it is one"));
        Request::post("/_bolide/dbs/d/colls/c/query", body.to_string())
    };
    let plain = client.send(&asked(json!({}))).expect(200).json();
    assert_eq!(plain, json!({"rows": ["i3", "i4"], "continuation": null}));

    let metrics = client.send(&asked(json!({"metrics": true}))).expect(200).json()["metrics"].clone();
    assert_eq!(
        (
            &metrics["retrievedItems"],
            &metrics["outputRows"],
            &metrics["outputBytes"]
        ),
        (&json!(5), &json!(2), &json!(8))
    );
    assert!(metrics["runMs"].as_f64() >= metrics["loadMs"].as_f64());
    assert_eq!(
        metrics["indexes"]["UtilizedIndexes"]["SingleIndexes"],
        json!([{"IndexSpec": "/id/?"}])
    );
    assert_eq!(
        metrics["indexes"]["PotentialIndexes"]["SingleIndexes"],
        json!([{"IndexSpec": "/size/?"}])
    );
}
