//! Civil dates and ticks: 100-nanosecond units since 1970-01-01, proleptic Gregorian, UTC (cosmos-sql §18.6).

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

const PART_NAMES: &[(&str, Part)] = &[
    ("year", Part::Year),
    ("yyyy", Part::Year),
    ("yy", Part::Year),
    ("month", Part::Month),
    ("mm", Part::Month),
    ("m", Part::Month),
    ("day", Part::Day),
    ("dd", Part::Day),
    ("d", Part::Day),
    ("hour", Part::Hour),
    ("hh", Part::Hour),
    ("minute", Part::Minute),
    ("mi", Part::Minute),
    ("n", Part::Minute),
    ("second", Part::Second),
    ("ss", Part::Second),
    ("s", Part::Second),
    ("millisecond", Part::Millisecond),
    ("ms", Part::Millisecond),
    ("microsecond", Part::Microsecond),
    ("mcs", Part::Microsecond),
    ("nanosecond", Part::Nanosecond),
    ("ns", Part::Nanosecond),
];

impl Part {
    /// Reads a name or abbreviation, in any case.
    pub fn parse(name: &str) -> Option<Part> {
        PART_NAMES
            .iter()
            .find(|(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, part)| *part)
    }

    /// The length of a part that always has the same, in nanoseconds.
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

/// A date and time taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Civil {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    /// Ticks since midnight.
    pub time: i64,
}

/// Days since 1970-01-01. Counts from March, so that the leap day ends the year.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Civil {
    /// Takes ticks apart.
    pub fn from_ticks(ticks: i64) -> Civil {
        let (year, month, day) = civil_from_days(ticks.div_euclid(DAY));
        Civil {
            year,
            month,
            day,
            time: ticks.rem_euclid(DAY),
        }
    }

    /// A date that exists, with a time within the day.
    pub fn new(year: i64, month: i64, day: i64, time: i64) -> Option<Civil> {
        let exists = (1..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day)
            && (0..DAY).contains(&time);
        exists.then_some(Civil { year, month, day, time })
    }

    /// Ticks since 1970.
    pub fn ticks(self) -> i64 {
        days_from_civil(self.year, self.month, self.day) * DAY + self.time
    }

    /// Months since year 0.
    pub fn months(self) -> i64 {
        self.year * 12 + self.month - 1
    }

    /// The same day some months later, or the last day of that month.
    pub fn add_months(self, months: i64) -> Option<Civil> {
        let total = self.months().checked_add(months)?;
        let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
        Civil::new(year, month, self.day.min(days_in_month(year, month)), self.time)
    }

    /// The number of a part.
    pub fn part(self, part: Part) -> i64 {
        let fraction = self.time % SECOND;
        match part {
            Part::Year => self.year,
            Part::Month => self.month,
            Part::Day => self.day,
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
    let civil = Civil::from_ticks(ticks);
    if !(1..=9999).contains(&civil.year) {
        return None;
    }
    let Civil { year, month, day, time } = civil;
    let (hour, minute, second) = (
        civil.part(Part::Hour),
        civil.part(Part::Minute),
        civil.part(Part::Second),
    );
    Some(format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:07}Z",
        time % SECOND
    ))
}

/// Reads a date in the accepted shape; with an offset, the same moment in UTC.
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
            let year = Civil::from_ticks(ticks).year;
            (EARLIEST_YEAR_WITH_OFFSET..=9999).contains(&year).then_some(ticks)
        }
    }
}

/// Earlier dates with an offset are undefined in the service, as EF Core's tests of `DateTimeOffset.MinValue` show.
const EARLIEST_YEAR_WITH_OFFSET: i64 = 1601;

/// Takes `+hh:mm` or `-hh:mm` from the end.
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

/// How far ahead of UTC an offset is.
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

    /// `T` or a space, `hh:mm:ss`, and perhaps a fraction.
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
