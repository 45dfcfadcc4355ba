//! `$dateAdd` and `$dateSubtract`.

use bson::{RawBson, RawBsonRef};

use super::calendar::{DAY, days_in_month, days_of};
use super::unit::Unit;
use super::zone::Zone;
use super::{date, instant, timezone};
use crate::error::{Error, Result};
use crate::expression::call::{Call, null};
use crate::expression::operators::Named;
use crate::value::number;

pub(super) const SHIFT: Named = Named {
    not_object: 5_166_400,
    unknown: 5_166_401,
    parameters: &[
        ("startDate", Some(5_166_402)),
        ("unit", Some(5_166_402)),
        ("amount", Some(5_166_402)),
        ("timezone", None),
    ],
};

/// Adds an amount, or takes it away for a sign of −1.
pub(super) fn shift(call: &Call<'_>, sign: i64) -> Result<Option<RawBson>> {
    let (Some(start), Some(unit), Some(amount)) = (call.non_null(0), call.non_null(1), call.non_null(2)) else {
        return null();
    };
    let name = call.name();
    let RawBsonRef::String(unit) = unit else {
        return Err(Error::new(
            5_166_404,
            format!("{name} expects string defining the time unit"),
        ));
    };
    let unit = Unit::parse(unit)?;
    let Some(amount) = number::whole(amount) else {
        return Err(Error::new(
            5_166_405,
            format!("{name} expects integer amount of time units"),
        ));
    };
    let Some(zone) = timezone(call, 3)? else {
        return null();
    };
    let not_a_date = |_| {
        Error::new(
            5_166_403,
            format!("{name} requires startDate to be convertible to a date"),
        )
    };
    let Some(start) = instant(Some(start)).map_err(not_a_date)? else {
        return null();
    };
    let overflow = || Error::new(5_166_406, format!("{name} overflowed"));
    let amount = amount.checked_mul(sign).ok_or_else(overflow)?;
    let shifted = shifted(start, unit, amount, &zone).ok_or_else(overflow)?;
    Ok(Some(date(shifted)))
}

/// An instant, later by an amount of units; `None` beyond what a date holds. Days and longer units keep the time of day in the zone; a day that the month
/// does not have becomes its last day.
pub(super) fn shifted(start: i64, unit: Unit, amount: i64, zone: &Zone) -> Option<i64> {
    let local = if unit.is_civil() { zone.local(start) } else { start };
    let shifted = match (unit.milliseconds(), unit.months()) {
        (Some(length), _) => local.checked_add(amount.checked_mul(length)?)?,
        (None, months) => add_months(local, amount.checked_mul(months.unwrap_or(1))?)?,
    };
    Some(if unit.is_civil() {
        zone.instant(shifted)
    } else {
        shifted
    })
}

/// Most months between two instants, and more than there are.
const MONTHS_LIMIT: u64 = 1 << 40;

fn add_months(local: i64, months: i64) -> Option<i64> {
    if months.unsigned_abs() > MONTHS_LIMIT {
        return None;
    }
    let civil = super::calendar::Civil::at(local);
    let month = civil.year * 12 + civil.month - 1 + months;
    let (year, month) = (month.div_euclid(12), month.rem_euclid(12) + 1);
    let day = civil.day.min(days_in_month(year, month));
    days_of(year, month, day)
        .checked_mul(DAY)?
        .checked_add(local.rem_euclid(DAY))
}
