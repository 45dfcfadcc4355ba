//! Dates read from strings: by a format, or in one of the usual forms.
//!
//! Without a format these forms are read: `2017-07-06`, `2017-07`, `20170706`, `2017/07/06`, `07/06/2017`, `06.07.2017`, `6 July 2017`, `July 6, 2017`,
//! `2017W27`, `2017-W27-4`, `2017-188`, each with an optional time such as `T12:35:37.513` or `12:35 pm` and an optional zone such as `Z`, `+0200` or
//! `Europe/Berlin`. A name of a day of the week before it is skipped. Relative forms such as `tomorrow` are refused, as by MongoDB.

use super::calendar::{DAY, HOUR, MINUTE, days_in_month, days_of, iso_year_start};
use super::format::{MONTHS, Piece};
use super::zone::Zone;
use crate::error::{Code, Error, Result};

/// Hours east of UTC of zones that are written by their abbreviations.
const ABBREVIATIONS: [(&str, i64); 12] = [
    ("BST", 1),
    ("CET", 1),
    ("CEST", 2),
    ("EET", 2),
    ("EST", -5),
    ("EDT", -4),
    ("CST", -6),
    ("CDT", -5),
    ("MST", -7),
    ("MDT", -6),
    ("PST", -8),
    ("PDT", -7),
];

/// What a string says of a date.
#[derive(Debug, Default)]
struct Parts {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    iso_year: Option<i64>,
    iso_week: Option<i64>,
    iso_weekday: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    millisecond: i64,
    zone: Option<Zone>,
}

fn failed(text: &str, position: usize, problem: &str) -> Error {
    let rest = text.get(position..).unwrap_or_default();
    let character = rest.chars().next().unwrap_or(' ');
    Error::new(
        Code::CONVERSION_FAILURE,
        format!("Error parsing date string '{text}'; {position}: {problem} '{character}'"),
    )
}

impl Parts {
    /// The instant; the zone of the caller counts if the string has none.
    fn instant(&self, text: &str, zone: Option<&Zone>) -> Result<i64> {
        let incomplete = || {
            let problem = format!("an incomplete date/time string has been found, with elements missing: \"{text}\"");
            Error::new(Code::CONVERSION_FAILURE, problem)
        };
        if self.zone.is_some() && zone.is_some() {
            return Err(Error::new(
                Code::CONVERSION_FAILURE,
                format!(
                    "you cannot pass in a date/time string with time zone information ('{text}') together with a timezone argument"
                ),
            ));
        }
        let in_range = (0..=24).contains(&self.hour) && self.minute < 60 && self.second < 60;
        let days = self.days().ok_or_else(incomplete)?;
        if !in_range || !self.is_date() {
            return Err(failed(text, 0, "The parsed date was invalid"));
        }
        let local = days * DAY + self.hour * HOUR + self.minute * MINUTE + self.second * 1000 + self.millisecond;
        let zone = self.zone.as_ref().or(zone).unwrap_or(&Zone::UTC);
        Ok(zone.instant(local))
    }

    /// Whether day and month are in their ranges.
    fn is_date(&self) -> bool {
        match (self.year, self.month, self.day) {
            (Some(year), Some(month), Some(day)) => {
                (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day)
            }
            _ => true,
        }
    }

    fn days(&self) -> Option<i64> {
        if let (Some(year), Some(day)) = (self.year, self.day_of_year) {
            return Some(days_of(year, 1, 1) + day - 1);
        }
        if let Some(year) = self.iso_year {
            let (week, day) = (self.iso_week.unwrap_or(1), self.iso_weekday.unwrap_or(1));
            return Some(iso_year_start(year) + (week - 1) * 7 + day - 1);
        }
        Some(days_of(self.year?, self.month?, self.day?))
    }
}

