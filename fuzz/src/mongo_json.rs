//! BSON values of inputs that are written as extended JSON: mutations of a text are more often documents than those of BSON's bytes.

use bolide_mql::bson::oid::ObjectId;
use bolide_mql::bson::raw::{CString, RawArrayBuf};
use bolide_mql::bson::spec::BinarySubtype;
use bolide_mql::bson::{Binary, DateTime, RawBson, RawDocumentBuf, Regex, Timestamp};
use serde_json::{Map, Value};

/// Values deeper than this are not read.
const LEVELS: usize = 300;

/// Reads a document; `None` if the bytes are something else.
pub fn document(bytes: &[u8]) -> Option<RawDocumentBuf> {
    match value(bytes)? {
        RawBson::Document(document) => Some(document),
        _ => None,
    }
}

/// Reads an array; `None` if the bytes are something else.
pub fn array(bytes: &[u8]) -> Option<RawArrayBuf> {
    match value(bytes)? {
        RawBson::Array(array) => Some(array),
        _ => None,
    }
}

/// Reads documents, one per line; other lines are left out.
pub fn documents(bytes: &[u8]) -> Vec<RawDocumentBuf> {
    bytes.split(|byte| *byte == b'\n').filter_map(document).collect()
}

/// Reads a value.
pub fn value(bytes: &[u8]) -> Option<RawBson> {
    convert(&serde_json::from_slice(bytes).ok()?, 0)
}

fn convert(json: &Value, depth: usize) -> Option<RawBson> {
    if depth > LEVELS {
        return None;
    }
    Some(match json {
        Value::Null => RawBson::Null,
        Value::Bool(value) => RawBson::Boolean(*value),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => i32::try_from(whole).map_or(RawBson::Int64(whole), RawBson::Int32),
            None => RawBson::Double(number.as_f64()?),
        },
        Value::String(text) => RawBson::String(text.clone()),
        Value::Array(elements) => {
            let mut array = RawArrayBuf::new();
            for element in elements {
                array.push(convert(element, depth + 1)?);
            }
            RawBson::Array(array)
        }
        Value::Object(fields) => match typed(fields) {
            Some(value) => value,
            None => {
                let mut document = RawDocumentBuf::new();
                for (name, value) in fields {
                    document.append(CString::try_from(name.as_str()).ok()?, convert(value, depth + 1)?);
                }
                RawBson::Document(document)
            }
        },
    })
}

/// A type that JSON lacks; `None` for an ordinary document.
fn typed(fields: &Map<String, Value>) -> Option<RawBson> {
    let (name, value) = fields.iter().next().filter(|_| fields.len() == 1)?;
    Some(match (name.as_str(), value) {
        ("$date", Value::Number(millis)) => RawBson::DateTime(DateTime::from_millis(millis.as_i64()?)),
        ("$numberLong", Value::String(text)) => RawBson::Int64(text.parse().ok()?),
        ("$numberDouble", Value::String(text)) => RawBson::Double(text.parse().ok()?),
        ("$numberDecimal", Value::String(text)) => RawBson::Decimal128(text.parse().ok()?),
        ("$oid", Value::String(text)) => RawBson::ObjectId(ObjectId::parse_str(text).ok()?),
        ("$undefined", _) => RawBson::Undefined,
        ("$minKey", _) => RawBson::MinKey,
        ("$maxKey", _) => RawBson::MaxKey,
        ("$binary", Value::String(text)) => RawBson::Binary(Binary {
            subtype: BinarySubtype::Generic,
            bytes: text.clone().into_bytes(),
        }),
        ("$timestamp", Value::Number(time)) => RawBson::Timestamp(Timestamp {
            time: u32::try_from(time.as_u64()?).ok()?,
            increment: 1,
        }),
        ("$regularExpression", Value::String(pattern)) => RawBson::RegularExpression(Regex {
            pattern: CString::try_from(pattern.as_str()).ok()?,
            options: CString::try_from("i").ok()?,
        }),
        _ => return None,
    })
}
