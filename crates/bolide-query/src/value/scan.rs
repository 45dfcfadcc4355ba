//! Finds values in JSON text, reading only what is before them.
//!
//! Texts are well-formed, because items are checked when they are written. A text that is not gives undefined or some part of itself, never a panic.
//! Of two members with the same name the first is found.

use super::block::{self, BLOCK, SHORT};
use super::{Text, Value, json};
use crate::number::Number;
use crate::path::PathStep;

/// The value at `steps` from the value at offset `at`.
pub fn walk<'a>(text: &'a str, at: usize, steps: &[PathStep]) -> Value<'a> {
    find(text.as_bytes(), at, steps).map_or(Value::Undefined, |at| value_at(text, at))
}

/// The member `name` of an object's text.
pub(super) fn member_of<'a>(text: &'a str, name: &str) -> Value<'a> {
    member(text.as_bytes(), 0, name).map_or(Value::Undefined, |at| value_at(text, at))
}

/// The element `index` of an array's text.
pub(super) fn element_of(text: &str, index: usize) -> Value<'_> {
    element(text.as_bytes(), 0, index).map_or(Value::Undefined, |at| value_at(text, at))
}

/// The offset of the value at `steps` from the value at offset `at`.
fn find(text: &[u8], at: usize, steps: &[PathStep]) -> Option<usize> {
    steps.iter().try_fold(at, |at, step| match step {
        PathStep::Name(name) => member(text, at, name),
        PathStep::Element(index) => element(text, at, *index),
        PathStep::Each | PathStep::Nowhere => None,
    })
}

fn member(text: &[u8], at: usize, name: &str) -> Option<usize> {
    let mut at = first_inside(text, at, b'{')?;
    loop {
        let found = Name::at(text, at)?;
        if found.is(text, name) {
            return Some(found.value());
        }
        at = next_inside(text, value_end(text, found.value())?)?;
    }
}

fn element(text: &[u8], at: usize, index: usize) -> Option<usize> {
    let mut at = first_inside(text, at, b'[')?;
    for _ in 0..index {
        at = next_inside(text, value_end(text, at)?)?;
    }
    Some(at)
}

/// The offset of the first member or element of an object or array, if any.
pub(super) fn first_inside(text: &[u8], at: usize, open: u8) -> Option<usize> {
    if *text.get(at)? != open {
        return None;
    }
    let at = blanks_end(text, at + 1);
    (!matches!(text.get(at)?, b'}' | b']')).then_some(at)
}

/// The offset of the next member or element, after a value that ended at `at`.
#[inline]
pub(super) fn next_inside(text: &[u8], at: usize) -> Option<usize> {
    let at = blanks_end(text, at);
    (*text.get(at)? == b',').then(|| blanks_end(text, at + 1))
}

/// The name of a member, and the offset of its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name {
    /// Offset of the name's opening quote.
    start: u32,
    /// Offset of its closing quote.
    end: u32,
    /// It has escapes.
    is_escaped: bool,
    value: u32,
}

impl Name {
    /// The name of the member that begins at `at`.
    #[inline]
    pub fn at(text: &[u8], at: usize) -> Option<Name> {
        if *text.get(at)? != b'"' {
            return None;
        }
        let (end, is_escaped) = string_end(text, at + 1)?;
        let colon = blanks_end(text, end + 1);
        if *text.get(colon)? != b':' {
            return None;
        }
        // No text is longer than 4 GB.
        Some(Name {
            start: u32::try_from(at).ok()?,
            end: u32::try_from(end).ok()?,
            is_escaped,
            value: u32::try_from(blanks_end(text, colon + 1)).ok()?,
        })
    }

    /// The offset of the member's value.
    #[inline]
    pub fn value(self) -> usize {
        self.value as usize
    }

    /// The name itself.
    pub fn text(self, text: &str) -> Option<Text<'_>> {
        let (start, end) = (self.start as usize, self.end as usize);
        Some(if self.is_escaped {
            json::escaped_string(text.get(start..=end)?)
        } else {
            Text::Borrowed(text.get(start + 1..end)?)
        })
    }

    /// Whether the member has this name.
    #[inline]
    pub fn is(self, text: &[u8], name: &str) -> bool {
        let (start, end) = (self.start as usize, self.end as usize);
        if self.is_escaped {
            let quoted = std::str::from_utf8(&text[start..=end]);
            return quoted.is_ok_and(|quoted| json::unescaped(quoted).is_some_and(|own| own == name));
        }
        &text[start + 1..end] == name.as_bytes()
    }
}

