//! Items as files and servers have them: their size, their system properties, and whether two are the same.

use bolide_model::document::SYSTEM_PROPERTIES;
use bolide_model::limits;
use serde_json::{Map, Value};

/// The members of an item.
pub(crate) type Item = Map<String, Value>;

/// Most bytes of an item in a file: what a server stores, and white space, escapes and system properties.
pub(crate) const ITEM_TEXT_BYTES: usize = limits::ITEM_BYTES + limits::ITEM_BYTES / 4;

/// Removes what only the server that stores an item gives a meaning. `_ts` stays: an import can keep it.
pub(crate) fn drop_links(item: &mut Item) {
    for name in SYSTEM_PROPERTIES.iter().filter(|name| **name != "_ts") {
        item.shift_remove(*name);
    }
}

/// Tells whether two items have the same content: all members but the system properties, in any order, with numbers compared as doubles, which is
/// how servers store them.
pub(crate) fn same_content(one: &Item, other: &Item) -> bool {
    let count = |item: &Item| item.keys().filter(|name| is_content(name)).count();
    let has = |(name, value): (&String, &Value)| other.get(name).is_some_and(|with| same_value(value, with));
    count(one) == count(other) && one.iter().filter(|(name, _)| is_content(name)).all(has)
}

fn is_content(name: &str) -> bool {
    !SYSTEM_PROPERTIES.contains(&name)
}

fn same_value(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_value(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(name, value): (&String, &Value)| other.get(name).is_some_and(|with| same_value(value, with));
            one.len() == other.len() && one.iter().all(has)
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests;
