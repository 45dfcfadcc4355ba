//! Queries over several ranges as clients run them: the plan, its query for each range, and the merge.

use serde_json::{Value, json};

use crate::client::{Client, Request, Response};
use crate::server::Server;

const ALL_FEATURES: &str = "Aggregate, CompositeAggregate, CountIf, DCount, Distinct, GroupBy, HybridSearch, MultipleAggregates, \
     MultipleOrderBy, NonStreamingOrderBy, NonValueAggregate, OffsetAndLimit, OrderBy, Top, WeightedRankFusion";

fn features_without(feature: &str) -> String {
    ALL_FEATURES.replace(&format!("{feature}, "), "")
}

/// Items `i0` to `i29` over five ranges; `g` is one of three numbers in all of them.
fn over_five_ranges(server: &Server) -> Client {
    let mut client = server.client();
    client.send(&Request::post("/dbs", r#"{"id": "d"}"#)).expect(201);
    let definition = r#"{"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}"#;
    let create = Request::post("/dbs/d/colls", definition).header("x-ms-offer-throughput", "30000");
    client.send(&create).expect(201);
    for n in 0..30 {
        let text = if n % 10 == 3 {
            "a red bike"
        } else {
            "a blue car or boat"
        };
        let item = json!({"id": format!("i{n}"), "pk": format!("p{n}"), "n": n, "g": n % 3, "t": text}).to_string();
        let key = format!(r#"["p{n}"]"#);
        let create = Request::post("/dbs/d/colls/c/docs", item).header("x-ms-documentdb-partitionkey", &key);
        client.send(&create).expect(201);
    }
    client
}

fn docs(text: &str) -> Request {
    Request::post("/dbs/d/colls/c/docs", json!({ "query": text }).to_string()).query()
}

fn plan(client: &mut Client, text: &str, features: &str) -> Response {
    let request = Request::post("/dbs/d/colls/c/docs", json!({ "query": text }).to_string())
        .header("x-ms-cosmos-is-query-plan-request", "True")
        .header("x-ms-cosmos-supported-query-features", features);
    client.send(&request)
}

/// The ranges that overlap the key ranges of a plan.
fn ranges_of(client: &mut Client, plan: &Value) -> Vec<String> {
    let ranges = client.send(&Request::get("/dbs/d/colls/c/pkranges")).expect(200).json();
    let wanted = plan["queryRanges"].as_array().expect("ranges of keys");
    let text = |value: &Value| value.as_str().expect("hex").to_owned();
    let touches = |range: &Value| {
        wanted.iter().any(|wanted| {
            let ends_before = if wanted["isMaxInclusive"] == true {
                text(&wanted["max"]) < text(&range["minInclusive"])
            } else {
                text(&wanted["max"]) <= text(&range["minInclusive"])
            };
            !ends_before && text(&wanted["min"]) < text(&range["maxExclusive"])
        })
    };
    let all = ranges["PartitionKeyRanges"].as_array().expect("ranges").iter();
    all.filter(|range| touches(range))
        .map(|range| text(&range["id"]))
        .collect()
}

/// The rows of a query in each of the ranges, in order.
fn in_each(client: &mut Client, ranges: &[String], text: &str) -> Vec<Value> {
    let text = text.replace("{documentdb-formattableorderbyquery-filter}", "true");
    let mut rows = Vec::new();
    for range in ranges {
        let request = docs(&text).header("x-ms-documentdb-partitionkeyrangeid", range);
        let response = client.send(&request).expect(200).json();
        rows.extend(response["Documents"].as_array().expect("rows").clone());
    }
    rows
}

/// Source: `query_results_plans_and_resume_paths_match` of the Rust SDK's tests.
#[test]
fn a_plan_says_that_nothing_is_ranked_and_closes_the_range_of_a_prefix() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    client.send(&Request::post("/dbs", r#"{"id": "d"}"#)).expect(201);
    let key = json!({"paths": ["/tenant", "/user"], "kind": "MultiHash", "version": 2});
    let definition = json!({"id": "c", "partitionKey": key}).to_string();
    client.send(&Request::post("/dbs/d/colls", definition)).expect(201);
    let mut range_of = |filter: &str| {
        let plan = plan(&mut client, &format!("SELECT * FROM c{filter}"), "None")
            .expect(200)
            .json();
        assert_eq!(plan.get("hybridSearchQueryInfo"), Some(&Value::Null), "{plan}");
        assert_eq!(plan["queryRanges"].as_array().map(Vec::len), Some(1), "{plan}");
        plan["queryRanges"][0].clone()
    };
    let is_closed = |range: &Value| (range["isMinInclusive"].clone(), range["isMaxInclusive"].clone());
    let prefix = range_of(" WHERE c.tenant = 't'");
    assert_eq!(is_closed(&prefix), (json!(true), json!(true)));
    assert_eq!(prefix["max"], format!("{}FF", prefix["min"].as_str().expect("hex")));
    let point = range_of(" WHERE c.tenant = 't' AND c.user = 'u'");
    assert_eq!(
        (is_closed(&point), &point["min"]),
        ((json!(true), json!(true)), &point["max"])
    );
    assert_eq!(is_closed(&range_of("")), (json!(true), json!(false)));
}

/// LINQ's `Skip(1)`; earlier, the query for each range asked for one row more than allowed, and was refused.
#[test]
fn nearly_all_rows_can_be_skipped_to() {
    let server = Server::in_memory(&[]);
    let mut client = over_five_ranges(&server);
    for text in [
        "SELECT VALUE c.n FROM c OFFSET 1 LIMIT 2147483647",
        "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 1 LIMIT 2147483647",
    ] {
        let plan = plan(&mut client, text, ALL_FEATURES).expect(200).json();
        assert_eq!(plan["queryInfo"]["offset"], 1);
        let ranges = ranges_of(&mut client, &plan);
        let rewritten = plan["queryInfo"]["rewrittenQuery"].as_str().expect("a query");
        assert_eq!(
            (ranges.len(), in_each(&mut client, &ranges, rewritten).len()),
            (5, 30),
            "{text}"
        );
    }
}

#[test]
fn a_row_from_nowhere_comes_once() {
    let server = Server::in_memory(&[]);
    let mut client = over_five_ranges(&server);
    for (text, distinct, row) in [
        ("SELECT DISTINCT VALUE null", "Unordered", json!(null)),
        ("SELECT VALUE 1", "None", json!(1)),
        ("SELECT VALUE COUNT(1)", "None", json!(1)),
    ] {
        let plan = plan(&mut client, text, ALL_FEATURES).expect(200).json();
        assert_eq!(plan["queryInfo"]["distinctType"], distinct, "{text}");
        let ranges = ranges_of(&mut client, &plan);
        assert_eq!(in_each(&mut client, &ranges, text), [row], "{text}");
    }
}

/// Each range counts only its own distinct values: earlier, their sum was 44 instead of 11.
#[test]
fn a_count_of_distinct_values_is_planned_for_clients_that_can_merge_it_only() {
    let server = Server::in_memory(&[]);
    let mut client = over_five_ranges(&server);
    for text in [
        "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.g FROM c) AS d",
        "SELECT COUNT(1) AS n FROM (SELECT DISTINCT c.g FROM c) AS d",
    ] {
        let plan_of_all = plan(&mut client, text, ALL_FEATURES).expect(200).json();
        assert!(plan_of_all["queryInfo"]["dCountInfo"].is_object(), "{plan_of_all}");
        let refusal = plan(&mut client, text, &features_without("DCount")).expect(400).json();
        let message = refusal["message"].as_str().expect("a message");
        assert!(message.contains("Query contained DCount"), "{message}");
    }
    for text in [
        "SELECT VALUE COUNT(d.x) FROM (SELECT DISTINCT c.x, c.g FROM c) AS d",
        "SELECT VALUE SUM(d) FROM (SELECT DISTINCT VALUE c.g FROM c) AS d",
        "SELECT VALUE COUNT(1) FROM (SELECT c.g FROM c GROUP BY c.g) AS d",
    ] {
        let refusal = plan(&mut client, text, ALL_FEATURES).expect(400).json();
        let message = refusal["message"].as_str().expect("a message");
        assert!(message.contains("cannot be merged"), "{message}");
        // The key of an item limits the query to one range.
        let pinned = docs(text).header("x-ms-documentdb-partitionkey", r#"["p1"]"#);
        client.send(&pinned).expect(200);
    }
}

/// Earlier, `FullTextScore(c.t, ['bike'])` gave every item the score 0, also in a container without a full-text index.
#[test]
fn a_ranking_by_a_list_of_terms_finds_them_through_its_plan() {
    let server = Server::in_memory(&[]);
    let mut client = over_five_ranges(&server);
    let text = "SELECT TOP 4 VALUE c.n FROM c ORDER BY RANK FullTextScore(c.t, ['bike'])";
    let plan = plan(&mut client, text, ALL_FEATURES).expect(200).json();
    let ranges = ranges_of(&mut client, &plan);
    let hybrid = &plan["hybridSearchQueryInfo"];
    let statistics = hybrid["globalStatisticsQuery"].as_str().expect("a query");
    let (mut documents, mut words, mut hits) = (0, 0, 0);
    for counted in in_each(&mut client, &ranges, statistics) {
        let count = |value: &Value| value.as_u64().expect("a count");
        documents += count(&counted["documentCount"]);
        words += count(&counted["fullTextStatistics"][0]["totalWordCount"]);
        hits += count(&counted["fullTextStatistics"][0]["hitCounts"][0]);
    }
    assert_eq!((documents, hits), (30, 3));
    let component = hybrid["componentQueryInfos"][0]["rewrittenQuery"]
        .as_str()
        .expect("a query");
    let component = [
        ("totaldocumentcount", documents.to_string()),
        ("totalwordcount-0", words.to_string()),
        ("hitcountsarray-0", format!("[{hits}]")),
    ]
    .iter()
    .fold(component.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{documentdb-formattablehybridsearchquery-{name}}}"), value)
    });
    let mut found: Vec<u64> = in_each(&mut client, &ranges, &component)
        .iter()
        .filter(|row| row["payload"]["componentScores"][0].as_f64().expect("a score") > 0.0)
        .map(|row| row["payload"]["payload"].as_u64().expect("a number"))
        .collect();
    found.sort_unstable();
    assert_eq!(found, [3, 13, 23]);
}