/// The value that begins at `at`.
pub(super) fn value_at(text: &str, at: usize) -> Value<'_> {
    value_and_end(text, at).map_or(Value::Undefined, |(value, _)| value)
}

/// The value that begins at `at`, and the offset of its end.
pub(super) fn value_and_end(text: &str, at: usize) -> Option<(Value<'_>, usize)> {
    let bytes = text.as_bytes();
    Some(match bytes.get(at)? {
        b'"' => {
            let (end, is_escaped) = string_end(bytes, at + 1)?;
            let value = if is_escaped {
                json::escaped_string(text.get(at..=end)?)
            } else {
                Text::Borrowed(text.get(at + 1..end)?)
            };
            (Value::String(value), end + 1)
        }
        b'{' | b'[' => {
            let end = container_end(bytes, at)?;
            (Value::Json(text.get(at..end)?), end)
        }
        first => {
            let end = plain_end(bytes, at);
            let value = match first {
                b't' => Value::Bool(true),
                b'f' => Value::Bool(false),
                b'n' => Value::Null,
                _ => Number::from_json(text.get(at..end)?).map_or(Value::Undefined, Value::Number),
            };
            (value, end)
        }
    })
}

/// The end of the value that begins at `at`.
#[inline]
pub(super) fn value_end(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at)? {
        b'"' => string_end(text, at + 1).map(|(end, _)| end + 1),
        b'{' | b'[' => container_end(text, at),
        _ => Some(plain_end(text, at)),
    }
}

#[inline]
fn blanks_end(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\r' | b'\n') = text.get(at) {
        at += 1;
    }
    at
}

/// The end of a number, `true`, `false` or `null`.
#[inline]
fn plain_end(text: &[u8], mut at: usize) -> usize {
    while let Some(byte) = text.get(at)
        && !matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n')
    {
        at += 1;
    }
    at
}

/// The offset of the closing quote of a string whose characters begin at `at`, and whether it has escapes.
#[inline]
fn string_end(text: &[u8], mut at: usize) -> Option<(usize, bool)> {
    let mut is_escaped = false;
    loop {
        let found = match text.get(at..).and_then(<[u8]>::first_chunk::<SHORT>) {
            Some(short) => match block::string_marks(short) {
                0 => {
                    at += SHORT;
                    continue;
                }
                marks => at + marks.trailing_zeros() as usize,
            },
            None => at + text.get(at..)?.iter().position(|byte| matches!(byte, b'"' | b'\\'))?,
        };
        if text[found] == b'"' {
            return Some((found, is_escaped));
        }
        is_escaped = true;
        at = found + 2;
    }
}

/// The end of the object or array that begins at `at`.
fn container_end(text: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    // All ones inside a string that began in an earlier block; 1 if that block ended inside an escape.
    let (mut inside, mut escape) = (0, 0);
    loop {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let marks = match rest.first_chunk::<BLOCK>() {
            Some(block) => block::marks(block),
            None => block::marks(&padded(rest)),
        };
        let quotes = marks.quotes & !escaped(marks.backslashes, &mut escape);
        let strings = parity(quotes) ^ inside;
        inside = if strings >> 63 == 1 { u64::MAX } else { 0 };
        let mut brackets = (marks.opens | marks.closes) & !strings;
        while brackets != 0 {
            let bit = brackets.trailing_zeros();
            if marks.opens >> bit & 1 == 1 {
                depth += 1;
            } else {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + bit as usize + 1);
                }
            }
            brackets &= brackets - 1;
        }
        at += BLOCK;
    }
}

/// Pads the end of a text with blanks, which have no structural meaning.
fn padded(rest: &[u8]) -> [u8; BLOCK] {
    let mut block = [b' '; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    block
}

/// Bit n: the parity of the bits up to n. Over quotes: which bytes are inside strings, opening quotes included.
fn parity(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

/// The bytes that are escaped by a backslash before them. `carry` is passed from block to block.
#[inline]
fn escaped(backslashes: u64, carry: &mut u64) -> u64 {
    let mut escaped = std::mem::take(carry);
    let mut left = backslashes & !escaped;
    while left != 0 {
        let bit = left.trailing_zeros();
        if bit == 63 {
            *carry = 1;
            break;
        }
        escaped |= 2 << bit;
        // The escaped byte may be a backslash, which then escapes nothing.
        left &= !(3 << bit);
    }
    escaped
}

#[cfg(test)]
mod tests;
