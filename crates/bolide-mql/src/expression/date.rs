//! Dates. Instants are milliseconds since 1970, of any `i64`; calendars are proleptic Gregorian.

pub(super) mod arithmetic;
pub(super) mod calendar;
pub(super) mod difference;
pub(super) mod format;
pub(super) mod from_parts;
pub(super) mod from_string;
pub(super) mod read;
pub(super) mod to_string;
pub(super) mod truncate;
pub(super) mod unit;
pub(super) mod zone;

use bson::{DateTime, RawBson, RawBsonRef};

use self::calendar::Civil;
use self::zone::Zone;
use super::build::elements;
use super::call::{Call, null};
use super::node::Node;
use super::operand::{is_nullish, type_name};
use super::operators::{self, Arguments, Named, Operator};
use super::parse;
use super::scope::ParseScope;
use crate::error::{Error, Result};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::eager("$year", PART, |call| {
        part(call, |civil| RawBson::Int32(int(civil.year)))
    }),
    Operator::eager("$month", PART, |call| {
        part(call, |civil| RawBson::Int32(int(civil.month)))
    }),
    Operator::eager("$dayOfMonth", PART, |call| {
        part(call, |civil| RawBson::Int32(int(civil.day)))
    }),
    Operator::eager("$dayOfYear", PART, |call| {
        part(call, |civil| RawBson::Int32(int(civil.day_of_year())))
    }),
    Operator::eager("$dayOfWeek", PART, |call| {
        part(call, |civil| RawBson::Int32(int(civil.weekday() + 1)))
    }),
    Operator::eager("$isoDayOfWeek", PART, |call| {
        part(call, |civil| RawBson::Int32(int(civil.iso_weekday())))
    }),
    Operator::eager("$week", PART, |call| {
        part(call, |civil| RawBson::Int32(int(civil.week())))
    }),
    Operator::eager("$isoWeek", PART, |call| {
        part(call, |civil| RawBson::Int32(int(civil.iso_week().1)))
    }),
    Operator::eager("$isoWeekYear", PART, |call| {
        part(call, |civil| RawBson::Int64(civil.iso_week().0))
    }),
    Operator::eager("$hour", PART, |call| {
        part(call, |civil| RawBson::Int32(int(civil.hour)))
    }),
    Operator::eager("$minute", PART, |call| {
        part(call, |civil| RawBson::Int32(int(civil.minute)))
    }),
    Operator::eager("$second", PART, |call| {
        part(call, |civil| RawBson::Int32(int(civil.second)))
    }),
    Operator::eager("$millisecond", PART, |call| {
        part(call, |civil| RawBson::Int32(int(civil.millisecond)))
    }),
    Operator::eager(
        "$dateFromParts",
        Arguments::Named(&from_parts::FROM_PARTS),
        from_parts::date_from_parts,
    ),
    Operator::eager(
        "$dateToParts",
        Arguments::Named(&from_parts::TO_PARTS),
        from_parts::date_to_parts,
    ),
    Operator::eager(
        "$dateToString",
        Arguments::Named(&to_string::TO_STRING),
        to_string::date_to_string,
    ),
    Operator::lazy(
        "$dateFromString",
        Arguments::Named(&from_string::FROM_STRING),
        from_string::date_from_string,
    ),
    Operator::eager("$dateAdd", Arguments::Named(&arithmetic::SHIFT), |call| {
        arithmetic::shift(call, 1)
    }),
    Operator::eager("$dateSubtract", Arguments::Named(&arithmetic::SHIFT), |call| {
        arithmetic::shift(call, -1)
    }),
    Operator::eager(
        "$dateDiff",
        Arguments::Named(&difference::DIFFERENCE),
        difference::date_difference,
    ),
    Operator::eager(
        "$dateTrunc",
        Arguments::Named(&truncate::TRUNCATE),
        truncate::date_truncate,
    ),
    Operator::eager("$tsSecond", Arguments::Exactly(1), |call| {
        of_timestamp(call, 5_687_301, |timestamp| timestamp.time)
    }),
    Operator::eager("$tsIncrement", Arguments::Exactly(1), |call| {
        of_timestamp(call, 5_687_302, |timestamp| timestamp.increment)
    }),
];

