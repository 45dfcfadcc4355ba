//! Reading values out of JSON text and writing them back.

use std::borrow::Cow;
use std::sync::Arc;

use sonic_rs::LazyValue;

use super::{Text, Value};
use crate::number::Number;

/// The value whose JSON text this is, with nothing around it.
fn from_raw(raw: &str) -> Value<'_> {
    match raw.as_bytes().first() {
        Some(b'{' | b'[') => Value::Json(raw),
        Some(b'"') => Value::String(string(raw)),
        Some(b't') => Value::Bool(true),
        Some(b'f') => Value::Bool(false),
        Some(b'n') => Value::Null,
        _ => Number::from_json(raw).map_or(Value::Undefined, Value::Number),
    }
}

/// Decodes a quoted JSON string; without escapes it stays where it is.
fn string(raw: &str) -> Text<'_> {
    if memchr::memchr(b'\\', raw.as_bytes()).is_none() {
        return Text::Borrowed(&raw[1..raw.len() - 1]);
    }
    Text::Shared(sonic_rs::from_str::<String>(raw).unwrap_or_default().into())
}

fn from_lazy(lazy: LazyValue<'_>) -> Value<'_> {
    match lazy.as_raw_cow() {
        Cow::Borrowed(raw) => from_raw(raw),
        // Text behind a `&str` is always borrowed.
        Cow::Owned(_) => Value::Undefined,
    }
}

pub(super) fn member<'a>(text: &'a str, name: &str) -> Value<'a> {
    sonic_rs::get(text, [name]).map_or(Value::Undefined, from_lazy)
}

pub(super) fn element(text: &str, index: usize) -> Value<'_> {
    sonic_rs::get(text, [index]).map_or(Value::Undefined, from_lazy)
}

pub(super) fn elements(text: &str) -> Vec<Value<'_>> {
    sonic_rs::to_array_iter(text)
        .map_while(Result::ok)
        .map(from_lazy)
        .collect()
}

pub(super) fn members(text: &str) -> Vec<(Text<'_>, Value<'_>)> {
    let pairs = sonic_rs::to_object_iter(text).map_while(Result::ok);
    pairs
        .map(|(name, value)| (Text::Shared(Arc::from(&*name)), from_lazy(value)))
        .collect()
}

/// Reads one complete JSON text.
pub fn parse_json(text: &str) -> Option<Value<'static>> {
    let tree: serde_json::Value = serde_json::from_str(text).ok()?;
    Some(from_tree(&tree))
}

fn from_tree(tree: &serde_json::Value) -> Value<'static> {
    match tree {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => number
            .as_i64()
            .map(Value::int)
            .or_else(|| number.as_f64().map(Value::float))
            .unwrap_or(Value::Undefined),
        serde_json::Value::String(text) => Value::string(text.as_str()),
        serde_json::Value::Array(items) => Value::array(items.iter().map(from_tree)),
        serde_json::Value::Object(members) => Value::Object(Arc::new(
            members
                .iter()
                .map(|(n, v)| (Text::Shared(n.as_str().into()), from_tree(v)))
                .collect(),
        )),
    }
}

impl From<&serde_json::Value> for Value<'static> {
    fn from(tree: &serde_json::Value) -> Value<'static> {
        from_tree(tree)
    }
}

impl<'a> Value<'a> {
    /// The value of a whole item's text; containers stay text.
    pub fn from_item(text: &'a str) -> Value<'a> {
        from_raw(text.trim_matches([' ', '\t', '\r', '\n']))
    }
}

/// Appends the JSON text of a value; undefined appends nothing.
pub fn write_json(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Undefined => {}
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => number.write_json(out),
        Value::String(text) => write_string(text.as_str(), out),
        Value::Json(text) => out.extend_from_slice(text.as_bytes()),
        Value::Array(items) => {
            out.push(b'[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                write_json(item, out);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            for (n, (name, member)) in members.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                write_string(name.as_str(), out);
                out.push(b':');
                write_json(member, out);
            }
            out.push(b'}');
        }
    }
}

/// Appends a quoted JSON string.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escaped: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0x8 => b"\\b",
            0xc => b"\\f",
            0..=0x1f => b"",
            _ => continue,
        };
        out.extend_from_slice(&text.as_bytes()[plain_from..at]);
        if escaped.is_empty() {
            out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
        } else {
            out.extend_from_slice(escaped);
        }
        plain_from = at + 1;
    }
    out.extend_from_slice(&text.as_bytes()[plain_from..]);
    out.push(b'"');
}
