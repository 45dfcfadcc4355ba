//! The paths that a query's text compares, and whether the indexing policy has an index for them.

use bolide_model::container::indexing::IndexingPolicy;
use bolide_query::{PathStep, Usage};

use crate::index::index_steps;

/// Paths that a query's text compares and sorts by, in the notation of indexing policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryUsage {
    /// Compared paths for which the indexing policy has an index.
    pub indexed: Vec<String>,
    /// Compared paths without an index.
    pub unindexed: Vec<String>,
    /// Paths of an `ORDER BY` over several paths, each with whether it is descending.
    pub sort: Vec<(String, bool)>,
    /// The ids of the rules of query advice that apply, such as `QA1002`.
    pub advice: Vec<&'static str>,
}

/// Returns the paths of a query, by whether an indexing policy has an index for them.
pub(super) fn of(usage: Usage, policy: &IndexingPolicy) -> QueryUsage {
    let (indexed, unindexed): (Vec<_>, Vec<_>) =
        (usage.paths.iter()).partition(|path| policy.is_indexed(&index_steps(path)));
    let texts = |paths: Vec<&Vec<PathStep>>| paths.into_iter().map(|path| text(path)).collect();
    QueryUsage {
        indexed: texts(indexed),
        unindexed: texts(unindexed),
        sort: usage
            .sort
            .iter()
            .map(|(path, descends)| (text(path), *descends))
            .collect(),
        advice: usage.advice,
    }
}

/// Returns a path as policies write it: names with characters other than letters, digits and underscores are quoted.
fn text(path: &[PathStep]) -> String {
    let label = |step: &PathStep| match step {
        PathStep::Name(name) if name.chars().all(|c| c.is_alphanumeric() || c == '_') => format!("/{name}"),
        PathStep::Name(name) => format!("/\"{}\"", name.replace('"', "\\\"")),
        _ => "/[]".to_owned(),
    };
    path.iter().map(label).collect()
}

#[cfg(test)]
mod tests;
