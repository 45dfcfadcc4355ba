//! `$replaceOne` and `$replaceAll`.

use bson::{RawBson, RawBsonRef};

use super::text;
use crate::error::{Error, Result};
use crate::expression::call::{Call, null};
use crate::expression::operators::Named;

pub(super) const REPLACE: Named = Named {
    not_object: 51751,
    unknown: 51750,
    parameters: &[
        ("input", Some(51749)),
        ("find", Some(51748)),
        ("replacement", Some(51747)),
    ],
};

/// The input, what is found, and what replaces it; `None` if one of them is null.
fn arguments<'c>(call: &Call<'c>) -> Result<Option<(&'c str, &'c str, &'c str)>> {
    let argument = |index: usize, code: i32, name: &str| match call.non_null(index) {
        None => Ok(None),
        Some(RawBsonRef::String(text)) => Ok(Some(text)),
        Some(_) => {
            let (operator, shown) = (call.name(), call.render(index));
            let problem = format!("{operator} requires that '{name}' be a string, found: {shown}");
            Err(Error::new(code, problem))
        }
    };
    let input = argument(0, 51746, "input")?;
    let find = argument(1, 51745, "find")?;
    let replacement = argument(2, 51744, "replacement")?;
    Ok(match (input, find, replacement) {
        (Some(input), Some(find), Some(replacement)) => Some((input, find, replacement)),
        _ => None,
    })
}

pub(super) fn one(call: &Call<'_>) -> Result<Option<RawBson>> {
    match arguments(call)? {
        None => null(),
        Some((input, find, replacement)) => text(input.replacen(find, replacement, 1)),
    }
}

/// An empty string is found before each character and at the end.
pub(super) fn all(call: &Call<'_>) -> Result<Option<RawBson>> {
    let Some((input, find, replacement)) = arguments(call)? else {
        return null();
    };
    let count = input.matches(find).count();
    call.scope.step(count)?;
    call.scope
        .reserve(input.len() + count.saturating_mul(replacement.len()))?;
    text(input.replace(find, replacement))
}
