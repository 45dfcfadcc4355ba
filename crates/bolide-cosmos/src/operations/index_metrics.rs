//! Index metrics in the service's two forms (cosmos-rest §6.8).

use bolide_core::QueryUsage;
use bolide_model::container::ContainerProperties;
use serde_json::{Value, json};

/// The first form: the indexes that the page used. These are the first components of the partition key, by which items were found, and the index that was read;
/// a composite one by its paths with their directions, separated by commas.
pub(super) fn served(properties: &ContainerProperties, key_components: usize, index: Option<&str>) -> Value {
    let spec = |path: &str| {
        json!({
            "FilterExpression": "",
            "IndexSpec": path,
            "FilterPreciseSet": true,
            "IndexPreciseSet": true,
            "IndexImpactScore": "High",
        })
    };
    let paths = properties.partition_key.paths.iter();
    let mut paths: Vec<String> = paths
        .take(key_components)
        .map(|path| format!("{}/?", path.as_str()))
        .collect();
    let (composite, single): (Vec<&str>, Vec<&str>) = index.iter().partition(|index| is_composite(index));
    let single = single
        .into_iter()
        .map(str::to_owned)
        .find(|index| !paths.contains(index));
    paths.extend(single);
    let used: Vec<Value> = paths.iter().map(|path| spec(path)).collect();
    json!({
        "UtilizedSingleIndexes": used,
        "PotentialSingleIndexes": [],
        "UtilizedCompositeIndexes": composite.into_iter().map(composite_spec).collect::<Vec<_>>(),
        "PotentialCompositeIndexes": [],
    })
}

/// Whether an index is a composite one: its text ends with the direction of a path.
fn is_composite(index: &str) -> bool {
    index.ends_with(" ASC") || index.ends_with(" DESC")
}

fn composite_spec(index: &str) -> Value {
    let paths: Vec<&str> = index.split(", ").collect();
    json!({"IndexSpecs": paths, "IndexPreciseSet": true, "IndexImpactScore": "High"})
}

/// The second form: the indexes that the text of the query would use.
pub(crate) fn of_text(usage: &QueryUsage) -> Value {
    let single = |paths: &[String]| -> Value {
        let specs = paths.iter().map(|path| json!({"IndexSpec": format!("{path}/?")}));
        specs.collect()
    };
    // A sort by several paths is refused unless a composite index covers it.
    let sort = usage.sort.iter().map(|(path, descends)| {
        let order = if *descends { "DESC" } else { "ASC" };
        format!("{path} {order}")
    });
    let composite = match sort.collect::<Vec<String>>() {
        empty if empty.is_empty() => json!([]),
        specs => json!([{ "IndexSpecs": specs }]),
    };
    json!({
        "UtilizedIndexes": {"SingleIndexes": single(&usage.indexed), "CompositeIndexes": composite},
        "PotentialIndexes": {"SingleIndexes": single(&usage.unindexed), "CompositeIndexes": []},
    })
}

#[cfg(test)]
mod tests;
