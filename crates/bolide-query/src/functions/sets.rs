//! Set functions over arrays (cosmos-sql §18.4). Elements are compared as by DISTINCT.

use std::collections::HashSet;

use super::{Call, Function};
use crate::eval::key_of;
use crate::value::{SameKey, Value};

/// Units for the key of an element, without its bytes.
const KEY: u64 = 150;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::strict("SetUnion", 2, 2, |c| {
        with_sets(c, |a, b| distinct(c, a.iter().chain(b), |_| true))
    }),
    // Published examples follow the order of the second argument.
    Function::strict("SetIntersect", 2, 2, |c| {
        with_sets(c, |a, b| {
            let own = keys(c, a);
            distinct(c, b.iter(), |key| own.contains(key))
        })
    }),
    Function::strict("SetDifference", 2, 2, |c| {
        with_sets(c, |a, b| {
            let other = keys(c, b);
            distinct(c, a.iter(), |key| !other.contains(key))
        })
    }),
    Function::strict("SetEqual", 2, 2, |c| {
        with_sets(c, |a, b| Value::Bool(keys(c, a) == keys(c, b)))
    }),
];

fn with_sets<'a>(call: &Call<'_, 'a>, compute: impl Fn(&[Value<'a>], &[Value<'a>]) -> Value<'a>) -> Value<'a> {
    match (call.arg(0).elements(), call.arg(1).elements()) {
        (Some(a), Some(b)) => compute(&a, &b),
        _ => Value::Undefined,
    }
}

fn keys(call: &Call<'_, '_>, items: &[Value<'_>]) -> HashSet<SameKey> {
    let affordable = items.iter().take_while(|_| call.fuel().spend(KEY));
    affordable.map(|item| key_of(item, call.session)).collect()
}

/// The first of equal elements, if `keep` accepts it.
fn distinct<'v, 'a: 'v>(
    call: &Call<'_, 'a>,
    items: impl Iterator<Item = &'v Value<'a>>,
    keep: impl Fn(&SameKey) -> bool,
) -> Value<'a> {
    let mut seen = HashSet::new();
    let affordable = items.take_while(|_| call.fuel().spend(KEY));
    let kept = affordable.filter(|item| {
        let key = key_of(item, call.session);
        keep(&key) && seen.insert(key)
    });
    Value::array(kept.cloned().collect::<Vec<_>>())
}
