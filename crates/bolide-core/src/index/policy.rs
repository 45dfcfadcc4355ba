//! Which property indexes an indexing policy asks for, and which it allows.

use bolide_model::container::indexing::{IndexStep, IndexingMode, IndexingPolicy};
use bolide_query::PathStep;
use bolide_query::index::IndexPath;

/// System properties that are not part of a stored document and have no entries.
const WITHOUT_ENTRIES: [&str; 4] = ["_rid", "_self", "_etag", "_attachments"];

/// Maximum number of included paths that are looked at.
const MAX_PATHS: usize = 256;

/// Returns the paths that a policy names, beside those with wildcards.
pub(crate) fn named_paths(policy: &IndexingPolicy) -> Vec<IndexPath> {
    let named = policy.included_paths.iter().take(MAX_PATHS);
    let named = named.filter(|path| !path.as_str().ends_with('*'));
    let paths = named.filter_map(|path| IndexPath::of_steps(&path_steps(path.steps())));
    paths.filter(|path| allows(policy, path)).collect()
}

/// Returns the steps of a path in a policy as those of a query.
fn path_steps(path: &[IndexStep]) -> Vec<PathStep> {
    let step = |step: &IndexStep| match step {
        IndexStep::Name(name) => PathStep::Name(name.clone()),
        IndexStep::Element => PathStep::Each,
    };
    path.iter().map(step).collect()
}

/// Whether a policy allows an index on a path.
pub(crate) fn allows(policy: &IndexingPolicy, path: &IndexPath) -> bool {
    let steps = path.steps();
    let has_entries = match steps.first() {
        Some(PathStep::Name(name)) => !WITHOUT_ENTRIES.contains(&&name[..]),
        _ => false,
    };
    policy.mode == IndexingMode::Consistent && has_entries && policy.is_indexed(&index_steps(&steps))
}

/// Returns the steps of a path in a query as those of a policy.
pub(crate) fn index_steps(path: &[PathStep]) -> Vec<IndexStep> {
    let step = |step: &PathStep| match step {
        PathStep::Name(name) => IndexStep::Name(name.clone()),
        _ => IndexStep::Element,
    };
    path.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use bolide_model::container::ContainerProperties;
    use serde_json::json;

    use super::*;

    fn policy(indexing: &serde_json::Value) -> IndexingPolicy {
        let definition =
            json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}, "indexingPolicy": indexing});
        ContainerProperties::from_json(&definition)
            .expect("a definition")
            .indexing_policy
    }

    fn allowed(policy: &IndexingPolicy, path: &str) -> bool {
        allows(policy, &IndexPath::parse(path).expect("a path"))
    }

    #[test]
    fn a_policy_asks_for_the_paths_that_it_names() {
        let named = policy(&json!({
            "includedPaths": [{"path": "/*"}, {"path": "/a/b/?"}, {"path": "/tags/[]/?"}, {"path": "/c/*"}],
            "excludedPaths": [{"path": "/d/?"}],
        }));
        let paths: Vec<String> = named_paths(&named).iter().map(ToString::to_string).collect();
        assert_eq!(paths, ["/a/b/?", "/tags/[]/?"]);
        assert!(allowed(&named, "/x") && allowed(&named, "/c/e") && !allowed(&named, "/d"));
        assert!(!allowed(&named, "/_etag") && !allowed(&named, "/_self") && allowed(&named, "/_ts"));
        let none = policy(&json!({"indexingMode": "none", "automatic": false}));
        assert!(!allowed(&none, "/x"));
    }
}
