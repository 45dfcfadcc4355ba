//! `$dateFromParts` and `$dateToParts`.

use bson::raw::{CStr, cstr};
use bson::{RawBson, RawBsonRef};

use super::calendar::{DAY, HOUR, MINUTE, days_of, iso_year_start};
use super::{date, instant, timezone};
use crate::error::{Code, Error, Result};
use crate::expression::build::DocumentBuilder;
use crate::expression::call::{Call, null};
use crate::expression::operators::Named;
use crate::value::number;

pub(super) const FROM_PARTS: Named = Named {
    not_object: 40519,
    unknown: 40518,
    parameters: &[
        ("year", None),
        ("month", None),
        ("day", None),
        ("hour", None),
        ("minute", None),
        ("second", None),
        ("millisecond", None),
        ("isoWeekYear", None),
        ("isoWeek", None),
        ("isoDayOfWeek", None),
        ("timezone", None),
    ],
};

pub(super) const TO_PARTS: Named = Named {
    not_object: 40524,
    unknown: 40520,
    parameters: &[("date", Some(40522)), ("timezone", None), ("iso8601", None)],
};

/// Positions in the table of arguments.
const YEAR: usize = 0;
const ISO_YEAR: usize = 7;
const ZONE: usize = 10;

/// A part that was not given has its default; `None` if it is null.
fn part(call: &Call<'_>, index: usize, default: i64, is_bounded: bool) -> Result<Option<i64>> {
    if !call.is_given(index) {
        return Ok(Some(default));
    }
    let Some(value) = call.non_null(index) else {
        return Ok(None);
    };
    let (name, shown) = (FROM_PARTS.parameters[index].0, call.render(index));
    let Some(whole) = number::whole(value) else {
        let found = call.type_name(index);
        return Err(Error::new(
            40515,
            format!("'{name}' must evaluate to an integer, found {found} with value {shown}"),
        ));
    };
    if is_bounded && i16::try_from(whole).is_err() {
        return Err(Error::new(
            31034,
            format!("'{name}' must evaluate to a value in the range [-32768, 32767]; value given: {whole}"),
        ));
    }
    Ok(Some(whole))
}

/// A year from 1 to 9999; `None` if it is null.
fn year(call: &Call<'_>, index: usize) -> Result<Option<i64>> {
    let year = part(call, index, 1970, false)?;
    match year {
        Some(year) if !(1..=9999).contains(&year) => {
            let name = FROM_PARTS.parameters[index].0;
            Err(Error::new(
                40523,
                format!("'{name}' must evaluate to an integer in the range 1 to 9999, found {year}"),
            ))
        }
        year => Ok(year),
    }
}

/// Checks that parts of a calendar date and of an ISO week date are not mixed.
fn check_form(call: &Call<'_>) -> Result<bool> {
    let is_given = |indices: std::ops::Range<usize>| indices.into_iter().any(|index| call.is_given(index));
    let mixed = |code| {
        let problem = "$dateFromParts does not allow mixing natural dates with ISO dates";
        Err(Error::new(code, problem))
    };
    match (call.is_given(YEAR), call.is_given(ISO_YEAR)) {
        (false, false) => Err(Error::new(
            40516,
            "$dateFromParts requires either 'year' or 'isoWeekYear' to be present",
        )),
        (true, _) if is_given(ISO_YEAR..ZONE) => mixed(40489),
        (_, true) if is_given(YEAR..3) => mixed(40525),
        (is_natural, _) => Ok(is_natural),
    }
}

/// Parts beyond their range count on: month 14 is the second of the next year.
pub(super) fn date_from_parts(call: &Call<'_>) -> Result<Option<RawBson>> {
    let days = if check_form(call)? {
        let (year, month, day) = (year(call, YEAR)?, part(call, 1, 1, true)?, part(call, 2, 1, true)?);
        let (Some(year), Some(month), Some(day)) = (year, month, day) else {
            return null();
        };
        days_of(year, month, 1) + day - 1
    } else {
        let (year, week, day) = (year(call, ISO_YEAR)?, part(call, 8, 1, true)?, part(call, 9, 1, true)?);
        let (Some(year), Some(week), Some(day)) = (year, week, day) else {
            return null();
        };
        iso_year_start(year) + (week - 1) * 7 + day - 1
    };
    let (hour, minute) = (part(call, 3, 0, true)?, part(call, 4, 0, true)?);
    let (second, millisecond) = (part(call, 5, 0, false)?, part(call, 6, 0, false)?);
    let (Some(hour), Some(minute), Some(second), Some(millisecond)) = (hour, minute, second, millisecond) else {
        return null();
    };
    let Some(zone) = timezone(call, ZONE)? else {
        return null();
    };
    let instant = zone.instant(days * DAY + hour * HOUR + minute * MINUTE);
    let seconds = second.checked_mul(1000);
    let whole = seconds.and_then(|seconds| instant.checked_add(seconds)?.checked_add(millisecond));
    let overflow = || {
        let problem = "Overflow casting from a lower-precision duration to a higher-precision duration";
        Error::new(Code::DURATION_OVERFLOW, problem)
    };
    Ok(Some(date(whole.ok_or_else(overflow)?)))
}

pub(super) fn date_to_parts(call: &Call<'_>) -> Result<Option<RawBson>> {
    let Some(zone) = timezone(call, 1)? else {
        return null();
    };
    let is_iso = match call.get(2) {
        None if !call.is_given(2) => false,
        _ if call.non_null(2).is_none() => return null(),
        Some(RawBsonRef::Boolean(value)) => value,
        _ => {
            let found = call.type_name(2);
            return Err(Error::new(
                40521,
                format!("iso8601 must evaluate to a bool, found {found}"),
            ));
        }
    };
    let Some(millis) = instant(call.get(0))? else {
        return null();
    };
    let civil = zone.civil(millis);
    let iso = civil.iso_week();
    let day: [(&CStr, i64); 3] = if is_iso {
        [
            (cstr!("isoWeekYear"), iso.0),
            (cstr!("isoWeek"), iso.1),
            (cstr!("isoDayOfWeek"), civil.iso_weekday()),
        ]
    } else {
        [
            (cstr!("year"), civil.year),
            (cstr!("month"), civil.month),
            (cstr!("day"), civil.day),
        ]
    };
    let time: [(&CStr, i64); 4] = [
        (cstr!("hour"), civil.hour),
        (cstr!("minute"), civil.minute),
        (cstr!("second"), civil.second),
        (cstr!("millisecond"), civil.millisecond),
    ];
    let mut parts = DocumentBuilder::new(call.scope);
    for (name, value) in day.into_iter().chain(time) {
        parts.append(name, RawBsonRef::Int32(super::int(value)))?;
    }
    Ok(Some(RawBson::Document(parts.finish())))
}
