//! Documents as they are stored: their `_id`, their size and depth (mongo.md §6, §16).

use bson::oid::ObjectId;
use bson::raw::cstr;
use bson::{RawBsonRef, RawDocument, RawDocumentBuf, Timestamp};

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::value;

/// Most bytes of a stored document.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Most bytes of a document in a message, which may be a little more than can be stored.
const MAX_INTERNAL_BYTES: usize = MAX_BYTES + 16 * 1024;

/// Most levels of documents and arrays in a stored document, with itself. MongoDB documents 100 and accepts 180.
pub const MAX_LEVELS: usize = 180;

/// Bytes that a level has at least: a length, a type, an empty name, and the end.
const LEVEL_BYTES: usize = 7;

/// Returns a document as it is inserted: `_id` is its first field, added if there is none, and empty timestamps on the top level are the
/// current time unless `keeps_empty_timestamps` (`bypassEmptyTsReplacement`).
///
/// # Errors
/// - `BadValue` or `BSONObjectTooLarge`: more than [`MAX_BYTES`]; `BadValue`: two fields `_id`.
/// - `InvalidIdField`, `DollarPrefixedFieldName`: see [`check_id`].
/// - `Overflow`: more than [`MAX_LEVELS`].
pub fn prepare_insert(document: &RawDocument, ctx: &Context, keeps_empty_timestamps: bool) -> Result<RawDocumentBuf> {
    let bytes = document.as_bytes().len();
    check_internal_size(bytes)?;
    if bytes > MAX_BYTES {
        return Err(Error::bad_value(format!(
            "object to insert too large. size in bytes: {bytes}, max size: {MAX_BYTES}"
        )));
    }
    if !has_at_most_levels(document, MAX_LEVELS)? {
        return Err(Error::new(
            Code::OVERFLOW,
            format!("cannot insert document because it exceeds {MAX_LEVELS} levels of nesting"),
        ));
    }
    let mut ids = 0;
    for field in document {
        let (name, value) = field?;
        if name.as_str() == "_id" {
            check_id(value)?;
            ids += 1;
        }
    }
    if ids > 1 {
        return Err(Error::bad_value("can't have multiple _id fields in one document"));
    }
    let is_complete = starts_with_id(document) && (keeps_empty_timestamps || !has_empty_timestamp(document)?);
    if is_complete {
        // Most documents: copied as they are.
        return Ok(document.to_owned());
    }
    let document = with_id_first(document, ctx)?;
    if keeps_empty_timestamps {
        return Ok(document);
    }
    replace_empty_timestamps(&document, ctx)
}

