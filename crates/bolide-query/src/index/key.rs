//! The key of a value in an index; for its shape see [`super`].

use bolide_index::codec::{Encoder, sql_rank};

use crate::number::Number;
use crate::value::{Kind, Value};

/// Maximum length of a key, in bytes.
pub const KEY_BYTES: usize = 1_000;

/// The last bytes of a whole string. They are nowhere else in it.
const END_OF_STRING: &[u8] = &[0, 0];

/// Whether only equal values have this key. Others are cut strings, arrays and objects: their order among themselves is not in the index.
pub fn is_exact(key: &[u8]) -> bool {
    match key.first() {
        None => false,
        Some(&sql_rank::STRING) => key.ends_with(END_OF_STRING),
        Some(rank) => *rank < sql_rank::ARRAY,
    }
}

/// A key, and whether it is that of equal values only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub bytes: Vec<u8>,
    pub is_exact: bool,
}

impl Key {
    /// The key of a value; `None` for undefined.
    pub fn of(value: &Value<'_>) -> Option<Key> {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes);
        match value {
            Value::Undefined => return None,
            Value::Null => encoder.rank_only(sql_rank::NULL),
            Value::Bool(value) => encoder.rank_only(sql_rank::FALSE + u8::from(*value)),
            Value::Number(Number::Int(value)) => encoder.i64(*value),
            Value::Number(Number::Float(value)) => encoder.f64(*value),
            Value::String(text) => encoder.string(beginning(text.as_str())),
            Value::Json(_) | Value::Array(_) | Value::Object(_) => encoder.rank_only(match value.kind() {
                Kind::Array => sql_rank::ARRAY,
                _ => sql_rank::OBJECT,
            }),
        }
        bytes.truncate(KEY_BYTES);
        let is_exact = is_exact(&bytes);
        Some(Key { bytes, is_exact })
    }
}

/// The key of an item without a value, in indexes that have one.
pub const KEY_OF_UNDEFINED: &[u8] = &[sql_rank::UNDEFINED];
/// The key of all arrays.
pub(crate) const KEY_OF_ARRAYS: &[u8] = &[sql_rank::ARRAY];
/// The key of all objects.
pub(crate) const KEY_OF_OBJECTS: &[u8] = &[sql_rank::OBJECT];

/// The key of a value; `None` for undefined.
pub(crate) fn key_of(value: &Value<'_>) -> Option<Vec<u8>> {
    Key::of(value).map(|key| key.bytes)
}

/// The key of a string.
pub(crate) fn key_of_string(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    Encoder::new(&mut bytes).string(beginning(text));
    bytes.truncate(KEY_BYTES);
    bytes
}

/// The bytes with which the keys of all strings begin that begin with `prefix`.
pub(crate) fn of_prefix(prefix: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    Encoder::new(&mut bytes).string(beginning(prefix));
    bytes.truncate((bytes.len() - END_OF_STRING.len()).min(KEY_BYTES));
    bytes
}

/// As much of a string as its key needs.
fn beginning(text: &str) -> &str {
    // With the first byte of the key these are too many, so that the string is cut before its end.
    &text[..text.ceil_char_boundary(KEY_BYTES)]
}

/// The lowest bytes above all that begin with `prefix`; `None` if there are none.
pub(crate) fn after(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xFF)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests;
