//! Documents as JSON items, for a second API over the same data; and canonical extended JSON, which names values of `_id` there.
//!
//! ```text
//!   BSON                                       JSON item
//!   string, bool, null, object, array          the same
//!   int, long, double                          a number, with all of its digits; NaN, Infinity, -Infinity as strings
//!   decimal                                    a string
//!   date                                       "2020-02-29T12:34:56.789Z"; outside of the years 0 to 9999 as extended JSON
//!   objectId                                   its 24 hexadecimal digits
//!   binData                                    Base64, without the subtype
//!   all others                                 extended JSON, such as {"$timestamp":{"t":1,"i":2}}
//! ```
//!
//! The item's `id` is the `_id` if that is a string, otherwise the canonical extended JSON of the `_id`. Root fields that have the name of a property of
//! items ([`HIDDEN`]) are left out.

mod extended;
mod line;
mod parse;

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bson::oid::ObjectId;
use bson::{DateTime, RawArray, RawBinaryRef, RawBsonRef, RawDocument};

use super::depth::RECURSION_LIMIT;
use super::order::DbPointerParts;

pub use extended::parse_extended;
pub use line::{read_line, write_line};
pub use parse::parse_canonical;

/// Root fields that are not in the JSON item: it has properties of its own with these names.
pub const HIDDEN: [&str; 6] = ["id", "_rid", "_self", "_etag", "_attachments", "_ts"];

/// The first and the last millisecond of the years 0 to 9999, which ISO 8601 writes with four digits.
const FIRST_DATE: i64 = -62_167_219_200_000;
const LAST_DATE: i64 = 253_402_300_799_999;

/// Writes a document as the text of a JSON object, with its `id` first.
pub fn item(document: &RawDocument) -> Vec<u8> {
    let mut out = Vec::with_capacity(document.as_bytes().len() * 2);
    let id = document.get("_id").ok().flatten().unwrap_or(RawBsonRef::Null);
    out.extend_from_slice(b"{\"id\":");
    write_string(&mut out, &item_id(id));
    for (name, value) in document.iter().map_while(Result::ok) {
        if !HIDDEN.contains(&name.as_str()) {
            out.push(b',');
            write_member(&mut out, Form::Item, name.as_str(), value, 1);
        }
    }
    out.push(b'}');
    out
}

/// Returns the `id` of the JSON item of a document with this `_id`.
pub fn item_id(id: RawBsonRef<'_>) -> String {
    match id {
        RawBsonRef::String(text) => text.to_owned(),
        other => canonical(other),
    }
}

/// Writes a value as canonical extended JSON, without spaces.
///
/// Source: the specification "MongoDB Extended JSON (v2)".
pub fn canonical(value: RawBsonRef<'_>) -> String {
    let mut out = Vec::new();
    write_value(&mut out, Form::Canonical, value, 0);
    String::from_utf8_lossy(&out).into_owned()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Item,
    Canonical,
}

