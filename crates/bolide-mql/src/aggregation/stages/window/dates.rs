//! Units of time.

use bolide_model::UnixMillis;
use bson::DateTime;
use bson::raw::{RawBson, RawBsonRef, RawDocumentBuf, cstr};

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::expression::{Expression, ParseScope, Scope};

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::aggregation::stages) enum DateUnit {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
}

impl DateUnit {
    /// Parses a name.
    ///
    /// # Errors
    /// `FailedToParse` for another text.
    pub(in crate::aggregation::stages) fn parse(name: &str) -> Result<DateUnit> {
        let unit = match name {
            "year" => DateUnit::Year,
            "quarter" => DateUnit::Quarter,
            "month" => DateUnit::Month,
            "week" => DateUnit::Week,
            "day" => DateUnit::Day,
            "hour" => DateUnit::Hour,
            "minute" => DateUnit::Minute,
            "second" => DateUnit::Second,
            "millisecond" => DateUnit::Millisecond,
            _ => {
                return Err(Error::new(
                    Code::FAILED_TO_PARSE,
                    format!("unknown time unit value: {name}"),
                ));
            }
        };
        Ok(unit)
    }

    /// Returns the milliseconds of the unit; `None` for months, quarters and years, which have no fixed length.
    pub(in crate::aggregation::stages) fn milliseconds(self) -> Option<i64> {
        match self {
            DateUnit::Year | DateUnit::Quarter | DateUnit::Month => None,
            DateUnit::Week => Some(7 * 24 * 60 * 60 * 1000),
            DateUnit::Day => Some(24 * 60 * 60 * 1000),
            DateUnit::Hour => Some(60 * 60 * 1000),
            DateUnit::Minute => Some(60 * 1000),
            DateUnit::Second => Some(1000),
            DateUnit::Millisecond => Some(1),
        }
    }

    fn name(self) -> &'static str {
        match self {
            DateUnit::Year => "year",
            DateUnit::Quarter => "quarter",
            DateUnit::Month => "month",
            DateUnit::Week => "week",
            DateUnit::Day => "day",
            DateUnit::Hour => "hour",
            DateUnit::Minute => "minute",
            DateUnit::Second => "second",
            DateUnit::Millisecond => "millisecond",
        }
    }
}

/// Returns a date so many units later, as `$dateAdd` in UTC.
///
/// # Errors
/// Those of `$dateAdd`, for a date out of range.
pub(in crate::aggregation::stages) fn add_to_date(date: i64, unit: DateUnit, amount: i64) -> Result<i64> {
    if let Some(length) = unit.milliseconds() {
        let later = length.checked_mul(amount).and_then(|length| date.checked_add(length));
        return later.ok_or_else(|| Error::new(5166406, "dateAdd overflowed"));
    }
    let mut arguments = RawDocumentBuf::new();
    arguments.append(cstr!("startDate"), DateTime::from_millis(date));
    arguments.append(cstr!("unit"), unit.name());
    arguments.append(cstr!("amount"), amount);
    let mut operator = RawDocumentBuf::new();
    operator.append(cstr!("$dateAdd"), RawBson::Document(arguments));
    let (context, nothing) = (Context::new(UnixMillis(0)), RawDocumentBuf::new());
    let sum = Expression::parse(RawBsonRef::Document(&operator), &mut ParseScope::new(&context))?;
    match sum.evaluate(&Scope::new(&context, &nothing))? {
        Some(RawBson::DateTime(later)) => Ok(later.timestamp_millis()),
        _ => Err(Error::new(5166406, "dateAdd overflowed")),
    }
}
