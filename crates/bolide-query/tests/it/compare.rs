//! Compares results as the cases require.
//!
//! `xtask/src/conformance/cases/compare.rs` compares in the same way over the wire: xtask uses no crate of the project, and crates do not use xtask.

use serde_json::Value as Json;

/// How two results may differ.
#[derive(Debug, Clone, Copy)]
pub struct Tolerance {
    /// Relative difference of numbers; integers are equal to the last digit.
    pub relative: f64,
    /// Arrays inside results are sets.
    pub unordered_arrays: bool,
}

const SYSTEM_PROPERTIES: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];

/// The result without system properties at its top level.
pub fn stripped(mut result: Json) -> Json {
    if let Some(members) = result.as_object_mut() {
        members.retain(|name, _| !SYSTEM_PROPERTIES.contains(&name.as_str()));
    }
    result
}

/// Whether two lists of results agree, as lists or as multisets.
pub fn same_results(actual: &[Json], expected: &[Json], ordered: bool, tolerance: Tolerance) -> bool {
    if ordered {
        return actual.len() == expected.len() && actual.iter().zip(expected).all(|(a, b)| same(a, b, tolerance));
    }
    same_multiset(actual, expected, tolerance)
}

fn same_multiset(actual: &[Json], expected: &[Json], tolerance: Tolerance) -> bool {
    let mut left: Vec<&Json> = actual.iter().collect();
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

fn same(actual: &Json, expected: &Json, tolerance: Tolerance) -> bool {
    match (actual, expected) {
        (Json::Number(a), Json::Number(b)) if a.is_i64() && b.is_i64() => a == b,
        (Json::Number(a), Json::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 1e-12 || (a - b).abs() <= tolerance.relative * a.abs().max(b.abs())
        }
        (Json::Array(a), Json::Array(b)) if tolerance.unordered_arrays => same_multiset(a, b, tolerance),
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b, tolerance)),
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, value)| b.get(name).is_some_and(|other| same(value, other, tolerance)))
        }
        _ => actual == expected,
    }
}
