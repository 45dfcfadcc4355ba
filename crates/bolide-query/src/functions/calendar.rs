//! Civil dates and ticks: 100-nanosecond units since 1970-01-01, proleptic Gregorian, UTC (cosmos-sql §18.6).
//!
//! The crate `time` computes the calendar; the formats of dates and the names of parts are those of the query language.

use time::macros::date;
use time::{Date, Month};

/// Ticks per second.
pub const SECOND: i64 = 10_000_000;
/// Ticks per day.
pub const DAY: i64 = 86_400 * SECOND;

/// A part of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

/// The names of each part in queries.
const PART_NAMES: &[(Part, &[&str])] = &[
    (Part::Year, &["year", "yyyy", "yy"]),
    (Part::Month, &["month", "mm", "m"]),
    (Part::Day, &["day", "dd", "d"]),
    (Part::Hour, &["hour", "hh"]),
    (Part::Minute, &["minute", "mi", "n"]),
    (Part::Second, &["second", "ss", "s"]),
    (Part::Millisecond, &["millisecond", "ms"]),
    (Part::Microsecond, &["microsecond", "mcs"]),
    (Part::Nanosecond, &["nanosecond", "ns"]),
];

impl Part {
    /// Reads a name or abbreviation, in any case.
    pub fn parse(name: &str) -> Option<Part> {
        let is_called = |names: &[&str]| names.iter().any(|own| own.eq_ignore_ascii_case(name));
        PART_NAMES
            .iter()
            .find(|(_, names)| is_called(names))
            .map(|(part, _)| *part)
    }

    /// The length of a part, in nanoseconds, if it is always the same.
    pub fn nanoseconds(self) -> Option<i128> {
        Some(match self {
            Part::Year | Part::Month => return None,
            Part::Day => 86_400_000_000_000,
            Part::Hour => 3_600_000_000_000,
            Part::Minute => 60_000_000_000,
            Part::Second => 1_000_000_000,
            Part::Millisecond => 1_000_000,
            Part::Microsecond => 1_000,
            Part::Nanosecond => 1,
        })
    }
}

/// The Julian day of 1970-01-01.
const EPOCH_DAY: i32 = date!(1970 - 01 - 01).to_julian_day();

/// A date and time in the years 1 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Civil {
    date: Date,
    /// Ticks since midnight.
    pub time: i64,
}

impl Civil {
    /// Splits ticks into a date and a time; `None` outside the years 1 to 9999.
    pub fn from_ticks(ticks: i64) -> Option<Civil> {
        let days = i32::try_from(ticks.div_euclid(DAY)).ok()?;
        let date = Date::from_julian_day(EPOCH_DAY.checked_add(days)?).ok()?;
        Civil::of(date, ticks.rem_euclid(DAY))
    }

    /// Checks that the date exists; the time is within the day.
    pub fn new(year: i64, month: i64, day: i64, time: i64) -> Option<Civil> {
        let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
        let date = Date::from_calendar_date(i32::try_from(year).ok()?, month, u8::try_from(day).ok()?);
        Civil::of(date.ok()?, time)
    }

    fn of(date: Date, time: i64) -> Option<Civil> {
        let exists = (1..=9999).contains(&date.year()) && (0..DAY).contains(&time);
        exists.then_some(Civil { date, time })
    }

    /// Ticks since 1970.
    pub fn ticks(self) -> i64 {
        i64::from(self.date.to_julian_day() - EPOCH_DAY) * DAY + self.time
    }

    /// The year, 1 to 9999.
    pub fn year(self) -> i64 {
        self.date.year().into()
    }

    /// Months since year 0.
    pub fn months(self) -> i64 {
        self.year() * 12 + i64::from(u8::from(self.date.month())) - 1
    }

    /// The same day `months` later, or the last day of that month.
    pub fn add_months(self, months: i64) -> Option<Civil> {
        let total = self.months().checked_add(months)?;
        let year = i32::try_from(total.div_euclid(12)).ok()?;
        let month = Month::January.nth_next(total.rem_euclid(12) as u8);
        let day = self.date.day().min(month.length(year));
        Civil::of(Date::from_calendar_date(year, month, day).ok()?, self.time)
    }

