//! Reads Extended JSON as people and programs write it: canonical or relaxed.

use bson::{Document, RawDocumentBuf};
use serde_json::{Map, Value};

use crate::error::{Code, Error, Result};

/// Reads a document. A whole number without a type is an int, or a long if it is larger; another number is a double. JSON's own limit of nesting applies.
///
/// Source: the specification "MongoDB Extended JSON (v2)".
///
/// # Errors
/// `FailedToParse` with what is wrong.
pub fn parse_extended(text: &[u8]) -> Result<RawDocumentBuf> {
    let failed = |what: String| Error::new(Code::FAILED_TO_PARSE, format!("not Extended JSON: {what}"));
    let members: Map<String, Value> = serde_json::from_slice(text).map_err(|error| failed(error.to_string()))?;
    let document = Document::try_from(members).map_err(|error| failed(error.to_string()))?;
    RawDocumentBuf::try_from(&document).map_err(|error| failed(error.to_string()))
}
