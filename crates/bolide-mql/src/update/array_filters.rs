//! Array filters: which elements `$[identifier]` stands for.

use std::collections::BTreeMap;

use bson::{RawArray, RawBsonRef, RawDocument};

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::filter::{DEPTH_LIMIT, Filter};
use crate::value;

/// The array filters of an update, by identifier.
#[derive(Debug, Default)]
pub(super) struct ArrayFilters(BTreeMap<String, Filter>);

impl ArrayFilters {
    /// Parses `arrayFilters`.
    ///
    /// # Errors
    /// - `TypeMismatch`: an element is not a document.
    /// - `FailedToParse`: a filter has no or several identifiers, or two have the same.
    /// - `BadValue`: an identifier is not alphanumeric; those of a filter.
    /// - `QueryFeatureNotAllowed`: `$expr`.
    pub(super) fn parse(filters: &RawArray) -> Result<ArrayFilters> {
        let mut parsed = BTreeMap::new();
        for (index, filter) in filters.into_iter().enumerate() {
            let filter = filter?;
            let RawBsonRef::Document(filter) = filter else {
                return Err(Error::new(
                    Code::TYPE_MISMATCH,
                    format!(
                        "BSON field 'update.updates.arrayFilters.{index}' is the wrong type '{}', expected type 'object'",
                        value::types::name(filter)
                    ),
                ));
            };
            let (identifier, filter) = parse_filter(filter).map_err(while_parsing)?;
            if parsed.contains_key(&identifier) {
                return Err(Error::new(
                    Code::FAILED_TO_PARSE,
                    format!("Found multiple array filters with the same top-level field name {identifier}"),
                ));
            }
            parsed.insert(identifier, filter);
        }
        Ok(ArrayFilters(parsed))
    }

    /// Tells whether there is a filter with this identifier.
    pub(super) fn contains(&self, identifier: &str) -> bool {
        self.0.contains_key(identifier)
    }

    /// Returns the identifiers.
    pub(super) fn identifiers(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Tells whether `$[identifier]` stands for this element.
    pub(super) fn matches(&self, identifier: &str, element: RawBsonRef<'_>, ctx: &Context) -> Result<bool> {
        if identifier.is_empty() {
            return Ok(true);
        }
        match self.0.get(identifier) {
            Some(filter) => filter.matches_value(element, ctx),
            None => Ok(false),
        }
    }
}

fn while_parsing(mut error: Error) -> Error {
    error.message = format!("Error parsing array filter :: caused by :: {}", error.message);
    error
}

fn parse_filter(filter: &RawDocument) -> Result<(String, Filter)> {
    let mut found = None;
    find_identifier(filter, &mut found, 0)?;
    let parsed = Filter::parse(filter)?;
    let identifier = found.ok_or_else(|| {
        Error::new(
            Code::FAILED_TO_PARSE,
            "Cannot use an expression without a top-level field name in arrayFilters",
        )
    })?;
    let is_identifier = identifier.starts_with(|first: char| first.is_ascii_lowercase())
        && identifier.chars().all(|character| character.is_ascii_alphanumeric());
    if !is_identifier {
        return Err(Error::bad_value(format!(
            "The top-level field name must be an alphanumeric string beginning with a lowercase letter, found '{identifier}'"
        )));
    }
    Ok((identifier, parsed))
}

/// Finds the one identifier that all conditions of a filter begin with.
fn find_identifier(filter: &RawDocument, found: &mut Option<String>, nesting: usize) -> Result<()> {
    // Deeper ones are refused by the parser of filters.
    if nesting > DEPTH_LIMIT {
        return Ok(());
    }
    for field in filter {
        let (name, condition) = field?;
        check_allowed(name.as_str())?;
        match name.as_str() {
            "$and" | "$or" | "$nor" => {
                let RawBsonRef::Array(conditions) = condition else {
                    continue;
                };
                for condition in conditions {
                    if let RawBsonRef::Document(condition) = condition? {
                        find_identifier(condition, found, nesting + 1)?;
                    }
                }
            }
            // The parser of filters knows which of these exist.
            name if name.starts_with('$') => {}
            name => {
                let identifier = name.split('.').next().unwrap_or(name);
                match found {
                    Some(found) if found != identifier => {
                        return Err(Error::new(
                            Code::FAILED_TO_PARSE,
                            format!("Expected a single top-level field name, found '{found}' and '{identifier}'"),
                        ));
                    }
                    _ => *found = Some(identifier.to_owned()),
                }
            }
        }
    }
    Ok(())
}

/// Checks an operator on the top level of a condition on array elements.
///
/// # Errors
/// `QueryFeatureNotAllowed` or `BadValue`: it needs the whole document.
pub(super) fn check_allowed(operator: &str) -> Result<()> {
    match operator {
        "$expr" => Err(Error::new(
            Code::QUERY_FEATURE_NOT_ALLOWED,
            "$expr is not allowed in this context",
        )),
        "$text" | "$where" => Err(Error::bad_value(format!("{operator} is not allowed in this context"))),
        _ => Ok(()),
    }
}
