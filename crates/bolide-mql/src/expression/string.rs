//! Strings.

pub(super) mod regex;
pub(super) mod replace;
pub(super) mod substring;
pub(super) mod trim;

use bson::{RawBson, RawBsonRef};

use super::array::bound;
use super::build::{ArrayBuilder, steps};
use super::call::{Call, null};
use super::convert;
use super::operand::{is_nullish, type_name};
use super::operators::{Arguments, Operator};
use crate::error::{Error, Result};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::eager("$concat", Arguments::Any, concatenate),
    Operator::eager("$indexOfBytes", Arguments::Between(2, 4), index_of_bytes),
    Operator::eager("$indexOfCP", Arguments::Between(2, 4), index_of_code_points),
    Operator::eager("$split", Arguments::Exactly(2), split),
    Operator::eager("$strLenBytes", Arguments::Exactly(1), |call| {
        length(call, 34473, str::len)
    }),
    Operator::eager("$strLenCP", Arguments::Exactly(1), |call| {
        length(call, 34471, |text| text.chars().count())
    }),
    Operator::eager("$strcasecmp", Arguments::Exactly(2), compare_ignoring_case),
    Operator::eager("$toLower", Arguments::Exactly(1), |call| {
        case(call, str::to_ascii_lowercase)
    }),
    Operator::eager("$toUpper", Arguments::Exactly(1), |call| {
        case(call, str::to_ascii_uppercase)
    }),
    Operator::eager("$trim", Arguments::Named(&trim::TRIM), |call| {
        trim::trim(call, true, true)
    }),
    Operator::eager("$ltrim", Arguments::Named(&trim::TRIM), |call| {
        trim::trim(call, true, false)
    }),
    Operator::eager("$rtrim", Arguments::Named(&trim::TRIM), |call| {
        trim::trim(call, false, true)
    }),
    Operator::eager("$replaceOne", Arguments::Named(&replace::REPLACE), replace::one),
    Operator::eager("$replaceAll", Arguments::Named(&replace::REPLACE), replace::all),
];

/// A result that is a string.
fn text(value: impl Into<String>) -> Result<Option<RawBson>> {
    Ok(Some(RawBson::String(value.into())))
}

/// A number of bytes or characters as a result.
fn count(value: usize) -> RawBson {
    RawBson::Int32(i32::try_from(value).unwrap_or(i32::MAX))
}

fn concatenate(call: &Call<'_>) -> Result<Option<RawBson>> {
    let mut joined = String::new();
    for value in call.iter() {
        match value {
            Some(RawBsonRef::String(part)) => {
                call.scope.step(steps(part.len()))?;
                call.scope.reserve(joined.len() + part.len())?;
                joined.push_str(part);
            }
            value if is_nullish(value) => return null(),
            value => {
                let found = type_name(value);
                return Err(Error::new(16702, format!("$concat only supports strings, not {found}")));
            }
        }
    }
    text(joined)
}

/// Two strings of which the first can be null; the codes of their errors.
fn haystack_and_needle<'c>(call: &Call<'c>, codes: (i32, i32)) -> Result<Option<(&'c str, &'c str)>> {
    let failed = |code: i32, ordinal: &str, index: usize| {
        let (name, found) = (call.name(), call.type_name(index));
        let problem = format!("{name} requires a string as the {ordinal} argument, found: {found}");
        Error::new(code, problem)
    };
    let Some(first) = call.non_null(0) else {
        return Ok(None);
    };
    let first = first.as_str().ok_or_else(|| failed(codes.0, "first", 0))?;
    let second = call.get(1).and_then(RawBsonRef::as_str);
    Ok(Some((first, second.ok_or_else(|| failed(codes.1, "second", 1))?)))
}

/// The optional bounds of a search.
fn bounds(call: &Call<'_>, length: usize) -> Result<(usize, usize)> {
    let start = if call.is_given(2) {
        bound(call, 2, "starting")?
    } else {
        0
    };
    let end = if call.is_given(3) {
        bound(call, 3, "ending")?
    } else {
        length
    };
    Ok((start, end.min(length)))
}

