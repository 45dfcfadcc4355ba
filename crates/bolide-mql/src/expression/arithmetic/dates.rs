//! Sums and differences of dates.

use bson::{DateTime, RawBson};

use super::decimal::{self, Rounding};
use crate::error::{Code, Error, Result};
use crate::value::number::Number;

fn overflow(operator: &str) -> Error {
    Error::new(Code::OVERFLOW, format!("date overflow in {operator}"))
}

/// The milliseconds of a number. A fraction of a decimal is rounded half to even, one of a double by the given function.
fn milliseconds(number: Number, round: fn(f64) -> f64, operator: &str) -> Result<i64> {
    let rounded = match number {
        Number::Double(value) => Number::Double(round(value)),
        Number::Decimal(value) => Number::Decimal(decimal::rounded(value, 0, Rounding::HalfEven)),
        whole => whole,
    };
    rounded.truncated().ok_or_else(|| overflow(operator))
}

/// A date, later by a number of milliseconds; a double is rounded half away from zero.
pub(super) fn shifted(date: DateTime, by: Number, operator: &str) -> Result<RawBson> {
    let by = milliseconds(by, f64::round, operator)?;
    let sum = date.timestamp_millis().checked_add(by);
    let sum = sum.ok_or_else(|| overflow(operator))?;
    Ok(RawBson::DateTime(DateTime::from_millis(sum)))
}

/// A date, earlier by a number of milliseconds; a fraction of a double is cut off.
pub(super) fn shifted_back(date: DateTime, by: Number) -> Result<RawBson> {
    let by = milliseconds(by, f64::trunc, "$subtract")?;
    let difference = date.timestamp_millis().checked_sub(by);
    let difference = difference.ok_or_else(|| overflow("$subtract"))?;
    Ok(RawBson::DateTime(DateTime::from_millis(difference)))
}

/// The milliseconds between two dates.
pub(super) fn difference(a: DateTime, b: DateTime) -> Result<RawBson> {
    let difference = a.timestamp_millis().checked_sub(b.timestamp_millis());
    Ok(RawBson::Int64(difference.ok_or_else(|| overflow("$subtract"))?))
}