/// The rest of a string that is read.
struct Reader<'t> {
    text: &'t str,
    position: usize,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Reader<'t> {
        Reader { text, position: 0 }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_spaces(&mut self) {
        self.position += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
    }

    /// Takes a character if it is the next one.
    fn take(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        if is_next {
            self.position += wanted.len_utf8();
        }
        is_next
    }

    /// Takes the longest beginning of such characters.
    fn take_while(&mut self, is_taken: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|character| !is_taken(character)).unwrap_or(rest.len());
        self.position += end;
        rest.get(..end).unwrap_or_default()
    }

    /// Takes from `least` to `most` digits.
    fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        let rest = self.rest();
        let digits = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let number = rest.get(..digits).filter(|_| digits >= least)?.parse().ok()?;
        self.position += digits;
        Some(number)
    }

    /// Tries a reading; what it took is given back if it fails.
    fn attempt<T>(&mut self, read: impl FnOnce(&mut Reader<'t>) -> Option<T>) -> Option<T> {
        let before = self.position;
        let found = read(self);
        if found.is_none() {
            self.position = before;
        }
        found
    }

    /// The fraction of a second, to the millisecond.
    fn milliseconds(&mut self) -> Option<i64> {
        let digits = self.take_while(|character| character.is_ascii_digit());
        let padded: String = digits.chars().chain("000".chars()).take(3).collect();
        padded.parse().ok().filter(|_| !digits.is_empty())
    }

    /// A name of a month, or its first three letters.
    fn month(&mut self) -> Option<i64> {
        self.attempt(|reader| {
            let word = reader.take_while(|character| character.is_ascii_alphabetic());
            let is_month = |month: &&str| {
                let short = month.get(..3).unwrap_or(month);
                word.eq_ignore_ascii_case(month) || word.eq_ignore_ascii_case(short)
            };
            let is_sept = word.eq_ignore_ascii_case("sept");
            let position = if is_sept {
                Some(8)
            } else {
                MONTHS.iter().position(is_month)
            };
            i64::try_from(position? + 1).ok()
        })
    }

    /// A zone: `Z`, an offset, or a name.
    fn zone(&mut self) -> Option<Zone> {
        self.attempt(|reader| {
            let is_offset = matches!(reader.peek(), Some('+' | '-'));
            let word = reader.take_while(|character| {
                character.is_ascii_alphanumeric() || matches!(character, '+' | '-' | ':' | '/' | '_')
            });
            let offset = |text: &str| super::zone::offset(text).map(Zone::Fixed);
            let abbreviation = ABBREVIATIONS.iter().find(|(name, _)| *name == word);
            match (word, abbreviation) {
                ("Z" | "z", _) => Some(Zone::UTC),
                (_, Some((_, hours))) => Some(Zone::Fixed(hours * 3600)),
                _ if is_offset => offset(word),
                _ => word.strip_prefix("GMT").and_then(offset).or_else(|| Zone::find(word)),
            }
        })
    }
}

/// Reads a string by a format.
///
/// # Errors
/// `ConversionFailure`: it is not a date of this format.
pub(super) fn with_format(text: &str, format: &[Piece], zone: Option<&Zone>) -> Result<i64> {
    let mut reader = Reader::new(text);
    let mut parts = Parts::default();
    for piece in format {
        let position = reader.position;
        let letter = match piece {
            Piece::Part('%') => '%',
            Piece::Part(letter) => {
                part(&mut reader, &mut parts, *letter).ok_or_else(|| failed(text, position, problem_of(*letter)))?;
                continue;
            }
            Piece::Text(character) => *character,
        };
        if !reader.take(letter) {
            return Err(failed(text, position, "The format separator does not match"));
        }
    }
    if !reader.rest().is_empty() {
        return Err(failed(text, reader.position, "Trailing data"));
    }
    parts.instant(text, zone)
}

fn problem_of(letter: char) -> &'static str {
    match letter {
        'Y' | 'G' => "A four digit year could not be found",
        'm' => "A two digit month could not be found",
        'b' | 'B' => "A textual month could not be found",
        'd' => "A two digit day could not be found",
        'j' => "A three digit day-of-year could not be found",
        'H' => "A two digit hour could not be found",
        'M' => "A two digit minute could not be found",
        'S' => "A two digit second could not be found",
        'L' => "A three digit millisecond could not be found",
        'u' => "A one digit day of week could not be found",
        'V' => "A two digit week could not be found",
        _ => "The timezone could not be found in the database",
    }
}

