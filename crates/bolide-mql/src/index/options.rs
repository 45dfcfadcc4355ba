//! The options of a specification, by name and type.
//!
//! Errors have MongoDB's texts: 14 `TypeMismatch` for a wrong type, 9 `FailedToParse` for a missing one.

use bson::raw::{RawBsonRef, RawDocument, RawDocumentBuf};

use super::definition::append;
use super::pattern::cannot;
use crate::error::{Code, Error, Result};
use crate::value;
use crate::value::number::Number;

const BOOLEAN_OPTIONS: [&str; 5] = ["background", "unique", "sparse", "dropDups", "prepareUnique"];

const NUMERIC_OPTIONS: [&str; 8] = [
    "2dsphereIndexVersion",
    "textIndexVersion",
    "bits",
    "min",
    "max",
    "bucketSize",
    "coarsestIndexedLevel",
    "finestIndexedLevel",
];

const DUPLICATE_FIELD: i32 = 40413;

/// The elements of a specification.
pub struct Options<'s> {
    specification: &'s RawDocument,
    elements: Vec<(&'s str, RawBsonRef<'s>)>,
}

impl<'s> Options<'s> {
    /// Reads all elements.
    ///
    /// # Errors
    /// 197 `InvalidIndexSpecificationOption` for an unknown name, 40413 for a name that comes twice.
    pub fn read(specification: &'s RawDocument) -> Result<Options<'s>> {
        let mut elements: Vec<(&str, RawBsonRef<'_>)> = Vec::new();
        for element in specification.iter() {
            let (name, value) = element.map_err(Error::malformed)?;
            if !is_known(name.as_str()) {
                return Err(Error::new(
                    Code::INVALID_INDEX_SPECIFICATION_OPTION,
                    format!(
                        "The field '{name}' is not valid for an index specification. Specification: {}",
                        value::text::render_document(specification)
                    ),
                ));
            }
            // Only known names get here, so the list stays short.
            if elements.iter().any(|(earlier, _)| *earlier == name.as_str()) {
                let message = format!("BSON field 'createIndexes.indexes.{name}' is a duplicate field");
                return Err(Error::new(DUPLICATE_FIELD, message));
            }
            elements.push((name.as_str(), value));
        }
        Ok(Options {
            specification,
            elements,
        })
    }

    /// Refuses options that MongoDB has and Bolide does not.
    pub fn check_names(&self) -> Result<()> {
        for name in ["clustered", "storageEngine"] {
            if self.get(name).is_some() {
                let message = format!("the index option '{name}' is not supported");
                return Err(Error::new(Code::NOT_IMPLEMENTED, message));
            }
        }
        Ok(())
    }

    /// The value of an option.
    pub fn get(&self, name: &str) -> Option<RawBsonRef<'s>> {
        let found = self.elements.iter().find(|(each, _)| *each == name);
        found.map(|(_, value)| *value)
    }

    fn required(&self, name: &str) -> Result<RawBsonRef<'s>> {
        self.get(name).ok_or_else(|| {
            Error::new(
                Code::FAILED_TO_PARSE,
                format!("The '{name}' field is a required property of an index specification"),
            )
        })
    }

    /// An option that must be there, as a document.
    pub fn required_document(&self, name: &str) -> Result<&'s RawDocument> {
        let value = self.required(name)?;
        value.as_document().ok_or_else(|| wrong_type(name, "an object", value))
    }

    /// An option that must be there, as a string.
    pub fn required_string(&self, name: &str) -> Result<&'s str> {
        let value = self.required(name)?;
        value.as_str().ok_or_else(|| wrong_type(name, "a string", value))
    }

    /// An option as a document.
    pub fn document(&self, name: &str) -> Result<Option<&'s RawDocument>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let document = value.as_document();
        document.map(Some).ok_or_else(|| wrong_type(name, "an object", value))
    }

    /// An option as a document with at least one field.
    pub fn non_empty_document(&self, name: &str) -> Result<Option<&'s RawDocument>> {
        let document = self.document(name)?;
        if document.is_some_and(RawDocument::is_empty) {
            return Err(Error::bad_value(format!(
                "The field '{name}' cannot be an empty object."
            )));
        }
        Ok(document)
    }

    /// An option as a string.
    pub fn string(&self, name: &str) -> Result<Option<&'s str>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let string = value.as_str();
        string.map(Some).ok_or_else(|| wrong_type(name, "a string", value))
    }

    /// A boolean or a number; numbers other than 0 are true.
    pub fn boolean(&self, name: &str) -> Result<Option<bool>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        if value.as_bool().is_none() && Number::of(value).is_none() {
            return Err(Error::new(
                Code::TYPE_MISMATCH,
                format!(
                    "The field '{name} has value {name}: {}, which is not convertible to bool",
                    value::text::render(value)
                ),
            ));
        }
        Ok(Some(value::is_truthy(value)))
    }

    /// The boolean options that are there.
    pub fn booleans(&self) -> Result<Vec<(&'s str, bool)>> {
        let mut booleans = Vec::new();
        for (name, _) in &self.elements {
            if BOOLEAN_OPTIONS.contains(name)
                && let Some(is_set) = self.boolean(name)?
            {
                booleans.push((*name, is_set));
            }
        }
        Ok(booleans)
    }

    /// The numeric options that are there, as they were given.
    pub fn numbers(&self) -> Result<RawDocumentBuf> {
        let mut numbers = RawDocumentBuf::new();
        for (name, value) in &self.elements {
            if NUMERIC_OPTIONS.contains(name) {
                if Number::of(*value).is_none() {
                    return Err(wrong_type(name, "a number", *value));
                }
                append(&mut numbers, name, *value);
            }
        }
        Ok(numbers)
    }

    /// The version of the index's format: 1 or 2.
    pub fn version(&self) -> Result<Option<i32>> {
        let Some(value) = self.get("v") else {
            return Ok(None);
        };
        if Number::of(value).is_none() {
            return Err(wrong_type("v", "a number", value));
        }
        let whole = value::number::whole(value).and_then(|version| i32::try_from(version).ok());
        match whole {
            Some(version @ 1..=2) => Ok(Some(version)),
            Some(version) => Err(cannot(format!(
                "Invalid index specification {}; cannot create an index with v={version}",
                value::text::render_document(self.specification)
            ))),
            None => Err(Error::bad_value(format!(
                "Index version must be representable as a 32-bit integer, but got {}",
                value::text::render(value)
            ))),
        }
    }
}

fn is_known(name: &str) -> bool {
    const OTHERS: [&str; 14] = [
        "key",
        "name",
        "ns",
        "v",
        "hidden",
        "expireAfterSeconds",
        "partialFilterExpression",
        "collation",
        "wildcardProjection",
        "weights",
        "default_language",
        "language_override",
        "storageEngine",
        "cosmosSearchOptions",
    ];
    name == "clustered" || OTHERS.contains(&name) || BOOLEAN_OPTIONS.contains(&name) || NUMERIC_OPTIONS.contains(&name)
}

/// The error for an option of a wrong type.
pub fn wrong_type(name: &str, expected: &str, value: RawBsonRef<'_>) -> Error {
    Error::new(
        Code::TYPE_MISMATCH,
        format!(
            "The field '{name}' must be {expected}, but got {}",
            value::types::name(value)
        ),
    )
}
