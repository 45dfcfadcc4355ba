use super::*;
use crate::container::indexing::{IndexPath, IndexStep, Order};

fn policy_written(policy: Value) -> Value {
    written(json!({"indexingPolicy": policy}))["indexingPolicy"].clone()
}

#[test]
fn incomplete_policies_become_the_default() {
    for policy in [
        json!({}),
        json!({"indexingMode": "consistent", "automatic": true}),
        json!({"indexingMode": "consistent", "automatic": false}),
        json!({"indexingMode": "LAZY"}),
        json!({"includedPaths": [{"path": "/*", "indexes": [{"kind": "Hash", "dataType": "String"}]}]}),
        json!({"includedPaths": [{"path": "/"}]}),
    ] {
        assert_eq!(policy_written(policy), default_policy());
    }
}

#[test]
fn root_and_etag_are_added_where_no_path_names_them() {
    let policy = policy_written(
        json!({"includedPaths": [{"path": "/a/?"}], "excludedPaths": [{"path": "/\"systemMetadata\"/*"}]}),
    );
    assert_eq!(policy["includedPaths"], json!([{"path": "/a/?"}, {"path": "/*"}]));
    assert_eq!(
        policy["excludedPaths"],
        json!([{"path": "/\"systemMetadata\"/*"}, {"path": "/\"_etag\"/?"}])
    );
    let policy = policy_written(json!({"excludedPaths": [{"path": "/*"}, {"path": "/_etag/?"}]}));
    assert_eq!(policy["includedPaths"], json!([]));
    assert_eq!(policy["excludedPaths"], json!([{"path": "/*"}, {"path": "/_etag/?"}]));
}

#[test]
fn mode_none_clears_the_paths_and_cannot_be_automatic() {
    let policy = policy_written(json!({"indexingMode": "none", "automatic": false, "includedPaths": [{"path": "/*"}]}));
    assert_eq!(
        policy,
        json!({"indexingMode": "none", "automatic": false, "includedPaths": [], "excludedPaths": []})
    );
    assert!(refusal(json!({"indexingPolicy": {"indexingMode": "none"}})).contains("automatic"));
}

#[test]
fn index_paths_end_in_a_wildcard() {
    for text in ["/*", "/a/?", "/a/b/*", "/\"x y\"/?", "/a/[]/b/?", "/'*'/?"] {
        assert_eq!(IndexPath::parse(text).unwrap().as_str(), text);
    }
    for (text, position) in [
        ("", 0),
        ("a", 0),
        ("/a", 2),
        ("/a/*/b/?", 3),
        ("/a/?/*", 3),
        ("/a/[0]/?", 3),
        ("//?", 1),
        ("/?", 1),
    ] {
        assert_eq!(
            IndexPath::parse(text).map_err(|error| error.position),
            Err(position),
            "{text}"
        );
    }
    let message = refusal(json!({"indexingPolicy": {"includedPaths": [{"path": "/a"}]}}));
    assert!(
        message.contains("The indexing path '/a' could not be accepted, failed near position '2'"),
        "{message}"
    );
}

#[test]
fn a_path_is_not_both_included_and_excluded() {
    let message =
        refusal(json!({"indexingPolicy": {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/"}]}}));
    assert!(message.contains("both included and excluded"), "{message}");
}

fn steps(path: &str) -> Vec<IndexStep> {
    let step = |step: &str| {
        if step == "[]" {
            IndexStep::Element
        } else {
            IndexStep::Name(step.to_owned())
        }
    };
    path.split('/').map(step).collect()
}

#[test]
fn of_two_paths_that_cover_a_property_the_longer_decides() {
    let policy = read(json!({"indexingPolicy": {
        "includedPaths": [{"path": "/*"}, {"path": "/a/b/*"}, {"path": "/l/[]/x/?"}],
        "excludedPaths": [{"path": "/a/*"}, {"path": "/a/b/c/?"}, {"path": "/l/*"}],
    }}))
    .indexing_policy;
    for (path, is_indexed, is_explicit) in [
        ("z", true, false),
        ("a/x", false, false),
        ("a/b/d", true, true),
        ("a/b/c", false, false),
        ("a/b/c/d", true, true),
        ("l/[]/x", true, true),
        ("l/[]/y", false, false),
        ("_etag", false, false),
    ] {
        assert_eq!(policy.is_indexed(&steps(path)), is_indexed, "{path}");
        assert_eq!(policy.is_explicitly_included(&steps(path)), is_explicit, "{path}");
    }
    assert!(!policy.excludes_root());
}

#[test]
fn composite_index_serves_its_sort_and_the_opposite() {
    let policy = read(json!({"indexingPolicy": {"compositeIndexes": [
        [{"path": "/a"}, {"path": "/b", "order": "Descending"}, {"path": "/c"}],
        [{"path": "/a"}, {"path": "/b/c"}],
    ]}}))
    .indexing_policy;
    let serves = |keys: &[(&str, Order)]| {
        let keys: Vec<(Vec<String>, Order)> = keys
            .iter()
            .map(|(path, order)| (path.split('/').map(str::to_owned).collect(), *order))
            .collect();
        let keys: Vec<(&[String], Order)> = keys.iter().map(|(names, order)| (names.as_slice(), *order)).collect();
        policy.composite_index_for(&keys).is_some()
    };
    let (up, down) = (Order::Ascending, Order::Descending);
    assert!(serves(&[("a", up), ("b", down), ("c", up)]));
    assert!(serves(&[("a", down), ("b", up), ("c", down)]));
    assert!(serves(&[("a", up), ("b/c", up)]));
    assert!(!serves(&[("a", up), ("b", up), ("c", up)]));
    assert!(!serves(&[("a", up), ("b", down)]));
    assert!(!serves(&[("b/c", up), ("a", up)]));
}

#[test]
fn composite_indexes_have_their_limits() {
    let path = |n: usize| json!({"path": format!("/p{n}"), "order": "ascending"});
    let index = |length: usize| (0..length).map(path).collect::<Vec<_>>();
    let policy = |indexes: Vec<Vec<Value>>| json!({"indexingPolicy": {"compositeIndexes": indexes}});
    assert_eq!(
        read(policy(vec![index(8); 12])).indexing_policy.composite_indexes.len(),
        12
    );
    for refused in [
        policy(vec![index(1)]),
        policy(vec![index(9)]),
        policy(vec![index(8); 13]),
        policy(vec![vec![path(1); 2]]),
    ] {
        assert!(refusal(refused).contains("compositeIndexes"));
    }
    for path in ["/a/*", "a", "/a/?"] {
        refusal(json!({"indexingPolicy": {"compositeIndexes": [[{"path": path}, {"path": "/b"}]]}}));
    }
}

#[test]
fn geometry_needs_its_extent() {
    let spatial = |extent: Value| {
        json!({"geospatialConfig": {"type": "Geometry"},
               "indexingPolicy": {"spatialIndexes": [{"path": "/a/*", "types": ["Point"], "boundingBox": extent}]}})
    };
    assert!(refusal(spatial(Value::Null)).contains("boundingBox"));
    assert!(refusal(spatial(json!({"xmin": 1, "ymin": 0, "xmax": 1, "ymax": 1}))).contains("xmin"));
    read(spatial(json!({"xmin": 0, "ymin": 0, "xmax": 1, "ymax": 1})));
}
