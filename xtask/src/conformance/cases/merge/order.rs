//! ORDER BY over several ranges: rows have their sort values, `{"_rid", "orderByItems": [{"item"}], "payload"}`.

use std::cmp::Ordering;

use serde_json::Value;

use super::QueryInfo;
use crate::Result;

/// The payloads of all ranges in order. Ties are ordered by range and, inside a range, keep their order.
///
/// # Errors
/// If a row does not have this shape, or the rows of a range are not in order.
pub fn merged(info: &QueryInfo, ranges: Vec<Vec<Value>>) -> Result<Vec<Value>> {
    let compare = |one: &Value, other: &Value| by_items(&info.order_by, one, other);
    for rows in &ranges {
        check_shape(info, rows)?;
        if !info.has_non_streaming_order_by && !rows.is_sorted_by(|one, other| compare(one, other).is_le()) {
            return Err(format!("the rows of a range are not in order: {rows:?}").into());
        }
    }
    let mut rows: Vec<Value> = ranges.into_iter().flatten().collect();
    rows.sort_by(compare);
    let payload = |mut row: Value| row.as_object_mut().and_then(|row| row.remove("payload"));
    Ok(rows.into_iter().filter_map(payload).collect())
}

fn check_shape(info: &QueryInfo, rows: &[Value]) -> Result<()> {
    let fits = |row: &Value| {
        let items = row["orderByItems"].as_array().map_or(0, Vec::len);
        row["_rid"].as_str().is_some_and(|rid| !rid.is_empty()) && items == info.order_by.len()
    };
    match rows.iter().find(|row| !fits(row)) {
        Some(row) => Err(format!("no row to be merged in order: {row}").into()),
        None => Ok(()),
    }
}

fn by_items(directions: &[String], one: &Value, other: &Value) -> Ordering {
    let item = |row: &Value, key: usize| row["orderByItems"][key].get("item").cloned();
    let by_key = |(key, direction): (usize, &String)| {
        let ordering = total_order(item(one, key).as_ref(), item(other, key).as_ref());
        if direction == "Descending" {
            ordering.reverse()
        } else {
            ordering
        }
    };
    let orderings = directions.iter().enumerate().map(by_key);
    orderings.fold(Ordering::Equal, Ordering::then)
}

/// undefined < null < false < true < numbers < strings < arrays < objects. All arrays are equal here, and all objects: their order is decided by the server.
pub fn total_order(one: Option<&Value>, other: Option<&Value>) -> Ordering {
    match (one, other) {
        (Some(Value::Bool(one)), Some(Value::Bool(other))) => one.cmp(other),
        (Some(Value::String(one)), Some(Value::String(other))) => one.cmp(other),
        (Some(Value::Number(one)), Some(Value::Number(other))) => {
            one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal)
        }
        _ => kind(one).cmp(&kind(other)),
    }
}

fn kind(value: Option<&Value>) -> u8 {
    match value {
        None => 0,
        Some(Value::Null) => 1,
        Some(Value::Bool(_)) => 2,
        Some(Value::Number(_)) => 3,
        Some(Value::String(_)) => 4,
        Some(Value::Array(_)) => 5,
        Some(Value::Object(_)) => 6,
    }
}

#[cfg(test)]
mod tests;
