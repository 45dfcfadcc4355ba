//! Which indexes a query would use, as reported in the second version of index metrics (cosmos-rest §6.8).

use bolide_model::container::indexing::{IndexStep, IndexingPolicy};
use bolide_query::{PathStep, Usage};
use serde_json::{Value, json};

/// Returns `UtilizedIndexes` for paths that the indexing policy has an index for, `PotentialIndexes` for the others.
pub(super) fn indexes(usage: &Usage, policy: &IndexingPolicy) -> Value {
    let is_indexed = |path: &Vec<PathStep>| policy.is_indexed(&steps(path));
    let single = |wanted: bool| -> Value {
        let paths = usage.paths.iter().filter(|path| is_indexed(path) == wanted);
        paths
            .map(|path| json!({"IndexSpec": format!("{}/?", text(path))}))
            .collect()
    };
    // A sort by several paths is refused if no composite index serves it.
    let sort = usage.sort.iter().map(|(path, descends)| {
        let order = if *descends { "DESC" } else { "ASC" };
        format!("{} {order}", text(path))
    });
    let composite = match sort.collect::<Vec<String>>() {
        none if none.is_empty() => json!([]),
        specs => json!([{ "IndexSpecs": specs }]),
    };
    json!({
        "UtilizedIndexes": {"SingleIndexes": single(true), "CompositeIndexes": composite},
        "PotentialIndexes": {"SingleIndexes": single(false), "CompositeIndexes": []},
    })
}

fn steps(path: &[PathStep]) -> Vec<IndexStep> {
    let step = |step: &PathStep| match step {
        PathStep::Name(name) => IndexStep::Name(name.clone()),
        _ => IndexStep::Element,
    };
    path.iter().map(step).collect()
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
