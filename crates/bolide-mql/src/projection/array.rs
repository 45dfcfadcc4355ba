//! The projections of arrays that only `find` has: `$slice` and `$elemMatch`.

use bson::raw::{RawArray, RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::ParseScope;
use crate::filter::Filter;
use crate::value::number::whole;
use crate::value::types;

/// `{$slice: n}` and `{$slice: [skip, limit]}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    /// Elements from the start; negative from the end.
    skip: i64,
    /// `None` takes the first elements of a positive, or the last of a negative `skip`.
    limit: Option<i64>,
}

impl Slice {
    /// Parses the operand.
    ///
    /// # Errors
    /// 31257, 31258, 31259, 31272, 31273 for other shapes than those above.
    pub(super) fn parse(operand: RawBsonRef<'_>) -> Result<Slice> {
        if let Some(count) = integer(operand) {
            return Ok(Slice {
                skip: count,
                limit: None,
            });
        }
        let RawBsonRef::Array(array) = operand else {
            return Err(Error::new(
                31273,
                "$slice only supports numbers and [skip, limit] arrays",
            ));
        };
        let elements = array.into_iter().collect::<bson::error::Result<Vec<_>>>()?;
        let [skip, limit] = elements.as_slice() else {
            return Err(Error::new(
                31272,
                "$slice array argument should be of form [skip, limit]",
            ));
        };
        let not_a_number = |code, name, value| {
            let found = types::name(value);
            Error::new(
                code,
                format!("$slice expects the {name} argument to be a number, got {found}"),
            )
        };
        let skip = integer(*skip).ok_or_else(|| not_a_number(31257, "skip", *skip))?;
        let limit = integer(*limit).ok_or_else(|| not_a_number(31258, "limit", *limit))?;
        if limit <= 0 {
            return Err(Error::new(31259, format!("$slice limit must be positive, got {limit}")));
        }
        Ok(Slice {
            skip,
            limit: Some(limit),
        })
    }

    /// Returns the part of an array.
    pub(super) fn apply(self, array: &RawArray) -> Result<RawArrayBuf> {
        let length = i64::try_from(array.into_iter().count()).unwrap_or(i64::MAX);
        let (start, end) = match self.limit {
            Some(limit) => {
                let start = if self.skip < 0 {
                    length.saturating_add(self.skip).max(0)
                } else {
                    self.skip
                };
                (start, start.saturating_add(limit))
            }
            None if self.skip < 0 => (length.saturating_add(self.skip).max(0), length),
            None => (0, self.skip),
        };
        let mut part = RawArrayBuf::new();
        for (element, index) in array.into_iter().zip(0i64..) {
            if index >= end {
                break;
            }
            if index >= start {
                part.push(element?);
            }
        }
        Ok(part)
    }
}

/// Returns a number as an integer, truncated and limited to those of 64 bits.
fn integer(value: RawBsonRef<'_>) -> Option<i64> {
    match value {
        // `as` limits to the range, and makes 0 of NaN.
        RawBsonRef::Double(double) => Some(double as i64),
        RawBsonRef::Int32(_) | RawBsonRef::Int64(_) | RawBsonRef::Decimal128(_) => Some(whole(value).unwrap_or(0)),
        _ => None,
    }
}

/// `{field: {$elemMatch: condition}}`: the first element that satisfies the condition.
#[derive(Debug)]
pub(super) struct ElementMatch {
    filter: Filter,
}

impl ElementMatch {
    /// Parses `{$elemMatch: condition}` of a field.
    ///
    /// # Errors
    /// 31274 for a condition that is no document, and those of the filter.
    pub(super) fn parse(field: &bson::raw::CStr, operator: &RawDocument, scope: &ParseScope) -> Result<ElementMatch> {
        let condition = operator.get("$elemMatch")?;
        if !matches!(condition, Some(RawBsonRef::Document(_))) {
            let found = condition.map_or("missing", types::name);
            let text = format!("elemMatch: Invalid argument, object required, but got {found}");
            return Err(Error::new(31274, text));
        }
        let mut filter = RawDocumentBuf::new();
        filter.append(field, operator);
        Ok(ElementMatch {
            filter: Filter::parse_in(&filter, scope)?,
        })
    }

    /// Returns an array of the first element that matches; `None` if there is none, or no array.
    pub(super) fn apply(
        &self,
        field: &bson::raw::CStr,
        value: RawBsonRef<'_>,
        context: &Context,
    ) -> Result<Option<RawBson>> {
        let RawBsonRef::Array(array) = value else {
            return Ok(None);
        };
        let mut holder = RawDocumentBuf::new();
        holder.append(field, value);
        let index = self
            .filter
            .matches_with(&holder, context)?
            .and_then(|details| details.array_index);
        index.map_or(Ok(None), |index| element(array, index))
    }
}

/// Returns an array of the one element with an index.
pub(super) fn element(array: &RawArray, index: usize) -> Result<Option<RawBson>> {
    let Some(element) = array.get(index)? else {
        return Ok(None);
    };
    let mut only = RawArrayBuf::new();
    only.push(element);
    Ok(Some(RawBson::Array(only)))
}
