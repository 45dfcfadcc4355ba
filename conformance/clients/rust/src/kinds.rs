//! Queries of every kind: each one on one range and on five, in pages of one, of three and of any size.
//!
//! Over a whole container the SDK requests a plan and merges according to it, on one range too. It cannot merge aggregates and groups, and DISTINCT
//! only together with a limit; the tour expects those refusals.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::models::{IndexingPolicy, ThroughputProperties};
use azure_data_cosmos::{PartitionKey, Query};
use futures::TryStreamExt;
use serde_json::{Value, json};

use crate::checks::{Outcome, Tour, equal};
use crate::queries::{PAGE_SIZES, paged};
use crate::world::{FIVE_RANGES, World, keyed, sorted};

/// The file that the tours of several languages share; it describes its members.
static KINDS: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../tour_queries.json"))
        .expect("the file is JSON, as the other tours read it too")
});

pub async fn run(tour: &mut Tour, world: &World) {
    for (place, throughput) in [("one range", None), ("five ranges", Some(FIVE_RANGES))] {
        match stores(world, throughput).await {
            Ok(stores) => run_on(tour, &stores, place).await,
            Err(error) => {
                let name = format!("items for queries of every kind are stored on {place}");
                tour.check(&name, async { Err(error) }).await;
            }
        }
    }
}

async fn run_on(tour: &mut Tour, stores: &HashMap<String, ContainerClient>, place: &str) {
    for kind in list(&KINDS["queries"]) {
        let container = &stores[text(&kind["container"])];
        let title = text(&kind["name"]);
        if let Some(reason) = refusal(kind) {
            let name = format!("query {title} is refused by the SDK, {place}");
            tour.check(&name, is_refused(container, kind, reason)).await;
        } else {
            let name = format!("query {title}, {place}");
            tour.check(&name, rows_are_as_expected(container, kind)).await;
        }
    }
}

/// Creates the containers of the file with their items.
async fn stores(world: &World, throughput: Option<u64>) -> Outcome<HashMap<String, ContainerClient>> {
    let mut stores = HashMap::new();
    for (name, shape) in KINDS["containers"].as_object().ok_or("the file has no containers")? {
        let paths: Vec<&str> = list(&shape["paths"]).map(text).collect();
        let policy: IndexingPolicy = serde_json::from_value(json!({
            "automatic": true,
            "indexingMode": "consistent",
            "includedPaths": [{"path": "/*"}],
        }))?;
        let policy = composite(policy, &shape["compositeIndexes"])?;
        let kind = if paths.len() == 1 { "Hash" } else { "MultiHash" };
        let key = serde_json::from_value(json!({"paths": paths, "kind": kind, "version": 2}))?;
        let properties = keyed(name, key).with_indexing_policy(policy);
        let container = world
            .create(properties, throughput.map(ThroughputProperties::manual))
            .await?;
        for item in list(&shape["items"]) {
            let levels = paths.iter().map(|path| &item[path.trim_start_matches('/')]);
            container
                .create_item(key_of(levels)?, text(&item["id"]), item, None)
                .await?;
        }
        stores.insert(name.clone(), container);
    }
    Ok(stores)
}

fn composite(mut policy: IndexingPolicy, indexes: &Value) -> Outcome<IndexingPolicy> {
    for index in list(indexes) {
        policy = policy.with_composite_index(serde_json::from_value(index.clone())?);
    }
    Ok(policy)
}

/// Returns a part of the error with which the SDK refuses a query, or `None` if it can run it.
fn refusal(kind: &Value) -> Option<&'static str> {
    let needs: Vec<&str> = list(&kind["needs"]).map(text).collect();
    if needs == ["distinct"] {
        return Some("DISTINCT requires a finite global TOP or LIMIT");
    }
    let merged_by_others = ["aggregate", "several aggregates", "group by"];
    needs
        .iter()
        .any(|need| merged_by_others.contains(need))
        .then_some("unsupported features")
}

async fn is_refused(container: &ContainerClient, kind: &Value, reason: &str) -> Outcome {
    match rows(container, kind, None).await {
        Ok(rows) => Err(format!("expected a refusal, got rows {rows:?}").into()),
        Err(error) => equal(
            error.to_string().contains(reason),
            true,
            &format!("refusal in `{error}`"),
        ),
    }
}

async fn rows_are_as_expected(container: &ContainerClient, kind: &Value) -> Outcome {
    let expected: Vec<Value> = list(&kind["rows"]).cloned().collect();
    for size in PAGE_SIZES {
        let found = rows(container, kind, size).await?;
        let what = format!("rows in pages of {size:?}");
        if let Some(take) = kind["take"].as_u64() {
            let known: HashSet<String> = found
                .iter()
                .filter(|row| expected.contains(row))
                .map(Value::to_string)
                .collect();
            equal((known.len() as u64, found.len() as u64), (take, take), &what)?;
        } else if kind["ordered"] == json!(true) {
            equal(&found, &expected, &what)?;
        } else {
            equal(sorted(found), sorted(expected.clone()), &what)?;
        }
    }
    Ok(())
}

async fn rows(container: &ContainerClient, kind: &Value, size: Option<u32>) -> Outcome<Vec<Value>> {
    let mut query = Query::from(text(&kind["text"]));
    for (name, value) in kind["parameters"].as_object().into_iter().flatten() {
        query = query.with_parameter(name, value)?;
    }
    let scope = match kind["key"].as_array() {
        Some(levels) => FeedScope::partition(key_of(levels.iter())?),
        None => FeedScope::full_container(),
    };
    let rows = container.query_items::<Value>(query, scope, Some(paged(size))).await?;
    Ok(rows.try_collect().await?)
}

/// Returns the partition key of these levels, which are strings, or of the first few.
fn key_of<'a>(levels: impl Iterator<Item = &'a Value>) -> Outcome<PartitionKey> {
    let levels: Vec<String> = levels.map(|level| text(level).to_owned()).collect();
    match levels.as_slice() {
        [one] => Ok(one.clone().into()),
        [one, two] => Ok((one.clone(), two.clone()).into()),
        [one, two, three] => Ok((one.clone(), two.clone(), three.clone()).into()),
        other => Err(format!("a partition key has one to three levels. levels={}", other.len()).into()),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
