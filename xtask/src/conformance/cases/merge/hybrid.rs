//! ORDER BY RANK over several ranges: statistics of all ranges, scores of each, and their fusion (cosmos-sql §14).

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{QueryInfo, Ranges};
use crate::Result;
use crate::conformance::cases::container::Outcome;

/// Limits the weight of the best ranks.
const RANK_CONSTANT: f64 = 60.0;

const PLACEHOLDER: &str = "{documentdb-formattablehybridsearchquery-";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HybridInfo {
    global_statistics_query: String,
    component_query_infos: Vec<QueryInfo>,
    component_weights: Vec<f64>,
    skip: Option<usize>,
    take: Option<usize>,
    requires_global_statistics: bool,
}

/// A row found by some component, with its score for every component.
struct Found {
    payload: Option<Value>,
    scores: Vec<f64>,
}

/// Runs a ranked query.
///
/// # Errors
/// If a row does not have the shape that the plan implies.
pub fn search(ranges: &Ranges<'_>, info: &Value) -> Result<Outcome> {
    let info = HybridInfo::deserialize(info)?;
    let mut statistics = Vec::new();
    if info.requires_global_statistics {
        match ranges.query(&info.global_statistics_query)? {
            Ok(rows) => statistics = rows.into_iter().flatten().collect(),
            Err(refused) => return Ok(refused),
        }
    }
    let mut found: BTreeMap<String, Found> = BTreeMap::new();
    for component in &info.component_query_infos {
        match ranges.query(&with_statistics(&component.rewritten_query, &statistics))? {
            Ok(rows) => rows.into_iter().flatten().try_for_each(|row| add(&mut found, row))?,
            Err(refused) => return Ok(refused),
        }
    }
    Ok(Outcome::Rows(fused(&info, found.into_values().collect())))
}

/// Fills the placeholders of a component query with the sums over all ranges.
fn with_statistics(query: &str, statistics: &[Value]) -> String {
    let total = |pointer: &str| -> u64 {
        let parts = statistics.iter().filter_map(|part| part.pointer(pointer));
        parts.filter_map(Value::as_u64).sum()
    };
    let count_at = |pointer: &str| {
        let lengths = statistics.iter().filter_map(|part| part.pointer(pointer)?.as_array());
        lengths.map(Vec::len).max().unwrap_or(0)
    };
    let mut query = query.replace(
        &format!("{PLACEHOLDER}totaldocumentcount}}"),
        &total("/documentCount").to_string(),
    );
    for text in 0..count_at("/fullTextStatistics") {
        let words = total(&format!("/fullTextStatistics/{text}/totalWordCount"));
        let hits = format!("/fullTextStatistics/{text}/hitCounts");
        let counts: Vec<u64> = (0..count_at(&hits))
            .map(|term| total(&format!("{hits}/{term}")))
            .collect();
        query = query
            .replace(&format!("{PLACEHOLDER}totalwordcount-{text}}}"), &words.to_string())
            .replace(&format!("{PLACEHOLDER}hitcountsarray-{text}}}"), &format!("{counts:?}"));
    }
    query
}

/// Adds `{"_rid", "orderByItems", "payload": {"payload", "componentScores"}}`; several components may find the same item.
fn add(found: &mut BTreeMap<String, Found>, mut row: Value) -> Result<()> {
    let rid = row["_rid"]
        .as_str()
        .ok_or_else(|| format!("no ranked row: {row}"))?
        .to_owned();
    let mut payload: Map<String, Value> = match row["payload"].take() {
        Value::Object(payload) => payload,
        other => return Err(format!("no payload of a ranked row: {other}").into()),
    };
    let scores = payload.remove("componentScores").unwrap_or_default();
    let scores = scores
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_f64)
        .collect();
    found.entry(rid).or_insert(Found {
        payload: payload.remove("payload"),
        scores,
    });
    Ok(())
}

/// The payloads, ordered by the sum of their weighted reciprocal ranks.
fn fused(info: &HybridInfo, found: Vec<Found>) -> Vec<Value> {
    let mut fused = vec![0.0; found.len()];
    for (number, component) in info.component_query_infos.iter().enumerate() {
        let weight = info.component_weights.get(number).copied().unwrap_or(1.0);
        let is_descending = component
            .order_by
            .first()
            .is_none_or(|direction| direction == "Descending");
        for (row, rank) in ranks(&found, number, is_descending == (weight >= 0.0)) {
            fused[row] += weight / (RANK_CONSTANT + rank);
        }
    }
    let mut rows: Vec<(f64, Found)> = fused.into_iter().zip(found).collect();
    rows.sort_by(|one, other| other.0.partial_cmp(&one.0).unwrap_or(Ordering::Equal));
    let payloads = rows
        .into_iter()
        .skip(info.skip.unwrap_or(0))
        .take(info.take.unwrap_or(usize::MAX));
    payloads.filter_map(|(_, found)| found.payload).collect()
}

/// The rank of each row by the score of one component: dense, from 1.
fn ranks(found: &[Found], component: usize, is_descending: bool) -> Vec<(usize, f64)> {
    let score = |row: usize| found[row].scores.get(component).copied().unwrap_or(f64::NAN);
    let mut rows: Vec<usize> = (0..found.len()).collect();
    rows.sort_by(|one, other| {
        let ordering = score(*one).total_cmp(&score(*other));
        if is_descending { ordering.reverse() } else { ordering }
    });
    let mut rank = 1.0;
    let mut ranks = Vec::with_capacity(rows.len());
    for (place, row) in rows.iter().enumerate() {
        if place > 0 && score(*row) != score(rows[place - 1]) {
            rank += 1.0;
        }
        ranks.push((*row, rank));
    }
    ranks
}

#[cfg(test)]
mod tests;
