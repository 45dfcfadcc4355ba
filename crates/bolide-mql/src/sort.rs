//! Sort orders.
//!
//! An order turns a document into one string of bytes (`Sort::key`); the order of these strings is the order of the documents. Ties are
//! in the order of input.

mod key;
mod sorter;
#[cfg(test)]
mod tests;

use bson::RawBsonRef;
use bson::raw::RawDocument;

pub use sorter::Sorter;

use crate::error::{Error, Result};
use crate::path::field::FieldPath;
use crate::value::number::whole;
use crate::value::text;

/// The most keys of an order (mongo.md §11).
const MAX_KEYS: usize = 32;

/// A sort order: keys, the first decides first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sort {
    keys: Vec<SortKey>,
}

/// One key of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortKey {
    /// What is compared.
    pub source: SortSource,
    /// Whether larger values come first.
    pub is_descending: bool,
}

/// What a key of an order compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SortSource {
    /// The values at a path.
    Path(FieldPath),
    /// The score of a text search.
    TextScore,
}

impl Sort {
    /// Parses `{a: 1, "b.c": -1, score: {$meta: "textScore"}}`; an empty document is no order.
    ///
    /// # Errors
    /// 15974 for a value that is no number, 15975 for one that is not 1 or −1, 13103 for more than 32 keys, 31138 for another `$meta`,
    /// and those of [`FieldPath::parse`].
    pub fn parse(spec: &RawDocument) -> Result<Sort> {
        let mut keys = Vec::new();
        for element in spec {
            let (name, value) = element?;
            if keys.len() == MAX_KEYS {
                return Err(Error::new(13103, "too many compound keys"));
            }
            keys.push(SortKey::parse(name.as_str(), value)?);
        }
        Ok(Sort { keys })
    }

    /// Returns the direction of `{$natural: ±1}`, true if it is descending; `None` for any other order.
    ///
    /// # Errors
    /// `BadValue` if it has another value or is not alone.
    pub fn natural(spec: &RawDocument) -> Result<Option<bool>> {
        let Some(value) = spec.get("$natural")? else {
            return Ok(None);
        };
        if spec.iter().count() > 1 {
            return Err(Error::bad_value("Cannot include '$natural' in compound sort"));
        }
        match whole(value) {
            Some(1) => Ok(Some(false)),
            Some(-1) => Ok(Some(true)),
            _ => Err(Error::bad_value(
                "$natural sort cannot be set to a value other than -1 or 1.",
            )),
        }
    }

    /// Returns the keys.
    pub fn keys(&self) -> &[SortKey] {
        &self.keys
    }

    /// Returns an order by these keys, then by others.
    #[must_use]
    pub(crate) fn then(&self, others: Vec<SortKey>) -> Sort {
        Sort {
            keys: self.keys.iter().cloned().chain(others).collect(),
        }
    }

    /// Returns true without keys.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl SortKey {
    fn parse(name: &str, value: RawBsonRef<'_>) -> Result<SortKey> {
        if let RawBsonRef::Document(meta) = value {
            return SortKey::parse_meta(name, value, meta);
        }
        let is_number = matches!(
            value,
            RawBsonRef::Int32(_) | RawBsonRef::Int64(_) | RawBsonRef::Double(_) | RawBsonRef::Decimal128(_)
        );
        if !is_number {
            return Err(illegal_key(name, value));
        }
        let is_descending = match whole(value) {
            Some(1) => false,
            Some(-1) => true,
            _ => {
                let text = "$sort key ordering must be 1 (for ascending) or -1 (for descending)";
                return Err(Error::new(15975, text));
            }
        };
        Ok(SortKey {
            source: SortSource::Path(FieldPath::parse(name)?),
            is_descending,
        })
    }

    fn parse_meta(name: &str, value: RawBsonRef<'_>, meta: &RawDocument) -> Result<SortKey> {
        let mut elements = meta.iter();
        let first = elements.next().transpose()?;
        match (first, elements.next()) {
            (Some((key, kind)), None) if key.as_str() == "$meta" => match kind.as_str() {
                Some("textScore") => Ok(SortKey {
                    source: SortSource::TextScore,
                    is_descending: true,
                }),
                _ => Err(Error::new(
                    31138,
                    format!("Illegal $meta sort: {}", text::render(value)),
                )),
            },
            _ => Err(illegal_key(name, value)),
        }
    }
}

fn illegal_key(name: &str, value: RawBsonRef<'_>) -> Error {
    let shown = text::render(value);
    Error::new(15974, format!("Illegal key in $sort specification: {name}: {shown}"))
}
