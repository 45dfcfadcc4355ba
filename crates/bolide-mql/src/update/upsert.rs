//! What an upsert takes from the filter.

use bson::raw::{CString, cstr};
use bson::{RawBson, RawDocumentBuf};

use crate::error::{Code, Error, Result};
use crate::filter::Filter;

/// Most parts of a path; a stored document has fewer levels.
const MAX_PARTS: usize = 200;

/// Returns the document of the equality conditions of a filter. `{"a.b": 1}` becomes `{a: {b: 1}}`.
///
/// # Errors
/// - `NotSingleValueField`: two conditions on one path, or on a path and one inside it.
/// - `Overflow`: a path with too many parts.
pub(super) fn document_of(filter: &Filter) -> Result<RawDocumentBuf> {
    let mut fields = Vec::new();
    for (path, value) in filter.equalities()? {
        insert(&mut fields, path, value)?;
    }
    build(fields)
}

/// Returns a document with only the `_id` of the filter, if it has one.
///
/// # Errors
/// - `NotSingleValueField`: two conditions on `_id`.
/// - `NotExactValueField`: a condition on a part of `_id`.
pub(super) fn id_of(filter: &Filter) -> Result<RawDocumentBuf> {
    let mut document = RawDocumentBuf::new();
    for (path, id) in filter.id_equalities()? {
        if path != "_id" {
            return Err(Error::new(
                Code::NOT_EXACT_VALUE_FIELD,
                format!("field at '_id' must be exactly specified, field at sub-path '{path}'found"),
            ));
        }
        document.append(cstr!("_id"), id.as_raw_bson_ref());
    }
    Ok(document)
}

/// A document that is put together from paths.
type Fields<'f> = Vec<(&'f str, Part<'f>)>;

enum Part<'f> {
    /// The value of a condition.
    Value(&'f RawBson),
    /// A document, because conditions are on fields inside it.
    Fields(Fields<'f>),
}

/// Adds a value. No path is the same as another, or inside the value of another.
fn insert<'f>(fields: &mut Fields<'f>, path: &'f str, value: &'f RawBson) -> Result<()> {
    let mut fields = fields;
    let mut rest = path;
    for _ in 0..MAX_PARTS {
        let Some((name, inner)) = rest.split_once('.') else {
            fields.push((rest, Part::Value(value)));
            return Ok(());
        };
        let position = fields.iter().position(|(field, _)| *field == name).unwrap_or_else(|| {
            fields.push((name, Part::Fields(Vec::new())));
            fields.len() - 1
        });
        match &mut fields[position].1 {
            Part::Fields(inner_fields) => fields = inner_fields,
            Part::Value(_) => return Ok(()),
        }
        rest = inner;
    }
    Err(Error::new(
        Code::OVERFLOW,
        format!("A path has at most {MAX_PARTS} parts"),
    ))
}

fn build(fields: Fields<'_>) -> Result<RawDocumentBuf> {
    let mut document = RawDocumentBuf::new();
    for (name, part) in fields {
        let name = CString::try_from(name)?;
        match part {
            Part::Value(value) => document.append(name, value.as_raw_bson_ref()),
            Part::Fields(fields) => document.append(name, build(fields)?),
        }
    }
    Ok(document)
}
