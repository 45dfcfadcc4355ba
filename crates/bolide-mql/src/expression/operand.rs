//! Values between the steps of an evaluation.

use bson::{RawBson, RawBsonRef};

/// A value that is part of a document, a variable or the expression, or that was computed.
#[derive(Debug, Clone)]
pub(super) enum Operand<'a> {
    Borrowed(RawBsonRef<'a>),
    Owned(RawBson),
}

impl Operand<'_> {
    pub(super) fn as_raw(&self) -> RawBsonRef<'_> {
        match self {
            Operand::Borrowed(value) => *value,
            Operand::Owned(value) => value.as_raw_bson_ref(),
        }
    }

    pub(super) fn into_owned(self) -> RawBson {
        match self {
            Operand::Borrowed(value) => value.into(),
            Operand::Owned(value) => value,
        }
    }

    /// The bytes that it holds itself; those of numbers and other small values are not counted.
    pub(super) fn owned_bytes(&self) -> usize {
        match self {
            Operand::Owned(RawBson::String(text) | RawBson::Symbol(text) | RawBson::JavaScriptCode(text)) => text.len(),
            Operand::Owned(RawBson::Document(document)) => document.as_bytes().len(),
            Operand::Owned(RawBson::Array(array)) => array.as_bytes().len(),
            Operand::Owned(RawBson::Binary(binary)) => binary.bytes.len(),
            _ => 0,
        }
    }
}

/// Whether a value is missing, null or undefined, which most operators treat alike.
pub(super) fn is_nullish(value: Option<RawBsonRef<'_>>) -> bool {
    matches!(value, None | Some(RawBsonRef::Null | RawBsonRef::Undefined))
}

/// The name of the type of a value, or `missing`.
pub(super) fn type_name(value: Option<RawBsonRef<'_>>) -> &'static str {
    value.map_or("missing", crate::value::types::name)
}

/// A value as error texts show it; a missing one as `MISSING`.
pub(super) fn render(value: Option<RawBsonRef<'_>>) -> String {
    value.map_or_else(|| "MISSING".to_owned(), crate::value::text::render)
}
