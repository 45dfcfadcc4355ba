use serde_json::{Value as Json, json};

use super::{Feature, KeyRanges, KeyValue, SupportedFeatures};
use crate::number::Number;
use crate::schema::{PartitionKeyKind, Schema};
use crate::{Environment, PageLimit, Parameters, Query};

fn query(text: &str, paths: &[&str], kind: PartitionKeyKind) -> Query {
    let paths = paths
        .iter()
        .map(|path| path.split('/').map(str::to_owned).collect())
        .collect();
    // The planner does not know the index rules.
    let schema = Schema {
        indexing: None,
        ..Schema::container(paths, kind)
    };
    Query::compile(text, &Parameters::none(), &schema).unwrap()
}

fn points(text: &str, paths: &[&str], kind: PartitionKeyKind) -> Option<Vec<Vec<KeyValue>>> {
    match query(text, paths, kind).partition_key_ranges().unwrap() {
        KeyRanges::All => None,
        KeyRanges::Nothing => Some(Vec::new()),
        KeyRanges::Some(list) => Some(
            list.iter()
                .map(|r| r.as_point().unwrap().into_iter().cloned().collect())
                .collect(),
        ),
    }
}

fn text(value: &str) -> KeyValue {
    KeyValue::String(value.to_owned())
}

#[test]
fn every_listed_key_is_a_point() {
    let number = |n| vec![KeyValue::Number(Number::Int(n))];
    let found = points(
        "SELECT * FROM c WHERE c.k IN (1, 2, 2) OR c.k = 3",
        &["k"],
        PartitionKeyKind::Hash,
    );
    assert_eq!(found, Some(vec![number(1), number(2), number(3)]));
}

#[test]
fn a_missing_key_has_its_own_point() {
    let found = points(
        "SELECT * FROM c WHERE NOT IS_DEFINED(c.k)",
        &["k"],
        PartitionKeyKind::Hash,
    );
    assert_eq!(found, Some(vec![vec![KeyValue::Undefined]]));
}

#[test]
fn a_prefix_narrows_hierarchical_keys_only() {
    let filter = "SELECT * FROM c WHERE c.a = 'x' AND c.z > 1";
    assert_eq!(
        points(filter, &["a", "b"], PartitionKeyKind::MultiHash),
        Some(vec![vec![text("x")]])
    );
    assert_eq!(points(filter, &["a", "b"], PartitionKeyKind::Hash), None);
    let gap = "SELECT * FROM c WHERE c.b = 'x'";
    assert_eq!(points(gap, &["a", "b"], PartitionKeyKind::MultiHash), None);
}

#[test]
fn contradictory_filters_have_no_ranges() {
    for filter in [
        "c.k = 1 AND c.k = 2",
        "false",
        "1 = 2",
        "c.k = undefined",
        "c.k = 1 AND NOT c.k",
    ] {
        let found = points(
            &format!("SELECT * FROM c WHERE {filter}"),
            &["k"],
            PartitionKeyKind::Hash,
        );
        assert_eq!(found, Some(Vec::new()), "{filter}");
    }
}

#[test]
fn keys_are_found_behind_aliases_and_parentheses() {
    let found = points(
        "SELECT x FROM Items AS i JOIN x IN i.l WHERE ((i[\"k\"]) = 'v' AND x > 1)",
        &["k"],
        PartitionKeyKind::Hash,
    );
    assert_eq!(found, Some(vec![vec![text("v")]]));
}

#[test]
fn huge_products_of_conditions_stay_bounded() {
    let list: Vec<String> = (0..3000).map(|n| n.to_string()).collect();
    let list = list.join(",");
    let filter = format!("SELECT * FROM c WHERE c.a IN ({list}) AND c.b IN ({list})");
    assert!(
        query(&filter, &["a", "b"], PartitionKeyKind::MultiHash)
            .partition_key_ranges()
            .unwrap()
            != KeyRanges::Nothing
    );
}