    /// The number of a part.
    pub fn part(self, part: Part) -> i64 {
        let fraction = self.time % SECOND;
        match part {
            Part::Year => self.year(),
            Part::Month => u8::from(self.date.month()).into(),
            Part::Day => self.date.day().into(),
            Part::Hour => self.time / (3600 * SECOND),
            Part::Minute => self.time / (60 * SECOND) % 60,
            Part::Second => self.time / SECOND % 60,
            Part::Millisecond => fraction / 10_000,
            Part::Microsecond => fraction / 10,
            Part::Nanosecond => fraction * 100,
        }
    }
}

/// Writes ticks as `yyyy-MM-ddTHH:mm:ss.fffffffZ`; `None` outside the years 1 to 9999.
pub fn format(ticks: i64) -> Option<String> {
    let civil = Civil::from_ticks(ticks)?;
    let (year, month, day) = civil.date.to_calendar_date();
    let month = u8::from(month);
    let (hour, minute, second) = (
        civil.part(Part::Hour),
        civil.part(Part::Minute),
        civil.part(Part::Second),
    );
    Some(format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:07}Z",
        civil.time % SECOND
    ))
}

/// Reads a date in the accepted format, and converts it to UTC if it has an offset.
pub fn parse(text: &str) -> Option<i64> {
    let (local, offset) = match text.strip_suffix('Z') {
        Some(utc) => (utc, None),
        None => split_offset(text),
    };
    let mut reader = Reader { rest: local.as_bytes() };
    let year = reader.digits(4)?;
    reader.byte(b'-')?;
    let month = reader.digits(2)?;
    reader.byte(b'-')?;
    let day = reader.digits(2)?;
    let time = if reader.rest.is_empty() { 0 } else { reader.time()? };
    let ticks = Civil::new(year, month, day, time)?.ticks();
    match offset {
        None => Some(ticks),
        Some(text) => {
            let ticks = ticks - offset_ticks(text)?;
            let year = Civil::from_ticks(ticks)?.year();
            (year >= EARLIEST_YEAR_WITH_OFFSET).then_some(ticks)
        }
    }
}

/// Earlier dates with an offset are undefined in the service, as EF Core's tests of `DateTimeOffset.MinValue` show.
const EARLIEST_YEAR_WITH_OFFSET: i64 = 1601;

/// Splits `+hh:mm` or `-hh:mm` from the end.
fn split_offset(text: &str) -> (&str, Option<&str>) {
    const OFFSET_BYTES: usize = "+00:00".len();
    let parts = text
        .len()
        .checked_sub(OFFSET_BYTES)
        .and_then(|at| text.split_at_checked(at));
    match parts {
        Some((local, offset)) if offset.starts_with(['+', '-']) && offset.as_bytes()[3] == b':' => {
            (local, Some(offset))
        }
        _ => (text, None),
    }
}

/// The ticks by which an offset is ahead of UTC.
fn offset_ticks(text: &str) -> Option<i64> {
    let mut reader = Reader {
        rest: &text.as_bytes()[1..],
    };
    let hours = reader.digits(2)?;
    reader.byte(b':')?;
    let minutes = reader.digits(2)?;
    let ticks = (hours * 60 + minutes) * 60 * SECOND;
    let is_in_range = hours < 24 && minutes < 60;
    is_in_range.then_some(if text.starts_with('-') { -ticks } else { ticks })
}

struct Reader<'t> {
    rest: &'t [u8],
}

impl Reader<'_> {
    fn byte(&mut self, expected: u8) -> Option<()> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        (*first == expected).then_some(())
    }

    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        digits
            .iter()
            .try_fold(0, |sum, b| b.is_ascii_digit().then(|| sum * 10 + i64::from(b - b'0')))
    }

    /// `T` or a space, `hh:mm:ss`, and an optional fraction.
    fn time(&mut self) -> Option<i64> {
        let (separator, rest) = self.rest.split_first()?;
        self.rest = rest;
        if !matches!(separator, b'T' | b' ') {
            return None;
        }
        let hour = self.digits(2)?;
        self.byte(b':')?;
        let minute = self.digits(2)?;
        self.byte(b':')?;
        let second = self.digits(2)?;
        let fraction = if self.rest.is_empty() { 0 } else { self.fraction()? };
        let in_range = hour < 24 && minute < 60 && second < 60;
        in_range.then_some(((hour * 60 + minute) * 60 + second) * SECOND + fraction)
    }

    /// A point and one to seven digits, to the end.
    fn fraction(&mut self) -> Option<i64> {
        self.byte(b'.')?;
        let count = self.rest.len();
        if !(1..=7).contains(&count) {
            return None;
        }
        Some(self.digits(count)? * 10_i64.pow(7 - count as u32))
    }
}
