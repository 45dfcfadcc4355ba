//! Values during evaluation (cosmos-sql §1) and their basic operations.
//!
//! Arrays and objects of stored items stay JSON text until they are read, so a filter that uses one path of a large item parses only that path.

mod block;
mod item;
mod json;
mod order;
mod same;
mod scan;

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

pub use item::{Item, ItemScan, SystemProperties};
pub use json::{parse_json, write_json, write_string};
pub use order::{compare, equals, total_order, truth};
pub use same::{SameKey, append_same_key, is_inline, same_key};
pub use scan::walk;

use crate::number::Number;

/// A string that is borrowed from an item or a query, or shared.
#[derive(Debug, Clone)]
pub enum Text<'a> {
    /// Part of the item or the query.
    Borrowed(&'a str),
    /// Made during evaluation.
    Shared(Arc<str>),
}

impl Text<'_> {
    /// The characters.
    pub fn as_str(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

/// The members of an object, in the order in which they were written. Names are unique.
pub type Members<'a> = Vec<(Text<'a>, Value<'a>)>;

/// One value. `'a` is the lifetime of the item that it may borrow from.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    /// The value of a missing property.
    Undefined,
    /// The defined value null.
    Null,
    /// false or true.
    Bool(bool),
    /// A number; may be infinite or NaN.
    Number(Number),
    /// A string.
    String(Text<'a>),
    /// An array or object that is still JSON text, without surrounding white space.
    Json(&'a str),
    /// An array made during evaluation.
    Array(Arc<Vec<Value<'a>>>),
    /// An object made during evaluation.
    Object(Arc<Members<'a>>),
}

/// The kind of a value, in the order of cosmos-sql §8.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// No value.
    Undefined,
    /// null
    Null,
    /// A boolean.
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// Finds members by name: a few by comparing, many by their hashes.
#[derive(Default)]
struct Places {
    by_name: std::collections::HashMap<String, usize>,
}

impl Places {
    const FEW: usize = 32;

    /// The position of the member with this name. If there is none, the next position is recorded for it.
    fn find(&mut self, members: &Members<'_>, name: &str) -> Option<usize> {
        if members.len() < Self::FEW {
            return members.iter().position(|(old, _)| old.as_str() == name);
        }
        for (place, (old, _)) in members.iter().enumerate().skip(self.by_name.len()) {
            self.by_name.insert(old.as_str().to_owned(), place);
        }
        self.by_name.get(name).copied()
    }
}

impl<'a> Value<'a> {
    /// The approximate bytes of the value if nothing in it was shared; above `max_bytes`, only some number above it.
    pub fn written_out_bytes(&self, max_bytes: usize) -> usize {
        let mut bytes = size_of::<Value<'_>>();
        match self {
            Value::String(text) => bytes += text.as_str().len(),
            Value::Json(text) => bytes += text.len(),
            Value::Array(items) => {
                for item in items.iter() {
                    if bytes > max_bytes {
                        break;
                    }
                    bytes += item.written_out_bytes(max_bytes - bytes);
                }
            }
            Value::Object(members) => {
                for (name, member) in members.iter() {
                    bytes += size_of::<Text<'_>>() + name.as_str().len();
                    if bytes > max_bytes {
                        break;
                    }
                    bytes += member.written_out_bytes(max_bytes - bytes);
                }
            }
            Value::Undefined | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        bytes
    }

    /// A string made during evaluation.
    pub fn string(text: impl Into<Arc<str>>) -> Value<'a> {
        Value::String(Text::Shared(text.into()))
    }

    /// A double.
    pub fn float(value: f64) -> Value<'a> {
        Value::Number(Number::Float(value))
    }

    /// An integer.
    pub fn int(value: i64) -> Value<'a> {
        Value::Number(Number::Int(value))
    }

    /// An array; undefined elements are left out.
    pub fn array(items: impl IntoIterator<Item = Value<'a>>) -> Value<'a> {
        Value::Array(Arc::new(items.into_iter().filter(Value::is_defined).collect()))
    }

    /// An object; undefined members are left out, and the last of two members with the same name wins.
    pub fn object(members: impl IntoIterator<Item = (Text<'a>, Value<'a>)>) -> Value<'a> {
        let mut out: Members<'a> = Vec::new();
        let mut places = Places::default();
        for (name, value) in members {
            if !value.is_defined() {
                continue;
            }
            match places.find(&out, name.as_str()) {
                Some(place) => out[place].1 = value,
                None => out.push((name, value)),
            }
        }
        Value::Object(Arc::new(out))
    }

    /// The kind of this value.
    pub fn kind(&self) -> Kind {
        match self {
            Value::Undefined => Kind::Undefined,
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Bool,
            Value::Number(_) => Kind::Number,
            Value::String(_) => Kind::String,
            Value::Json(text) if text.starts_with('[') => Kind::Array,
            Value::Json(_) | Value::Object(_) => Kind::Object,
            Value::Array(_) => Kind::Array,
        }
    }

    /// Whether it is not undefined.
    pub fn is_defined(&self) -> bool {
        !matches!(self, Value::Undefined)
    }

    /// Whether it is exactly `true`.
    pub fn is_true(&self) -> bool {
        matches!(self, Value::Bool(true))
    }

    /// Whether it is null, a boolean, a number or a string.
    pub fn is_primitive(&self) -> bool {
        matches!(self.kind(), Kind::Null | Kind::Bool | Kind::Number | Kind::String)
    }

    /// The number, if it is one.
    pub fn as_number(&self) -> Option<Number> {
        match self {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The number as a double, if it is one.
    pub fn as_f64(&self) -> Option<f64> {
        self.as_number().map(Number::as_f64)
    }

    /// The number as an integer, if it is one without a fraction.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number().and_then(Number::as_i64)
    }

    /// The characters, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The member `name` of an object; undefined for anything else.
    pub fn member(&self, name: &str) -> Value<'a> {
        match self {
            Value::Json(text) => scan::member_of(text, name),
            Value::Object(members) => members
                .iter()
                .find(|(n, _)| n.as_str() == name)
                .map_or(Value::Undefined, |(_, value)| value.clone()),
            _ => Value::Undefined,
        }
    }

    /// The zero-based element of an array; undefined for anything else.
    pub fn element(&self, index: usize) -> Value<'a> {
        match self {
            Value::Json(text) => scan::element_of(text, index),
            Value::Array(items) => items.get(index).cloned().unwrap_or(Value::Undefined),
            _ => Value::Undefined,
        }
    }

    /// The elements, if this is an array.
    pub fn elements(&self) -> Option<Cow<'_, [Value<'a>]>> {
        match self {
            Value::Array(items) => Some(Cow::Borrowed(items.as_slice())),
            Value::Json(text) if text.starts_with('[') => Some(Cow::Owned(json::elements(text).collect())),
            _ => None,
        }
    }

    /// Calls `f` with each element, if this is an array, until it breaks.
    pub fn each_element<B>(&self, mut f: impl FnMut(Value<'a>) -> ControlFlow<B>) -> ControlFlow<B> {
        match self {
            Value::Array(items) => items.iter().cloned().try_for_each(f),
            Value::Json(text) => json::elements(text).try_for_each(&mut f),
            _ => ControlFlow::Continue(()),
        }
    }

    /// The members, if this is an object.
    pub fn members(&self) -> Option<Cow<'_, [(Text<'a>, Value<'a>)]>> {
        match self {
            Value::Object(members) => Some(Cow::Borrowed(members.as_slice())),
            Value::Json(text) if text.starts_with('{') => Some(Cow::Owned(json::members(text).collect())),
            _ => None,
        }
    }

    /// The same value, without borrowed data.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Undefined => Value::Undefined,
            Value::Null => Value::Null,
            Value::Bool(value) => Value::Bool(value),
            Value::Number(number) => Value::Number(number),
            Value::String(text) => Value::String(Text::Shared(match text {
                Text::Borrowed(text) => text.into(),
                Text::Shared(text) => text,
            })),
            Value::Json(_) | Value::Array(_) | Value::Object(_) => self.owned_container(),
        }
    }

    fn owned_container(&self) -> Value<'static> {
        if let Some(items) = self.elements() {
            return Value::array(items.iter().map(|item| item.clone().into_owned()));
        }
        let members = self.members().unwrap_or_default();
        let owned = members
            .iter()
            .map(|(name, value)| (Text::Shared(name.as_str().into()), value.clone().into_owned()));
        Value::Object(Arc::new(owned.collect()))
    }
}
