//! `$pop`.

use bson::raw::CStr;
use bson::{RawBson, RawBsonRef};

use super::operator::{Change, Target, array_of, elements_of};
use super::text::shown;
use crate::error::{Code, Error, Result};
use crate::value;

/// Which end of the array loses an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pop {
    /// `-1`.
    First,
    /// `1`.
    Last,
}

impl Pop {
    /// Parses `1` or `-1`.
    ///
    /// # Errors
    /// `FailedToParse`: anything else.
    pub(super) fn parse(field: &CStr, argument: RawBsonRef<'_>) -> Result<Pop> {
        match value::number::whole(argument) {
            Some(1) => Ok(Pop::Last),
            Some(-1) => Ok(Pop::First),
            Some(number) => Err(Error::new(
                Code::FAILED_TO_PARSE,
                format!("$pop expects 1 or -1, found: {number}"),
            )),
            None => {
                let problem = match value::number::Number::of(argument) {
                    Some(_) => "Expected an integer",
                    None => "Expected a number in",
                };
                let argument = shown(argument);
                Err(Error::new(
                    Code::FAILED_TO_PARSE,
                    format!("{problem}: {}: {argument}", field.as_str()),
                ))
            }
        }
    }

    /// Removes the element.
    ///
    /// # Errors
    /// `TypeMismatch`: the value is not an array.
    pub(super) fn change(self, current: RawBsonRef<'_>, target: &Target<'_>) -> Result<Change> {
        let RawBsonRef::Array(array) = current else {
            return Err(Error::new(
                Code::TYPE_MISMATCH,
                format!(
                    "Path '{}' contains an element of non-array type '{}'",
                    target.path,
                    value::types::name(current)
                ),
            ));
        };
        let mut elements = elements_of(array)?;
        if elements.is_empty() {
            return Ok(Change::None);
        }
        match self {
            Pop::First => elements.remove(0),
            Pop::Last => elements.remove(elements.len() - 1),
        };
        Ok(Change::Value(RawBson::Array(array_of(elements))))
    }
}
