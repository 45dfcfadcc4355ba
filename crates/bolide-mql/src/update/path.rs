//! The paths of update operators: `a.b`, `a.$.b`, `a.$[].b`, `a.$[identifier].b`.

use std::cmp::Ordering;
use std::fmt;

use bson::raw::{CStr, CString};

use crate::error::{Code, Error, Result};

/// Most steps of a path. A stored document has fewer levels, so a longer path can only lead to a document that is refused.
const MAX_STEPS: usize = 200;

/// A path.
#[derive(Debug, Clone)]
pub(super) struct UpdatePath {
    /// Its steps; at least one, and the first is a field.
    pub(super) steps: Vec<Step>,
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// The field with this name; in an array the element with this number.
    Field(Name),
    /// `$`: the first array element that the query matched.
    Matched,
    /// `$[identifier]`: the elements that match an array filter; all elements if the identifier is empty.
    Elements(String),
}

impl UpdatePath {
    /// Parses the field of an operator.
    ///
    /// # Errors
    /// - `EmptyFieldName`: the path or one of its steps is empty.
    /// - `BadValue`: two `$`, or `$` or `$[…]` as first step.
    /// - `Overflow`: too many steps.
    pub(super) fn parse(path: &CStr) -> Result<UpdatePath> {
        let text = path.as_str();
        if text.is_empty() {
            return Err(Error::new(Code::EMPTY_FIELD_NAME, "An empty update path is not valid."));
        }
        let mut steps = Vec::new();
        for part in text.split('.') {
            if steps.len() == MAX_STEPS {
                return Err(Error::new(
                    Code::OVERFLOW,
                    format!("An update path has at most {MAX_STEPS} parts"),
                ));
            }
            steps.push(Step::parse(part, text)?);
        }
        let path = UpdatePath { steps };
        path.check_positional()?;
        Ok(path)
    }

    fn check_positional(&self) -> Result<()> {
        if matches!(self.steps[0], Step::Matched) {
            return Err(Error::bad_value(format!(
                "Cannot have positional (i.e. '$') element in the first position in path '{self}'"
            )));
        }
        if matches!(self.steps[0], Step::Elements(_)) {
            return Err(Error::bad_value(format!(
                "Cannot have array filter identifier (i.e. '$[<id>]') element in the first position in path '{self}'"
            )));
        }
        if self.steps.iter().filter(|step| **step == Step::Matched).count() > 1 {
            return Err(Error::bad_value(format!(
                "Too many positional (i.e. '$') elements found in path '{self}'"
            )));
        }
        Ok(())
    }

    /// Tells whether which elements it leads to depends on the document.
    pub(super) fn is_dynamic(&self) -> bool {
        self.steps.iter().any(|step| !matches!(step, Step::Field(_)))
    }

    /// Tells whether one of the two paths leads to a value inside the value of the other, or to the same value.
    pub(super) fn overlaps(&self, other: &UpdatePath) -> bool {
        self.steps.iter().zip(&other.steps).all(|(left, right)| left == right)
    }

    /// Returns the text of the first steps.
    pub(super) fn prefix(&self, steps: usize) -> String {
        let parts: Vec<_> = self.steps.iter().take(steps).map(Step::to_string).collect();
        parts.join(".")
    }
}

impl fmt::Display for UpdatePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.prefix(self.steps.len()))
    }
}

impl Step {
    fn parse(part: &str, path: &str) -> Result<Step> {
        if part.is_empty() {
            return Err(Error::new(
                Code::EMPTY_FIELD_NAME,
                format!("The update path '{path}' contains an empty field name, which is not allowed."),
            ));
        }
        if part == "$" {
            return Ok(Step::Matched);
        }
        if let Some(identifier) = part.strip_prefix("$[").and_then(|rest| rest.strip_suffix(']')) {
            return Ok(Step::Elements(identifier.to_owned()));
        }
        Ok(Step::Field(Name::new(part)?))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Field(name) => f.write_str(name.as_str()),
            Step::Matched => f.write_str("$"),
            Step::Elements(identifier) => write!(f, "$[{identifier}]"),
        }
    }
}

/// The name of a field, or the number of an array element.
///
/// Its order is the one in which an update adds new fields: numbers by value, then names by bytes (mongo.md §12).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    name: CString,
    is_number: bool,
}

impl Name {
    /// Returns the name.
    ///
    /// # Errors
    /// `BadValue`: it contains a NUL.
    pub(super) fn new(name: &str) -> Result<Name> {
        Ok(Name {
            name: CString::try_from(name)
                .map_err(|_| Error::bad_value("The name of a field must not contain a null byte"))?,
            is_number: !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()),
        })
    }

    /// Returns the name of an array element.
    pub(super) fn of_index(index: usize) -> Result<Name> {
        Name::new(&index.to_string())
    }

    /// Returns the name.
    pub(super) fn as_cstr(&self) -> &CStr {
        self.name.as_ref()
    }

    /// Returns the name.
    pub(super) fn as_str(&self) -> &str {
        self.as_cstr().as_str()
    }

    /// Returns the number of the array element that it names; `None` if it names none. Numbers that do not fit become the largest.
    pub(super) fn index(&self) -> Option<usize> {
        self.is_number.then(|| self.as_str().parse().unwrap_or(usize::MAX))
    }

    fn digits(&self) -> &str {
        self.as_str().trim_start_matches('0')
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Name) -> Ordering {
        match (self.is_number, other.is_number) {
            (true, true) => (self.digits().len().cmp(&other.digits().len()))
                .then_with(|| self.digits().cmp(other.digits()))
                .then_with(|| self.as_str().len().cmp(&other.as_str().len())),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self.as_str().cmp(other.as_str()),
        }
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Name) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
