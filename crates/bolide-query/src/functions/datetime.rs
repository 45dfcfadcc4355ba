//! Date and time functions (cosmos-sql §18.6).

use super::calendar::{self, Civil, Part, SECOND};
use super::{Call, Function};
use crate::value::Value;

const TICKS_PER_MS: i64 = 10_000;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::strict("DateTimeAdd", 3, 3, |c| dated(add(c))),
    Function::strict("DateTimeBin", 2, 4, |c| dated(bin(c))),
    Function::strict("DateTimeDiff", 3, 3, |c| counted(diff(c))),
    Function::strict("DateTimePart", 2, 2, |c| counted(part_of(c))),
    Function::strict("YEAR", 1, 1, |c| counted(single_part(c, Part::Year))),
    Function::strict("MONTH", 1, 1, |c| counted(single_part(c, Part::Month))),
    Function::strict("DAY", 1, 1, |c| counted(single_part(c, Part::Day))),
    Function::strict("DateTimeFromParts", 3, 7, |c| dated(from_parts(c))),
    Function::strict("DateTimeToTicks", 1, 1, |c| counted(date(c, 0))),
    Function::strict("TicksToDateTime", 1, 1, |c| dated(c.i64(0))),
    Function::strict("DateTimeToTimestamp", 1, 1, |c| {
        counted(date(c, 0).map(|ticks| ticks.div_euclid(TICKS_PER_MS)))
    }),
    Function::strict("TimestampToDateTime", 1, 1, |c| {
        dated(c.i64(0).and_then(|ms| ms.checked_mul(TICKS_PER_MS)))
    }),
    Function::strict("DateTimeFormat", 2, 2, format),
    Function::volatile("GetCurrentDateTime", 0, 0, |c| dated(Some(now(c)))),
    Function::volatile("GetCurrentTimestamp", 0, 0, |c| Value::int(c.session.now_ms)),
    Function::volatile("GetCurrentTicks", 0, 0, |c| Value::int(now(c))),
    Function::volatile("GetCurrentDateTimeStatic", 0, 0, |c| dated(Some(now(c)))),
    Function::volatile("GetCurrentTimestampStatic", 0, 0, |c| Value::int(c.session.now_ms)),
    Function::volatile("GetCurrentTicksStatic", 0, 0, |c| Value::int(now(c))),
    Function::volatile("NOW", 0, 2, |c| dated(now_plus(c))),
    Function::volatile("AGO", 2, 2, |c| dated(offset(c, -1))),
];

/// The request's time in ticks.
fn now(call: &Call<'_, '_>) -> i64 {
    call.session.now_ms.saturating_mul(TICKS_PER_MS)
}

fn dated<'a>(ticks: Option<i64>) -> Value<'a> {
    ticks.and_then(calendar::format).map_or(Value::Undefined, Value::string)
}

fn counted<'a>(number: Option<i64>) -> Value<'a> {
    number.map_or(Value::Undefined, Value::int)
}

fn date(call: &Call<'_, '_>, at: usize) -> Option<i64> {
    call.str(at).and_then(calendar::parse)
}

fn part(call: &Call<'_, '_>, at: usize) -> Option<Part> {
    call.str(at).and_then(Part::parse)
}

fn shifted(ticks: i64, part: Part, count: i64) -> Option<i64> {
    match part.nanoseconds() {
        Some(length) => {
            let ticks = i128::from(ticks) + length * i128::from(count) / 100;
            i64::try_from(ticks).ok()
        }
        None => {
            let months = if part == Part::Year {
                count.checked_mul(12)?
            } else {
                count
            };
            Civil::from_ticks(ticks)?.add_months(months).map(Civil::ticks)
        }
    }
}

fn add(call: &Call<'_, '_>) -> Option<i64> {
    shifted(date(call, 2)?, part(call, 0)?, call.i64(1)?)
}

fn offset(call: &Call<'_, '_>, sign: i64) -> Option<i64> {
    shifted(now(call), part(call, 0)?, call.i64(1)?.checked_mul(sign)?)
}

fn now_plus(call: &Call<'_, '_>) -> Option<i64> {
    match call.args.len() {
        0 => Some(now(call)),
        2 => offset(call, 1),
        _ => None,
    }
}