/// Checks a value of `_id`.
///
/// # Errors
/// - `InvalidIdField`: an array, a regular expression or undefined.
/// - `DollarPrefixedFieldName`: a document with a field that begins with `$`.
pub fn check_id(id: RawBsonRef<'_>) -> Result<()> {
    match id {
        RawBsonRef::Array(_) | RawBsonRef::RegularExpression(_) | RawBsonRef::Undefined => Err(Error::new(
            Code::INVALID_ID_FIELD,
            format!("The '_id' value cannot be of type {}", value::types::name(id)),
        )),
        RawBsonRef::Document(document) => {
            for field in document {
                let (name, _) = field?;
                if name.as_str().starts_with('$') {
                    return Err(Error::new(
                        Code::DOLLAR_PREFIXED_FIELD_NAME,
                        format!(
                            "_id fields may not contain '$'-prefixed fields: The dollar ($) prefixed field '{name}' is not valid for storage."
                        ),
                    ));
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Checks a document that an update made, and that is stored in the place of another.
///
/// # Errors
/// 17419 if it is too large, `Overflow` if it has too many levels.
pub fn check_updated(document: &RawDocument) -> Result<()> {
    check_made(document, Code(17419), "Resulting document after update is")
}

/// Checks a document that an update made, and that is inserted.
///
/// # Errors
/// 17420 if it is too large, `Overflow` if it has too many levels; see also [`check_id`].
pub fn check_upserted(document: &RawDocument) -> Result<()> {
    if let Some(id) = document.get("_id")? {
        check_id(id)?;
    }
    check_made(document, Code(17420), "Document to upsert is")
}

/// Checks a document as it comes out of a store: BSON of which nothing is known yet.
///
/// # Errors
/// `InvalidBSON`; `BSONObjectTooLarge`; `Overflow`; `BadValue` unless `_id` is the first field, and the only one with this name; see also [`check_id`].
pub fn check_stored(document: &RawDocument) -> Result<()> {
    let document = value::validate(document.as_bytes())?;
    check_made(document, Code::BSON_OBJECT_TOO_LARGE, "The document is")?;
    let ids = document.iter().flatten().filter(|(name, _)| name.as_str() == "_id");
    match (starts_with_id(document), ids.count()) {
        (true, 1) => check_id(document.get("_id")?.unwrap_or(RawBsonRef::Null)),
        _ => Err(Error::bad_value(
            "the first field must be _id, and no other can have this name",
        )),
    }
}

fn check_made(document: &RawDocument, code: Code, what: &str) -> Result<()> {
    let bytes = document.as_bytes().len();
    check_internal_size(bytes)?;
    if bytes > MAX_BYTES {
        return Err(Error::new(code, format!("{what} larger than {MAX_BYTES}")));
    }
    if !has_at_most_levels(document, MAX_LEVELS)? {
        return Err(Error::new(
            Code::OVERFLOW,
            format!("Document exceeds maximum nesting depth of {MAX_LEVELS}"),
        ));
    }
    Ok(())
}

/// Checks the size of a document that may still have to become smaller to be stored.
///
/// # Errors
/// `BSONObjectTooLarge`.
pub(crate) fn check_internal_size(bytes: usize) -> Result<()> {
    if bytes <= MAX_INTERNAL_BYTES {
        return Ok(());
    }
    Err(Error::new(
        Code::BSON_OBJECT_TOO_LARGE,
        format!(
            "BSONObj size: {bytes} (0x{bytes:X}) is invalid. Size must be between 0 and {MAX_INTERNAL_BYTES}(16MB)"
        ),
    ))
}

/// Returns the error for a field on the top level that begins with `$`, in an update that must not write such fields.
pub(crate) fn dollar_prefixed(name: &str, path: &str) -> Error {
    Error::new(
        Code::DOLLAR_PREFIXED_FIELD_NAME,
        format!(
            "The dollar ($) prefixed field '{name}' in '{path}' is not allowed in the context of an update's replacement document. \
             Consider using an aggregation pipeline with $replaceWith."
        ),
    )
}

/// Returns the document with `_id` as its first field, a new one if it has none.
pub(crate) fn with_id_first(document: &RawDocument, ctx: &Context) -> Result<RawDocumentBuf> {
    let mut ordered = RawDocumentBuf::new();
    match document.get("_id")? {
        Some(id) => ordered.append(cstr!("_id"), id),
        None => ordered.append(cstr!("_id"), new_object_id(ctx)),
    }
    for field in document {
        let (name, value) = field?;
        if name.as_str() != "_id" {
            ordered.append(name, value);
        }
    }
    Ok(ordered)
}

fn starts_with_id(document: &RawDocument) -> bool {
    matches!(document.iter().next(), Some(Ok((name, _))) if name.as_str() == "_id")
}

/// Returns whether [`replace_empty_timestamps`] would change the document.
fn has_empty_timestamp(document: &RawDocument) -> Result<bool> {
    for field in document {
        let (name, value) = field?;
        if is_empty_timestamp(value) && name.as_str() != "_id" {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_empty_timestamp(value: RawBsonRef<'_>) -> bool {
    matches!(value, RawBsonRef::Timestamp(Timestamp { time: 0, increment: 0 }))
}

/// Returns the document with the time of the command in the place of empty timestamps on the top level, other than `_id`.
pub(crate) fn replace_empty_timestamps(document: &RawDocument, ctx: &Context) -> Result<RawDocumentBuf> {
    let mut replaced = RawDocumentBuf::new();
    for field in document {
        let (name, value) = field?;
        match is_empty_timestamp(value) && name.as_str() != "_id" {
            true => replaced.append(name, current_timestamp(ctx)),
            false => replaced.append(name, value),
        }
    }
    Ok(replaced)
}

/// Returns a new `_id` with the time of the command.
pub fn new_object_id(ctx: &Context) -> ObjectId {
    let mut bytes = ObjectId::new().bytes();
    bytes[..4].copy_from_slice(&seconds(ctx).to_be_bytes());
    ObjectId::from_bytes(bytes)
}

/// Returns the time of the command as a timestamp.
pub fn current_timestamp(ctx: &Context) -> Timestamp {
    ctx.cluster_time.unwrap_or(Timestamp {
        time: seconds(ctx),
        increment: 1,
    })
}

fn seconds(ctx: &Context) -> u32 {
    let seconds = ctx.now.seconds().0;
    u32::try_from(seconds.max(0)).unwrap_or(u32::MAX)
}

/// Tells whether a document has at most this many levels of documents and arrays, itself included.
fn has_at_most_levels(document: &RawDocument, levels: usize) -> Result<bool> {
    // Most documents are too short to have that many levels.
    if document.as_bytes().len() < levels * LEVEL_BYTES {
        return Ok(true);
    }
    if levels == 0 {
        return Ok(false);
    }
    for field in document {
        let inner = match field?.1 {
            RawBsonRef::Document(document) => document,
            RawBsonRef::Array(array) => RawDocument::from_bytes(array.as_bytes())?,
            _ => continue,
        };
        if !has_at_most_levels(inner, levels - 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
