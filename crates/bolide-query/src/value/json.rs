//! Reading values out of JSON text and writing them back.

use std::sync::Arc;

use super::scan::{self, Name};
use super::{Text, Value};

/// Decodes a quoted JSON string. `None` if it has invalid escapes.
pub(super) fn unescaped(quoted: &str) -> Option<String> {
    serde_json::from_str(quoted).ok()
}

/// A quoted JSON string with escapes, decoded.
pub(super) fn escaped_string(quoted: &str) -> Text<'static> {
    Text::Shared(unescaped(quoted).unwrap_or_default().into())
}

/// The elements of an array's text, in order.
pub(super) fn elements(text: &str) -> impl Iterator<Item = Value<'_>> {
    let mut next = scan::first_inside(text.as_bytes(), 0, b'[');
    std::iter::from_fn(move || {
        let (value, end) = scan::value_and_end(text, next?)?;
        next = scan::next_inside(text.as_bytes(), end);
        Some(value)
    })
}

/// The members of an object's text, in order.
pub(super) fn members(text: &str) -> impl Iterator<Item = (Text<'_>, Value<'_>)> {
    let mut next = scan::first_inside(text.as_bytes(), 0, b'{');
    std::iter::from_fn(move || {
        let name = Name::at(text.as_bytes(), next?)?;
        let (value, end) = scan::value_and_end(text, name.value())?;
        next = scan::next_inside(text.as_bytes(), end);
        Some((name.text(text)?, value))
    })
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
    /// The value of a whole item's text; arrays and objects stay text.
    pub fn from_item(text: &'a str) -> Value<'a> {
        let text = text.trim_matches([' ', '\t', '\r', '\n']);
        match text.as_bytes().first() {
            Some(b'{' | b'[') => Value::Json(text),
            _ => scan::value_at(text, 0),
        }
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
    out.reserve(text.len() + 2);
    out.push(b'"');
    if has_escapes(text) {
        write_escaped(text, out);
    } else {
        out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
}

/// Whether characters of a text must be escaped. Looks at all of it, so that the compiler can look at several bytes at a time: few texts need escapes.
fn has_escapes(text: &str) -> bool {
    let is_escaped = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    text.bytes().fold(false, |found, byte| found | is_escaped(byte))
}

fn write_escaped(text: &str, out: &mut Vec<u8>) {
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
}

#[cfg(test)]
mod tests;
