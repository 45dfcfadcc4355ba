//! Reads canonical extended JSON: what may be the `_id` of a document.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, DateTime, RawArrayBuf, RawBson, RawDocumentBuf, Timestamp};
use serde_json::{Map, Value};

/// Reads canonical extended JSON; `None` if the text is something else, or a value that cannot be an `_id`. JSON's own limit of nesting applies.
pub fn parse_canonical(text: &str) -> Option<RawBson> {
    value(&serde_json::from_str(text).ok()?)
}

fn value(json: &Value) -> Option<RawBson> {
    match json {
        Value::Null => Some(RawBson::Null),
        Value::Bool(value) => Some(RawBson::Boolean(*value)),
        Value::String(text) => Some(RawBson::String(text.clone())),
        // Canonical numbers are objects.
        Value::Number(_) => None,
        Value::Array(values) => {
            let mut array = RawArrayBuf::new();
            for element in values {
                array.push(value(element)?);
            }
            Some(RawBson::Array(array))
        }
        Value::Object(members) => object(members),
    }
}

fn object(members: &Map<String, Value>) -> Option<RawBson> {
    if let Some((name, inner)) = members.iter().next().filter(|(name, _)| name.starts_with('$')) {
        return (members.len() == 1).then(|| typed(name, inner)).flatten();
    }
    let mut document = RawDocumentBuf::new();
    for (name, member) in members {
        let name = bson::raw::CString::try_from(name.as_str()).ok()?;
        document.append(&*name, value(member)?);
    }
    Some(RawBson::Document(document))
}

fn typed(name: &str, inner: &Value) -> Option<RawBson> {
    let text = inner.as_str();
    match name {
        "$oid" => ObjectId::parse_str(text?).ok().map(RawBson::ObjectId),
        "$numberInt" => text?.parse().ok().map(RawBson::Int32),
        "$numberLong" => text?.parse().ok().map(RawBson::Int64),
        "$numberDouble" => text?.parse().ok().map(RawBson::Double),
        "$numberDecimal" => text?.parse().ok().map(RawBson::Decimal128),
        "$symbol" => text.map(|symbol| RawBson::Symbol(symbol.to_owned())),
        "$date" => {
            let millis = inner.get("$numberLong")?.as_str()?.parse().ok()?;
            Some(RawBson::DateTime(DateTime::from_millis(millis)))
        }
        "$timestamp" => Some(RawBson::Timestamp(Timestamp {
            time: u32::try_from(inner.get("t")?.as_u64()?).ok()?,
            increment: u32::try_from(inner.get("i")?.as_u64()?).ok()?,
        })),
        "$binary" => {
            let bytes = BASE64.decode(inner.get("base64")?.as_str()?).ok()?;
            let subtype = u8::from_str_radix(inner.get("subType")?.as_str()?, 16).ok()?;
            Some(RawBson::Binary(Binary {
                subtype: BinarySubtype::from(subtype),
                bytes,
            }))
        }
        "$undefined" => Some(RawBson::Undefined),
        "$minKey" => Some(RawBson::MinKey),
        "$maxKey" => Some(RawBson::MaxKey),
        _ => None,
    }
}
