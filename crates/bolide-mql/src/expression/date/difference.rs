//! `$dateDiff`: the number of boundaries of a unit between two dates.

use bson::RawBson;

use super::calendar::{Civil, DAY, HOUR, MINUTE};
use super::unit::{Unit, start_of_week};
use super::zone::Zone;
use super::{instant, timezone};
use crate::error::{Code, Error, Result};
use crate::expression::call::{Call, null};
use crate::expression::operators::Named;

pub(super) const DIFFERENCE: Named = Named {
    not_object: 5_166_301,
    unknown: 5_166_302,
    parameters: &[
        ("startDate", Some(5_166_303)),
        ("endDate", Some(5_166_304)),
        ("unit", Some(5_166_305)),
        ("timezone", None),
        ("startOfWeek", None),
    ],
};

pub(super) fn date_difference(call: &Call<'_>) -> Result<Option<RawBson>> {
    let date = |index: usize, name: &str| {
        instant(call.get(index)).map_err(|_| {
            let found = call.type_name(index);
            Error::new(
                5_166_307,
                format!("$dateDiff requires '{name}' to be a date, but got {found}"),
            )
        })
    };
    let (Some(start), Some(end)) = (date(0, "startDate")?, date(1, "endDate")?) else {
        return null();
    };
    let Some(unit) = Unit::argument(call, 2)? else {
        return null();
    };
    let first_day = if unit == Unit::Week {
        start_of_week(call, 4)?
    } else {
        Some(0)
    };
    let (Some(zone), Some(first_day)) = (timezone(call, 3)?, first_day) else {
        return null();
    };
    let difference = boundaries(start, end, unit, &zone, first_day);
    let overflow = || Error::new(Code::OVERFLOW, "$dateDiff overflowed");
    Ok(Some(RawBson::Int64(difference.ok_or_else(overflow)?)))
}

/// The boundaries between two instants; negative if the end is before the start.
fn boundaries(start: i64, end: i64, unit: Unit, zone: &Zone, first_day: i64) -> Option<i64> {
    let (from, to) = (zone.local(start), zone.local(end));
    let months = |local: i64| {
        let civil = Civil::at(local);
        civil.year * 12 + civil.month - 1
    };
    // Day 0 was a Thursday, 4.
    let weeks = |local: i64| (local.div_euclid(DAY) + 4 - first_day).div_euclid(7);
    Some(match unit {
        Unit::Year => Civil::at(to).year - Civil::at(from).year,
        Unit::Quarter => months(to).div_euclid(3) - months(from).div_euclid(3),
        Unit::Month => months(to) - months(from),
        Unit::Week => weeks(to) - weeks(from),
        Unit::Day => to.div_euclid(DAY) - from.div_euclid(DAY),
        Unit::Hour => hours(start, end, zone),
        Unit::Minute => end.div_euclid(MINUTE) - start.div_euclid(MINUTE),
        Unit::Second => end.div_euclid(1000) - start.div_euclid(1000),
        Unit::Millisecond => return end.checked_sub(start),
    })
}

/// Hours begin with those of the zone, whose offset need not be in whole hours, and are counted as they pass.
fn hours(start: i64, end: i64, zone: &Zone) -> i64 {
    let shift = |millis: i64| zone.offset_seconds(millis).rem_euclid(3600) * 1000;
    let hour = |millis: i64| millis.saturating_add(shift(millis)).div_euclid(HOUR);
    hour(end) - hour(start)
}