#[test]
fn the_error_names_the_feature_that_a_client_lacks() {
    let query = query("SELECT COUNT(1) FROM c", &["k"], PartitionKeyKind::Hash);
    let python = SupportedFeatures::parse("Aggregate,CompositeAggregate, Distinct,Unheard");
    assert!(python.has(Feature::Distinct) && !python.has(Feature::GroupBy));
    let error = query.plan(&python).unwrap_err();
    assert!(error.message().contains("NonValueAggregate"), "{error}");
    assert!(query.plan(&SupportedFeatures::all()).is_ok());
}

#[test]
fn counts_of_distinct_values_are_planned_for_clients_that_can_count() {
    let query = query(
        "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.x FROM c) AS d",
        &["k"],
        PartitionKeyKind::Hash,
    );
    let plan = query.plan(&SupportedFeatures::all()).unwrap();
    let info = plan.info().unwrap().to_json();
    assert_eq!(info["dCountInfo"], json!({"dCountAlias": ""}));
    assert_eq!(info["rewrittenQuery"], json!("SELECT DISTINCT VALUE c.x\nFROM c"));
    assert_eq!(info["distinctType"], json!("Unordered"));
}

#[test]
fn rewritten_queries_compile_and_run() {
    for text in [
        "SELECT * FROM c ORDER BY c.x",
        "SELECT VALUE c.y FROM c WHERE c.z = 'q' ORDER BY c.x DESC OFFSET 2 LIMIT 3",
        "SELECT c.g, AVG(c.x) FROM c GROUP BY c.g",
        "SELECT VALUE MIN(c.x) FROM c",
        "SELECT DISTINCT TOP 3 c.x, -1.5e300 AS n FROM c",
    ] {
        let query = query(text, &["k"], PartitionKeyKind::Hash);
        let plan = query.plan(&SupportedFeatures::all()).unwrap();
        let rewritten = plan
            .info()
            .unwrap()
            .rewritten_query
            .replace("{documentdb-formattableorderbyquery-filter}", "true");
        assert!(!rewritten.is_empty(), "{text}");
        let schema = Schema::container(vec![vec!["k".to_owned()]], PartitionKeyKind::Hash);
        Query::compile(&rewritten, &Parameters::none(), &schema).unwrap_or_else(|error| panic!("{rewritten}: {error}"));
    }
}

#[test]
fn hybrid_plans_number_their_placeholders() {
    let text = "SELECT TOP 10 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.a, 'x'), VectorDistance(c.v, [1, 2]), \
                FullTextScore(c.b, 'y', 'z'), [1, 0.5, -1])";
    let plan = query(text, &["k"], PartitionKeyKind::Hash)
        .plan(&SupportedFeatures::all())
        .unwrap()
        .to_json(&[]);
    let hybrid = &plan["hybridSearchQueryInfo"];
    // The negative weight reverses its component.
    assert_eq!(hybrid["componentWeights"], json!([1.0, 0.5, 1.0]));
    let directions: Vec<&Json> = hybrid["componentQueryInfos"]
        .as_array()
        .unwrap()
        .iter()
        .map(|component| &component["orderBy"][0])
        .collect();
    assert_eq!(directions, ["Descending", "Descending", "Ascending"]);
    assert_eq!(hybrid["componentQueryInfos"].as_array().unwrap().len(), 3);
    let third = hybrid["componentQueryInfos"][2]["rewrittenQuery"].as_str().unwrap();
    assert!(
        third.contains("totalwordcount-1") && third.contains("[\"y\", \"z\"]"),
        "{third}"
    );
}

#[test]
fn rrf_fuses_a_hundred_scores_and_no_more() {
    let compiled = |count: usize| {
        let scores = vec!["VectorDistance(c.v, [1, 2])"; count].join(", ");
        let text = format!("SELECT TOP 10 c.id FROM c ORDER BY RANK RRF({scores})");
        Query::compile(&text, &Parameters::none(), &Schema::metadata()).map(drop)
    };
    assert_eq!(compiled(100), Ok(()));
    let error = compiled(101).unwrap_err();
    assert!(error.message().contains("at most 100 scores"), "{error}");
}

/// The JavaScript SDK's tests rank in a container without a full-text policy or index.
#[test]
fn a_score_needs_no_full_text_index() {
    let schema = Schema::container(vec![vec!["id".to_owned()]], PartitionKeyKind::Hash);
    let text = "SELECT TOP 1 c.id FROM c ORDER BY RANK FullTextScore(c.a.b, ['x'])";
    assert_eq!(Query::compile(text, &Parameters::none(), &schema).map(drop), Ok(()));
}

