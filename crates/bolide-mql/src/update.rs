//! Updates (mongo.md §12): operators, replacements and pipelines.
//!
//! [`Update::parse`] refuses whatever is wrong with every document. [`Update::apply`] changes one document, [`Update::upsert`] makes the document
//! that is inserted if none matched. With operators, everything is decided on the document before the update: `plan` joins the paths of all
//! operators in one tree, in which conflicts show, and `apply` walks it beside the document.

mod add_to_set;
mod apply;
mod arithmetic;
mod array_filters;
mod bit;
mod current_date;
mod delta;
mod diff;
mod operator;
mod operators;
mod path;
mod pipeline;
mod plan;
mod pop;
mod pull;
mod push;
mod rename;
mod replacement;
#[cfg(test)]
mod tests;
mod text;
mod tree;
mod upsert;

use bson::{RawArray, RawBsonRef, RawDocument, RawDocumentBuf};

pub use delta::{ChangedPath, Delta, FieldChanges, PathPart};
pub use diff::diff;

use crate::context::Context;
use crate::document;
use crate::error::{Code, Error, Result};
use crate::filter::{Filter, MatchDetails};
use operators::Operators;
use pipeline::Pipeline;
use replacement::Replacement;

/// A parsed update.
#[derive(Debug)]
pub struct Update {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Operators(Operators),
    Replacement(Replacement),
    Pipeline(Pipeline),
}

/// Options of the statement that the update belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub struct ParseOptions {
    /// `multi`: all matching documents are updated.
    pub multi: bool,
    /// `c` was given: constants, which only pipelines may have. Their values are in the variables of the context.
    pub has_constants: bool,
    /// `bypassEmptyTsReplacement`: a replacement keeps empty timestamps, which otherwise become the current time.
    pub keeps_empty_timestamps: bool,
}

/// What an update made of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Updated {
    /// The new document.
    pub document: RawDocumentBuf,
    /// The stored bytes differ (`nModified`).
    pub changed: bool,
    /// What changed, for change streams. No fields if nothing changed.
    pub delta: Delta,
}

impl Update {
    /// Parses `u` and `arrayFilters` of a statement.
    ///
    /// # Errors
    /// - `FailedToParse`: neither a document nor an array; an unknown operator; a replacement of several documents; array filters that are not used, or
    ///   without operators.
    /// - 51198: constants without a pipeline. 40323, 40324, `InvalidOptions` and those of the stages for a wrong pipeline.
    /// - `DollarPrefixedFieldName`: a replacement with a field that begins with `$`.
    /// - `ConflictingUpdateOperators`, `EmptyFieldName`, `BadValue`, `TypeMismatch`: wrong paths and arguments of operators.
    pub fn parse(
        update: RawBsonRef<'_>,
        array_filters: Option<&RawArray>,
        options: ParseOptions,
        ctx: &Context,
    ) -> Result<Update> {
        let document = match update {
            RawBsonRef::Document(document) => document,
            RawBsonRef::Array(stages) => return Update::parse_pipeline(stages, array_filters, ctx),
            _ => {
                return Err(Error::new(
                    Code::FAILED_TO_PARSE,
                    "Update argument must be either an object or an array",
                ));
            }
        };
        if options.has_constants {
            return Err(Error::new(
                51198,
                "Constant values may only be specified for pipeline updates",
            ));
        }
        let first = document.into_iter().next().transpose()?;
        let has_operators = first.is_some_and(|(name, _)| name.as_str().starts_with('$'));
        let kind = if has_operators {
            Kind::Operators(Operators::parse(document, array_filters)?)
        } else {
            if array_filters.is_some() {
                return Err(Error::new(
                    Code::FAILED_TO_PARSE,
                    "arrayFilters may not be specified for replacement-style updates",
                ));
            }
            Kind::Replacement(Replacement::parse(document, options)?)
        };
        Ok(Update { kind })
    }

    fn parse_pipeline(stages: &RawArray, array_filters: Option<&RawArray>, ctx: &Context) -> Result<Update> {
        if array_filters.is_some() {
            return Err(Error::new(
                Code::FAILED_TO_PARSE,
                "arrayFilters may not be specified for pipeline-syle updates",
            ));
        }
        Ok(Update {
            kind: Kind::Pipeline(Pipeline::parse(stages, ctx)?),
        })
    }

    /// Tells whether the update has a path with `$`. Otherwise [`Update::apply`] does not need to know how the document matched.
    pub fn uses_matched_element(&self) -> bool {
        match &self.kind {
            Kind::Operators(operators) => operators.uses_matched_element(),
            Kind::Replacement(_) | Kind::Pipeline(_) => false,
        }
    }

    /// Applies the update to a stored document that the query matched.
    ///
    /// # Errors
    /// - `PathNotViable`, `TypeMismatch`, `BadValue`, `ConflictingUpdateOperators`: the document does not have the shape that an operator needs.
    /// - `ImmutableField`: `_id` would change.
    /// - 17419, `BSONObjectTooLarge`, `Overflow`: the new document is too large or too deep.
    pub fn apply(&self, old: &RawDocument, matched: &MatchDetails, ctx: &Context) -> Result<Updated> {
        let (document, delta) = self.change(old, matched, ctx, false)?;
        let changed = document.as_bytes() != old.as_bytes();
        if changed {
            document::check_updated(&document)?;
        }
        Ok(Updated {
            document,
            changed,
            delta: if changed {
                delta
            } else {
                Delta::Fields(FieldChanges::default())
            },
        })
    }

    /// Returns the document to insert when no document matched: the equality conditions of the filter, then the update. `_id` is its first field,
    /// from the filter, else from the update, else a new one.
    ///
    /// # Errors
    /// As [`Update::apply`]; `NotSingleValueField` and `NotExactValueField` if the conditions of the filter contradict each other or give only a part of
    /// `_id`; 17420 instead of 17419; `InvalidIdField` or `DollarPrefixedFieldName` for an `_id` that cannot be stored.
    pub fn upsert(&self, filter: &Filter, ctx: &Context) -> Result<RawDocumentBuf> {
        let conditions = match &self.kind {
            Kind::Operators(_) | Kind::Pipeline(_) => upsert::document_of(filter)?,
            Kind::Replacement(_) => upsert::id_of(filter)?,
        };
        let (document, _) = self.change(&conditions, &MatchDetails::default(), ctx, true)?;
        let document = document::with_id_first(&document, ctx)?;
        document::check_upserted(&document)?;
        Ok(document)
    }

    fn change(
        &self,
        old: &RawDocument,
        matched: &MatchDetails,
        ctx: &Context,
        is_insert: bool,
    ) -> Result<(RawDocumentBuf, Delta)> {
        match &self.kind {
            Kind::Operators(operators) => {
                let (document, changes) = operators.apply(old, matched.array_index, ctx, is_insert)?;
                Ok((document, Delta::Fields(changes)))
            }
            Kind::Replacement(replacement) => Ok((replacement.apply(old, ctx)?, Delta::Replacement)),
            Kind::Pipeline(pipeline) => {
                let document = pipeline.apply(old, ctx)?;
                let delta = diff(old, &document)?;
                Ok((document, delta))
            }
        }
    }
}
