//! `$dateTrunc`: the beginning of the unit, or of the bin of units, in which a date lies. Bins are counted from 2000-01-01.

use bson::RawBson;

use super::calendar::{DAY, days_of};
use super::unit::{Unit, start_of_week};
use super::zone::Zone;
use super::{date, instant, timezone};
use crate::error::{Code, Error, Result};
use crate::expression::call::{Call, null};
use crate::expression::operators::Named;
use crate::value::number;

pub(super) const TRUNCATE: Named = Named {
    not_object: 5_439_007,
    unknown: 5_439_008,
    parameters: &[
        ("date", Some(5_439_009)),
        ("unit", Some(5_439_010)),
        ("binSize", None),
        ("timezone", None),
        ("startOfWeek", None),
    ],
};

/// Days from 1970 to 2000, a Saturday.
const DAYS_TO_2000: i64 = 10_957;
const SATURDAY: i64 = 6;
/// Months from the year 0 to 2000.
const MONTHS_TO_2000: i64 = 24_000;

pub(super) fn date_truncate(call: &Call<'_>) -> Result<Option<RawBson>> {
    let not_a_date = |_| {
        let found = call.type_name(0);
        Error::new(
            5_439_012,
            format!("$dateTrunc requires 'date' to be a date, but got {found}"),
        )
    };
    let Some(millis) = instant(call.get(0)).map_err(not_a_date)? else {
        return null();
    };
    let Some(bin) = bin_size(call)? else {
        return null();
    };
    let Some(unit) = Unit::argument(call, 1)? else {
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
    let truncated = truncated(millis, unit, bin, &zone, first_day);
    let overflow = || Error::new(Code::OVERFLOW, "$dateTrunc overflowed");
    Ok(Some(date(truncated.ok_or_else(overflow)?)))
}

/// The argument `binSize`; `None` if it is null.
fn bin_size(call: &Call<'_>) -> Result<Option<i64>> {
    if !call.is_given(2) {
        return Ok(Some(1));
    }
    let Some(value) = call.non_null(2) else {
        return Ok(None);
    };
    let Some(size) = number::whole(value) else {
        let (shown, found) = (call.render(2), call.type_name(2));
        return Err(Error::new(
            5_439_017,
            format!("$dateTrunc requires 'binSize' to be a 64-bit integer, but got value '{shown}' of type {found}"),
        ));
    };
    if size <= 0 {
        return Err(Error::new(
            5_439_018,
            format!("$dateTrunc requires 'binSize' to be greater than 0, but got value {size}"),
        ));
    }
    Ok(Some(size))
}

/// The greatest multiple of the length, from the origin, that is not above the value.
fn floor(value: i64, origin: i64, length: i64) -> Option<i64> {
    let distance = value.checked_sub(origin)?;
    value.checked_sub(distance.rem_euclid(length))
}

fn truncated(millis: i64, unit: Unit, bin: i64, zone: &Zone, first_day: i64) -> Option<i64> {
    let origin = DAYS_TO_2000 * DAY;
    if let Some(months) = unit.months() {
        let length = bin.checked_mul(months)?;
        let civil = zone.civil(millis);
        let month = floor(civil.year * 12 + civil.month - 1, MONTHS_TO_2000, length)?;
        let days = first_of_month(month)?;
        return Some(zone.instant(days.checked_mul(DAY)?));
    }
    let length = bin.checked_mul(unit.milliseconds()?)?;
    if unit.is_civil() {
        // The first such day of 2000 that begins a week.
        let to_first_day = if unit == Unit::Week {
            (first_day - SATURDAY).rem_euclid(7)
        } else {
            0
        };
        let start = floor(zone.local(millis), origin + to_first_day * DAY, length)?;
        return Some(zone.instant(start));
    }
    // Hours and shorter units are as long in every zone; they are counted from the beginning of 2000 in the zone.
    floor(millis, zone.instant(origin), length)
}

/// The day on which a month begins, which is counted from the year 0.
fn first_of_month(month: i64) -> Option<i64> {
    let (year, month) = (month.div_euclid(12), month.rem_euclid(12) + 1);
    // Far beyond what a date holds.
    (year.unsigned_abs() < 1 << 40).then(|| days_of(year, month, 1))
}
