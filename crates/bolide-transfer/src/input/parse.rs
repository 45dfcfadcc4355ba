//! One JSON object from its text.

use bolide_model::document::parse_json_body;
use serde_json::Value;

use super::source::{InputError, Position};
use crate::item::Item;

/// Reads an item whose text begins at `start`.
///
/// # Errors
/// The text is not UTF-8, not JSON, or not an object; with the position of the first byte that is wrong.
pub(super) fn item(text: &[u8], start: Position) -> Result<Item, InputError> {
    if let Err(error) = str::from_utf8(text) {
        let at = start.after(&text[..error.valid_up_to()]);
        return Err(InputError::new(at, "not UTF-8"));
    }
    match parse_json_body(text) {
        Ok(Value::Object(item)) => Ok(item),
        Ok(_) => Err(InputError::new(start, "an item must be a JSON object")),
        Err(error) => Err(located(text, start, &error.to_string())),
    }
}

/// Finds the place of a syntax error: the parser of the model says it in words only.
fn located(text: &[u8], start: Position, message: &str) -> InputError {
    let Err(error) = serde_json::from_slice::<Value>(text) else {
        return InputError::new(start, message.to_owned());
    };
    let (line, column) = (error.line() as u64, error.column() as u64);
    let at = Position {
        offset: start.offset,
        line: start.line + line.saturating_sub(1),
        column: if line <= 1 {
            start.column + column.saturating_sub(1)
        } else {
            column.max(1)
        },
    };
    let what = error.to_string();
    let what = what.split(" at line ").next().unwrap_or_default();
    InputError::new(at, format!("not JSON: {what}"))
}