// Long: it is a table.
fn write_value(out: &mut Vec<u8>, form: Form, value: RawBsonRef<'_>, depth: usize) {
    use RawBsonRef as V;
    let is_item = form == Form::Item;
    match value {
        V::Document(_) | V::Array(_) if depth > RECURSION_LIMIT => out.extend_from_slice(b"null"),
        V::Document(document) => write_document(out, form, document, depth),
        V::Array(array) => write_array(out, form, array, depth),
        V::String(text) => write_string(out, text),
        V::Boolean(value) => write(out, format_args!("{value}")),
        V::Null => out.extend_from_slice(b"null"),
        V::Int32(number) if is_item => write(out, format_args!("{number}")),
        V::Int64(number) if is_item => write(out, format_args!("{number}")),
        V::Double(number) if is_item => write_double(out, number),
        V::Int32(number) => write(out, format_args!("{{\"$numberInt\":\"{number}\"}}")),
        V::Int64(number) => write(out, format_args!("{{\"$numberLong\":\"{number}\"}}")),
        V::Double(number) => write(out, format_args!("{{\"$numberDouble\":\"{}\"}}", double_text(number))),
        V::Decimal128(number) if is_item => write(out, format_args!("\"{number}\"")),
        V::Decimal128(number) => write(out, format_args!("{{\"$numberDecimal\":\"{number}\"}}")),
        V::ObjectId(id) if is_item => write(out, format_args!("\"{id}\"")),
        V::ObjectId(id) => write(out, format_args!("{{\"$oid\":\"{id}\"}}")),
        V::DateTime(date) => write_date(out, form, date),
        V::Binary(data) => write_binary(out, form, data),
        V::Timestamp(at) => write(
            out,
            format_args!("{{\"$timestamp\":{{\"t\":{},\"i\":{}}}}}", at.time, at.increment),
        ),
        V::RegularExpression(regex) => {
            out.extend_from_slice(b"{\"$regularExpression\":{\"pattern\":");
            write_string(out, regex.pattern.as_str());
            out.extend_from_slice(b",\"options\":");
            write_string(out, regex.options.as_str());
            out.extend_from_slice(b"}}");
        }
        V::JavaScriptCode(code) => write_only(out, "$code", code),
        V::JavaScriptCodeWithScope(code) => {
            out.extend_from_slice(b"{\"$code\":");
            write_string(out, code.code);
            out.extend_from_slice(b",\"$scope\":");
            write_value(out, Form::Canonical, V::Document(code.scope), depth + 1);
            out.push(b'}');
        }
        V::Symbol(symbol) => write_only(out, "$symbol", symbol),
        V::Undefined => out.extend_from_slice(b"{\"$undefined\":true}"),
        V::MinKey => out.extend_from_slice(b"{\"$minKey\":1}"),
        V::MaxKey => out.extend_from_slice(b"{\"$maxKey\":1}"),
        V::DbPointer(pointer) => {
            let parts = DbPointerParts::of(pointer);
            out.extend_from_slice(b"{\"$dbPointer\":{\"$ref\":");
            write_string(out, &String::from_utf8_lossy(&parts.namespace));
            let id = ObjectId::from_bytes(parts.id);
            write(out, format_args!(",\"$id\":{{\"$oid\":\"{id}\"}}}}}}"));
        }
    }
}

fn write_document(out: &mut Vec<u8>, form: Form, document: &RawDocument, depth: usize) {
    out.push(b'{');
    let mut is_first = true;
    // Stored documents are valid; of a damaged one this writes what can be read.
    for (name, value) in document.iter().map_while(Result::ok) {
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        write_member(out, form, name.as_str(), value, depth + 1);
    }
    out.push(b'}');
}

fn write_array(out: &mut Vec<u8>, form: Form, array: &RawArray, depth: usize) {
    out.push(b'[');
    let mut is_first = true;
    for value in array.into_iter().map_while(Result::ok) {
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        write_value(out, form, value, depth + 1);
    }
    out.push(b']');
}

fn write_member(out: &mut Vec<u8>, form: Form, name: &str, value: RawBsonRef<'_>, depth: usize) {
    write_string(out, name);
    out.push(b':');
    write_value(out, form, value, depth);
}

fn write_only(out: &mut Vec<u8>, name: &str, text: &str) {
    write(out, format_args!("{{\"{name}\":"));
    write_string(out, text);
    out.push(b'}');
}

fn write_double(out: &mut Vec<u8>, number: f64) {
    match number.is_finite() {
        true => out.extend_from_slice(double_text(number).as_bytes()),
        false => write(out, format_args!("\"{}\"", double_text(number))),
    }
}

/// Returns the shortest text that reads as this double and no other, with a point or an exponent.
fn double_text(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
    } else {
        format!("{number:?}")
    }
}

fn write_date(out: &mut Vec<u8>, form: Form, date: DateTime) {
    let millis = date.timestamp_millis();
    let text = match form {
        Form::Item if (FIRST_DATE..=LAST_DATE).contains(&millis) => date.try_to_rfc3339_string().ok(),
        _ => None,
    };
    // Up to here it has the form 2020-02-29T12:34:56; fractions differ in length.
    match text.as_ref().and_then(|text| text.get(..19)) {
        Some(seconds) => write(out, format_args!("\"{seconds}.{:03}Z\"", millis.rem_euclid(1_000))),
        None => write(out, format_args!("{{\"$date\":{{\"$numberLong\":\"{millis}\"}}}}")),
    }
}

fn write_binary(out: &mut Vec<u8>, form: Form, data: RawBinaryRef<'_>) {
    let base64 = BASE64.encode(data.bytes);
    match form {
        Form::Item => write(out, format_args!("\"{base64}\"")),
        Form::Canonical => {
            let subtype = u8::from(data.subtype);
            write(
                out,
                format_args!("{{\"$binary\":{{\"base64\":\"{base64}\",\"subType\":\"{subtype:02x}\"}}}}"),
            );
        }
    }
}

fn write_string(out: &mut Vec<u8>, text: &str) {
    // Writing a string to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

fn write(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory cannot fail.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests;
