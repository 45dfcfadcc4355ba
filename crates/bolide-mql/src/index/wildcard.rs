//! Wildcard indexes: the fields that they take, and the entries of a document.
//!
//! An entry is the path of a value, without the positions in arrays, and the value.
//!
//! ```text
//!   {a: {b: 1}, c: [2, {d: 3}]}    →    ("a.b", 1), ("c", 2), ("c.d", 3)
//!   {a: {}, b: []}                 →    ("a", {}), ("b", undefined)
//! ```

use bson::raw::{RawBsonRef, RawDocument, RawDocumentBuf};

use super::pattern::{KeyPattern, Kind, WILDCARD, cannot, split};
use crate::error::{Code, Error, Result};
use crate::value;

const INCLUSION_IN_EXCLUSION: i32 = 31253;
const EXCLUSION_IN_INCLUSION: i32 = 31254;

/// Documents are nested less deep than this (mongo.md §16); deeper values have no entries of their own.
const DEPTH: usize = 250;

/// The fields that an index on `$**` takes or leaves out.
#[derive(Debug, Clone)]
pub struct WildcardProjection {
    document: RawDocumentBuf,
    paths: Box<[Box<[Box<str>]>]>,
    is_inclusion: bool,
    takes_id: bool,
}

impl WildcardProjection {
    /// Reads `wildcardProjection`.
    ///
    /// # Errors
    /// 2 `BadValue` on another kind of index, 14 `TypeMismatch`, 9 `FailedToParse` if it is empty or the key is not `$**`; 31253 and 31254 if it
    /// takes some fields and leaves out others.
    pub fn parse(value: RawBsonRef<'_>, key: &KeyPattern) -> Result<WildcardProjection> {
        if key.kind() != Kind::Wildcard {
            return Err(Error::bad_value(
                "The field 'wildcardProjection' is only allowed in 'wildcard' indexes",
            ));
        }
        let Some(document) = value.as_document() else {
            return Err(Error::new(
                Code::TYPE_MISMATCH,
                format!(
                    "The field 'wildcardProjection' must be a non-empty object, but got {}",
                    value::types::name(value)
                ),
            ));
        };
        if !key.is_single(WILDCARD) {
            return Err(Error::new(
                Code::FAILED_TO_PARSE,
                "The field 'wildcardProjection' is only allowed when 'key' is {\"$**\": ±1}",
            ));
        }
        if document.is_empty() {
            return Err(Error::new(
                Code::FAILED_TO_PARSE,
                "The 'wildcardProjection' field can't be an empty object",
            ));
        }
        let mut reader = Reader::default();
        reader.fields(document, "", 0).map_err(|error| Error {
            message: format!(
                "Failed to parse projection: wildcardProjection :: caused by :: {}",
                error.message
            ),
            ..error
        })?;
        let is_inclusion = reader.is_inclusion.or(reader.id).unwrap_or(false);
        Ok(WildcardProjection {
            document: document.to_owned(),
            paths: reader.paths.into(),
            is_inclusion,
            takes_id: reader.id.unwrap_or(false),
        })
    }

    /// The projection as it was given.
    pub fn document(&self) -> &RawDocument {
        &self.document
    }

    /// Whether the field at a path is taken, or fields below it may be.
    fn takes(&self, path: &[&str]) -> bool {
        if path.first() == Some(&"_id") {
            return self.takes_id;
        }
        let begins = |longer: &[&str], shorter: &[Box<str>]| {
            longer.len() >= shorter.len() && shorter.iter().zip(longer).all(|(a, b)| **a == **b)
        };
        let is_above =
            |listed: &[Box<str>]| listed.len() > path.len() && path.iter().zip(listed).all(|(a, b)| **a == **b);
        if self.is_inclusion {
            self.paths.iter().any(|listed| begins(path, listed) || is_above(listed))
        } else {
            !self.paths.iter().any(|listed| begins(path, listed))
        }
    }

    /// Whether the field itself is taken, not only fields below it.
    fn takes_whole(&self, path: &[&str]) -> bool {
        let covers =
            |listed: &[Box<str>]| listed.len() <= path.len() && listed.iter().zip(path).all(|(a, b)| **a == **b);
        self.takes(path)
            && (!self.is_inclusion || path.first() == Some(&"_id") || self.paths.iter().any(|listed| covers(listed)))
    }
}

#[derive(Default)]
struct Reader {
    paths: Vec<Box<[Box<str>]>>,
    is_inclusion: Option<bool>,
    id: Option<bool>,
}

impl Reader {
    fn fields(&mut self, document: &RawDocument, prefix: &str, depth: usize) -> Result<()> {
        for element in document.iter() {
            let (name, value) = element.map_err(Error::malformed)?;
            let path = format!("{prefix}{name}");
            if name
                .as_str()
                .split('.')
                .any(|part| part.is_empty() || part.starts_with('$'))
            {
                return Err(cannot(format!("'{path}' is not a valid field path")));
            }
            match value {
                RawBsonRef::Document(inner) if !inner.is_empty() && depth < DEPTH => {
                    self.fields(inner, &format!("{path}."), depth + 1)?;
                }
                value if value.as_bool().is_some() || value::number::Number::of(value).is_some() => {
                    self.field(&path, value::is_truthy(value))?;
                }
                value => {
                    return Err(Error::bad_value(format!(
                        "Bad projection specification, cannot use {} in a wildcardProjection",
                        value::types::name(value)
                    )));
                }
            }
        }
        Ok(())
    }

