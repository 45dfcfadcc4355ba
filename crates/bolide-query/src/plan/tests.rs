use serde_json::json;

use super::{Feature, KeyRanges, KeyValue, SupportedFeatures};
use crate::number::Number;
use crate::schema::{PartitionKeyKind, Schema};
use crate::{Parameters, PathStep, Query};

fn query(text: &str, paths: &[&str], kind: PartitionKeyKind) -> Query {
    let paths = paths
        .iter()
        .map(|path| path.split('/').map(str::to_owned).collect())
        .collect();
    // The planner knows no index rules.
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
fn contradictions_go_nowhere() {
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
fn a_client_without_a_feature_is_told_its_name() {
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
    assert_eq!(hybrid["componentWeights"], json!([1.0, 0.5, -1.0]));
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

#[test]
fn a_score_needs_a_full_text_index_in_the_container() {
    let compiled = |indexed: &[&str]| {
        let mut schema = Schema::container(vec![vec!["id".to_owned()]], PartitionKeyKind::Hash);
        let indexing = schema.indexing.as_mut().unwrap();
        indexing.full_text = indexed.iter().map(|path| PathStep::parse_policy_path(path)).collect();
        let text = "SELECT TOP 1 c.id FROM c ORDER BY RANK FullTextScore(c.a.b, 'x')";
        Query::compile(text, &Parameters::none(), &schema).map(drop)
    };
    assert_eq!(compiled(&["/a/b"]), Ok(()));
    // The Python SDK's own tests score `/title` beside an index of `/text` only.
    assert_eq!(compiled(&["/b"]), Ok(()));
    assert!(compiled(&[]).unwrap_err().message().contains("path='/a/b'"));
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
