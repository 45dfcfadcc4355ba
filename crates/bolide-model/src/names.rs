//! Names that users give: what an id may be.
//!
//! Items are freer than all other resources, since tests of the service's own SDKs rely on it: an item's id may hold `/`, `\`, `?`, `#` and
//! control characters, which a client has to escape in paths. Source: cosmos-rest §3.6, and `TestItemIdEncodingComputeGW` of the Go SDK.
//!
//! `.` and `..` are no ids, of items neither: HTTP clients take such segments out of a path, escaped or not, so that deleting the item `..` would
//! be a request to delete its container.

use crate::error::{Error, Result, excerpt};
use crate::limits::{ITEM_ID_BYTES, RESOURCE_ID_CHARS};

/// Checks the id of a database, container, script, user or permission.
///
/// # Errors
/// `BadRequest`: the id is empty, longer than [`RESOURCE_ID_CHARS`], `.` or `..`, ends in a space, or holds one of `/ \ ? #` or a control
/// character.
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

/// Refuses what older versions of the protocol did not take in the id of an item.
///
/// # Errors
/// `BadRequest`: the id holds a backslash.
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

/// `named` is the limit as the service words it, which is off by one for some resources.
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
mod tests {
    use super::*;

    fn message(result: Result<()>) -> String {
        result.expect_err("the id should be refused").message
    }

    #[test]
    fn resource_ids_refuse_what_breaks_a_path() {
        for id in [
            "a/b", "a\\b", "a?", "#a", "a\tb", "a\r", "a\nb", "\0", "a\u{1b}", "\u{85}",
        ] {
            assert!(
                message(validate_resource_id(id)).contains("invalid character"),
                "{id:?}"
            );
        }
    }

    #[test]
    fn resource_ids_end_at_255_characters() {
        assert_eq!(validate_resource_id(&"é".repeat(255)), Ok(()));
        let fragment = "Ensure to provide a unique non-empty string less than '255' characters.";
        assert!(message(validate_resource_id(&"a".repeat(256))).contains(fragment));
        assert!(message(validate_resource_id("")).contains(fragment));
    }

    #[test]
    fn resource_ids_may_begin_but_not_end_with_a_space() {
        assert_eq!(validate_resource_id(" a b"), Ok(()));
        assert!(message(validate_resource_id("a ")).contains("ends with a space"));
    }

    #[test]
    fn item_ids_may_hold_any_character() {
        for id in [
            "a/b", "a\\b", "a?b", "#", " a ", "a\tb", "ü%20", "日本", "a\0", "...", ".a", "%2e%2e",
        ] {
            assert_eq!(validate_item_id(id), Ok(()), "{id:?}");
        }
        assert!(message(refuse_backslash("a\\b")).contains("invalid character"));
        assert_eq!(refuse_backslash("a/b"), Ok(()));
    }

    #[test]
    fn nothing_is_called_what_clients_take_out_of_paths() {
        for id in [".", ".."] {
            assert!(message(validate_resource_id(id)).contains("invalid"), "{id}");
            assert!(message(validate_item_id(id)).contains("invalid"), "{id}");
        }
    }

    #[test]
    fn item_ids_end_at_1023_bytes() {
        assert_eq!(validate_item_id(&"a".repeat(1023)), Ok(()));
        let fragment = "Ensure to provide a unique non-empty string less than '1024' characters.";
        assert!(message(validate_item_id(&"é".repeat(512))).contains(fragment));
        assert!(message(validate_item_id("")).contains(fragment));
    }
}