/// The first position in bytes of one string in another from a position on.
fn find(haystack: &str, needle: &str, start: usize, end: usize) -> Option<usize> {
    if start > end {
        return None;
    }
    if needle.is_empty() {
        return Some(start);
    }
    // Bounds inside of characters can be moved: the needle begins and ends with whole characters.
    let start = (start..=end).find(|position| haystack.is_char_boundary(*position))?;
    let end = haystack.floor_char_boundary(end);
    haystack.get(start..end)?.find(needle).map(|position| start + position)
}

fn index_of_bytes(call: &Call<'_>) -> Result<Option<RawBson>> {
    let Some((haystack, needle)) = haystack_and_needle(call, (40091, 40092))? else {
        return null();
    };
    let (start, end) = bounds(call, haystack.len())?;
    let found = find(haystack, needle, start, end);
    Ok(Some(found.map_or(RawBson::Int32(-1), count)))
}

fn index_of_code_points(call: &Call<'_>) -> Result<Option<RawBson>> {
    let Some((haystack, needle)) = haystack_and_needle(call, (40093, 40094))? else {
        return null();
    };
    let starts: Vec<usize> = haystack.char_indices().map(|(position, _)| position).collect();
    let (start, end) = bounds(call, starts.len())?;
    if start > end {
        return Ok(Some(RawBson::Int32(-1)));
    }
    // As in MongoDB, only the beginning of what is found has to be before the end, for an empty string too.
    let candidates = starts.get(start..end).unwrap_or_default();
    let from = candidates.first().copied().unwrap_or(haystack.len());
    let found = haystack.get(from..).and_then(|rest| rest.find(needle));
    let index = found.map(|position| starts.partition_point(|start| *start < from + position));
    let index = index.filter(|index| (start..end).contains(index));
    Ok(Some(index.map_or(RawBson::Int32(-1), count)))
}

fn split(call: &Call<'_>) -> Result<Option<RawBson>> {
    let (Some(value), Some(separator)) = (call.non_null(0), call.non_null(1)) else {
        return null();
    };
    let failed = |code: i32, ordinal: &str, index: usize| {
        let found = call.type_name(index);
        Error::new(
            code,
            format!("$split requires an expression that evaluates to a string as a {ordinal} argument, found: {found}"),
        )
    };
    let value = value.as_str().ok_or_else(|| failed(40085, "first", 0))?;
    let separator = separator.as_str().ok_or_else(|| failed(40086, "second", 1))?;
    if separator.is_empty() {
        return Err(Error::new(40087, "$split requires a non-empty separator"));
    }
    let mut parts = ArrayBuilder::new(call.scope);
    value
        .split(separator)
        .try_for_each(|part| parts.push(RawBsonRef::String(part)))?;
    Ok(Some(parts.finish()))
}

fn length(call: &Call<'_>, code: i32, measure: fn(&str) -> usize) -> Result<Option<RawBson>> {
    let Some(RawBsonRef::String(value)) = call.get(0) else {
        let (name, found) = (call.name(), call.type_name(0));
        let problem = format!("{name} requires a string argument, found: {found}");
        return Err(Error::new(code, problem));
    };
    Ok(Some(count(measure(value))))
}

/// Compares as strings, with the letters from a to z in either case equal.
fn compare_ignoring_case(call: &Call<'_>) -> Result<Option<RawBson>> {
    let upper = |index: usize| convert::to_text(call.get(index)).map(|text| text.to_ascii_uppercase());
    let (a, b): (String, String) = (upper(0)?, upper(1)?);
    Ok(Some(RawBson::Int32(a.cmp(&b) as i32)))
}

fn case(call: &Call<'_>, change: fn(&str) -> String) -> Result<Option<RawBson>> {
    text(change(&convert::to_text(call.get(0))?))
}
