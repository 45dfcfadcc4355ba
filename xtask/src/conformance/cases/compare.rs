//! Compares results as the cases require.

use serde_json::Value;

/// The allowed differences of two results.
#[derive(Clone, Copy)]
pub struct Tolerance {
    /// Relative difference of numbers.
    pub relative: f64,
    /// Arrays inside results are sets.
    pub unordered_arrays: bool,
}

/// Only the spelling of numbers and the order of members may differ.
pub const EXACT: Tolerance = Tolerance {
    relative: 0.0,
    unordered_arrays: false,
};

const SYSTEM_PROPERTIES: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];

/// Numbers that differ by less than this are equal, whatever their size.
const ABSOLUTE: f64 = 1e-12;

/// The result without system properties at its top level.
pub fn stripped(mut result: Value) -> Value {
    if let Some(members) = result.as_object_mut() {
        members.retain(|name, _| !SYSTEM_PROPERTIES.contains(&name.as_str()));
    }
    result
}

/// Whether two lists of results agree, as lists or as multisets.
pub fn same_results(actual: &[Value], expected: &[Value], ordered: bool, tolerance: Tolerance) -> bool {
    if ordered {
        return same_list(actual, expected, tolerance);
    }
    same_multiset(actual, expected, tolerance)
}

fn same_list(actual: &[Value], expected: &[Value], tolerance: Tolerance) -> bool {
    actual.len() == expected.len() && actual.iter().zip(expected).all(|(a, b)| same(a, b, tolerance))
}

fn same_multiset(actual: &[Value], expected: &[Value], tolerance: Tolerance) -> bool {
    let mut left: Vec<&Value> = actual.iter().collect();
    actual.len() == expected.len()
        && expected.iter().all(
            |wanted| match left.iter().position(|found| same(found, wanted, tolerance)) {
                Some(at) => {
                    left.swap_remove(at);
                    true
                }
                None => false,
            },
        )
}

/// Whether two values agree.
pub fn same(actual: &Value, expected: &Value, tolerance: Tolerance) -> bool {
    match (actual, expected) {
        (Value::Number(a), Value::Number(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() <= (tolerance.relative * a.abs().max(b.abs())).max(ABSOLUTE),
            _ => a == b,
        },
        (Value::Array(a), Value::Array(b)) if tolerance.unordered_arrays => same_multiset(a, b, tolerance),
        (Value::Array(a), Value::Array(b)) => same_list(a, b, tolerance),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, value)| b.get(name).is_some_and(|other| same(value, other, tolerance)))
        }
        _ => actual == expected,
    }
}

#[cfg(test)]
mod tests;
