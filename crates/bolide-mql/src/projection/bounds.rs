//! Bounds on documents that are made.

use bson::raw::{RawBsonRef, RawDocument};

use crate::context::memory::STAGE_BYTES;
use crate::error::{Code, Error, Result};
use crate::value::DEPTH_LIMIT;

/// The most levels of documents and arrays in one document. Everything that recurses into values relies on it.
pub const MAX_DEPTH: usize = DEPTH_LIMIT;

/// Checks that a document is nested at most [`MAX_DEPTH`] levels.
///
/// # Errors
/// `Overflow` (15) if it is not.
pub fn check_depth(document: &RawDocument) -> Result<()> {
    check(document, 1)
}

fn check(document: &RawDocument, level: usize) -> Result<()> {
    if level > MAX_DEPTH {
        let text = format!("BSONObj exceeds maximum nested object depth: {MAX_DEPTH}");
        return Err(Error::new(Code::OVERFLOW, text));
    }
    for element in document {
        match element?.1 {
            RawBsonRef::Document(inner) => check(inner, level + 1)?,
            RawBsonRef::Array(inner) => check(as_document(inner)?, level + 1)?,
            _ => {}
        }
    }
    Ok(())
}

/// Returns an array as the document that it is stored as.
fn as_document(array: &bson::raw::RawArray) -> Result<&RawDocument> {
    Ok(RawDocument::from_bytes(array.as_bytes())?)
}

/// Checks the size of a document that is made, before it may be larger than what can be given to a client: later stages may take it apart.
///
/// # Errors
/// `BSONObjectTooLarge` beyond the memory of a stage.
pub fn check_bytes(bytes: usize) -> Result<()> {
    if bytes <= STAGE_BYTES {
        return Ok(());
    }
    Err(Error::new(
        Code::BSON_OBJECT_TOO_LARGE,
        format!("BSONObj size: {bytes} (0x{bytes:X}) is invalid. Size must be between 0 and {STAGE_BYTES}"),
    ))
}
