//! Fields of sub-documents: reads and writes at a path that does not open arrays.

use bson::raw::{CString, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};

use crate::error::Result;
use crate::expression::{Expression, ParseScope, check_variable_name};

/// Returns the value at a path through documents; `None` if it is missing, or behind an array or a scalar.
pub(in crate::aggregation) fn get<'d>(document: &'d RawDocument, path: &[CString]) -> Result<Option<RawBsonRef<'d>>> {
    let mut value = RawBsonRef::Document(document);
    for name in path {
        let RawBsonRef::Document(document) = value else {
            return Ok(None);
        };
        let Some(inner) = document.get(name.as_str())? else {
            return Ok(None);
        };
        value = inner;
    }
    Ok(Some(value))
}

/// Returns the document with a value at a path, in the place of the old one or at the end; `None` removes the field. What stands in the way
/// and is no document is replaced by one. The recursion is as deep as the path is long.
pub(in crate::aggregation) fn set(
    document: &RawDocument,
    path: &[CString],
    value: Option<RawBsonRef<'_>>,
) -> Result<RawDocumentBuf> {
    let mut output = RawDocumentBuf::new();
    let Some((first, rest)) = path.split_first() else {
        return Ok(output);
    };
    let mut is_set = false;
    for field in document {
        let (name, old) = field?;
        if name.as_str() != first.as_str() {
            output.append(name, old);
        } else if !is_set {
            is_set = true;
            append(&mut output, first, rest, Some(old), value)?;
        }
    }
    if !is_set {
        append(&mut output, first, rest, None, value)?;
    }
    Ok(output)
}

fn append(
    output: &mut RawDocumentBuf,
    name: &CString,
    rest: &[CString],
    old: Option<RawBsonRef<'_>>,
    value: Option<RawBsonRef<'_>>,
) -> Result<()> {
    if rest.is_empty() {
        if let Some(value) = value {
            output.append(name, value);
        }
        return Ok(());
    }
    let inner = match old {
        Some(RawBsonRef::Document(old)) => set(old, rest, value)?,
        Some(other) if value.is_none() => {
            output.append(name, other);
            return Ok(());
        }
        None if value.is_none() => return Ok(()),
        _ => set(&RawDocumentBuf::new(), rest, value)?,
    };
    output.append(name, RawBson::Document(inner));
    Ok(())
}

/// Parses the `let` of a stage: names and expressions. The names are defined by the caller, in the scope where they are seen.
///
/// # Errors
/// `FailedToParse` for a bad name, and those of the expressions.
pub(in crate::aggregation) fn parse_variables(
    variables: &RawDocument,
    scope: &mut ParseScope,
) -> Result<Vec<(String, Expression)>> {
    let mut parsed = Vec::new();
    for element in variables {
        let (name, value) = element?;
        check_variable_name(name.as_str())?;
        parsed.push((name.as_str().to_owned(), Expression::parse(value, scope)?));
    }
    Ok(parsed)
}