/// LINQ's `Skip(1)` is `OFFSET 1 LIMIT 2147483647`; earlier, the plan asked each range for one more than the maximum of a query.
#[test]
fn ranges_are_never_asked_for_more_rows_than_a_query_may_ask_for() {
    for (text, limit) in [
        ("SELECT * FROM c OFFSET 1 LIMIT 2147483647", 2_147_483_647_u64),
        (
            "SELECT * FROM c ORDER BY c.x OFFSET 2147483647 LIMIT 2147483647",
            2_147_483_647,
        ),
        ("SELECT * FROM c OFFSET 10 LIMIT 2147483637", 2_147_483_647),
        ("SELECT * FROM c OFFSET 10 LIMIT 20", 30),
    ] {
        let planned = query(text, &["k"], PartitionKeyKind::Hash);
        let plan = planned.plan(&SupportedFeatures::all()).unwrap();
        let rewritten = &plan.info().unwrap().rewritten_query;
        assert!(rewritten.ends_with(&format!("OFFSET 0 LIMIT {limit}")), "{rewritten}");
        let run = rewritten.replace("{documentdb-formattableorderbyquery-filter}", "true");
        query(&run, &["k"], PartitionKeyKind::Hash);
    }
}

/// A ranking's components are asked for twice as many candidates as rows.
#[test]
fn components_of_the_largest_ranking_run() {
    let text = "SELECT TOP 2147483647 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'x'), VectorDistance(c.v, [1]))";
    let plan = query(text, &["k"], PartitionKeyKind::Hash)
        .plan(&SupportedFeatures::all())
        .unwrap()
        .to_json(&[]);
    let components = plan["hybridSearchQueryInfo"]["componentQueryInfos"].as_array().unwrap();
    for component in components {
        let rewritten = component["rewrittenQuery"].as_str().unwrap();
        assert!(rewritten.contains("TOP 4294967294"), "{rewritten}");
        query(&filled(rewritten, 10, &[(100, &[1])]), &["k"], PartitionKeyKind::Hash);
    }
}

/// A component's query, completed with the statistics of all ranges as clients do it.
fn filled(rewritten: &str, documents: u64, texts: &[(u64, &[u64])]) -> String {
    let placeholder = |name: &str| format!("{{documentdb-formattablehybridsearchquery-{name}}}");
    let mut text = rewritten
        .replace("{documentdb-formattableorderbyquery-filter}", "true")
        .replace(&placeholder("totaldocumentcount"), &documents.to_string());
    for (n, (words, hits)) in texts.iter().enumerate() {
        text = text
            .replace(&placeholder(&format!("totalwordcount-{n}")), &words.to_string())
            .replace(&placeholder(&format!("hitcountsarray-{n}")), &format!("{hits:?}"));
    }
    text
}

