//! Which indexes dropIndexes removes.
//!
//! Source: mongo.md §6 (Indexes).

use bson::raw::{RawBsonRef, RawDocument};

use super::definition::{ID_INDEX, IndexDefinition};
use crate::error::{Code, Error, Result};
use crate::value;

/// The argument `index` of dropIndexes.
#[derive(Debug, Clone, PartialEq)]
pub enum IndexSelection<'a> {
    /// `"*"`: all but that on `_id`.
    All,
    /// Those with these names.
    Names(Vec<&'a str>),
    /// The one with this key pattern.
    Key(&'a RawDocument),
}

/// The indexes to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    /// Their positions in the list that was given, in order.
    pub positions: Vec<usize>,
    /// The reply's `msg`.
    pub message: Option<&'static str>,
}

impl<'a> IndexSelection<'a> {
    /// Reads the argument.
    ///
    /// # Errors
    /// 14 `TypeMismatch` if it is no string, array of strings, or document.
    pub fn parse(value: RawBsonRef<'a>) -> Result<IndexSelection<'a>> {
        match value {
            RawBsonRef::String("*") => Ok(IndexSelection::All),
            RawBsonRef::String(name) => Ok(IndexSelection::Names(vec![name])),
            RawBsonRef::Document(key) => Ok(IndexSelection::Key(key)),
            RawBsonRef::Array(names) => {
                let names = names.into_iter().map(|name| {
                    let name = name.map_err(Error::malformed)?;
                    name.as_str().ok_or_else(|| wrong_type(value, "types '[string']"))
                });
                names.collect::<Result<_>>().map(IndexSelection::Names)
            }
            other => Err(wrong_type(other, "types '[string, object']")),
        }
    }

    /// Finds the indexes. All are checked before any is removed.
    ///
    /// # Errors
    /// 27 `IndexNotFound`; 72 `InvalidOptions` for the index on `_id`; 181 `AmbiguousIndexKeyPattern` if several have the key pattern.
    pub fn select(&self, existing: &[IndexDefinition]) -> Result<Selected> {
        let positions = match self {
            IndexSelection::All => (0..existing.len())
                .filter(|position| !existing[*position].is_id())
                .collect(),
            IndexSelection::Names(names) => by_names(names, existing)?,
            IndexSelection::Key(key) => vec![by_key(key, existing)?],
        };
        let message = matches!(self, IndexSelection::All).then_some("non-_id indexes dropped for collection");
        Ok(Selected { positions, message })
    }
}

fn by_names(names: &[&str], existing: &[IndexDefinition]) -> Result<Vec<usize>> {
    let mut positions = Vec::new();
    for name in names {
        if *name == ID_INDEX {
            return Err(drops_id());
        }
        let position = existing
            .iter()
            .position(|each| each.name == *name)
            .ok_or_else(|| Error::new(Code::INDEX_NOT_FOUND, format!("index not found with name [{name}]")))?;
        positions.push(position);
    }
    positions.sort_unstable();
    positions.dedup();
    Ok(positions)
}

fn by_key(key: &RawDocument, existing: &[IndexDefinition]) -> Result<usize> {
    let found: Vec<usize> = (0..existing.len())
        .filter(|position| existing[*position].key.is_same(key))
        .collect();
    let text = value::text::render_document(key);
    match found[..] {
        [] => Err(Error::new(
            Code::INDEX_NOT_FOUND,
            format!("can't find index with key: {text}"),
        )),
        [position] if existing[position].is_id() => Err(drops_id()),
        [position] => Ok(position),
        [first, second, ..] => Err(Error::new(
            Code::AMBIGUOUS_INDEX_KEY_PATTERN,
            format!(
                "{} indexes found for key: {text}, identify by name instead. Conflicting indexes: {}, {}",
                found.len(),
                existing[first].catalog_text(),
                existing[second].catalog_text()
            ),
        )),
    }
}

fn drops_id() -> Error {
    Error::new(Code::INVALID_OPTIONS, "cannot drop _id index")
}

fn wrong_type(value: RawBsonRef<'_>, expected: &str) -> Error {
    Error::new(
        Code::TYPE_MISMATCH,
        format!(
            "BSON field 'dropIndexes.index' is the wrong type '{}', expected {expected}",
            value::types::name(value)
        ),
    )
}

#[cfg(test)]
mod tests;
