//! `$rename`.

use bson::raw::CStr;
use bson::{RawBson, RawBsonRef, RawDocument};

use super::path::{Name, Step, UpdatePath};
use super::text::{id_of, shown};
use crate::error::{Code, Error, Result};

/// The two paths of a `$rename`.
#[derive(Debug)]
pub(super) struct Rename {
    /// The old path.
    pub(super) from: UpdatePath,
    /// The new path.
    pub(super) to: UpdatePath,
}

impl Rename {
    /// Parses the old path and the new one.
    ///
    /// # Errors
    /// `BadValue`: the new path is not a string, the paths are the same, one leads into the value of the other, or one has `$` or `$[…]`.
    pub(super) fn parse(from_text: &CStr, to: RawBsonRef<'_>) -> Result<Rename> {
        let name = from_text.as_str();
        let to_shown = shown(to);
        let RawBsonRef::String(to) = to else {
            return Err(Error::bad_value(format!(
                "The 'to' field for $rename must be a string: {name}: {to_shown}"
            )));
        };
        let to_text = <&CStr>::try_from(to)
            .map_err(|_| Error::bad_value("The 'to' field for $rename cannot contain an embedded null byte"))?;
        let from = UpdatePath::parse(from_text)?;
        let to = UpdatePath::parse(to_text)?;
        if from.steps == to.steps {
            return Err(Error::bad_value(format!(
                "The source and target field for $rename must differ: {name}: {to_shown}"
            )));
        }
        if from.overlaps(&to) {
            return Err(Error::bad_value(format!(
                "The source and target field for $rename must not be on the same path: {name}: {to_shown}"
            )));
        }
        if from.is_dynamic() {
            return Err(Error::bad_value(format!(
                "The source field for $rename may not be dynamic: {from}"
            )));
        }
        if to.is_dynamic() {
            return Err(Error::bad_value(format!(
                "The destination field for $rename may not be dynamic: {to}"
            )));
        }
        Ok(Rename { from, to })
    }

    /// Returns the value to rename; `None` if there is none, and then nothing is renamed.
    ///
    /// # Errors
    /// - `BadValue`: one of the paths leads through an array.
    /// - `PathNotViable`: the old path leads through a value that is not a document.
    pub(super) fn value(&self, document: &RawDocument) -> Result<Option<RawBson>> {
        let Some(value) = find(&self.from, document)? else {
            return Ok(None);
        };
        if let Some(array) = array_before(&self.from, document)? {
            return Err(in_array("source", &self.from, &array, document));
        }
        if let Some(array) = array_before(&self.to, document)? {
            return Err(in_array("destination", &self.to, &array, document));
        }
        Ok(Some(value.into()))
    }
}

fn in_array(which: &str, path: &UpdatePath, array: &str, document: &RawDocument) -> Error {
    let id = id_of(document);
    Error::bad_value(format!(
        "The {which} field cannot be an array element, '{path}' in doc with {id} has an array field called '{array}'"
    ))
}

fn names(path: &UpdatePath) -> impl Iterator<Item = &Name> {
    path.steps.iter().filter_map(|step| match step {
        Step::Field(name) => Some(name),
        Step::Matched | Step::Elements(_) => None,
    })
}

/// Finds the value at a path.
fn find<'d>(path: &UpdatePath, document: &'d RawDocument) -> Result<Option<RawBsonRef<'d>>> {
    let mut value = RawBsonRef::Document(document);
    let mut value_name = "";
    for name in names(path) {
        let inner = match (value, name.index()) {
            (RawBsonRef::Document(document), _) => document.get(name.as_str())?,
            (RawBsonRef::Array(array), Some(index)) => array.get(index)?,
            _ => {
                let value = shown(value);
                return Err(Error::new(
                    Code::PATH_NOT_VIABLE,
                    format!(
                        "cannot use the part ({value_name} of {path}) to traverse the element ({{{value_name}: {value}}})"
                    ),
                ));
            }
        };
        let Some(inner) = inner else {
            return Ok(None);
        };
        value = inner;
        value_name = name.as_str();
    }
    Ok(Some(value))
}

/// Returns the name of the first array on the way to the last part of a path.
fn array_before(path: &UpdatePath, document: &RawDocument) -> Result<Option<String>> {
    let mut document = document;
    for name in names(path).take(path.steps.len().saturating_sub(1)) {
        match document.get(name.as_str())? {
            Some(RawBsonRef::Document(inner)) => document = inner,
            Some(RawBsonRef::Array(_)) => return Ok(Some(name.as_str().to_owned())),
            _ => return Ok(None),
        }
    }
    Ok(None)
}
