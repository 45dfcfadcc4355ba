//! Dotted paths of filters, and the values that they lead to (`mongo.md §9`).
//!
//! A path leads through documents by name. At an array it goes into each element that is a document, and, where the next part of the path is a
//! number, into the element with that index, too. An array at the end stands for its elements and for itself. Arrays directly inside arrays are not
//! entered without a number.

pub mod field;

use bson::{RawArray, RawBsonRef, RawDocument};

use crate::error::{Code, Error, Result};
use crate::value::field;

/// The most parts of a path; documents have no more levels.
const PARTS_LIMIT: usize = 200;

/// The most elements of arrays that one walk may visit. A document has fewer; but numbers in a path are tried as index and as name, so that a path of
/// many numbers can lead through nested arrays in very many ways.
const ELEMENTS_LIMIT: usize = 1 << 22;

/// A dotted path. Its parts may be empty texts, as names of fields may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    text: String,
    parts: Vec<Part>,
}

/// One part of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    name: String,
    index: Option<usize>,
}

impl Part {
    /// Returns the part as the name of a field.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the part as the index of an element: digits without a zero in front.
    pub fn index(&self) -> Option<usize> {
        self.index
    }
}

/// What an array at the end of a path stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastArray {
    /// Its elements, then itself.
    Opened,
    /// Itself only.
    Whole,
}

/// A place that a path leads to: the value, `None` where the field is missing, and the index of the element of the outermost array that was entered
/// without a number.
#[derive(Debug, Clone, Copy)]
pub struct Place<'d> {
    /// The value there.
    pub value: Option<RawBsonRef<'d>>,
    /// The index for the positional operator `$`.
    pub array_index: Option<usize>,
}

impl Path {
    /// Parses a path.
    ///
    /// # Errors
    /// `Overflow` for more than 200 parts.
    pub fn parse(text: &str) -> Result<Path> {
        let part = |name: &str| Part {
            index: index_of(name),
            name: name.to_owned(),
        };
        let parts: Vec<_> = text.split('.').take(PARTS_LIMIT + 1).map(part).collect();
        if parts.len() > PARTS_LIMIT {
            return Err(Error::new(Code::OVERFLOW, "FieldPath is too long"));
        }
        Ok(Path {
            text: text.to_owned(),
            parts,
        })
    }

    /// Returns the path with its dots.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the parts, at least one.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Visits the places that the path leads to from a document until `visit` returns true or an error; returns what it returned last.
    ///
    /// # Errors
    /// That of `visit`.
    pub fn any<'d>(
        &self,
        document: &'d RawDocument,
        last: LastArray,
        mut visit: impl FnMut(Place<'d>) -> Result<bool>,
    ) -> Result<bool> {
        Walk::new(last, &mut visit).document(document, &self.parts, None)
    }

    /// Visits places as [`Path::any`] does, where the first part of the path stands for the value itself, whatever its name.
    ///
    /// # Errors
    /// That of `visit`.
    pub fn any_of_value<'d>(
        &self,
        value: RawBsonRef<'d>,
        last: LastArray,
        mut visit: impl FnMut(Place<'d>) -> Result<bool>,
    ) -> Result<bool> {
        let rest = self.parts.get(1..).unwrap_or_default();
        Walk::new(last, &mut visit).value(value, rest, None)
    }
}

/// Returns the values that a path leads to, as a filter sees them; `None` stands for a missing field.
pub fn values<'d>(document: &'d RawDocument, path: &Path) -> Vec<Option<RawBsonRef<'d>>> {
    let mut values = Vec::new();
    let collect = |place: Place<'d>| {
        values.push(place.value);
        Ok(false)
    };
    // The visitor does not fail.
    let _ = path.any(document, LastArray::Opened, collect);
    values
}

/// Returns the index that a part of a path stands for: digits without a zero in front.
pub fn index_of(name: &str) -> Option<usize> {
    let is_canonical = name == "0" || !name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit());
    is_canonical.then(|| name.parse().ok()).flatten()
}

struct Walk<'v, V> {
    last: LastArray,
    visit: &'v mut V,
    elements: usize,
}

impl<'d, 'v, V: FnMut(Place<'d>) -> Result<bool>> Walk<'v, V> {
    fn new(last: LastArray, visit: &'v mut V) -> Walk<'v, V> {
        Walk {
            last,
            visit,
            elements: 0,
        }
    }

    /// The path goes on in a document. Every step goes a level deeper, so the recursion is bounded by the parts of the path.
    fn document(&mut self, document: &'d RawDocument, parts: &[Part], array_index: Option<usize>) -> Result<bool> {
        let Some((first, rest)) = parts.split_first() else {
            return self.last(RawBsonRef::Document(document), array_index);
        };
        match field(document, &first.name) {
            Some(value) => self.value(value, rest, array_index),
            None => self.place(None, array_index),
        }
    }

    /// The path goes on in, or ends at, a value.
    fn value(&mut self, value: RawBsonRef<'d>, rest: &[Part], array_index: Option<usize>) -> Result<bool> {
        match value {
            value if rest.is_empty() => self.last(value, array_index),
            RawBsonRef::Document(document) => self.document(document, rest, array_index),
            RawBsonRef::Array(array) => self.array(array, rest, array_index),
            _ => self.place(None, array_index),
        }
    }

    /// The path goes on in the elements of an array; `rest` has at least one part.
    fn array(&mut self, array: &'d RawArray, rest: &[Part], array_index: Option<usize>) -> Result<bool> {
        let Some((first, after)) = rest.split_first() else {
            return Ok(false);
        };
        for (index, element) in array.into_iter().map_while(Result::ok).enumerate() {
            self.elements += 1;
            if self.elements > ELEMENTS_LIMIT {
                return Err(Error::bad_value(
                    "the path leads through too many elements of nested arrays",
                ));
            }
            if let RawBsonRef::Document(document) = element
                && self.document(document, rest, array_index.or(Some(index)))?
            {
                return Ok(true);
            }
            if first.index != Some(index) {
                continue;
            }
            let found = match element {
                element if after.is_empty() => self.place(Some(element), array_index)?,
                RawBsonRef::Document(document) => self.document(document, after, array_index)?,
                RawBsonRef::Array(inner) => self.array(inner, after, array_index)?,
                _ => false,
            };
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The path ends at a value.
    fn last(&mut self, value: RawBsonRef<'d>, array_index: Option<usize>) -> Result<bool> {
        if let (RawBsonRef::Array(array), LastArray::Opened) = (value, self.last) {
            for (index, element) in array.into_iter().map_while(Result::ok).enumerate() {
                if self.place(Some(element), array_index.or(Some(index)))? {
                    return Ok(true);
                }
            }
        }
        self.place(Some(value), array_index)
    }

    fn place(&mut self, value: Option<RawBsonRef<'d>>, array_index: Option<usize>) -> Result<bool> {
        (self.visit)(Place { value, array_index })
    }
}

#[cfg(test)]
mod tests;