fn part(reader: &mut Reader<'_>, parts: &mut Parts, letter: char) -> Option<()> {
    match letter {
        'Y' => parts.year = Some(reader.number(1, 4)?),
        'm' => parts.month = Some(reader.number(1, 2)?),
        'b' | 'B' => parts.month = Some(reader.month()?),
        'd' => parts.day = Some(reader.number(1, 2)?),
        'j' => parts.day_of_year = Some(reader.number(3, 3)?),
        'H' => parts.hour = reader.number(1, 2)?,
        'M' => parts.minute = reader.number(1, 2)?,
        'S' => parts.second = reader.number(1, 2)?,
        'L' => {
            let before = reader.position;
            let number = reader.number(1, 3)?;
            let scale = [100, 10, 1].get(reader.position - before - 1).copied().unwrap_or(1);
            parts.millisecond = number * scale;
        }
        'G' => parts.iso_year = Some(reader.number(1, 4)?),
        'V' => parts.iso_week = Some(reader.number(1, 2)?),
        'u' => parts.iso_weekday = Some(reader.number(1, 1)?),
        'z' => parts.zone = Some(reader.zone()?),
        _ => {
            let sign = if reader.take('-') {
                -1
            } else {
                reader.take('+').then_some(1)?
            };
            parts.zone = Some(Zone::Fixed(sign * reader.number(1, 4)? * 60));
        }
    }
    Some(())
}

/// Reads a string in one of the usual forms.
///
/// # Errors
/// `ConversionFailure`: it has none of them.
pub(in crate::expression) fn free(text: &str, zone: Option<&Zone>) -> Result<i64> {
    let mut reader = Reader::new(text);
    reader.skip_spaces();
    reader.attempt(weekday);
    let mut parts = Parts::default();
    let day = reader.attempt(day);
    let Some(day) = day else {
        let is_time = reader.attempt(|reader| time(reader, &mut Parts::default())).is_some();
        if is_time {
            return parts.instant(text, zone);
        }
        return Err(failed(
            text,
            reader.position,
            "The timezone could not be found in the database",
        ));
    };
    parts = day;
    let _ = reader.take('T') || reader.take('t') || reader.take(',');
    reader.skip_spaces();
    reader.attempt(|reader| time(reader, &mut parts));
    reader.skip_spaces();
    parts.zone = reader.zone();
    reader.skip_spaces();
    if !reader.rest().is_empty() {
        let problem = "The timezone could not be found in the database";
        return Err(failed(text, reader.position, problem));
    }
    parts.instant(text, zone)
}

/// A name of a day of the week, with what separates it from the date.
fn weekday(reader: &mut Reader<'_>) -> Option<()> {
    const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let word = reader
        .take_while(|character| character.is_ascii_alphabetic())
        .to_ascii_lowercase();
    let is_day = word.ends_with("day") || word.len() == 3;
    DAYS.iter().find(|day| is_day && word.starts_with(**day))?;
    reader.take_while(|character| matches!(character, ' ' | ',' | '.'));
    Some(())
}

