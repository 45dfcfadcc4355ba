//! Reads the fields of a command: types, unknown fields, fields that are missing.
//!
//! A handler takes the fields that it knows, and then calls [`Arguments::finish`], which refuses all others. Fields that may be on any command
//! (`lsid`, `comment`, …) are known here; see [`super::global`]. As in MongoDB, a field that is null counts as missing.
//!
//! Source: mongo.md §6.

use std::collections::HashSet;

use bolide_mql::value::number;
use bolide_mql::value::types;
use bolide_mql::{Code, Error, Result};
use bson::raw::RawBsonRef;
use bson::{RawArray, RawDocument, Timestamp};

use super::global::is_global;
use crate::limits;
use crate::message::OpMsg;
use crate::namespace::Namespace;

/// MongoDB's codes without a name.
const DUPLICATE_FIELD: i32 = 40413;
const MISSING_FIELD: i32 = 40414;
const UNKNOWN_FIELD: i32 = 40415;
const OUT_OF_RANGE: i32 = 51024;

/// Up to this many fields are compared with each other.
const FEW_FIELDS: usize = 16;

/// The types of a boolean option, and of a number, as they are named in errors.
const BOOLEAN: &str = "types '[bool, long, int, decimal, double']";
const NUMBER: &str = "types '[long, int, decimal, double']";

/// The fields of a command, or of a document in it.
#[derive(Debug, Clone)]
pub struct Arguments<'a> {
    /// The name of the command, with the path of the document in it, for errors.
    name: String,
    fields: Vec<Field<'a>>,
    /// The document sequences that were taken.
    sequences: Vec<&'static str>,
    /// The message, whose document sequences are fields of the command too.
    message: Option<&'a OpMsg>,
    /// Whether the fields that may be on any command are known.
    is_command: bool,
}

/// A field, and whether it was taken.
#[derive(Debug, Clone, Copy)]
struct Field<'a> {
    key: &'a str,
    value: RawBsonRef<'a>,
    is_taken: bool,
}