/// A date, an array of one date, or a document with `date` and `timezone`.
const PART: Arguments = Arguments::Own(parse_part);

const DATE_AND_ZONE: Named = Named {
    not_object: 40535,
    unknown: 40535,
    parameters: &[("date", Some(40539)), ("timezone", None)],
};

fn parse_part(operator: &'static Operator, argument: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Node> {
    let is_named = |document: &bson::RawDocument| {
        let first = document.iter().next().and_then(std::result::Result::ok);
        first.is_none_or(|(name, _)| !name.as_str().starts_with('$'))
    };
    let arguments = match argument {
        RawBsonRef::Document(document) if is_named(document) => {
            parse::named(operator.name, &DATE_AND_ZONE, argument, scope)?
        }
        RawBsonRef::Array(array) => {
            let count = elements(array).count();
            if count != 1 {
                return Err(Error::new(
                    40536,
                    format!(
                        "{} accepts exactly one argument if given an array, but was given {count}",
                        operator.name
                    ),
                ));
            }
            parse::positional(operator, argument, scope)?
        }
        single => vec![Some(parse::operand(single, scope)?)],
    };
    Ok(operators::operation(operator, arguments))
}

/// A part of a date fits an i32, except the years of instants far away.
fn int(value: i64) -> i32 {
    i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX })
}

fn part(call: &Call<'_>, of: fn(&Civil) -> RawBson) -> Result<Option<RawBson>> {
    let Some(zone) = timezone(call, 1)? else {
        return null();
    };
    let Some(millis) = instant(call.get(0))? else {
        return null();
    };
    Ok(Some(of(&zone.civil(millis))))
}

/// The instant of a date, timestamp or object id, in milliseconds; `None` for null.
///
/// # Errors
/// 16006: another type.
pub(super) fn instant(value: Option<RawBsonRef<'_>>) -> Result<Option<i64>> {
    match value {
        value if is_nullish(value) => Ok(None),
        Some(RawBsonRef::DateTime(date)) => Ok(Some(date.timestamp_millis())),
        Some(RawBsonRef::Timestamp(timestamp)) => Ok(Some(i64::from(timestamp.time) * 1000)),
        Some(RawBsonRef::ObjectId(id)) => {
            // The seconds have a sign, as in MongoDB.
            let [a, b, c, d, ..] = id.bytes();
            Ok(Some(i64::from(i32::from_be_bytes([a, b, c, d])) * 1000))
        }
        value => {
            let found = type_name(value);
            Err(Error::new(
                16006,
                format!("can't convert from BSON type {found} to Date"),
            ))
        }
    }
}

/// The time zone of an argument: UTC if it was not given, `None` if it is null.
///
/// # Errors
/// 40517: not a string; 40485: unknown.
fn timezone(call: &Call<'_>, index: usize) -> Result<Option<Zone>> {
    if !call.is_given(index) {
        return Ok(Some(Zone::UTC));
    }
    zone_of(call.get(index))
}

/// See [`timezone`].
fn zone_of(value: Option<RawBsonRef<'_>>) -> Result<Option<Zone>> {
    match value {
        value if is_nullish(value) => Ok(None),
        Some(RawBsonRef::String(name)) => Zone::parse(name).map(Some),
        value => {
            let found = type_name(value);
            Err(Error::new(
                40517,
                format!("timezone must evaluate to a string, found {found}"),
            ))
        }
    }
}

/// An instant as a result.
fn date(millis: i64) -> RawBson {
    RawBson::DateTime(DateTime::from_millis(millis))
}

fn of_timestamp(call: &Call<'_>, code: i32, part: fn(bson::Timestamp) -> u32) -> Result<Option<RawBson>> {
    match call.non_null(0) {
        None => null(),
        Some(RawBsonRef::Timestamp(timestamp)) => Ok(Some(RawBson::Int64(part(timestamp).into()))),
        Some(_) => {
            let (name, found) = (call.name(), call.type_name(0));
            let problem = format!("Argument to {name} must be a timestamp, but is {found}");
            Err(Error::new(code, problem))
        }
    }
}
