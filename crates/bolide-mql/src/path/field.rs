//! Paths of expressions, projections and sort orders: names of fields, joined by dots.

use bson::raw::CString;

use crate::error::{Code, Error, Result};

/// The most names in a path.
const MAX_NAMES: usize = 200;

/// A path such as `a.b.c`: one or more names that are neither empty nor operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath {
    names: Vec<CString>,
}

impl FieldPath {
    /// Parses a path without a leading `$`.
    ///
    /// # Errors
    /// 40352 for the empty text, 40353 for a dot at its end, 15998 for an empty name, 16410 for a name that begins with `$`, 16411 for a
    /// zero byte, 15 for more than 200 names.
    pub fn parse(text: &str) -> Result<FieldPath> {
        if text.is_empty() {
            return Err(Error::new(40352, "FieldPath cannot be constructed with empty string"));
        }
        if text.ends_with('.') {
            return Err(Error::new(40353, "FieldPath must not end with a '.'."));
        }
        let mut names = Vec::new();
        for name in text.split('.') {
            if names.len() == MAX_NAMES {
                return Err(Error::new(Code::OVERFLOW, "FieldPath is too long"));
            }
            names.push(parse_name(name)?);
        }
        Ok(FieldPath { names })
    }

    /// Returns the names; there is at least one.
    pub fn names(&self) -> &[CString] {
        &self.names
    }

    /// Returns the first name and the rest.
    pub fn split_first(&self) -> Option<(&CString, &[CString])> {
        self.names.split_first()
    }

    /// Returns the names joined by dots.
    pub fn text(&self) -> String {
        join(&self.names)
    }
}

/// Joins names by dots.
pub fn join(names: &[CString]) -> String {
    names.iter().map(CString::as_str).collect::<Vec<_>>().join(".")
}

/// Parses one name, which may not contain a dot.
///
/// # Errors
/// See [`FieldPath::parse`].
pub fn parse_name(name: &str) -> Result<CString> {
    if name.is_empty() {
        return Err(Error::new(15998, "FieldPath field names may not be empty strings."));
    }
    if name.starts_with('$') {
        return Err(Error::new(
            16410,
            "FieldPath field names may not start with '$'. Consider using $getField or $setField.",
        ));
    }
    CString::try_from(name.to_owned()).map_err(|_| Error::new(16411, "FieldPath field names may not contain '\0'."))
}
