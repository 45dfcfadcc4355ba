//! What a query's text tells about it: which paths it compares, and whether the indexing policy has an index for them.

use bolide_model::container::indexing::{IndexStep, IndexingPolicy};
use bolide_query::{PathStep, Usage};

use super::QueryUsage;

/// The paths of a query under an indexing policy.
pub(super) fn of(usage: Usage, policy: &IndexingPolicy) -> QueryUsage {
    let (indexed, unindexed): (Vec<_>, Vec<_>) = (usage.paths.iter()).partition(|path| policy.is_indexed(&steps(path)));
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

fn steps(path: &[PathStep]) -> Vec<IndexStep> {
    let step = |step: &PathStep| match step {
        PathStep::Name(name) => IndexStep::Name(name.clone()),
        _ => IndexStep::Element,
    };
    path.iter().map(step).collect()
}

/// A path as policies write it: names are quoted that have more than letters, digits and underscores.
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
