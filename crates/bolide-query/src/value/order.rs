//! Equality, comparison and the total order (cosmos-sql §8).

use std::cmp::Ordering;

use super::{Kind, Members, Value, append_same_key};
use crate::fuel::Fuel;

/// `=`: undefined (`None`) if a side is undefined; different kinds are unequal; deep comparison for arrays and objects.
pub fn equals(left: &Value<'_>, right: &Value<'_>, fuel: &Fuel) -> Option<bool> {
    match (left, right) {
        (Value::Undefined, _) | (_, Value::Undefined) => None,
        _ => Some(deep_equal(left, right, fuel)),
    }
}

/// Also `false` when fuel is refused.
fn deep_equal(left: &Value<'_>, right: &Value<'_>, fuel: &Fuel) -> bool {
    match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Number(a), Value::Number(b)) => a == b,
        (Value::String(a), Value::String(b)) => {
            let (a, b) = (a.as_str(), b.as_str());
            a.len() == b.len() && fuel.spend_bytes(a.len()) && a == b
        }
        _ if !fuel.spend(container_units(left) + container_units(right)) => false,
        _ => match (left.kind(), right.kind()) {
            (Kind::Array, Kind::Array) => {
                let (a, b) = (
                    left.elements().unwrap_or_default(),
                    right.elements().unwrap_or_default(),
                );
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(x, y)| deep_equal(x, y, fuel))
            }
            (Kind::Object, Kind::Object) => {
                let (a, b) = (left.members().unwrap_or_default(), right.members().unwrap_or_default());
                a.len() == b.len() && same_members(a.to_vec(), b.to_vec(), fuel)
            }
            _ => false,
        },
    }
}

fn same_members(mut a: Members<'_>, mut b: Members<'_>, fuel: &Fuel) -> bool {
    a.sort_by(|x, y| x.0.as_str().cmp(y.0.as_str()));
    b.sort_by(|x, y| x.0.as_str().cmp(y.0.as_str()));
    a.iter()
        .zip(&b)
        .all(|(x, y)| x.0.as_str() == y.0.as_str() && deep_equal(&x.1, &y.1, fuel))
}

/// Cost of reading the elements of a value, without their content.
fn container_units(value: &Value<'_>) -> u64 {
    match value {
        Value::Json(text) => text.len() as u64 * 2,
        Value::Array(items) => items.len() as u64 * 4,
        Value::Object(members) => members.len() as u64 * 50,
        _ => 0,
    }
}

/// `<`, `<=`, `>` and `>=`: defined only between primitives of one kind.
pub fn compare(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::Null, Value::Null) => Some(Ordering::Equal),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) => a.partial_order(*b),
        (Value::String(a), Value::String(b)) => Some(a.as_str().cmp(b.as_str())),
        _ => None,
    }
}

/// ORDER BY, MIN and MAX: by kind, then by value; arrays and objects by their canonical bytes, which is only a stable order.
pub fn total_order(left: &Value<'_>, right: &Value<'_>) -> Ordering {
    left.kind().cmp(&right.kind()).then_with(|| match (left, right) {
        (Value::Number(a), Value::Number(b)) => a.total_order(*b),
        _ => compare(left, right).unwrap_or_else(|| canonical(left).cmp(&canonical(right))),
    })
}

fn canonical(value: &Value<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    append_same_key(value, &mut out);
    out
}

/// The truth value of an operand of AND, OR and NOT: other values than booleans count as undefined.
pub fn truth(value: &Value<'_>) -> Option<bool> {
    value.as_bool()
}
