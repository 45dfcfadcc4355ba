//! Scalars of the SQL language, read back from their encoding.

use super::{invert, rank, sql_rank};

/// A scalar of the SQL language.
#[derive(Debug, Clone, PartialEq)]
pub enum SqlScalar {
    /// Null.
    Null,
    /// A boolean.
    Bool(bool),
    /// A whole number within 64 bits; -0 is 0.
    Integer(i64),
    /// Any other number: it has a fraction, is larger, or is not finite.
    Double(f64),
    /// A string.
    String(String),
}

/// Doubles from this value on are too large for `i64`.
const INTEGER_LIMIT: f64 = 9_223_372_036_854_775_808.0;
/// Length of the double of a number and of what says whether digits follow, in bytes.
const MAGNITUDE_BYTES: usize = 9;

/// Reads an encoded scalar. `None` for other values, and for bytes that are not a whole encoded value.
pub fn decode_sql_scalar(bytes: &[u8]) -> Option<SqlScalar> {
    let (&rank, rest) = bytes.split_first()?;
    match rank {
        sql_rank::NULL if rest.is_empty() => Some(SqlScalar::Null),
        _ if rest.is_empty() && (rank == sql_rank::FALSE || rank == sql_rank::FALSE + 1) => {
            Some(SqlScalar::Bool(rank != sql_rank::FALSE))
        }
        sql_rank::STRING => string(rest).map(SqlScalar::String),
        _ => number(rank.checked_sub(rank::NUMBER)?, rest),
    }
}

/// The length of the encoded scalar with which some bytes begin. `None` for other values, and if it is not there as a whole.
pub fn sql_scalar_length(bytes: &[u8]) -> Option<usize> {
    let (&rank, rest) = bytes.split_first()?;
    let length = match rank {
        sql_rank::NULL => 0,
        _ if rank == sql_rank::FALSE || rank == sql_rank::FALSE + 1 => 0,
        sql_rank::STRING => string_length(rest)?,
        _ => match rank.checked_sub(rank::NUMBER)? {
            0 | 1 | 3 | 5 => 0,
            2 => magnitude_length(rest, 0xFF)?,
            4 => magnitude_length(rest, 0)?,
            _ => return None,
        },
    };
    Some(1 + length)
}

fn string_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == 0)? + 2;
        if *bytes.get(at - 1)? == 0 {
            return Some(at);
        }
    }
}

/// `end`: what follows a double without digits, and the digits; inverted in negative numbers.
fn magnitude_length(bytes: &[u8], end: u8) -> Option<usize> {
    if *bytes.get(MAGNITUDE_BYTES - 1)? == end {
        return Some(MAGNITUDE_BYTES);
    }
    let pairs = MAGNITUDE_BYTES + size_of::<u16>();
    let digits = bytes.get(pairs..)?.iter().position(|byte| *byte == end)?;
    Some(pairs + digits + 1)
}

/// Reads a string behind its rank: NUL is `00 FF`, and `00 00` the end.
fn string(bytes: &[u8]) -> Option<String> {
    let text = bytes.strip_suffix(&[0, 0])?;
    if !text.contains(&0) {
        return String::from_utf8(text.to_vec()).ok();
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        out.push(byte);
        if byte == 0 && bytes.next() != Some(0xFF) {
            return None;
        }
    }
    String::from_utf8(out).ok()
}

/// Reads a number behind its first byte; `class` is its place among the six first bytes of numbers.
fn number(class: u8, rest: &[u8]) -> Option<SqlScalar> {
    match (class, rest) {
        (0, []) => Some(SqlScalar::Double(f64::NAN)),
        (1, []) => Some(SqlScalar::Double(f64::NEG_INFINITY)),
        (2, magnitude) => {
            let mut magnitude = magnitude.to_vec();
            invert(&mut magnitude);
            finite(true, &magnitude)
        }
        (3, []) => Some(SqlScalar::Integer(0)),
        (4, magnitude) => finite(false, magnitude),
        (5, []) => Some(SqlScalar::Double(f64::INFINITY)),
        _ => None,
    }
}

fn finite(is_negative: bool, magnitude: &[u8]) -> Option<SqlScalar> {
    let (double, digits) = magnitude.split_at_checked(MAGNITUDE_BYTES)?;
    let (double, has_digits) = double.split_first_chunk::<8>()?;
    let double = f64::from_bits(u64::from_be_bytes(*double));
    if has_digits != [0] {
        return integer(is_negative, digits).map(SqlScalar::Integer);
    }
    let value = if is_negative { -double } else { double };
    if !digits.is_empty() {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is a whole number within 64 bits")]
    Some(
        match value.fract() == 0.0 && (-INTEGER_LIMIT..INTEGER_LIMIT).contains(&value) {
            true => SqlScalar::Integer(value as i64),
            false => SqlScalar::Double(value),
        },
    )
}

/// Reads the digits of a whole number that no double is: the power of ten of the first digit, pairs of digits, the end.
fn integer(is_negative: bool, digits: &[u8]) -> Option<i64> {
    let (power, pairs) = digits.split_first_chunk::<2>()?;
    let power = u32::from(u16::from_be_bytes(*power)).checked_sub(1 << 15)?;
    let pairs = pairs.strip_suffix(&[0])?;
    let mut value: u128 = 0;
    for pair in pairs {
        value = value.checked_mul(100)?.checked_add(u128::from(pair.checked_sub(1)?))?;
    }
    // The last pair may have a zero behind the number's last digit; zeros at the number's end are not written.
    let written = u32::try_from(2 * pairs.len()).ok()?;
    let wanted = power + 1;
    let value = match wanted.checked_sub(written) {
        Some(zeros) => value.checked_mul(10_u128.checked_pow(zeros)?)?,
        None => value / 10,
    };
    let value = i128::try_from(value).ok()?;
    i64::try_from(if is_negative { -value } else { value }).ok()
}
