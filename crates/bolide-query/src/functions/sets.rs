//! Set functions over arrays (cosmos-sql §18.4). Elements are the same as in DISTINCT.

use std::collections::HashSet;

use super::{Call, Function};
use crate::value::{SameKey, Value, append_same_key, same_key};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::strict("SetUnion", 2, 2, |c| {
        with_sets(c, |a, b| distinct(a.iter().chain(b), |_| true))
    }),
    // Published examples follow the order of the second argument.
    Function::strict("SetIntersect", 2, 2, |c| {
        with_sets(c, |a, b| {
            let own = keys(a);
            distinct(b.iter(), |key| own.contains(key))
        })
    }),
    Function::strict("SetDifference", 2, 2, |c| {
        with_sets(c, |a, b| {
            let other = keys(b);
            distinct(a.iter(), |key| !other.contains(key))
        })
    }),
    Function::strict("SetEqual", 2, 2, |c| {
        with_sets(c, |a, b| Value::Bool(keys(a) == keys(b)))
    }),
];

fn with_sets<'a>(call: &Call<'_, 'a>, compute: fn(&[Value<'a>], &[Value<'a>]) -> Value<'a>) -> Value<'a> {
    match (call.arg(0).elements(), call.arg(1).elements()) {
        (Some(a), Some(b)) => compute(&a, &b),
        _ => Value::Undefined,
    }
}

fn key(value: &Value<'_>) -> SameKey {
    let mut canonical = Vec::new();
    append_same_key(value, &mut canonical);
    same_key(&canonical)
}

fn keys(items: &[Value<'_>]) -> HashSet<SameKey> {
    items.iter().map(key).collect()
}

/// The first of each sort that `keep` lets through.
fn distinct<'v, 'a: 'v>(items: impl Iterator<Item = &'v Value<'a>>, keep: impl Fn(&SameKey) -> bool) -> Value<'a> {
    let mut seen = HashSet::new();
    let kept = items.filter(|item| {
        let key = key(item);
        keep(&key) && seen.insert(key)
    });
    Value::array(kept.cloned().collect::<Vec<_>>())
}
