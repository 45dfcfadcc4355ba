//! Values as ORDER BY compares them, independent of their item (cosmos-sql §13).

use std::cmp::Ordering;

use super::emitted_rows;
use super::sort_hash::sort_hash;
use crate::index;
use crate::number::Number;
use crate::value::{Kind, Value};

/// A sort value that owns its data.
#[derive(Debug, Clone, PartialEq)]
pub enum SortValue {
    Undefined,
    Null,
    Bool(bool),
    Number(Number),
    String(Box<str>),
    /// In a continuation only: the beginning of a longer string, and the hash of all of it.
    Cut {
        hash: u64,
        start: Box<str>,
    },
    /// Arrays and objects sort by a hash of their content, see `sort_hash`.
    Array([u8; 16]),
    Object([u8; 16]),
}

impl SortValue {
    pub fn new(value: &Value<'_>) -> SortValue {
        match value {
            Value::Undefined => SortValue::Undefined,
            Value::Null => SortValue::Null,
            Value::Bool(value) => SortValue::Bool(*value),
            Value::Number(number) => SortValue::Number(*number),
            Value::String(text) => SortValue::String(text.as_str().into()),
            other if other.kind() == Kind::Array => SortValue::Array(sort_hash(other)),
            other => SortValue::Object(sort_hash(other)),
        }
    }

    /// The key that the value has in an index, see [`crate::index`]; of a cut string, the bytes with which its key begins.
    pub fn index_key(&self) -> Vec<u8> {
        let value = match self {
            SortValue::Undefined => return index::KEY_OF_UNDEFINED.to_vec(),
            SortValue::Null => Value::Null,
            SortValue::Bool(value) => Value::Bool(*value),
            SortValue::Number(number) => Value::Number(*number),
            SortValue::String(text) => return index::key_of_string(text),
            SortValue::Cut { start, .. } => return index::key_of_prefix(start),
            SortValue::Array(_) => return index::KEY_OF_ARRAYS.to_vec(),
            SortValue::Object(_) => return index::KEY_OF_OBJECTS.to_vec(),
        };
        index::key_of(&value).unwrap_or_default()
    }

    fn rank(&self) -> u8 {
        match self {
            SortValue::Undefined => 0,
            SortValue::Null => 1,
            SortValue::Bool(_) => 2,
            SortValue::Number(_) => 3,
            SortValue::String(_) | SortValue::Cut { .. } => 4,
            SortValue::Array(_) => 5,
            SortValue::Object(_) => 6,
        }
    }

    /// A string cut so that its text in a continuation has at most about `text_bytes` bytes.
    pub fn cut(string: &str, text_bytes: usize) -> SortValue {
        let max_bytes = (text_bytes * 3 / 4).saturating_sub(size_of::<u64>() + 1);
        SortValue::Cut {
            hash: hash_of_string(string),
            start: string[..string.floor_char_boundary(max_bytes)].into(),
        }
    }

    /// Whether a value is the whole of the string that was cut.
    pub fn is_whole_of(&self, cut: &SortValue) -> bool {
        match (self, cut) {
            (SortValue::String(string), SortValue::Cut { hash, start }) => {
                string.starts_with(&**start) && hash_of_string(string) == *hash
            }
            _ => false,
        }
    }

    /// Whether the order of a value and a cut one is unknown.
    pub fn is_undecided(&self, cut: &SortValue) -> bool {
        match (self, cut) {
            (SortValue::String(string), SortValue::Cut { start, .. }) => {
                string.starts_with(&**start) && !self.is_whole_of(cut)
            }
            _ => false,
        }
    }

    pub fn order(&self, other: &SortValue) -> Ordering {
        match (self, other) {
            (SortValue::Bool(a), SortValue::Bool(b)) => a.cmp(b),
            (SortValue::Number(a), SortValue::Number(b)) => a.total_order(*b),
            (SortValue::String(a), SortValue::String(b)) => a.cmp(b),
            (SortValue::String(_), SortValue::Cut { .. }) if self.is_whole_of(other) => Ordering::Equal,
            (SortValue::String(a), SortValue::Cut { start, .. }) => a.cmp(start),
            (SortValue::Array(a), SortValue::Array(b)) | (SortValue::Object(a), SortValue::Object(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

fn hash_of_string(string: &str) -> u64 {
    emitted_rows::hash(string.as_bytes())
}
