use super::*;
use crate::parameters::Parameters;
use crate::query::Query;
use crate::schema::{PartitionKeyKind, Schema, VectorPath};

fn nearest_of(text: &str) -> Option<NearestQuery> {
    let mut schema = Schema::container(vec![vec!["pk".to_owned()]], PartitionKeyKind::Hash);
    schema.vectors = vec![VectorPath {
        path: vec![crate::path::PathStep::name("e")],
        function: DistanceFunction::Euclidean,
    }];
    let parameters = Parameters::none().with("@q", &serde_json::json!([1, 0.5, -2]));
    let query = Query::compile(text, &parameters, &schema).unwrap_or_else(|error| panic!("{text}: {error}"));
    query.nearest()
}

#[test]
fn the_nearest_vectors_of_a_query() {
    let found = nearest_of("SELECT TOP 7 c.id FROM c ORDER BY VectorDistance(c.a.v, @q)").expect("a search");
    assert_eq!(
        found,
        NearestQuery {
            path: IndexPath::parse("/a/v").expect("a path"),
            function: DistanceFunction::Cosine,
            vector: vec![1.0, 0.5, -2.0],
            rows: 7,
            list_multiplier: 10.0,
            candidate_multiplier: 5.0,
            is_defined: false,
        }
    );
    let options =
        "{'searchListSizeMultiplier': 30, 'quantizedVectorListMultiplier': 2, 'distanceFunction': 'dotproduct'}";
    let text = format!(
        "SELECT c.id FROM c WHERE IS_DEFINED(c.e) ORDER BY VectorDistance([1, 2], c.e, false, {options}) OFFSET 5 LIMIT 10"
    );
    let found = nearest_of(&text).expect("a search");
    assert_eq!(
        (found.rows, found.list_multiplier, found.candidate_multiplier),
        (15, 30.0, 2.0)
    );
    assert_eq!((found.function, found.is_defined), (DistanceFunction::DotProduct, true));
    let text = "SELECT TOP 3 c.id FROM c ORDER BY VectorDistance(c.e, @q)";
    assert_eq!(
        nearest_of(text).map(|found| found.function),
        Some(DistanceFunction::Euclidean)
    );
}

#[test]
fn the_queries_that_clients_send_to_each_range_are_searches_too() {
    for text in [
        "SELECT TOP 10 c._rid, [{\"item\": VectorDistance(c.v, @q)}] AS orderByItems, {\"id\": c.id} AS payload FROM c WHERE (true) \
         ORDER BY VectorDistance(c.v, @q)",
        "SELECT TOP 120 c._rid, [{\"item\": _VectorScore(c.v, @q)}] AS orderByItems, {\"payload\": c} AS payload FROM c WHERE (true) \
         ORDER BY _VectorScore(c.v, @q)",
        "SELECT TOP 120 c._rid FROM c ORDER BY _VectorScore(c.v, @q) DESC",
    ] {
        assert!(nearest_of(text).is_some(), "{text}");
    }
}

#[test]
fn other_queries_compare_every_item() {
    for text in [
        "SELECT c.id FROM c ORDER BY VectorDistance(c.v, @q)",
        "SELECT TOP 3 c.id FROM c ORDER BY VectorDistance(c.v, @q, true)",
        "SELECT TOP 3 c.id FROM c ORDER BY VectorDistance(c.v, c.w)",
        "SELECT TOP 3 c.id FROM c ORDER BY VectorDistance(c.v, ['x'])",
        "SELECT TOP 3 VectorDistance(c.v, @q) FROM c",
        "SELECT DISTINCT TOP 3 c.id FROM c ORDER BY VectorDistance(c.v, @q)",
        "SELECT TOP 3 t FROM c JOIN t IN c.tags ORDER BY VectorDistance(c.v, @q)",
        "SELECT TOP 3 c.id FROM c ORDER BY _VectorScore(c.v, @q) ASC",
        "SELECT TOP 3 c.id FROM c ORDER BY c.v",
    ] {
        assert_eq!(nearest_of(text), None, "{text}");
    }
}
