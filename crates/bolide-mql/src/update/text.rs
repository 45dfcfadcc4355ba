//! Values in the texts of errors.

use bson::{RawBsonRef, RawDocument};

use crate::value::text::render;

/// Most bytes of a value in a text. A document can have 16 MiB, and one command can have many errors.
const MAX_BYTES: usize = 1024;

/// Returns a value as in MongoDB's texts, without its end if it is long.
pub(super) fn shown(value: RawBsonRef<'_>) -> String {
    let mut text = render(value);
    if text.len() > MAX_BYTES {
        text.truncate(text.floor_char_boundary(MAX_BYTES));
        text.push_str("...");
    }
    text
}

/// Returns the `_id` of a document with its name: `_id: 1`.
pub(super) fn id_of(document: &RawDocument) -> String {
    match document.get("_id") {
        Ok(Some(id)) => format!("_id: {}", shown(id)),
        _ => "no id".to_owned(),
    }
}
