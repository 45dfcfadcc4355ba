//! Units of time, and the first day of a week.

use bson::RawBsonRef;

use super::calendar::{DAY, HOUR, MINUTE};
use crate::error::{Code, Error, Result};
use crate::expression::call::Call;

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
}

const NAMES: [(&str, Unit); 9] = [
    ("year", Unit::Year),
    ("quarter", Unit::Quarter),
    ("month", Unit::Month),
    ("week", Unit::Week),
    ("day", Unit::Day),
    ("hour", Unit::Hour),
    ("minute", Unit::Minute),
    ("second", Unit::Second),
    ("millisecond", Unit::Millisecond),
];

impl Unit {
    /// Reads a name.
    ///
    /// # Errors
    /// `FailedToParse`: unknown.
    pub(super) fn parse(name: &str) -> Result<Unit> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        let unknown = || Error::new(Code::FAILED_TO_PARSE, format!("unknown time unit value: {name}"));
        found.map(|(_, unit)| *unit).ok_or_else(unknown)
    }

    /// Reads an argument; `None` if it is null.
    ///
    /// # Errors
    /// 5439013: not a string; 5439014: unknown.
    pub(super) fn argument(call: &Call<'_>, index: usize) -> Result<Option<Unit>> {
        let operator = call.name();
        match call.non_null(index) {
            None => Ok(None),
            Some(RawBsonRef::String(name)) => Unit::parse(name).map(Some).map_err(|_| {
                let problem = format!("{operator} parameter 'unit' value cannot be recognized as a time unit: {name}");
                Error::new(5_439_014, problem)
            }),
            Some(_) => {
                let found = call.type_name(index);
                Err(Error::new(
                    5_439_013,
                    format!("{operator} requires 'unit' to be a string, but got {found}"),
                ))
            }
        }
    }

    /// Its length in milliseconds; `None` for months, quarters and years.
    pub(super) fn milliseconds(self) -> Option<i64> {
        match self {
            Unit::Millisecond => Some(1),
            Unit::Second => Some(1000),
            Unit::Minute => Some(MINUTE),
            Unit::Hour => Some(HOUR),
            Unit::Day => Some(DAY),
            Unit::Week => Some(7 * DAY),
            Unit::Month | Unit::Quarter | Unit::Year => None,
        }
    }

    /// Its length in months; `None` for shorter units.
    pub(super) fn months(self) -> Option<i64> {
        match self {
            Unit::Month => Some(1),
            Unit::Quarter => Some(3),
            Unit::Year => Some(12),
            _ => None,
        }
    }

    /// Whether it is counted by the clock of the time zone: days and longer.
    pub(super) fn is_civil(self) -> bool {
        !matches!(self, Unit::Millisecond | Unit::Second | Unit::Minute | Unit::Hour)
    }
}

const WEEKDAYS: [&str; 7] = [
    "sunday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
];

/// Reads the argument `startOfWeek`, a name of a day or its first three letters in any case: Sunday is 0. `None` if it is null.
///
/// # Errors
/// 5439015: not a string; 5439016: unknown.
pub(super) fn start_of_week(call: &Call<'_>, index: usize) -> Result<Option<i64>> {
    let operator = call.name();
    if !call.is_given(index) {
        return Ok(Some(0));
    }
    match call.non_null(index) {
        None => Ok(None),
        Some(RawBsonRef::String(name)) => {
            let lower = name.to_ascii_lowercase();
            let is_named = |day: &&str| **day == lower || day.get(..3) == Some(lower.as_str());
            let position = WEEKDAYS.iter().position(is_named);
            let position = position.and_then(|position| i64::try_from(position).ok());
            position.map(Some).ok_or_else(|| {
                let problem =
                    format!("{operator} parameter 'startOfWeek' value cannot be recognized as a day of a week: {name}");
                Error::new(5_439_016, problem)
            })
        }
        Some(_) => {
            let found = call.type_name(index);
            Err(Error::new(
                5_439_015,
                format!("{operator} requires 'startOfWeek' to be a string, but got {found}"),
            ))
        }
    }
}