impl<'a> Arguments<'a> {
    /// The fields of a command. Its first field is its name, and counts as taken.
    ///
    /// # Errors
    /// A field that is there twice, or too many fields.
    pub fn of_command(name: &str, message: &'a OpMsg) -> Result<Arguments<'a>> {
        let mut arguments = Arguments::of_document(name, message.command())?;
        if let Some(first) = arguments.fields.first_mut() {
            first.is_taken = true;
        }
        arguments.message = Some(message);
        arguments.is_command = true;
        Ok(arguments)
    }

    /// The fields of a command inside another one, such as `explain`.
    ///
    /// # Errors
    /// A field that is there twice, or too many fields.
    pub fn of_inner_command(name: &str, command: &'a RawDocument) -> Result<Arguments<'a>> {
        let mut arguments = Arguments::of_document(name, command)?;
        if let Some(first) = arguments.fields.first_mut() {
            first.is_taken = true;
        }
        arguments.is_command = true;
        Ok(arguments)
    }

    /// The fields of a document in a command, such as `insert.writeConcern`. No global fields are known.
    ///
    /// # Errors
    /// A field that is there twice, or too many fields.
    pub fn of_document(path: &str, document: &'a RawDocument) -> Result<Arguments<'a>> {
        let mut fields: Vec<Field<'_>> = Vec::new();
        let mut seen = HashSet::new();
        for element in document.iter() {
            let (key, value) = element.map_err(|error| Error::new(Code::INVALID_BSON, error.to_string()))?;
            let key = key.as_str();
            // Most commands have a few fields, which are compared faster than they are hashed.
            let is_twice = match fields.len() {
                0..FEW_FIELDS => fields.iter().any(|field| field.key == key),
                FEW_FIELDS => {
                    seen.extend(fields.iter().map(|field| field.key));
                    !seen.insert(key)
                }
                _ => !seen.insert(key),
            };
            if is_twice {
                let text = format!("BSON field '{path}.{key}' is a duplicate field");
                return Err(Error::new(DUPLICATE_FIELD, text));
            }
            if fields.len() == limits::COMMAND_FIELDS {
                let text = format!(
                    "BSON document '{path}' has too many fields. limit={}",
                    limits::COMMAND_FIELDS
                );
                return Err(Error::new(Code::FAILED_TO_PARSE, text));
            }
            fields.push(Field {
                key,
                value,
                is_taken: false,
            });
        }
        Ok(Arguments {
            name: path.to_owned(),
            fields,
            sequences: Vec::new(),
            message: None,
            is_command: false,
        })
    }

    /// The value of a field; `None` if it is missing or null.
    pub fn value(&mut self, field: &'static str) -> Option<RawBsonRef<'a>> {
        self.any_value(field)
            .filter(|value| !matches!(value, RawBsonRef::Null | RawBsonRef::Undefined))
    }

    /// The value of a field, null too; `None` if it is missing.
    pub fn any_value(&mut self, field: &'static str) -> Option<RawBsonRef<'a>> {
        let found = self.fields.iter_mut().find(|known| known.key == field)?;
        found.is_taken = true;
        Some(found.value)
    }

    /// A field that must be there.
    ///
    /// # Errors
    /// 40414 if `value` is `None`.
    pub fn required<T>(&self, field: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| {
            let text = format!("BSON field '{}.{field}' is missing but a required field", self.name);
            Error::new(MISSING_FIELD, text)
        })
    }

    /// A string.
    ///
    /// # Errors
    /// `TypeMismatch`.
    pub fn string(&mut self, field: &'static str) -> Result<Option<&'a str>> {
        self.typed(field, "type 'string'", |value| match value {
            RawBsonRef::String(text) => Some(text),
            _ => None,
        })
    }

    /// A document.
    ///
    /// # Errors
    /// `TypeMismatch`.
    pub fn document(&mut self, field: &'static str) -> Result<Option<&'a RawDocument>> {
        self.typed(field, "type 'object'", |value| value.as_document())
    }

    /// An array.
    ///
    /// # Errors
    /// `TypeMismatch`.
    pub fn array(&mut self, field: &'static str) -> Result<Option<&'a RawArray>> {
        self.typed(field, "type 'array'", |value| value.as_array())
    }

    /// Binary data.
    ///
    /// # Errors
    /// `TypeMismatch`.
    pub fn binary(&mut self, field: &'static str) -> Result<Option<&'a [u8]>> {
        self.typed(field, "type 'binData'", |value| match value {
            RawBsonRef::Binary(binary) => Some(binary.bytes),
            _ => None,
        })
    }

    /// A timestamp.
    ///
    /// # Errors
    /// `TypeMismatch`.
    pub fn timestamp(&mut self, field: &'static str) -> Result<Option<Timestamp>> {
        self.typed(field, "type 'timestamp'", |value| value.as_timestamp())
    }

    /// A boolean; a number is true unless it is 0.
    ///
    /// # Errors
    /// `TypeMismatch`.
    pub fn boolean(&mut self, field: &'static str) -> Result<Option<bool>> {
        self.typed(field, BOOLEAN, |value| match value {
            RawBsonRef::Boolean(value) => Some(value),
            other => number::Number::of(other).map(|number| !number.is_zero()),
        })
    }

    /// A boolean and nothing else.
    ///
    /// # Errors
    /// `TypeMismatch`.
    pub fn strict_boolean(&mut self, field: &'static str) -> Result<Option<bool>> {
        self.typed(field, "type 'bool'", |value| value.as_bool())
    }

    /// A number of any type as a 64-bit integer, as MongoDB reads it: see [`number::Number::clamped`].
    ///
    /// # Errors
    /// `TypeMismatch`.
    pub fn integer(&mut self, field: &'static str) -> Result<Option<i64>> {
        let number = self.typed(field, NUMBER, number::Number::of)?;
        Ok(number.map(number::Number::clamped))
    }

    /// A boolean and nothing else, null neither, of the options for which MongoDB has an error of its own.
    ///
    /// # Errors
    /// `TypeMismatch`.
    pub fn exact_boolean(&mut self, field: &'static str) -> Result<Option<bool>> {
        match self.any_value(field) {
            None => Ok(None),
            Some(RawBsonRef::Boolean(value)) => Ok(Some(value)),
            Some(other) => {
                let kind = types::name(other);
                let text = format!("Field '{field}' should be a boolean value, but found: {kind}");
                Err(Error::new(Code::TYPE_MISMATCH, text))
            }
        }
    }

    /// A whole number from 0.
    ///
    /// # Errors
    /// As [`Arguments::integer`]; 51024 for a negative number.
    pub fn non_negative(&mut self, field: &'static str) -> Result<Option<u64>> {
        let Some(number) = self.integer(field)? else {
            return Ok(None);
        };
        let number = u64::try_from(number).map_err(|_| {
            let text = format!("BSON field '{field}' value must be >= 0, actual value '{number}'");
            Error::new(OUT_OF_RANGE, text)
        })?;
        Ok(Some(number))
    }

    /// The documents of a field that is an array or a document sequence. `None` if it is missing.
    ///
    /// # Errors
    /// `TypeMismatch`; `InvalidLength` if there are none, or more than a batch may have.
    pub fn documents(&mut self, field: &'static str) -> Result<Option<Vec<&'a RawDocument>>> {
        let sequence = self.message.and_then(|message| message.documents(field));
        let documents: Vec<&RawDocument> = match sequence {
            Some(sequence) => {
                self.sequences.push(field);
                sequence.take(limits::WRITE_BATCH + 1).collect()
            }
            None => match self.array(field)? {
                Some(array) => self.documents_of(field, array)?,
                None => return Ok(None),
            },
        };
        if (1..=limits::WRITE_BATCH).contains(&documents.len()) {
            return Ok(Some(documents));
        }
        let text = format!(
            "Write batch sizes must be between 1 and {}. Got {} operations.",
            limits::WRITE_BATCH,
            documents.len()
        );
        Err(Error::new(Code::INVALID_LENGTH, text))
    }

    fn documents_of(&self, field: &str, array: &'a RawArray) -> Result<Vec<&'a RawDocument>> {
        let elements = array.into_iter().enumerate().take(limits::WRITE_BATCH + 1);
        let documents = elements.map(|(at, element)| {
            let element = element.map_err(|error| Error::new(Code::INVALID_BSON, error.to_string()))?;
            element
                .as_document()
                .ok_or_else(|| wrong_type(&format!("{}.{field}.{at}", self.name), element, "type 'object'"))
        });
        documents.collect()
    }

    /// The collection that the command names as the value of its first field.
    ///
    /// # Errors
    /// `InvalidNamespace`; `BadValue` if it is no string, for the commands that say so.
    pub fn collection(&self, database: &str) -> Result<Namespace> {
        match self.fields.first() {
            Some(Field {
                value: RawBsonRef::String(collection),
                ..
            }) => Namespace::new(database, collection),
            first => {
                let kind = first.map_or("missing", |first| types::name(first.value));
                Err(match self.name.as_str() {
                    "count" | "distinct" | "find" => {
                        Error::new(Code::INVALID_NAMESPACE, "Failed to parse namespace element")
                    }
                    "createIndexes" | "dropIndexes" => {
                        Error::bad_value(format!("collection name has invalid type {kind}"))
                    }
                    _ => Error::new(
                        Code::INVALID_NAMESPACE,
                        format!("collection name has invalid type {kind}"),
                    ),
                })
            }
        }
    }

    /// The id of a retryable write's first statement: `stmtId`, or the first of `stmtIds`.
    ///
    /// # Errors
    /// `TypeMismatch`.
    pub fn first_statement(&mut self) -> Result<Option<i64>> {
        let id = self.integer("stmtId")?;
        let first = match self.array("stmtIds")? {
            Some(ids) => ids.into_iter().next().and_then(Result::ok),
            None => None,
        };
        Ok(id.or_else(|| first.and_then(number::whole)))
    }

    /// The name of the command, with the path of the document in it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value of the command's first field.
    pub fn first(&self) -> Option<RawBsonRef<'a>> {
        self.fields.first().map(|first| first.value)
    }

    /// Accepts fields without reading them, because they change nothing here.
    pub fn ignore(&mut self, fields: &[&'static str]) {
        for field in fields {
            self.any_value(field);
        }
    }

    /// All fields, in order, taken or not.
    pub fn all(&self) -> impl Iterator<Item = (&'a str, RawBsonRef<'a>)> {
        self.fields.iter().map(|field| (field.key, field.value))
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// 40415 for a field or document sequence that was not taken.
    pub fn finish(self) -> Result<()> {
        let unknown = self.fields.iter().filter(|field| !field.is_taken);
        let unknown = unknown
            .map(|field| field.key)
            .filter(|key| !(self.is_command && is_global(key)));
        let sequences = self.message.map(OpMsg::sequences).unwrap_or_default();
        let sequences = sequences.iter().map(|sequence| sequence.identifier.as_str());
        let sequences = sequences.filter(|name| !self.sequences.contains(name));
        match unknown.chain(sequences).next() {
            None => Ok(()),
            Some(key) => {
                let text = format!("BSON field '{}.{key}' is an unknown field.", self.name);
                Err(Error::new(UNKNOWN_FIELD, text))
            }
        }
    }

    fn typed<T>(
        &mut self,
        field: &'static str,
        expected: &str,
        read: impl FnOnce(RawBsonRef<'a>) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.value(field) else {
            return Ok(None);
        };
        let typed = read(value).ok_or_else(|| wrong_type(&format!("{}.{field}", self.name), value, expected))?;
        Ok(Some(typed))
    }
}

/// The error for a value of the wrong type; `expected` is such as `type 'object'`.
pub fn wrong_type(path: &str, value: RawBsonRef<'_>, expected: &str) -> Error {
    let found = types::name(value);
    let text = format!("BSON field '{path}' is the wrong type '{found}', expected {expected}");
    Error::new(Code::TYPE_MISMATCH, text)
}

#[cfg(test)]
mod tests;
