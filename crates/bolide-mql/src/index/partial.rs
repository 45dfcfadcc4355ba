//! The filters of partial indexes.
//!
//! They may use equality, `$exists: true`, `$gt $gte $lt $lte`, `$type`, `$in`, `$and` and `$or` (mongo.md §14).

use std::fmt;
use std::sync::Arc;

use bolide_model::UnixMillis;
use bson::raw::{RawArray, RawBsonRef, RawDocument, RawDocumentBuf};

use super::pattern::cannot;
use crate::collation::Collation;
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::filter::Filter;
use crate::value;

/// The most levels of a filter, counting the conditions at the bottom.
const DEPTH: usize = 4;

/// Operators that no filter of an index may have, wherever they stand.
const BANNED: [(&str, Code); 6] = [
    ("$expr", Code::QUERY_FEATURE_NOT_ALLOWED),
    ("$jsonSchema", Code::QUERY_FEATURE_NOT_ALLOWED),
    ("$where", Code::BAD_VALUE),
    ("$text", Code::BAD_VALUE),
    ("$near", Code::BAD_VALUE),
    ("$nearSphere", Code::BAD_VALUE),
];

/// Which documents a partial index has.
#[derive(Clone)]
pub struct PartialFilter {
    document: RawDocumentBuf,
    filter: Arc<Filter>,
    /// The supported operators look at no clock and no variables.
    context: Context,
}

impl PartialFilter {
    /// Reads `partialFilterExpression`.
    ///
    /// # Errors
    /// Those of a filter; 224 `QueryFeatureNotAllowed` and 2 `BadValue` for operators that stand for more than the document.
    pub(super) fn read(document: &RawDocument) -> Result<PartialFilter> {
        refuse_banned(document, 0)?;
        Ok(PartialFilter {
            document: document.to_owned(),
            filter: Arc::new(Filter::parse(document)?),
            context: Context::new(UnixMillis(0)),
        })
    }

    /// Sets the collation of its comparisons: that of the index.
    pub(super) fn with_collation(mut self, collation: Option<&Arc<Collation>>) -> PartialFilter {
        self.context.collation = collation.cloned();
        self
    }

    /// Checks that the filter has only what partial indexes support.
    ///
    /// # Errors
    /// 67 `CannotCreateIndex`.
    pub(super) fn check(&self) -> Result<()> {
        check_document(&self.document, 0)
    }

    /// The filter as it was given.
    pub fn document(&self) -> &RawDocument {
        &self.document
    }

    /// The filter, to compare queries with.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Whether the index has a document.
    ///
    /// # Errors
    /// Those of [`Filter::matches`].
    pub fn matches(&self, document: &RawDocument) -> Result<bool> {
        self.filter.matches(document, &self.context)
    }
}

impl fmt::Debug for PartialFilter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&value::text::render_document(&self.document))
    }
}

fn refuse_banned(document: &RawDocument, depth: usize) -> Result<()> {
    // Deeper documents have operators only as data, or are refused by the check of the depth.
    if depth > 2 * DEPTH {
        return Ok(());
    }
    for element in document.iter() {
        let (name, value) = element.map_err(Error::malformed)?;
        if let Some((name, code)) = BANNED.iter().find(|(banned, _)| *banned == name.as_str()) {
            return Err(Error::new(*code, format!("{name} is not allowed in this context")));
        }
        match value {
            RawBsonRef::Document(inner) => refuse_banned(inner, depth + 1)?,
            RawBsonRef::Array(items) if ["$and", "$or", "$nor"].contains(&name.as_str()) => {
                for inner in items.into_iter().flatten().filter_map(RawBsonRef::as_document) {
                    refuse_banned(inner, depth + 1)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks the conditions of one document; several are joined by an `$and` that counts as a level.
fn check_document(document: &RawDocument, level: usize) -> Result<()> {
    let level = if conditions(document) > 1 { level + 1 } else { level };
    for element in document.iter() {
        let (name, value) = element.map_err(Error::malformed)?;
        match (name.as_str(), value) {
            ("$comment", _) => {}
            ("$and" | "$or", RawBsonRef::Array(items)) => check_list(items, level)?,
            (operator, _) if operator.starts_with('$') => return Err(unsupported(&format!("{operator}\n"))),
            (path, value) => check_field(path, value, level)?,
        }
    }
    Ok(())
}

fn conditions(document: &RawDocument) -> usize {
    let elements = document.iter().flatten();
    elements
        .map(|(name, value)| match value {
            RawBsonRef::Document(inner) if !name.as_str().starts_with('$') && is_operators(inner) => {
                inner.iter().flatten().count()
            }
            _ => 1,
        })
        .sum()
}

fn check_list(items: &RawArray, level: usize) -> Result<()> {
    check_level(level)?;
    for item in items.into_iter().flatten().filter_map(RawBsonRef::as_document) {
        check_document(item, level + 1)?;
    }
    Ok(())
}

fn check_level(level: usize) -> Result<()> {
    if level < DEPTH {
        Ok(())
    } else {
        Err(cannot(format!("partialFilterExpression depth may not exceed {DEPTH}")))
    }
}

fn is_operators(document: &RawDocument) -> bool {
    let first = document.iter().flatten().next();
    first.is_some_and(|(name, _)| name.as_str().starts_with('$'))
}

fn check_field(path: &str, value: RawBsonRef<'_>, level: usize) -> Result<()> {
    check_level(level)?;
    match value {
        RawBsonRef::RegularExpression(_) => Err(unsupported(&describe(path, "$regex", value))),
        RawBsonRef::Document(operators) if is_operators(operators) => {
            for element in operators.iter() {
                let (operator, operand) = element.map_err(Error::malformed)?;
                check_operator(path, operator.as_str(), operand)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn check_operator(path: &str, operator: &str, operand: RawBsonRef<'_>) -> Result<()> {
    match operator {
        "$eq" if matches!(operand, RawBsonRef::RegularExpression(_)) => Ok(()),
        "$eq" | "$gt" | "$gte" | "$lt" | "$lte" | "$type" | "$in" | "$comment" => Ok(()),
        "$exists" if value::is_truthy(operand) => Ok(()),
        _ => Err(unsupported(&describe(path, operator, operand))),
    }
}

/// A condition as MongoDB shows the tree of a filter.
fn describe(path: &str, operator: &str, operand: RawBsonRef<'_>) -> String {
    let text = value::text::render(operand);
    match (operator, operand) {
        ("$ne", _) => format!("$not\n    {path} $eq {text}\n"),
        ("$nin", _) => format!("$not\n    {path} $in {text}\n"),
        ("$exists", _) => format!("$not\n    {path} exists\n"),
        ("$not", _) => format!("$not\n    {path} {text}\n"),
        ("$regex", RawBsonRef::RegularExpression(_)) => format!("{path} regex {text}\n"),
        ("$regex", RawBsonRef::String(pattern)) => format!("{path} regex /{pattern}/\n"),
        ("$size", _) => format!("{path} $size : {text}\n"),
        _ => format!("{path} {operator} {text}\n"),
    }
}

fn unsupported(tree: &str) -> Error {
    cannot(format!("Expression not supported in partial index: {tree}"))
}

#[cfg(test)]
mod tests;
