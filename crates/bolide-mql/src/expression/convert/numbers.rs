//! Values as numbers.

use bson::{RawBson, RawBsonRef};

use super::{Target, failure, unsupported};
use crate::error::{Error, Result};
use crate::value::number::{Decimal, Number};
use crate::value::text::render;

fn overflow(value: RawBsonRef<'_>) -> Error {
    failure(format!(
        "Conversion would overflow target type in $convert with no onError value: {}",
        render(value)
    ))
}

fn unparsable(text: &str, reason: &str) -> Error {
    failure(format!(
        "Failed to parse number '{text}' in $convert with no onError value: {reason}"
    ))
}

/// Refuses numbers in hexadecimal.
fn check_digits(text: &str) -> Result<()> {
    let digits = text.trim_start_matches(['-', '+']);
    if digits.starts_with("0x") || digits.starts_with("0X") {
        return Err(failure(format!(
            "Illegal hexadecimal input in $convert with no onError value: {text}"
        )));
    }
    Ok(())
}

/// A whole number in a string.
fn parse_whole(text: &str) -> Result<i64> {
    check_digits(text)?;
    text.parse().map_err(|error: std::num::ParseIntError| {
        let reason = match error.kind() {
            std::num::IntErrorKind::Empty => "Empty string",
            std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => "Overflow",
            _ => "Did not consume whole string.",
        };
        unparsable(text, reason)
    })
}

/// A number without its fraction.
pub(super) fn truncated(value: RawBsonRef<'_>) -> Result<i64> {
    let number = Number::of(value).ok_or_else(|| unsupported(value, Target::Long))?;
    let special = match number {
        number if number.is_nan() => "NaN",
        number if !number.is_finite() => "infinity",
        number => return number.truncated().ok_or_else(|| overflow(value)),
    };
    Err(failure(format!(
        "Attempt to convert {special} value to integer type in $convert with no onError value"
    )))
}

pub(super) fn to_int(value: RawBsonRef<'_>) -> Result<RawBson> {
    let whole = match value {
        RawBsonRef::Boolean(value) => i64::from(value),
        RawBsonRef::String(text) => {
            let whole = parse_whole(text)?;
            return i32::try_from(whole)
                .map(RawBson::Int32)
                .map_err(|_| unparsable(text, "Overflow"));
        }
        value if Number::of(value).is_some() => truncated(value)?,
        other => return Err(unsupported(other, Target::Int)),
    };
    i32::try_from(whole).map(RawBson::Int32).map_err(|_| overflow(value))
}

pub(super) fn to_long(value: RawBsonRef<'_>) -> Result<RawBson> {
    let whole = match value {
        RawBsonRef::Boolean(value) => i64::from(value),
        RawBsonRef::String(text) => parse_whole(text)?,
        RawBsonRef::DateTime(date) => date.timestamp_millis(),
        value if Number::of(value).is_some() => truncated(value)?,
        other => return Err(unsupported(other, Target::Long)),
    };
    Ok(RawBson::Int64(whole))
}

pub(super) fn to_double(value: RawBsonRef<'_>) -> Result<RawBson> {
    let double = match value {
        RawBsonRef::Boolean(value) => f64::from(value),
        RawBsonRef::String(text) => {
            check_digits(text)?;
            let parsed: f64 = text
                .parse()
                .map_err(|_| unparsable(text, "Did not consume whole string."))?;
            let names_infinity = text.to_ascii_lowercase().contains("inf");
            if parsed.is_infinite() && !names_infinity {
                return Err(unparsable(text, "Out of range"));
            }
            parsed
        }
        RawBsonRef::DateTime(date) => Number::Int64(date.timestamp_millis()).to_f64(),
        RawBsonRef::Decimal128(decimal) => {
            let double = Decimal::from(decimal).to_f64();
            if double.is_infinite() && Decimal::from(decimal).is_finite() {
                return Err(overflow(value));
            }
            double
        }
        other => match Number::of(other) {
            Some(number) => number.to_f64(),
            None => return Err(unsupported(other, Target::Double)),
        },
    };
    Ok(RawBson::Double(double))
}

pub(super) fn to_decimal(value: RawBsonRef<'_>) -> Result<RawBson> {
    let decimal = match value {
        RawBsonRef::Boolean(value) => Decimal::from(i64::from(value)),
        RawBsonRef::String(text) => {
            check_digits(text)?;
            let is_number = !text.trim().is_empty() && text.trim() == text;
            let parsed = if is_number { Decimal::parse(text) } else { None };
            parsed.ok_or_else(|| unparsable(text, "Failed to parse string to decimal"))?
        }
        RawBsonRef::DateTime(date) => Decimal::from(date.timestamp_millis()),
        other => match Number::of(other) {
            Some(number) => number.to_decimal(),
            None => return Err(unsupported(other, Target::Decimal)),
        },
    };
    Ok(Number::Decimal(decimal).into())
}
