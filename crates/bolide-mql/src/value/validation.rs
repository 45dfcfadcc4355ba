//! The whole walk of BSON bytes that come from outside.

use bson::{RawBsonRef, RawDocument};

use crate::error::{Code, Error, Result};

/// Documents may be nested this deeply; the outermost counts (`mongo.md §16`).
pub const DEPTH_LIMIT: usize = 200;

/// Returns the bytes as a document after a walk through all of it: lengths, types, UTF-8 of strings and names, depth.
///
/// # Errors
/// - `InvalidBSON` for bytes that are not one well-formed document.
/// - `Overflow` for a document that is nested more than [`DEPTH_LIMIT`] levels.
pub fn validate(bytes: &[u8]) -> Result<&RawDocument> {
    let document = RawDocument::from_bytes(bytes).map_err(Error::malformed)?;
    walk(document, 1)?;
    Ok(document)
}

fn walk(document: &RawDocument, depth: usize) -> Result<()> {
    if depth > DEPTH_LIMIT {
        let text = format!("BSONObj exceeds maximum nested object depth: {DEPTH_LIMIT}");
        return Err(Error::new(Code::OVERFLOW, text));
    }
    for element in document.iter_elements() {
        let element = element.map_err(Error::malformed)?;
        match element.value().map_err(Error::malformed)? {
            RawBsonRef::Document(inner) => walk(inner, depth + 1)?,
            RawBsonRef::Array(inner) => {
                let inner = RawDocument::from_bytes(inner.as_bytes()).map_err(Error::malformed)?;
                walk(inner, depth + 1)?;
            }
            RawBsonRef::JavaScriptCodeWithScope(code) => walk(code.scope, depth + 1)?,
            _ => {}
        }
    }
    Ok(())
}
