use serde_json::json;

use super::*;

fn paths(body: Value) -> Vec<String> {
    of(&Case {
        name: "case".to_owned(),
        body,
    })
}

#[test]
fn every_scalar_and_every_array_has_its_path() {
    let documents = json!([
        {"id": "1", "a": 1, "b": {"c": "x", "d": [1, 2]}},
        {"id": "2", "a": [true], "e": null},
    ]);
    let expected = [
        "/a/?",
        "/b/c/?",
        "/e/?",
        "/id/?", // scalars
        "/a/[]/?",
        "/b/d/[]/?", // elements
        "/b/?",
        "/b/d/?", // others
    ];
    assert_eq!(paths(json!({ "documents": documents })), expected);
}

#[test]
fn odd_names_are_quoted_and_names_that_no_policy_can_have_are_left_out() {
    let documents = json!([{"a b": 1, "a\"b": 2, "*": 3, "": {"ä": 4}}]);
    assert_eq!(
        paths(json!({ "documents": documents })),
        ["/\"\"/\"ä\"/?", "/\"a b\"/?", "/\"\"/?"]
    );
}

#[test]
fn computed_properties_have_their_paths_too() {
    let case =
        json!({"documents": [{"a": 1}], "computedProperties": [{"name": "cp", "query": "SELECT VALUE c.a FROM c"}]});
    assert_eq!(paths(case), ["/a/?", "/cp/?"]);
}

#[test]
fn there_are_no_more_paths_than_indexes() {
    let members = (0..100).map(|number| (format!("p{number:02}"), json!(number)));
    let document: Value = members.collect::<serde_json::Map<_, _>>().into();
    let paths = paths(json!({ "documents": [document] }));
    assert_eq!(paths.len(), 64);
    assert_eq!(paths[63], "/p63/?");
}

#[test]
fn a_path_that_would_add_rows_to_a_sorted_query_is_not_named() {
    let case = |query: &str| json!({"documents": [{"a": 1, "b": 1}, {"b": 2}], "query": query});
    assert_eq!(paths(case("SELECT * FROM c ORDER BY c.a")), ["/b/?"]);
    assert_eq!(
        paths(case("SELECT * FROM c WHERE c.a = 1 ORDER BY c.b")),
        ["/a/?", "/b/?"]
    );
}
