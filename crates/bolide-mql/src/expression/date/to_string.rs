//! `$dateToString`.

use bson::{RawBson, RawBsonRef};

use super::format::{pieces, write};
use super::zone::Zone;
use super::{instant, timezone};
use crate::error::{Error, Result};
use crate::expression::call::{Call, null};
use crate::expression::operators::Named;

pub(super) const TO_STRING: Named = Named {
    not_object: 18629,
    unknown: 18534,
    parameters: &[
        ("date", Some(18628)),
        ("format", None),
        ("timezone", None),
        ("onNull", None),
    ],
};

/// The format of dates as strings: ISO 8601 to the millisecond. MongoDB 7.0 writes the Z in every time zone.
const ISO: &str = "%Y-%m-%dT%H:%M:%S.%LZ";

/// An instant in UTC as the conversions write it, `2020-01-31T09:30:00.000Z`.
///
/// # Errors
/// 18537: a year before 0 or after 9999.
pub(in crate::expression) fn iso(millis: i64) -> Result<String> {
    default(millis, &Zone::UTC)
}

/// An instant as MongoDB writes the seconds of a timestamp in UTC, `Jan  1 00:00:00`.
///
/// # Errors
/// 18537: a year before 0 or after 9999.
pub(in crate::expression) fn of_seconds(millis: i64) -> Result<String> {
    let month = write(millis, &Zone::UTC, &pieces("%b", false)?)?;
    let time = write(millis, &Zone::UTC, &pieces("%H:%M:%S", false)?)?;
    Ok(format!("{month} {:>2} {time}", Zone::UTC.civil(millis).day))
}

fn default(millis: i64, zone: &Zone) -> Result<String> {
    write(millis, zone, &pieces(ISO, false)?)
}

pub(super) fn date_to_string(call: &Call<'_>) -> Result<Option<RawBson>> {
    let format = match call.non_null(1) {
        None => None,
        Some(RawBsonRef::String(format)) => Some(pieces(format, false)?),
        Some(_) => {
            let (found, shown) = (call.type_name(1), call.render(1));
            return Err(Error::new(
                18533,
                format!("$dateToString requires that 'format' be a string, found: {found} with value {shown}"),
            ));
        }
    };
    let zone = timezone(call, 2)?;
    let Some(millis) = instant(call.get(0))? else {
        return if call.is_given(3) {
            Ok(call.get(3).map(RawBson::from))
        } else {
            null()
        };
    };
    let Some(zone) = zone else {
        return null();
    };
    let text = match format {
        None if call.is_given(1) => return null(),
        None => default(millis, &zone)?,
        Some(format) => write(millis, &zone, &format)?,
    };
    Ok(Some(RawBson::String(text)))
}
