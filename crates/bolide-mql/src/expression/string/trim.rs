//! `$trim`, `$ltrim`, `$rtrim`.

use bson::{RawBson, RawBsonRef};

use super::text;
use crate::error::{Error, Result};
use crate::expression::call::{Call, null};
use crate::expression::operand::is_nullish;
use crate::expression::operators::Named;

pub(super) const TRIM: Named = Named {
    not_object: 50696,
    unknown: 50694,
    parameters: &[("input", Some(50695)), ("chars", None)],
};

/// What is trimmed when no characters are given.
fn is_white_space(character: char) -> bool {
    matches!(
        character,
        '\0' | ' ' | '\t' | '\n' | '\u{B}' | '\u{C}' | '\r' | '\u{A0}' | '\u{1680}' | '\u{2000}'..='\u{200A}'
    )
}

pub(super) fn trim(call: &Call<'_>, at_start: bool, at_end: bool) -> Result<Option<RawBson>> {
    let input = match call.non_null(0) {
        None => return null(),
        Some(RawBsonRef::String(input)) => input,
        Some(_) => return Err(failed(call, 50699, "its input", 0)),
    };
    let chosen = match call.get(1) {
        None if !call.is_given(1) => None,
        value if is_nullish(value) => return null(),
        Some(RawBsonRef::String(chosen)) => Some(chosen),
        _ => return Err(failed(call, 50700, "'chars'", 1)),
    };
    let is_trimmed = |character: char| match chosen {
        Some(chosen) => chosen.contains(character),
        None => is_white_space(character),
    };
    let mut rest = input;
    if at_start {
        rest = rest.trim_start_matches(is_trimmed);
    }
    if at_end {
        rest = rest.trim_end_matches(is_trimmed);
    }
    text(rest)
}

fn failed(call: &Call<'_>, code: i32, what: &str, index: usize) -> Error {
    let (name, shown, found) = (call.name(), call.render(index), call.type_name(index));
    let problem = format!("{name} requires {what} to be a string, got {shown} (of type {found}) instead.");
    Error::new(code, problem)
}
