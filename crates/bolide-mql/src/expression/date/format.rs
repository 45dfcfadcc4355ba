//! Formats of dates: text with parts such as `%Y`.

use std::fmt::Write as _;

use super::zone::Zone;
use crate::error::{Error, Result};

/// The names of months.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Letters of parts that dates can be written with.
const WRITTEN: &str = "bBdGHjLmMSuUVwYzZ%";
/// Letters of parts that dates can be read with.
const READ: &str = "bBdGHjLmMSuVYzZ%";

/// A piece of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    Text(char),
    Part(char),
}

/// Takes a format apart; `reads` chooses the letters that are allowed.
///
/// # Errors
/// 18535: it ends with a single `%`; 18536: an unknown letter.
pub(super) fn pieces(format: &str, reads: bool) -> Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            pieces.push(Piece::Text(character));
            continue;
        }
        let Some(letter) = characters.next() else {
            return Err(Error::new(18535, "Unmatched '%' at end of format string"));
        };
        if !(if reads { READ } else { WRITTEN }).contains(letter) {
            return Err(Error::new(
                18536,
                format!("Invalid format character '%{letter}' in format string"),
            ));
        }
        pieces.push(Piece::Part(letter));
    }
    Ok(pieces)
}

/// Writes an instant in a zone.
///
/// # Errors
/// 18537: a year before 0 or after 9999.
pub(super) fn write(millis: i64, zone: &Zone, format: &[Piece]) -> Result<String> {
    let civil = zone.civil(millis);
    let mut text = String::new();
    for piece in format {
        let letter = match piece {
            Piece::Text(character) => {
                text.push(*character);
                continue;
            }
            Piece::Part(letter) => *letter,
        };
        let (iso_year, iso_week) = civil.iso_week();
        let (number, digits) = match letter {
            'd' => (civil.day, 2),
            'G' => (checked_year(iso_year)?, 4),
            'H' => (civil.hour, 2),
            'j' => (civil.day_of_year(), 3),
            'L' => (civil.millisecond, 3),
            'm' => (civil.month, 2),
            'M' => (civil.minute, 2),
            'S' => (civil.second, 2),
            'u' => (civil.iso_weekday(), 1),
            'U' => (civil.week(), 2),
            'V' => (iso_week, 2),
            'w' => (civil.weekday() + 1, 1),
            'Y' => (checked_year(civil.year)?, 4),
            other => {
                write_text(&mut text, other, zone.offset_seconds(millis) / 60, civil.month);
                continue;
            }
        };
        // Writing to a String cannot fail.
        let _ = write!(text, "{number:0digits$}");
    }
    Ok(text)
}

/// Writes the parts that are no numbers.
fn write_text(text: &mut String, letter: char, offset_minutes: i64, month: i64) {
    let sign = if offset_minutes < 0 { '-' } else { '+' };
    let minutes = offset_minutes.abs();
    let name = usize::try_from(month - 1)
        .ok()
        .and_then(|month| MONTHS.get(month))
        .unwrap_or(&"");
    // Writing to a String cannot fail.
    let _ = match letter {
        'b' => write!(text, "{}", name.get(..3).unwrap_or(name)),
        'B' => write!(text, "{name}"),
        'z' => write!(text, "{sign}{:02}{:02}", minutes / 60, minutes % 60),
        'Z' => write!(text, "{offset_minutes}"),
        other => write!(text, "{other}"),
    };
}

fn checked_year(year: i64) -> Result<i64> {
    if (0..=9999).contains(&year) {
        return Ok(year);
    }
    Err(Error::new(
        18537,
        format!("Could not convert date to string: date component was outside the supported range of 0-9999: {year}"),
    ))
}
