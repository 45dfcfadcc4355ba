//! Index metrics in the service's two forms (cosmos-rest §6.8).

use bolide_core::QueryUsage;
use bolide_model::container::ContainerProperties;
use serde_json::{Value, json};

/// The first form: the indexes that the page used. These are the first components of the partition key, by which items were found, and the index that was read.
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
    let index = index.map(str::to_owned).filter(|index| !paths.contains(index));
    paths.extend(index);
    let used: Vec<Value> = paths.iter().map(|path| spec(path)).collect();
    json!({
        "UtilizedSingleIndexes": used,
        "PotentialSingleIndexes": [],
        "UtilizedCompositeIndexes": [],
        "PotentialCompositeIndexes": [],
    })
}

/// The second form: the indexes that the text of the query would use.
pub(super) fn of_text(usage: &QueryUsage) -> Value {
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
