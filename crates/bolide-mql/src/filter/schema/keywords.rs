//! The operands of keywords, with MongoDB's errors.

use bson::{RawArray, RawBsonRef, RawDocument};

use crate::error::{Code, Error, Result};
use crate::filter::parse::operands::Named;
use crate::value::number::Number;
use crate::value::types;

/// A keyword with its operand.
#[derive(Clone, Copy)]
pub(super) struct Keyword<'s> {
    pub(super) name: &'s str,
    pub(super) operand: RawBsonRef<'s>,
}

impl<'s> Keyword<'s> {
    pub(super) fn wrong_type(&self, expected: &str) -> Error {
        let text = format!("$jsonSchema keyword '{}' must be {expected}", self.name);
        Error::new(Code::TYPE_MISMATCH, text)
    }

    pub(super) fn failed(&self, problem: &str) -> Error {
        let text = format!("$jsonSchema keyword '{}' {problem}", self.name);
        Error::new(Code::FAILED_TO_PARSE, text)
    }

    pub(super) fn document(&self) -> Result<&'s RawDocument> {
        self.operand.as_document().ok_or_else(|| self.wrong_type("an object"))
    }

    pub(super) fn array(&self) -> Result<&'s RawArray> {
        self.operand.as_array().ok_or_else(|| self.wrong_type("an array"))
    }

    /// Returns the elements of an array that has at least one.
    pub(super) fn nonempty(&self) -> Result<Vec<RawBsonRef<'s>>> {
        let array = self.array()?;
        if array.is_empty() {
            return Err(self.failed("cannot be an empty array"));
        }
        array.into_iter().map(|item| item.map_err(Error::malformed)).collect()
    }

    /// Returns the texts of an array, each once.
    pub(super) fn unique_strings(&self) -> Result<Vec<String>> {
        let mut texts: Vec<String> = Vec::new();
        for item in self.nonempty()? {
            let Some(text) = item.as_str() else {
                let found = types::name(item);
                return Err(self.wrong_type(&format!("an array of strings, but found an element of type {found}")));
            };
            texts.push(text.to_owned());
        }
        texts.sort();
        match texts.windows(2).any(|pair| pair[0] == pair[1]) {
            true => Err(self.failed("array cannot contain duplicate values")),
            false => Ok(texts),
        }
    }

    pub(super) fn number(&self) -> Result<Number> {
        Number::of(self.operand).ok_or_else(|| self.wrong_type("a number"))
    }

    pub(super) fn boolean(&self) -> Result<bool> {
        self.operand.as_bool().ok_or_else(|| self.wrong_type("a boolean"))
    }

    pub(super) fn string(&self) -> Result<&'s str> {
        self.operand.as_str().ok_or_else(|| self.wrong_type("a string"))
    }

    /// Returns a whole number that is not negative.
    pub(super) fn length(&self) -> Result<u64> {
        let named = Named {
            name: self.name,
            value: self.operand,
        };
        named.not_negative()
    }
}