/// Earlier, a list of terms became one term that is a list, which never occurs: every score was 0.
#[test]
fn a_list_of_terms_is_planned_term_by_term() {
    let schema = Schema {
        indexing: None,
        ..Schema::container(vec![vec!["k".to_owned()]], PartitionKeyKind::Hash)
    };
    let parameters = Parameters::none().with("@more", &json!(["tram", {"term": "trin", "distance": 1}]));
    let text = "SELECT TOP 5 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.t, ['bike', 'car'], 'bus', @more)";
    let query = Query::compile(text, &parameters, &schema).unwrap();
    let plan = query.plan(&SupportedFeatures::all()).unwrap().to_json(&[]);
    let hybrid = &plan["hybridSearchQueryInfo"];
    let statistics = hybrid["globalStatisticsQuery"].as_str().unwrap();
    let component = hybrid["componentQueryInfos"][0]["rewrittenQuery"].as_str().unwrap();
    assert!(
        component.contains("[\"bike\", \"car\", \"bus\", @more[0], @more[1]]"),
        "{component}"
    );
    let items = [
        json!({"id": "none", "t": "a boat"}),
        json!({"id": "car", "t": "a car and a bus"}),
        json!({"id": "train", "t": "the train"}),
        json!({"id": "bike", "t": "bike and boat"}),
    ];
    let run = |text: &str| {
        let query = Query::compile(text, &parameters, &schema).unwrap();
        let mut page = query.execution(Environment::default(), PageLimit::NONE, None).unwrap();
        for (rid, item) in items.iter().enumerate() {
            page.push(item.to_string().as_bytes(), rid as u64).unwrap();
        }
        let rows = page.finish(true).unwrap().rows;
        rows.iter()
            .map(|row| serde_json::from_slice(row).unwrap())
            .collect::<Vec<Json>>()
    };
    let counted = &run(statistics)[0];
    assert_eq!(counted["fullTextStatistics"][0]["hitCounts"], json!([1, 1, 1, 0, 1]));
    let words = counted["fullTextStatistics"][0]["totalWordCount"].as_u64().unwrap();
    let rows = run(&filled(component, 4, &[(words, &[1, 1, 1, 0, 1])]));
    let scores: Vec<f64> = rows
        .iter()
        .map(|row| row["orderByItems"][0]["item"].as_f64().unwrap())
        .collect();
    assert!(scores[0] > 0.0 && scores[2] > 0.0 && scores[3] == 0.0, "{scores:?}");
    // The result over planned ranges equals the result of a single unplanned range.
    let planned: Vec<&Json> = rows.iter().map(|row| &row["payload"]["payload"]).collect();
    assert_eq!(planned, run(text).iter().collect::<Vec<_>>());
}

#[test]
fn a_term_that_only_items_know_is_refused() {
    let compiled = |term: &str| {
        let text = format!("SELECT c.id FROM c ORDER BY RANK FullTextScore(c.t, {term})");
        Query::compile(&text, &Parameters::none(), &Schema::metadata()).map(drop)
    };
    for term in ["'a'", "@p", "['a', @p]", "{\"term\": 'a', \"distance\": 1}"] {
        assert_eq!(compiled(term), Ok(()), "{term}");
    }
    for term in ["c.x", "c.n > 2 ? 'a' : 'b'", "['a', c.x]", "CONCAT('a', 'b')"] {
        let error = compiled(term).unwrap_err();
        assert_eq!(error.code(), Some("SC2241"), "{term}");
        assert!(error.message().contains("must be literals"), "{error}");
    }
}

/// Earlier, each of five ranges returned the row, and none was removed.
#[test]
fn distinct_is_planned_without_from_too() {
    let query = query("SELECT DISTINCT VALUE null", &["k"], PartitionKeyKind::Hash);
    let plan = query.plan(&SupportedFeatures::all()).unwrap();
    assert_eq!(plan.info().unwrap().to_json()["distinctType"], json!("Unordered"));
}

#[test]
fn groups_in_order_are_planned_as_groups() {
    let text = "SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g ORDER BY c.g DESC";
    let plan = query(text, &["k"], PartitionKeyKind::Hash)
        .plan(&SupportedFeatures::all())
        .unwrap();
    let info = plan.info().unwrap();
    assert!(
        info.order_descending.is_empty() && !info.rewritten_query.contains("ORDER"),
        "{info:?}"
    );
    assert!(info.rewritten_query.contains("groupByItems"), "{info:?}");
}

#[test]
fn each_of_many_listed_keys_is_a_point_once_in_their_order() {
    let listed: Vec<String> = (0..40_000).map(|n| (n * 7_919 % 20_000).to_string()).collect();
    let filter = format!("SELECT * FROM c WHERE c.k IN ({})", listed.join(","));
    let expected = (0..20_000)
        .map(|n| vec![KeyValue::Number(Number::Int(n * 7_919 % 20_000))])
        .collect();
    assert_eq!(points(&filter, &["k"], PartitionKeyKind::Hash), Some(expected));
}

