//! Updates that replace the whole document.

use bson::raw::cstr;
use bson::{RawBsonRef, RawDocument, RawDocumentBuf};

use super::ParseOptions;
use super::text::shown;
use crate::context::Context;
use crate::document;
use crate::error::{Code, Error, Result};
use crate::value;

/// A replacement.
#[derive(Debug)]
pub(super) struct Replacement {
    document: RawDocumentBuf,
    keeps_empty_timestamps: bool,
}

impl Replacement {
    /// Parses a replacement.
    ///
    /// # Errors
    /// - `FailedToParse`: for several documents.
    /// - `DollarPrefixedFieldName`: a field that begins with `$`.
    pub(super) fn parse(replacement: &RawDocument, options: ParseOptions) -> Result<Replacement> {
        if options.multi {
            return Err(Error::new(
                Code::FAILED_TO_PARSE,
                "multi update is not supported for replacement-style update",
            ));
        }
        for field in replacement {
            let (name, _) = field?;
            if name.as_str().starts_with('$') {
                return Err(document::dollar_prefixed(name.as_str(), name.as_str()));
            }
        }
        Ok(Replacement {
            document: replacement.to_owned(),
            keeps_empty_timestamps: options.keeps_empty_timestamps,
        })
    }

    /// Returns the new document, with the `_id` of the old one.
    ///
    /// # Errors
    /// `ImmutableField`: the replacement has another `_id`.
    pub(super) fn apply(&self, old: &RawDocument, ctx: &Context) -> Result<RawDocumentBuf> {
        if self.keeps_empty_timestamps {
            return with_old_id(old, &self.document);
        }
        with_old_id(old, &document::replace_empty_timestamps(&self.document, ctx)?)
    }
}

/// Returns the new document with `_id` first: its own, or that of the old document. If neither has one, it has none.
///
/// # Errors
/// `ImmutableField`: both have one, and they are not equal.
pub(super) fn with_old_id(old: &RawDocument, new: &RawDocument) -> Result<RawDocumentBuf> {
    let id = match (old.get("_id")?, new.get("_id")?) {
        (Some(old), Some(new)) if !value::equal(old, new) => return Err(altered(new)),
        (old, new) => new.or(old),
    };
    let mut document = RawDocumentBuf::new();
    if let Some(id) = id {
        document.append(cstr!("_id"), id);
    }
    for field in new {
        let (name, value) = field?;
        if name.as_str() != "_id" {
            document.append(name, value);
        }
    }
    Ok(document)
}

fn altered(id: RawBsonRef<'_>) -> Error {
    Error::new(
        Code::IMMUTABLE_FIELD,
        format!(
            "After applying the update, the (immutable) field '_id' was found to have been altered to _id: {}",
            shown(id)
        ),
    )
}