    fn field(&mut self, path: &str, takes: bool) -> Result<()> {
        if path == "_id" {
            self.id = Some(takes);
            return Ok(());
        }
        match self.is_inclusion {
            Some(true) if !takes => {
                return Err(Error::new(
                    EXCLUSION_IN_INCLUSION,
                    format!("Cannot do exclusion on field {path} in inclusion projection"),
                ));
            }
            Some(false) if takes => {
                return Err(Error::new(
                    INCLUSION_IN_EXCLUSION,
                    format!("Cannot do inclusion on field {path} in exclusion projection"),
                ));
            }
            _ => self.is_inclusion = Some(takes),
        }
        self.paths.push(split(path));
        Ok(())
    }
}

/// Whether every value at a path has an entry. Not so if a part of the path can also be a position in an array.
pub fn has_values(key: &KeyPattern, projection: Option<&WildcardProjection>, path: &str) -> bool {
    let names: Vec<&str> = path.split('.').collect();
    let prefix = prefix_of(key);
    let is_below_prefix = names.len() >= prefix.len() && names.iter().zip(&prefix).all(|(name, wanted)| name == wanted);
    let is_left_out = prefix.is_empty() && projection.is_none() && names[0] == "_id";
    let has_position = names.iter().any(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    is_below_prefix
        && !is_left_out
        && !has_position
        && names.len() < DEPTH
        && projection.is_none_or(|projection| projection.takes_whole(&names))
}

/// The names before `$**`.
fn prefix_of(key: &KeyPattern) -> Vec<&str> {
    key.fields().first().map_or_else(Vec::new, |field| {
        let names = field.path.len().saturating_sub(1);
        field.path[..names].iter().map(|name| &**name).collect()
    })
}

/// Calls `entry` with the path and value of every entry of a document. Returns whether an array was opened.
///
/// # Errors
/// Those of `entry`.
pub fn extract<'d>(
    key: &KeyPattern,
    projection: Option<&WildcardProjection>,
    document: &'d RawDocument,
    entry: &mut dyn FnMut(&str, RawBsonRef<'d>) -> Result<()>,
) -> Result<bool> {
    let mut walk = Walk {
        prefix: prefix_of(key),
        projection,
        path: Vec::new(),
        entry,
        has_arrays: false,
    };
    walk.object(document, 0)?;
    Ok(walk.has_arrays)
}

struct Walk<'w, 'd> {
    prefix: Vec<&'w str>,
    projection: Option<&'w WildcardProjection>,
    path: Vec<&'d str>,
    entry: &'w mut dyn FnMut(&str, RawBsonRef<'d>) -> Result<()>,
    has_arrays: bool,
}

impl<'d> Walk<'_, 'd> {
    fn object(&mut self, object: &'d RawDocument, depth: usize) -> Result<()> {
        for (name, value) in object.iter().flatten() {
            self.path.push(name.as_str());
            if self.is_taken() {
                self.value(value, depth)?;
            }
            self.path.pop();
        }
        Ok(())
    }

    fn value(&mut self, value: RawBsonRef<'d>, depth: usize) -> Result<()> {
        match value {
            RawBsonRef::Document(object) if !object.is_empty() && depth < DEPTH => self.object(object, depth + 1),
            RawBsonRef::Array(array) if array.is_empty() => self.leaf(RawBsonRef::Undefined),
            RawBsonRef::Array(array) => {
                self.has_arrays = true;
                for element in array.into_iter().flatten() {
                    match element {
                        RawBsonRef::Document(object) if !object.is_empty() && depth < DEPTH => {
                            self.object(object, depth + 1)?;
                        }
                        // An array in an array is a value.
                        element => self.leaf(element)?,
                    }
                }
                Ok(())
            }
            value => self.leaf(value),
        }
    }

    fn leaf(&mut self, value: RawBsonRef<'d>) -> Result<()> {
        let is_below_prefix = self.path.len() >= self.prefix.len();
        let is_taken = self
            .projection
            .is_none_or(|projection| projection.takes_whole(&self.path));
        if is_below_prefix && is_taken {
            (self.entry)(&self.path.join("."), value)
        } else {
            Ok(())
        }
    }

    /// Whether the field at the current path can lead to entries.
    fn is_taken(&self) -> bool {
        if self.prefix.is_empty() {
            return match self.projection {
                Some(projection) => projection.takes(&self.path),
                // `_id` has an index of its own.
                None => self.path.first() != Some(&"_id"),
            };
        }
        self.path.iter().zip(&self.prefix).all(|(name, wanted)| name == wanted)
    }
}

#[cfg(test)]
mod tests;
