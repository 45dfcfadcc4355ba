//! Aggregates and GROUP BY over several ranges: each range sends its part of every group, `{"groupByItems": [{"item"}], "payload"}`, or only the
//! payload for a single aggregate.

use serde_json::{Map, Value, json};

use super::order::total_order;
use super::{QueryInfo, distinct};
use crate::Result;
use crate::conformance::cases::compare::{EXACT, same};

/// One row per group.
///
/// # Errors
/// If a row does not have the shape that the plan implies.
pub fn merged(info: &QueryInfo, ranges: Vec<Vec<Value>>) -> Result<Vec<Value>> {
    let mut groups: Vec<(Value, Vec<Option<Value>>)> = Vec::new();
    for row in ranges.into_iter().flatten() {
        let (key, payload) = part(info, row)?;
        match groups.iter_mut().find(|(known, _)| same(known, &key, EXACT)) {
            Some((_, parts)) => parts.push(payload),
            None => groups.push((key, vec![payload])),
        }
    }
    let rows = groups.into_iter().map(|(_, parts)| whole(info, &parts));
    Ok(rows.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// A range's part of a group: the group's key and the payload, if it is defined.
fn part(info: &QueryInfo, row: Value) -> Result<(Value, Option<Value>)> {
    let is_grouped = !info.group_by_expressions.is_empty();
    if !is_grouped && info.has_select_value {
        return Ok((Value::Null, Some(row)));
    }
    let Value::Object(mut row) = row else {
        return Err(format!("no part of a group: {row}").into());
    };
    let key = row.remove("groupByItems").unwrap_or_default();
    if is_grouped && key.as_array().map(Vec::len) != Some(info.group_by_expressions.len()) {
        return Err(format!("a part of a group without its key: {row:?}").into());
    }
    Ok((key, row.remove("payload")))
}

/// The merged parts of a group; `None` if the result is undefined.
fn whole(info: &QueryInfo, parts: &[Option<Value>]) -> Result<Option<Value>> {
    if info.has_select_value {
        let Some(kind) = info.aggregates.first() else {
            return Ok(parts.first().cloned().flatten());
        };
        let partials: Vec<Value> = parts.iter().flatten().map(|part| part[0].clone()).collect();
        return aggregate(kind, &partials);
    }
    let mut whole = Map::new();
    for alias in &info.group_by_aliases {
        let of_alias = || parts.iter().flatten().map(|part| part.get(alias).cloned());
        let value = match info.group_by_alias_to_aggregate_type.get(alias).and_then(Value::as_str) {
            Some(kind) => aggregate(kind, &of_alias().flatten().collect::<Vec<_>>())?,
            None => of_alias().next().flatten(),
        };
        whole.extend(value.map(|value| (alias.clone(), value)));
    }
    Ok(Some(Value::Object(whole)))
}

/// Merges partial aggregates, `{"item"}` or `{"item", "item2"}`. `None` is undefined, and one undefined part makes the result undefined.
fn aggregate(kind: &str, partials: &[Value]) -> Result<Option<Value>> {
    let items = || partials.iter().map(|partial| partial.get("item"));
    Ok(match kind {
        "Count" | "CountIf" | "Sum" => sum(items()).map(|sum| json!(sum)),
        "Average" => {
            let count = sum(items().map(|item| item?.get("count"))).unwrap_or(0.0);
            let sum = sum(items().map(|item| item?.get("sum")));
            sum.filter(|_| count > 0.0).map(|sum| json!(sum / count))
        }
        "Min" => extreme(partials, "min"),
        "Max" => extreme(partials, "max"),
        "MakeList" => Some(Value::Array(elements(items()))),
        "MakeSet" => Some(Value::Array(distinct(elements(items())))),
        other => return Err(format!("no such aggregate: {other}").into()),
    })
}

fn sum<'v>(parts: impl Iterator<Item = Option<&'v Value>>) -> Option<f64> {
    parts.map(|part| part?.as_f64()).sum()
}

fn elements<'v>(parts: impl Iterator<Item = Option<&'v Value>>) -> Vec<Value> {
    parts.flatten().filter_map(Value::as_array).flatten().cloned().collect()
}

/// The smallest or largest of the parts that have values.
fn extreme(partials: &[Value], which: &str) -> Option<Value> {
    let with_values = partials.iter().filter(|partial| partial["item2"]["count"] != json!(0));
    let found = with_values.map(|partial| partial["item2"].get(which));
    let found: Vec<&Value> = found.collect::<Option<_>>()?;
    let by_order = |one: &&&Value, other: &&&Value| total_order(Some(one), Some(other));
    let extreme = if which == "min" {
        found.iter().min_by(by_order)
    } else {
        found.iter().max_by(by_order)
    };
    extreme.map(|value| (*value).clone())
}

#[cfg(test)]
mod tests;
