//! Reads a definition's members and checks their types.

use std::collections::HashSet;
use std::hash::Hash;

use serde_json::{Map, Value};

use crate::error::{Error, Result, excerpt};
use crate::path::{InvalidPath, PropertyPath};

/// The error for a member of the wrong type, shape or value, in words that SDK tests look for.
pub(super) fn invalid(member: &str, expected: &str) -> Error {
    Error::bad_request(format!(
        "One of the specified inputs is invalid: '{member}' must be {expected}."
    ))
}

/// An object of a definition, and its name in messages. A null member counts as absent.
#[derive(Debug, Clone)]
pub(super) struct Input<'a> {
    members: &'a Map<String, Value>,
    name: String,
}

impl<'a> Input<'a> {
    pub(super) fn new(value: &'a Value, name: &str) -> Result<Input<'a>> {
        let members = value.as_object().ok_or_else(|| invalid(name, "an object"))?;
        Ok(Input {
            members,
            name: name.to_owned(),
        })
    }

    /// The root of a definition; messages use the plain names of its members.
    pub(super) fn root(value: &'a Value) -> Result<Input<'a>> {
        let members = value
            .as_object()
            .ok_or_else(|| invalid("the container's definition", "an object"))?;
        Ok(Input {
            members,
            name: String::new(),
        })
    }

    /// The name of a member in messages.
    pub(super) fn name_of(&self, member: &str) -> String {
        if self.name.is_empty() {
            member.to_owned()
        } else {
            format!("{}.{member}", self.name)
        }
    }

    /// All members, nulls included.
    pub(super) fn members(&self) -> &'a Map<String, Value> {
        self.members
    }

    pub(super) fn get(&self, member: &str) -> Option<&'a Value> {
        self.members.get(member).filter(|value| !value.is_null())
    }

    pub(super) fn string(&self, member: &str) -> Result<Option<&'a str>> {
        self.typed(member, "a string", Value::as_str)
    }

    pub(super) fn boolean(&self, member: &str) -> Result<Option<bool>> {
        self.typed(member, "true or false", Value::as_bool)
    }

    pub(super) fn number(&self, member: &str) -> Result<Option<f64>> {
        self.typed(member, "a number", Value::as_f64)
    }

    pub(super) fn integer(&self, member: &str) -> Result<Option<i64>> {
        self.typed(member, "a whole number", Value::as_i64)
    }

    pub(super) fn array(&self, member: &str) -> Result<Option<&'a [Value]>> {
        self.typed(member, "an array", |value| value.as_array().map(Vec::as_slice))
    }

    pub(super) fn object(&self, member: &str) -> Result<Option<Input<'a>>> {
        self.get(member)
            .map(|value| Input::new(value, &self.name_of(member)))
            .transpose()
    }

    /// The objects of an array; none if it is absent.
    pub(super) fn objects(&self, member: &str) -> Result<Vec<Input<'a>>> {
        let items = self.array(member)?.unwrap_or_default();
        items
            .iter()
            .enumerate()
            .map(|(n, item)| Input::new(item, &format!("{}[{n}]", self.name_of(member))))
            .collect()
    }

    /// One of a list of words, in any case.
    pub(super) fn choice<T: Copy>(&self, member: &str, words: &[(&str, T)]) -> Result<Option<T>> {
        let Some(given) = self.string(member)? else {
            return Ok(None);
        };
        match meaning(words, given) {
            Some(meaning) => Ok(Some(meaning)),
            None => {
                let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                Err(invalid(
                    &self.name_of(member),
                    &format!("one of {}; it is '{}'", words.join(", "), excerpt(given)),
                ))
            }
        }
    }

    pub(super) fn path(&self, member: &str) -> Result<PropertyPath> {
        read_path(self.require(member, self.string(member)?)?, &self.name_of(member))
    }

    pub(super) fn require<T>(&self, member: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| invalid(&self.name_of(member), "given"))
    }

    fn typed<T>(&self, member: &str, expected: &str, read: impl FnOnce(&'a Value) -> Option<T>) -> Result<Option<T>> {
        self.get(member)
            .map(|value| read(value).ok_or_else(|| invalid(&self.name_of(member), expected)))
            .transpose()
    }
}

/// The meaning of a word, in any case.
pub(super) fn meaning<T: Copy>(words: &[(&str, T)], word: &str) -> Option<T> {
    words
        .iter()
        .find(|(own, _)| own.eq_ignore_ascii_case(word))
        .map(|(_, meaning)| *meaning)
}

/// The first word with a meaning.
pub(super) fn word<T: Copy + PartialEq>(words: &[(&'static str, T)], meaning: T) -> &'static str {
    words
        .iter()
        .find(|(_, own)| *own == meaning)
        .map(|(word, _)| *word)
        .expect("every variant has its word")
}

/// Reads a property path; messages call it `name`.
pub(super) fn read_path(text: &str, name: &str) -> Result<PropertyPath> {
    PropertyPath::parse(text).map_err(|InvalidPath { position }| {
        invalid(
            name,
            &format!(
                "a path to a property; '{}' fails near position {position}",
                excerpt(text)
            ),
        )
    })
}

/// Reads an array of property paths.
pub(super) fn read_paths(items: &[Value], name: &str) -> Result<Vec<PropertyPath>> {
    let text = |item: &Value| {
        item.as_str()
            .map(str::to_owned)
            .ok_or_else(|| invalid(name, "an array of strings"))
    };
    items.iter().map(|item| read_path(&text(item)?, name)).collect()
}

/// Whether a value occurs twice.
pub(super) fn has_duplicates<T: Eq + Hash>(values: &[T]) -> bool {
    let mut seen = HashSet::with_capacity(values.len());
    values.iter().any(|value| !seen.insert(value))
}

#[cfg(test)]
mod tests;