fn bin(call: &Call<'_, '_>) -> Option<i64> {
    const EARLIEST_ORIGIN_YEAR: i64 = 1601;
    let (ticks, part) = (date(call, 0)?, part(call, 1)?);
    let size = if call.args.len() > 2 { call.i64(2)? } else { 1 };
    let origin = if call.args.len() > 3 { date(call, 3)? } else { 0 };
    let first = Civil::from_ticks(origin)?;
    if size <= 0 || first.year() < EARLIEST_ORIGIN_YEAR {
        return None;
    }
    match part.nanoseconds() {
        Some(length) => {
            let width = length * i128::from(size);
            let distance = i128::from(ticks - origin) * 100;
            let start = i128::from(origin) * 100 + distance.div_euclid(width) * width;
            i64::try_from(start.div_euclid(100)).ok()
        }
        None => {
            let width = if part == Part::Year {
                size.checked_mul(12)?
            } else {
                size
            };
            month_bin(ticks, first, width)
        }
    }
}

/// Bins of whole months, which start at the day and time of the origin.
fn month_bin(ticks: i64, origin: Civil, width: i64) -> Option<i64> {
    let bins = (Civil::from_ticks(ticks)?.months() - origin.months()).div_euclid(width);
    let start = origin.add_months(bins.checked_mul(width)?)?.ticks();
    // The bin of this month begins later in the month.
    if start > ticks {
        origin.add_months((bins - 1).checked_mul(width)?).map(Civil::ticks)
    } else {
        Some(start)
    }
}

/// The number of boundaries crossed, not the time elapsed.
fn diff(call: &Call<'_, '_>) -> Option<i64> {
    let (part, start, end) = (part(call, 0)?, date(call, 1)?, date(call, 2)?);
    match part.nanoseconds() {
        Some(length) => {
            let index = |ticks: i64| (i128::from(ticks) * 100).div_euclid(length);
            i64::try_from(index(end) - index(start)).ok()
        }
        None => {
            let (start, end) = (Civil::from_ticks(start)?, Civil::from_ticks(end)?);
            Some(if part == Part::Year {
                end.year() - start.year()
            } else {
                end.months() - start.months()
            })
        }
    }
}

fn part_of(call: &Call<'_, '_>) -> Option<i64> {
    let part = part(call, 0)?;
    Some(Civil::from_ticks(date(call, 1)?)?.part(part))
}

fn single_part(call: &Call<'_, '_>, part: Part) -> Option<i64> {
    Some(Civil::from_ticks(date(call, 0)?)?.part(part))
}

fn from_parts(call: &Call<'_, '_>) -> Option<i64> {
    let given = |at: usize| if at < call.args.len() { call.i64(at) } else { Some(0) };
    let (hour, minute, second, ticks) = (given(3)?, given(4)?, given(5)?, given(6)?);
    let in_range = (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..60).contains(&second)
        && (0..SECOND).contains(&ticks);
    if !in_range {
        return None;
    }
    let time = ((hour * 60 + minute) * 60 + second) * SECOND + ticks;
    Civil::new(call.i64(0)?, call.i64(1)?, call.i64(2)?, time).map(Civil::ticks)
}

fn format<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let (Some(civil), Some(pattern)) = (date(call, 0).and_then(Civil::from_ticks), call.str(1)) else {
        return Value::Undefined;
    };
    if !call.fuel().spend_each(pattern.len(), 100) {
        return Value::Undefined;
    }
    Value::string(formatted(civil, pattern))
}

fn formatted(civil: Civil, pattern: &str) -> String {
    let fixed: [(&str, Part); 6] = [
        ("yyyy", Part::Year),
        ("MM", Part::Month),
        ("dd", Part::Day),
        ("HH", Part::Hour),
        ("mm", Part::Minute),
        ("ss", Part::Second),
    ];
    let fraction = format!("{:07}", civil.time % SECOND);
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let run = rest.chars().take(fraction.len()).take_while(|next| *next == c).count();
        if let Some((token, part)) = fixed.iter().find(|(token, _)| rest.starts_with(token)) {
            out.push_str(&format!("{:0width$}", civil.part(*part), width = token.len()));
            rest = &rest[token.len()..];
        } else if matches!(c, 'f' | 'F') {
            let digits = &fraction[..run];
            out.push_str(if c == 'F' { digits.trim_end_matches('0') } else { digits });
            rest = &rest[run..];
        } else {
            // The character after a backslash is literal.
            let escaped = if c == '\\' { rest[1..].chars().next() } else { None };
            out.push(escaped.unwrap_or(c));
            rest = &rest[c.len_utf8() + escaped.map_or(0, char::len_utf8)..];
        }
    }
    out
}
