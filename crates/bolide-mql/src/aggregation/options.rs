//! Reads the options of a stage.

use bson::raw::{RawBsonRef, RawDocument};

use crate::error::{Code, Error, Result};
use crate::value::types;

/// The options of one stage.
pub(super) struct Options<'a> {
    stage: &'static str,
    document: &'a RawDocument,
}

impl<'a> Options<'a> {
    /// Returns the options of `stage`.
    ///
    /// # Errors
    /// `error` if `spec` is no document; 40415 if it has an option that is not among `known`.
    pub(super) fn parse(
        stage: &'static str,
        spec: RawBsonRef<'a>,
        known: &[&str],
        error: impl FnOnce(&'static str) -> Error,
    ) -> Result<Options<'a>> {
        let RawBsonRef::Document(document) = spec else {
            return Err(error(types::name(spec)));
        };
        for element in document {
            let (name, _) = element?;
            if !known.contains(&name.as_str()) {
                let text = format!("BSON field '{stage}.{name}' is an unknown field.");
                return Err(Error::new(40415, text));
            }
        }
        Ok(Options { stage, document })
    }

    /// Returns an option.
    pub(super) fn get(&self, name: &str) -> Result<Option<RawBsonRef<'a>>> {
        Ok(self.document.get(name)?)
    }

    /// Returns an option that must be there.
    ///
    /// # Errors
    /// 40414 if it is missing.
    pub(super) fn required(&self, name: &str) -> Result<RawBsonRef<'a>> {
        self.get(name)?.ok_or_else(|| {
            let stage = self.stage;
            let text = format!("BSON field '{stage}.{name}' is missing but a required field");
            Error::new(40414, text)
        })
    }

    /// Returns an option that is a string.
    ///
    /// # Errors
    /// `TypeMismatch` for another type.
    pub(super) fn string(&self, name: &str) -> Result<Option<&'a str>> {
        match self.get(name)? {
            None => Ok(None),
            Some(RawBsonRef::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong_type(name, other, "string")),
        }
    }

    /// Returns an option that is a document.
    ///
    /// # Errors
    /// `TypeMismatch` for another type.
    pub(super) fn document(&self, name: &str) -> Result<Option<&'a RawDocument>> {
        match self.get(name)? {
            None => Ok(None),
            Some(RawBsonRef::Document(document)) => Ok(Some(document)),
            Some(other) => Err(self.wrong_type(name, other, "object")),
        }
    }

    /// Returns the error for an option of the wrong type.
    pub(super) fn wrong_type(&self, name: &str, found: RawBsonRef<'_>, expected: &str) -> Error {
        let (stage, found) = (self.stage, types::name(found));
        let text = format!("BSON field '{stage}.{name}' is the wrong type '{found}', expected type '{expected}'");
        Error::new(Code::TYPE_MISMATCH, text)
    }
}