/// A date in one of its forms.
fn day(reader: &mut Reader<'_>) -> Option<Parts> {
    let forms: [fn(&mut Reader<'_>) -> Option<Parts>; 6] =
        [iso_week, year_first, compact, american, day_first, named_month];
    forms.into_iter().find_map(|form| reader.attempt(form))
}

fn of_date(year: i64, month: i64, day: i64) -> Option<Parts> {
    Some(Parts {
        year: Some(year),
        month: Some(month),
        day: Some(day),
        ..Parts::default()
    })
}

/// `2017W27`, `2017-W27-4`.
fn iso_week(reader: &mut Reader<'_>) -> Option<Parts> {
    let iso_year = Some(reader.number(4, 4)?);
    reader.take('-');
    if !reader.take('W') {
        return None;
    }
    let iso_week = Some(reader.number(2, 2)?);
    let iso_weekday = reader.attempt(|reader| {
        reader.take('-');
        reader.number(1, 1)
    });
    Some(Parts {
        iso_year,
        iso_week,
        iso_weekday,
        ..Parts::default()
    })
}

/// `2017-07-06`, `2017/07/06`, `2017-188`, `2017-07`.
fn year_first(reader: &mut Reader<'_>) -> Option<Parts> {
    let year = reader.number(4, 4)?;
    let separator = reader.peek().filter(|character| matches!(character, '-' | '/'))?;
    reader.take(separator);
    if let Some(day) = reader.attempt(|reader| reader.number(3, 3)) {
        return Some(Parts {
            year: Some(year),
            day_of_year: Some(day),
            ..Parts::default()
        });
    }
    let month = match reader.month() {
        Some(month) => month,
        None => reader.number(1, 2)?,
    };
    if reader.take(separator) {
        return of_date(year, month, reader.number(1, 2)?);
    }
    of_date(year, month, 1)
}

/// `20170706`.
fn compact(reader: &mut Reader<'_>) -> Option<Parts> {
    let digits = reader.number(8, 8)?;
    if reader.peek().is_some_and(|character| character.is_ascii_digit()) {
        return None;
    }
    of_date(digits / 10_000, digits / 100 % 100, digits % 100)
}

/// `07/06/2017`, the month first.
fn american(reader: &mut Reader<'_>) -> Option<Parts> {
    let month = reader.number(1, 2)?;
    reader.take('/').then_some(())?;
    let day = reader.number(1, 2)?;
    reader.take('/').then_some(())?;
    of_date(reader.number(4, 4)?, month, day)
}

/// `06.07.2017`, `06-07-2017`, `6 July 2017`, `06-Jul-2017`.
fn day_first(reader: &mut Reader<'_>) -> Option<Parts> {
    let is_separator = |character: char| matches!(character, ' ' | '.' | '-' | ',');
    let day = reader.number(1, 2)?;
    let suffix = |reader: &mut Reader<'_>| {
        let word = reader.take_while(|character| character.is_ascii_alphabetic());
        matches!(word, "st" | "nd" | "rd" | "th").then_some(())
    };
    reader.attempt(suffix);
    let separator = reader.take_while(is_separator);
    let month = match reader.month() {
        Some(month) => month,
        None if separator.is_empty() || separator.contains(' ') => return None,
        None => reader.number(1, 2)?,
    };
    reader.take_while(is_separator);
    of_date(reader.number(4, 4)?, month, day)
}

/// `July 6, 2017`, `Jul 2017`.
fn named_month(reader: &mut Reader<'_>) -> Option<Parts> {
    let is_separator = |character: char| matches!(character, ' ' | '.' | '-' | ',');
    let month = reader.month()?;
    reader.take_while(is_separator);
    if let Some(year) = reader.attempt(|reader| reader.number(4, 4)) {
        return of_date(year, month, 1);
    }
    let day = reader.number(1, 2)?;
    reader.take_while(|character| character.is_ascii_alphabetic());
    reader.take_while(is_separator);
    of_date(reader.number(4, 4)?, month, day)
}

/// `12:35:37.513`, `12:35`, `123537`, `1235`, `3 pm`, `3:05 PM`, `noon`.
fn time(reader: &mut Reader<'_>, parts: &mut Parts) -> Option<()> {
    let word = reader.attempt(
        |reader| match reader.take_while(|character| character.is_ascii_alphabetic()) {
            "noon" => Some(12),
            "midnight" => Some(0),
            _ => None,
        },
    );
    if let Some(hour) = word {
        parts.hour = hour;
        return Some(());
    }
    parts.hour = reader.number(1, 2)?;
    let has_colon = reader.take(':');
    if has_colon || reader.peek().is_some_and(|character| character.is_ascii_digit()) {
        parts.minute = reader.number(2, 2)?;
        let has_seconds = if has_colon {
            reader.take(':')
        } else {
            reader.peek().is_some_and(|character| character.is_ascii_digit())
        };
        if has_seconds {
            parts.second = reader.number(2, 2)?;
            if reader.take('.') || reader.take(',') {
                parts.millisecond = reader.milliseconds()?;
            }
        }
    }
    reader.attempt(|reader| {
        reader.skip_spaces();
        let word = reader.take_while(|character| character.is_ascii_alphabetic() || character == '.');
        let is_noon = match word.to_ascii_lowercase().trim_end_matches('.') {
            "am" | "a.m" => false,
            "pm" | "p.m" => true,
            _ => return None,
        };
        parts.hour = parts.hour % 12 + if is_noon { 12 } else { 0 };
        Some(())
    });
    Some(())
}
