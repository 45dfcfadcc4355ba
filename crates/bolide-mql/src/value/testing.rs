//! Values of tests, written as JSON: whole numbers are ints or longs, others doubles; `{"$date": milliseconds}`, `{"$numberLong": "1"}`,
//! `{"$numberDecimal": "1.1"}`, `{"$regex": "a"}` and `{"$undefined": true}` stand for the types that JSON lacks.

use bson::raw::{CString, RawArrayBuf};
use bson::{DateTime, RawBson, RawDocumentBuf};
use serde_json::{Map, Value};

/// Parses a value.
pub fn value(json: &str) -> RawBson {
    convert(&serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}")))
}

/// Parses a document.
pub fn document(json: &str) -> RawDocumentBuf {
    match value(json) {
        RawBson::Document(document) => document,
        other => panic!("no document: {other:?}"),
    }
}

/// Parses an array.
pub fn array(json: &str) -> RawArrayBuf {
    match value(json) {
        RawBson::Array(array) => array,
        other => panic!("no array: {other:?}"),
    }
}

/// Parses an array of documents.
pub fn documents(json: &str) -> Vec<RawDocumentBuf> {
    let elements = array(json);
    let element =
        |element: bson::error::Result<bson::RawBsonRef<'_>>| element.unwrap().as_document().unwrap().to_owned();
    elements.into_iter().map(element).collect()
}

fn convert(json: &Value) -> RawBson {
    match json {
        Value::Null => RawBson::Null,
        Value::Bool(value) => RawBson::Boolean(*value),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => i32::try_from(whole).map_or(RawBson::Int64(whole), RawBson::Int32),
            None => RawBson::Double(number.as_f64().unwrap()),
        },
        Value::String(text) => RawBson::String(text.clone()),
        Value::Array(elements) => {
            let mut array = RawArrayBuf::new();
            for element in elements {
                array.push(convert(element));
            }
            RawBson::Array(array)
        }
        Value::Object(fields) => wrapped(fields).unwrap_or_else(|| {
            let mut document = RawDocumentBuf::new();
            for (name, value) in fields {
                document.append(CString::try_from(name.clone()).unwrap(), convert(value));
            }
            RawBson::Document(document)
        }),
    }
}

fn wrapped(fields: &Map<String, Value>) -> Option<RawBson> {
    let (name, value) = fields.iter().next()?;
    match (name.as_str(), value) {
        ("$date", Value::Number(milliseconds)) => {
            Some(RawBson::DateTime(DateTime::from_millis(milliseconds.as_i64().unwrap())))
        }
        ("$numberLong", Value::String(text)) => Some(RawBson::Int64(text.parse().unwrap())),
        ("$numberDecimal", Value::String(text)) => Some(RawBson::Decimal128(text.parse().unwrap())),
        ("$undefined", _) => Some(RawBson::Undefined),
        ("$regex", Value::String(pattern)) => Some(RawBson::RegularExpression(bson::Regex {
            pattern: pattern.clone().try_into().unwrap(),
            options: String::new().try_into().unwrap(),
        })),
        _ => None,
    }
}
