//! Rules for ids that users choose.
//!
//! Item ids have fewer restrictions than those of other resources, and tests of the service's own SDKs rely on it: an item's id may contain `/`, `\`,
//! `?`, `#` and control characters, which a client has to escape in paths. Source: cosmos-rest §3.6, and `TestItemIdEncodingComputeGW` of the Go SDK.
//!
//! `.` and `..` are not valid ids, not even of items: HTTP clients remove such segments from a path, escaped or not, so a request to delete the item
//! `..` would delete its container.

use crate::error::{Error, Result, excerpt};
use crate::limits::{ITEM_ID_BYTES, RESOURCE_ID_CHARS};

/// Checks the id of a database, container, script, user or permission.
///
/// # Errors
/// `BadRequest`: the id is empty, longer than [`RESOURCE_ID_CHARS`], `.` or `..`, ends in a space, or contains one of `/ \ ? #` or a control character.
pub fn validate_resource_id(id: &str) -> Result<()> {
    check_length(id, id.chars().count(), RESOURCE_ID_CHARS, RESOURCE_ID_CHARS)?;
    refuse_characters(id, |c| matches!(c, '/' | '\\' | '?' | '#') || c.is_control())?;
    refuse_dots(id)?;
    if id.ends_with(' ') {
        return Err(Error::bad_request(format!(
            "The input name '{id}' is invalid: it ends with a space."
        )));
    }
    Ok(())
}

/// Checks the id of an item.
///
/// # Errors
/// `BadRequest`: the id is empty, longer than [`ITEM_ID_BYTES`], `.` or `..`.
pub fn validate_item_id(id: &str) -> Result<()> {
    check_length(id, id.len(), ITEM_ID_BYTES, ITEM_ID_BYTES + 1)?;
    refuse_dots(id)
}

/// Refuses a character that older versions of the protocol did not accept in the id of an item.
///
/// # Errors
/// `BadRequest`: the id contains a backslash.
pub fn refuse_backslash(id: &str) -> Result<()> {
    refuse_characters(id, |c| c == '\\')
}

fn refuse_dots(id: &str) -> Result<()> {
    if matches!(id, "." | "..") {
        return Err(Error::bad_request(format!(
            "The input name '{id}' is invalid: HTTP clients take it out of paths."
        )));
    }
    Ok(())
}

/// `named` is the limit in the service's message, which is off by one for some resources.
fn check_length(id: &str, length: usize, longest: usize, named: usize) -> Result<()> {
    if (1..=longest).contains(&length) {
        return Ok(());
    }
    Err(Error::bad_request(format!(
        "The input name '{}' is invalid. Ensure to provide a unique non-empty string less than '{named}' characters.",
        excerpt(id)
    )))
}

fn refuse_characters(id: &str, is_refused: impl Fn(char) -> bool) -> Result<()> {
    match id.chars().find(|c| is_refused(*c)) {
        None => Ok(()),
        Some(c) => Err(Error::bad_request(format!(
            "The input name '{}' is invalid: it contains the invalid character {c:?}.",
            excerpt(id)
        ))),
    }
}

#[cfg(test)]
mod tests;
