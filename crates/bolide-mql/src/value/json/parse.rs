//! Reads canonical extended JSON: what may be the `_id` of a document.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, DateTime, RawArrayBuf, RawBson, RawDocumentBuf, Timestamp};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// Reads canonical extended JSON; `None` if the text is something else, or a value that cannot be an `_id`. JSON's own limit of nesting applies.
pub fn parse_canonical(text: &str) -> Option<RawBson> {
    value(&serde_json::from_str(text).ok()?)
}

/// A JSON value whose objects keep all their members, as BSON does: a name may be there twice.
pub(super) enum Json {
    Null,
    Bool(bool),
    String(String),
    /// `None` for other numbers than whole ones that are not negative.
    Number(Option<u64>),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub(super) fn get(&self, name: &str) -> Option<&Json> {
        let Json::Object(members) = self else { return None };
        members.iter().find(|member| member.0 == name).map(|member| &member.1)
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Json::String(text) => Some(text),
            _ => None,
        }
    }

    fn as_u32(&self) -> Option<u32> {
        match self {
            Json::Number(number) => number.and_then(|number| u32::try_from(number).ok()),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(Some(value)))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Json, E> {
        Ok(Json::Number(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Json, E> {
        Ok(Json::Number(None))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Json, A::Error> {
        let mut array = Vec::new();
        while let Some(element) = elements.next_element()? {
            array.push(element);
        }
        Ok(Json::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let mut object = Vec::new();
        while let Some(member) = members.next_entry()? {
            object.push(member);
        }
        Ok(Json::Object(object))
    }
}

pub(super) fn value(json: &Json) -> Option<RawBson> {
    match json {
        Json::Null => Some(RawBson::Null),
        Json::Bool(value) => Some(RawBson::Boolean(*value)),
        Json::String(text) => Some(RawBson::String(text.clone())),
        // Canonical numbers are objects.
        Json::Number(_) => None,
        Json::Array(values) => {
            let mut array = RawArrayBuf::new();
            for element in values {
                array.push(value(element)?);
            }
            Some(RawBson::Array(array))
        }
        Json::Object(members) => object(members),
    }
}

fn object(members: &[(String, Json)]) -> Option<RawBson> {
    if let Some((name, inner)) = members.first().filter(|(name, _)| name.starts_with('$')) {
        return (members.len() == 1).then(|| typed(name, inner)).flatten();
    }
    let mut document = RawDocumentBuf::new();
    for (name, member) in members {
        let name = bson::raw::CString::try_from(name.as_str()).ok()?;
        document.append(&*name, value(member)?);
    }
    Some(RawBson::Document(document))
}

fn typed(name: &str, inner: &Json) -> Option<RawBson> {
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
            time: inner.get("t")?.as_u32()?,
            increment: inner.get("i")?.as_u32()?,
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
