//! Index metrics in the service's two forms (cosmos-rest §6.8).

use bolide_core::QueryUsage;
use bolide_model::container::ContainerProperties;
use bolide_model::partition_key::PropertyPath;
use serde_json::{Value, json};

/// The first form: the indexes that the query used. These are the first components of the partition key, by which items were found.
pub(super) fn served(properties: &ContainerProperties, key_components: usize) -> Value {
    let spec = |path: &PropertyPath| {
        json!({
            "FilterExpression": "",
            "IndexSpec": format!("{}/?", path.as_str()),
            "FilterPreciseSet": true,
            "IndexPreciseSet": true,
            "IndexImpactScore": "High",
        })
    };
    let paths = properties.partition_key.paths.iter();
    let used: Vec<Value> = paths.take(key_components).map(spec).collect();
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