/// Earlier, each component returned 120 candidates per range, and the ranking lost the others.
#[test]
fn a_ranking_of_everything_is_not_cut() {
    let text = "SELECT c.id FROM c ORDER BY RANK RRF(FullTextScore(c.a, 'x'), VectorDistance(c.v, [1, 2]))";
    let plan = query(text, &["k"], PartitionKeyKind::Hash)
        .plan(&SupportedFeatures::all())
        .unwrap()
        .to_json(&[]);
    for component in plan["hybridSearchQueryInfo"]["componentQueryInfos"].as_array().unwrap() {
        assert_eq!((&component["top"], &component["limit"]), (&json!(null), &json!(null)));
        let rewritten = component["rewrittenQuery"].as_str().unwrap();
        assert!(
            !rewritten.contains("LIMIT") && !rewritten.contains("TOP"),
            "{rewritten}"
        );
    }
}

/// As the service's planner writes them (`QueryPlanRetrieverTests` of the .NET SDK): an item without a distance is last either way.
#[test]
fn vectors_are_scored_in_components_in_the_direction_of_their_weight() {
    let text = "SELECT TOP 10 VALUE c.id FROM c ORDER BY RANK RRF(VectorDistance(c.v, [1, 0]), \
                VectorDistance(c.w, [1, 0], false, {\"distanceFunction\": \"euclidean\"}), [1, -0.3])";
    let planned = query(text, &["k"], PartitionKeyKind::Hash);
    let plan = planned.plan(&SupportedFeatures::all()).unwrap().to_json(&[]);
    let hybrid = &plan["hybridSearchQueryInfo"];
    assert_eq!(hybrid["componentWeights"], json!([1.0, 0.3]));
    let components = hybrid["componentQueryInfos"].as_array().unwrap();
    let items = [
        json!({"id": "none"}),
        json!({"id": "near", "v": [1, 0], "w": [1, 0]}),
        json!({"id": "far", "v": [0, 1], "w": [9, 9]}),
    ];
    for (component, end, scores, ids) in [
        (
            &components[0],
            "ORDER BY _VectorScore(c.v, [1, 0])",
            [1.0, 0.0],
            ["near", "far"],
        ),
        (&components[1], " DESC", [145.0_f64.sqrt(), 0.0], ["far", "near"]),
    ] {
        let rewritten = component["rewrittenQuery"].as_str().unwrap();
        assert!(rewritten.ends_with(end), "{rewritten}");
        let run = query(&filled(rewritten, 3, &[]), &["k"], PartitionKeyKind::Hash);
        let mut page = run.execution(Environment::default(), PageLimit::NONE, None).unwrap();
        for (rid, item) in items.iter().enumerate() {
            page.push(item.to_string().as_bytes(), rid as u64).unwrap();
        }
        let rows = page.finish(true).unwrap().rows;
        let rows: Vec<Json> = rows.iter().map(|row| serde_json::from_slice(row).unwrap()).collect();
        let found: Vec<&Json> = rows[..2].iter().map(|row| &row["payload"]["payload"]).collect();
        assert_eq!(found, ids);
        let sorted: Vec<f64> = rows[..2]
            .iter()
            .map(|row| row["orderByItems"][0]["item"].as_f64().unwrap())
            .collect();
        assert_eq!(sorted, scores);
        assert_eq!(rows[2]["payload"]["payload"], "none");
        let missing = rows[2]["payload"]["componentScores"].as_array().unwrap();
        assert!(
            missing.iter().all(|score| *score == json!(-1.797_69e308)),
            "{missing:?}"
        );
    }
    let direct = |text: &str| {
        let run = query(text, &["k"], PartitionKeyKind::Hash);
        let mut page = run.execution(Environment::default(), PageLimit::NONE, None).unwrap();
        for (rid, item) in items.iter().enumerate() {
            page.push(item.to_string().as_bytes(), rid as u64).unwrap();
        }
        page.finish(true).unwrap().rows.into_joined()
    };
    assert_eq!(direct(text), br#""near","far","none""#);
}

#[test]
fn a_fusion_inside_a_fusion_is_refused() {
    let score = "FullTextScore(c.t, 'a')";
    let text = format!("SELECT c.id FROM c ORDER BY RANK RRF(RRF({score}, {score}), {score})");
    let error = Query::compile(&text, &Parameters::none(), &Schema::metadata()).unwrap_err();
    assert_eq!(error.code(), Some("SC2005"));
    assert_eq!(error.message(), "'RRF' is not a recognized built-in function name.");
}
