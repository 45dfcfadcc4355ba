//! Values as MongoDB writes them in the texts of errors.

use std::fmt::Write as _;

use bson::spec::BinarySubtype;
use bson::{RawArray, RawBinaryRef, RawBsonRef, RawDocument};

use super::depth::RECURSION_LIMIT;
use super::number::Decimal;
use super::order::DbPointerParts;

/// Writes a value as in MongoDB's texts: `{ a: 1, b: "x" }`, `[ 1.0, null ]`, `ObjectId('…')`.
pub fn render(value: RawBsonRef<'_>) -> String {
    let mut text = String::new();
    write_value(&mut text, value, 0);
    text
}

/// Writes a document as [`render`] does.
pub fn render_document(document: &RawDocument) -> String {
    render(RawBsonRef::Document(document))
}

/// Writes a double with up to 16 digits; a whole number with `.0` behind it.
pub fn render_f64(value: f64) -> String {
    const DIGITS: i32 = 16;
    if !value.is_finite() {
        // The texts of C's printf, with the ".0" that MongoDB puts behind what has no point.
        return match value {
            value if value.is_nan() => "nan.0",
            f64::INFINITY => "inf.0",
            _ => "-inf.0",
        }
        .to_owned();
    }
    let scientific = format!("{value:.15e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mut text = if (-4..DIGITS).contains(&exponent) {
        let decimals = (DIGITS - 1 - exponent).unsigned_abs() as usize;
        without_trailing_zeros(&format!("{value:.decimals$}")).to_owned()
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!(
            "{}e{sign}{:02}",
            without_trailing_zeros(mantissa),
            exponent.unsigned_abs()
        )
    };
    if !text.contains('.') {
        text.push_str(".0");
    }
    text
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

fn write_value(text: &mut String, value: RawBsonRef<'_>, depth: usize) {
    use RawBsonRef as V;
    // Writing to a String cannot fail.
    let _ = match value {
        V::Double(number) => write!(text, "{}", render_f64(number)),
        V::Int32(number) => write!(text, "{number}"),
        V::Int64(number) => write!(text, "{number}"),
        V::Decimal128(number) => write!(text, "{}", Decimal::from(number)),
        V::String(string) | V::Symbol(string) => write!(text, "\"{string}\""),
        V::Document(_) | V::Array(_) if depth > RECURSION_LIMIT => write!(text, "..."),
        V::Document(document) => return write_document(text, document, depth),
        V::Array(array) => return write_array(text, array, depth),
        V::Boolean(value) => write!(text, "{value}"),
        V::Null => write!(text, "null"),
        V::Undefined => write!(text, "undefined"),
        V::MinKey => write!(text, "MinKey"),
        V::MaxKey => write!(text, "MaxKey"),
        V::ObjectId(id) => write!(text, "ObjectId('{id}')"),
        V::DateTime(date) => write!(text, "new Date({})", date.timestamp_millis()),
        V::Timestamp(timestamp) => write!(text, "Timestamp({}, {})", timestamp.time, timestamp.increment),
        V::Binary(data) => return write_binary(text, data),
        V::RegularExpression(regex) => write!(text, "/{}/{}", regex.pattern, regex.options),
        V::JavaScriptCode(code) => write!(text, "{code}"),
        V::JavaScriptCodeWithScope(code) => {
            let _ = write!(text, "CodeWScope( {}, ", code.code);
            write_value(text, V::Document(code.scope), depth + 1);
            write!(text, ")")
        }
        V::DbPointer(pointer) => {
            let parts = DbPointerParts::of(pointer);
            let id = bson::oid::ObjectId::from_bytes(parts.id);
            write!(text, "DBRef('{}',{id})", String::from_utf8_lossy(&parts.namespace))
        }
    };
}

fn write_document(text: &mut String, document: &RawDocument, depth: usize) {
    text.push('{');
    for (index, (name, value)) in document.iter().map_while(Result::ok).enumerate() {
        let separator = if index == 0 { "" } else { "," };
        let _ = write!(text, "{separator} {name}: ");
        write_value(text, value, depth + 1);
    }
    text.push_str(if document.is_empty() { "}" } else { " }" });
}

fn write_array(text: &mut String, array: &RawArray, depth: usize) {
    text.push('[');
    for (index, value) in array.into_iter().map_while(Result::ok).enumerate() {
        text.push_str(if index == 0 { " " } else { ", " });
        write_value(text, value, depth + 1);
    }
    text.push_str(if array.is_empty() { "]" } else { " ]" });
}

fn write_binary(text: &mut String, data: RawBinaryRef<'_>) {
    let digits = data.bytes.iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02X}");
        digits
    });
    let _ = match (data.subtype, <[u8; 16]>::try_from(data.bytes)) {
        (BinarySubtype::Uuid, Ok(uuid)) => write!(text, "UUID(\"{}\")", bson::Uuid::from_bytes(uuid)),
        (subtype, _) => write!(text, "BinData({}, {digits})", u8::from(subtype)),
    };
}
