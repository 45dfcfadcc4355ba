//! Paths to properties, as container definitions write them: `/a/b`, `/"any name"/'any name'`.
//!
//! A path is a sequence of labels, each after a slash. A plain label consists of letters, digits, `_`, `-`, `.` and spaces, and is not a whole
//! number, which would be an array index. Any other name is quoted. Inside quotes a backslash is part of the name, and a quote after a backslash does
//! not end it, as in the SDKs' parsers. Source: cosmos-rest §4.2.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde_json::{Map, Value};

/// The path of one property, with at least one name. Paths are equal if their names are, however these are quoted.
#[derive(Debug, Clone)]
pub struct PropertyPath {
    text: String,
    names: Vec<String>,
}

/// The error for an invalid path, with the position in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a path: failed near position {position}")]
pub struct InvalidPath {
    /// Bytes before the invalid label.
    pub position: usize,
}

impl PropertyPath {
    /// Reads a path.
    ///
    /// # Errors
    /// `InvalidPath`: no slash at the start, a slash at the end, a wildcard, an array index, or a character that needs quotes.
    pub fn parse(text: &str) -> Result<PropertyPath, InvalidPath> {
        let mut names = Vec::new();
        for label in Labels::new(text) {
            names.push(label?.name()?.to_owned());
        }
        if names.is_empty() {
            return Err(InvalidPath { position: 0 });
        }
        Ok(PropertyPath {
            text: text.to_owned(),
            names,
        })
    }

    /// The names from the root to the property.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The path as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first blank outside quotes, in bytes from the start. Such paths are valid, except in new partition keys.
    pub fn unquoted_blank(&self) -> Option<usize> {
        let blank = |label: Label<'_>| Some(label.position + label.text.find(' ').filter(|_| !label.is_quoted)?);
        Labels::new(&self.text).filter_map(Result::ok).find_map(blank)
    }

    /// The value at this path: `None` if a step is missing or is not in an object.
    pub fn lookup<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.lookup_in(root.as_object()?)
    }

    /// As [`PropertyPath::lookup`], for the members of a root object.
    pub fn lookup_in<'a>(&self, root: &'a Map<String, Value>) -> Option<&'a Value> {
        let (first, rest) = self.names.split_first()?;
        rest.iter()
            .try_fold(root.get(first)?, |value, name| value.as_object()?.get(name))
    }

    /// Whether a change of the value at `names` could change the value at this path: `names` is this path or a prefix of it.
    pub fn is_within(&self, names: &[impl AsRef<str>]) -> bool {
        names.len() <= self.names.len() && self.names.iter().zip(names).all(|(own, name)| own == name.as_ref())
    }
}

impl PartialEq for PropertyPath {
    fn eq(&self, other: &PropertyPath) -> bool {
        self.names == other.names
    }
}

impl Eq for PropertyPath {}

impl Hash for PropertyPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.names.hash(state);
    }
}

impl fmt::Display for PropertyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// One step of a path as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Label<'a> {
    pub(crate) text: &'a str,
    pub(crate) is_quoted: bool,
    pub(crate) position: usize,
}

impl<'a> Label<'a> {
    /// The name of the label, unless it is a wildcard, an index, or needs quotes.
    pub(crate) fn name(self) -> Result<&'a str, InvalidPath> {
        if self.is_quoted {
            return Ok(self.text);
        }
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
        if let Some((at, _)) = self.text.char_indices().find(|&(_, c)| !is_plain(c)) {
            return Err(InvalidPath {
                position: self.position + at,
            });
        }
        if self.text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(InvalidPath {
                position: self.position,
            });
        }
        Ok(self.text)
    }
}

/// The labels of a path, in order; ends after the first invalid one.
pub(crate) struct Labels<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Labels<'a> {
    pub(crate) fn new(text: &'a str) -> Labels<'a> {
        Labels { text, at: 0 }
    }

    fn label(&self) -> Result<(Label<'a>, usize), InvalidPath> {
        let invalid = |position| InvalidPath { position };
        let rest = self.text[self.at..].strip_prefix('/').ok_or(invalid(self.at))?;
        let start = self.at + 1;
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
            let text = rest.split('/').next().unwrap_or_default();
            return Ok((
                Label {
                    text,
                    is_quoted: false,
                    position: start,
                },
                start + text.len(),
            ));
        };
        let name = &rest[1..];
        let end = closing_quote(name, quote).ok_or(invalid(start))?;
        let label = Label {
            text: &name[..end],
            is_quoted: true,
            position: start,
        };
        Ok((label, start + 1 + end + 1))
    }
}

fn closing_quote(name: &str, quote: char) -> Option<usize> {
    name.match_indices(quote)
        .map(|(at, _)| at)
        .find(|&at| !name[..at].ends_with('\\'))
}

impl<'a> Iterator for Labels<'a> {
    type Item = Result<Label<'a>, InvalidPath>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.text.len() {
            return None;
        }
        let found = self.label();
        self.at = found.as_ref().map_or(self.text.len(), |(_, next)| *next);
        Some(found.map(|(label, _)| label))
    }
}

#[cfg(test)]
mod tests;
