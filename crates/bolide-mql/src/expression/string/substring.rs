//! `$substrBytes` (also called `$substr`) and `$substrCP`.

use bson::RawBson;

use super::text;
use crate::error::{Error, Result};
use crate::expression::call::Call;
use crate::expression::convert;
use crate::expression::operators::{Arguments, Operator};
use crate::value::number::{self, Number};

pub(in crate::expression) const OPERATORS: &[Operator] = &[
    Operator::eager("$substr", Arguments::Exactly(3), of_bytes),
    Operator::eager("$substrBytes", Arguments::Exactly(3), of_bytes),
    Operator::eager("$substrCP", Arguments::Exactly(3), of_code_points),
];

/// A number of bytes, cut to a whole number.
fn bytes(call: &Call<'_>, index: usize, code: i32, what: &str) -> Result<i64> {
    let number = call.get(index).and_then(Number::of);
    let Some(number) = number else {
        let (name, found) = (call.name(), call.type_name(index));
        return Err(Error::new(
            code,
            format!("{name}:  {what} must be a numeric type (is BSON type {found})"),
        ));
    };
    let limit = if number.compare(Number::Int32(0)).is_lt() {
        i64::MIN
    } else {
        i64::MAX
    };
    Ok(number.truncated().unwrap_or(limit))
}

/// A part in bytes; a negative length means up to the end.
fn of_bytes(call: &Call<'_>) -> Result<Option<RawBson>> {
    let value = convert::to_text(call.get(0))?;
    let start = bytes(call, 1, 16034, "starting index")?;
    let length = bytes(call, 2, 16035, "length")?;
    let Ok(start) = usize::try_from(start) else {
        return Err(Error::new(
            50752,
            format!("{}: starting index must be non-negative (got: {start})", call.name()),
        ));
    };
    if start >= value.len() {
        return text("");
    }
    let end = usize::try_from(length).map_or(value.len(), |length| start.saturating_add(length).min(value.len()));
    if !value.is_char_boundary(start) {
        let problem = format!(
            "{}:  Invalid range, starting index is a UTF-8 continuation byte.",
            call.name()
        );
        return Err(Error::new(28656, problem));
    }
    let Some(part) = value.get(start..end) else {
        let problem = format!(
            "{}:  Invalid range, ending index is in the middle of a UTF-8 character.",
            call.name()
        );
        return Err(Error::new(28657, problem));
    };
    text(part)
}

/// A number of characters that must be whole and not negative.
fn characters(call: &Call<'_>, index: usize, codes: (i32, i32, i32), what: &str) -> Result<usize> {
    let (name, value) = (call.name(), call.get(index));
    if value.and_then(Number::of).is_none() {
        let found = call.type_name(index);
        let problem = format!("{name}: {what} must be a numeric type (is BSON type {found})");
        return Err(Error::new(codes.0, problem));
    }
    let whole = value
        .and_then(number::whole)
        .and_then(|whole| i32::try_from(whole).ok());
    let Some(whole) = whole else {
        let problem = format!("{name}: {what} cannot be represented as a 32-bit integral value");
        return Err(Error::new(codes.1, problem));
    };
    usize::try_from(whole).map_err(|_| Error::new(codes.2, format!("{name}: {what} must be a nonnegative integer.")))
}

fn of_code_points(call: &Call<'_>) -> Result<Option<RawBson>> {
    let value = convert::to_text(call.get(0))?;
    let start = characters(call, 1, (34450, 34451, 34455), "starting index")?;
    let length = characters(call, 2, (34452, 34453, 34454), "length")?;
    text(value.chars().skip(start).take(length).collect::<String>())
}
