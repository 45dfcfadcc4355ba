//! Reads JSON from clients, with the checks that apply to every body.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::error::{Error, Result};
use crate::limits::NESTING;

/// Levels of nesting that a batch or a patch adds to its documents and values.
const ENVELOPE: usize = 4;

/// Every whole number of this size or less is exactly a double.
const EXACT_WHOLE: f64 = 9_007_199_254_740_992.0;

/// Reads a request body that is not itself an item: a batch, a patch, a definition, a query.
///
/// Numbers and repeated names are normalized as in an item. A leading byte order mark is skipped, because some clients send one.
///
/// # Errors
/// `BadRequest`: not UTF-8, not one JSON value, a number beyond doubles, or deeper than a document in its envelope can be; the message says where.
pub fn parse_json_body(body: &[u8]) -> Result<Value> {
    parse_body(body, NESTING + ENVELOPE)
}

/// As [`parse_json_body`], with `levels` of nesting.
pub(super) fn parse_body(body: &[u8], levels: usize) -> Result<Value> {
    let text = str::from_utf8(body).map_err(|error| {
        Error::bad_request(format!(
            "The request body is not valid UTF-8 at byte {}.",
            error.valid_up_to()
        ))
    })?;
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let parsed = parse(text, levels).or_else(|error| match with_escapes(text) {
        Some(text) => parse(&text, levels),
        None => Err(error),
    });
    parsed.map_err(|error| Error::bad_request(format!("The request body is not valid JSON: {error}.")))
}

/// Escapes control characters in strings, because the service accepts them unescaped. `None` if there are none.
fn with_escapes(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    let (mut is_inside, mut is_escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        if is_inside && byte < b' ' {
            if is_escaped {
                return None;
            }
            out.push_str(&text[copied..at]);
            out.push_str(&format!("\\u{byte:04x}"));
            copied = at + 1;
        } else if byte == b'"' && !is_escaped {
            is_inside = !is_inside;
        }
        is_escaped = is_inside && byte == b'\\' && !is_escaped;
    }
    out.push_str(&text[copied..]);
    (copied > 0).then_some(out)
}

/// Reads a JSON text that is not a body, such as a header's. The caller adds what the text is to the error.
pub(crate) fn parse_json(text: &str) -> Result<Value, serde_json::Error> {
    parse(text, NESTING)
}

fn parse(text: &str, levels: usize) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // The visitor counts levels itself: the built-in limit is one below ours.
    deserializer.disable_recursion_limit();
    let value = Nested {
        left: levels,
        limit: levels,
    }
    .deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// A number from a computed double: without fraction if it is whole and below 2^53, where this is exact. `None` if it is not finite.
pub fn number(value: f64) -> Option<Number> {
    if value.fract() == 0.0 && value.abs() < EXACT_WHOLE {
        Some(Number::from(value as i64))
    } else {
        Number::from_f64(value)
    }
}

/// Checks that a value has at most `levels` of nesting.
pub(super) fn check_nesting(value: &Value, levels: usize) -> Result<()> {
    if is_within(value, levels) {
        Ok(())
    } else {
        Err(Error::bad_request(format!(
            "The item is invalid: {}.",
            too_deep(levels)
        )))
    }
}

fn is_within(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| is_within(item, levels - 1)),
        Value::Object(members) => levels > 0 && members.values().all(|member| is_within(member, levels - 1)),
        _ => true,
    }
}

fn too_deep(levels: usize) -> String {
    format!("objects and arrays are nested deeper than the limit of {levels} levels")
}

/// The type of a value, for messages.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Reads one value, with a limit of levels of objects and arrays.
#[derive(Clone, Copy)]
struct Nested {
    left: usize,
    limit: usize,
}

impl Nested {
    fn inner<E: serde::de::Error>(self) -> Result<Nested, E> {
        match self.left.checked_sub(1) {
            Some(left) => Ok(Nested { left, ..self }),
            None => Err(E::custom(too_deep(self.limit))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Nested {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Nested {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        number(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            object.insert(name, members.next_value_seed(inner)?);
        }
        Ok(Value::Object(object))
    }
}
