//! The sort key of a document: an array counts by its smallest element, for a descending key by its largest; missing counts as null.
//!
//! With several keys the elements of one array are taken together: of all the combinations of values that an index on these fields would
//! hold for the document, the one that sorts first is its key.

use bson::RawBsonRef;
use bson::raw::{CString, RawArray, RawDocument, RawDocumentBuf};

use super::{Sort, SortSource};
use crate::collation::Collation;
use crate::error::{Error, Result};
use crate::value::field;
use crate::value::key::encode;

/// A key on its way through the document.
#[derive(Clone, Copy)]
struct Position<'d, 'p> {
    value: Option<RawBsonRef<'d>>,
    rest: &'p [CString],
    /// Whether the value is the element of an array that was opened at the end of the path: it is not opened again.
    is_final: bool,
}

impl Sort {
    /// Returns the bytes by whose order documents are sorted; of equal length and order only among keys of one order and collation.
    ///
    /// # Errors
    /// `BadValue` if two keys pass through arrays beside each other; 40218 for a text score, as there is none.
    pub fn key(&self, document: &RawDocument, collation: Option<&Collation>) -> Result<Vec<u8>> {
        self.key_with(document, None, collation)
    }

    /// As [`Sort::key`], for a document with metadata: what `$meta` reads, by its names there.
    ///
    /// # Errors
    /// As [`Sort::key`], but for a text score only if the metadata has none.
    pub fn key_with(
        &self,
        document: &RawDocument,
        metadata: Option<&RawDocumentBuf>,
        collation: Option<&Collation>,
    ) -> Result<Vec<u8>> {
        let mut positions = Vec::with_capacity(self.keys.len());
        for key in &self.keys {
            match &key.source {
                SortSource::Path(path) => positions.push(Position {
                    value: Some(RawBsonRef::Document(document)),
                    rest: path.names(),
                    is_final: false,
                }),
                SortSource::TextScore => {
                    if let Some(score) = metadata.and_then(|metadata| metadata.get_f64("textScore").ok()) {
                        positions.push(Position {
                            value: Some(RawBsonRef::Double(score)),
                            rest: &[],
                            is_final: true,
                        });
                        continue;
                    }
                    let text = "query requires text score metadata, but it is not available";
                    return Err(Error::new(40218, text));
                }
            }
        }
        let mut smallest = Smallest {
            sort: self,
            collation,
            key: None,
            scratch: Vec::new(),
        };
        smallest.visit(positions)?;
        Ok(smallest.key.unwrap_or_default())
    }
}

/// Finds the smallest combination.
struct Smallest<'s> {
    sort: &'s Sort,
    collation: Option<&'s Collation>,
    key: Option<Vec<u8>>,
    scratch: Vec<u8>,
}

impl Smallest<'_> {
    /// Visits every combination of elements. The recursion is as deep as arrays are nested in the document.
    fn visit(&mut self, mut positions: Vec<Position<'_, '_>>) -> Result<()> {
        let mut array: Option<&RawArray> = None;
        for position in &mut positions {
            position.advance()?;
            let Some(open) = position.array() else { continue };
            match array {
                Some(other) if !is_same(other, open) => {
                    return Err(Error::bad_value("cannot sort with keys that are parallel arrays"));
                }
                _ => array = Some(open),
            }
        }
        let Some(array) = array else {
            return self.offer(&positions);
        };
        let mut is_empty = true;
        for element in array {
            is_empty = false;
            self.visit(at_element(&positions, array, Some(element?)))?;
        }
        if is_empty {
            self.visit(at_element(&positions, array, None))?;
        }
        Ok(())
    }

    fn offer(&mut self, positions: &[Position<'_, '_>]) -> Result<()> {
        self.scratch.clear();
        for (position, key) in positions.iter().zip(&self.sort.keys) {
            let start = self.scratch.len();
            let value = position.value.unwrap_or(RawBsonRef::Null);
            encode(value, self.collation, &mut self.scratch);
            if key.is_descending {
                self.scratch.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
            }
        }
        if self.key.as_ref().is_none_or(|key| self.scratch < *key) {
            self.key = Some(self.scratch.clone());
        }
        Ok(())
    }
}

impl<'d> Position<'d, '_> {
    /// Walks down documents, and by number into arrays, to the end or to an array that must be opened.
    fn advance(&mut self) -> Result<()> {
        while let Some((name, rest)) = self.rest.split_first() {
            self.value = match self.value {
                Some(RawBsonRef::Document(document)) => field(document, name.as_str()),
                Some(RawBsonRef::Array(array)) => match element_at(array, name.as_str())? {
                    Some(element) => Some(element),
                    None => return Ok(()),
                },
                _ => None,
            };
            self.rest = rest;
        }
        Ok(())
    }

    /// Returns the array that must be opened here.
    fn array(&self) -> Option<&'d RawArray> {
        match self.value {
            Some(RawBsonRef::Array(array)) if !self.is_final => Some(array),
            _ => None,
        }
    }
}

/// Returns the element of a numeric step; `None` if the step is a name, or there is no such element.
fn element_at<'d>(array: &'d RawArray, step: &str) -> Result<Option<RawBsonRef<'d>>> {
    let is_canonical = step == "0" || (step.bytes().all(|byte| byte.is_ascii_digit()) && !step.starts_with('0'));
    match step.parse::<usize>() {
        Ok(index) if is_canonical => Ok(array.get(index)?),
        _ => Ok(None),
    }
}

fn is_same(a: &RawArray, b: &RawArray) -> bool {
    std::ptr::eq(a.as_bytes(), b.as_bytes())
}

/// Moves every position at `array` to one of its elements; `None` stands for the empty array.
fn at_element<'d, 'p>(
    positions: &[Position<'d, 'p>],
    array: &'d RawArray,
    element: Option<RawBsonRef<'d>>,
) -> Vec<Position<'d, 'p>> {
    let moved = |position: &Position<'d, 'p>| {
        if !position.array().is_some_and(|open| is_same(open, array)) {
            return *position;
        }
        let is_end = position.rest.is_empty();
        let value = match element {
            Some(element) if is_end => Some(element),
            Some(RawBsonRef::Document(document)) => Some(RawBsonRef::Document(document)),
            // An empty array sorts before null.
            None if is_end => Some(RawBsonRef::Undefined),
            _ => None,
        };
        Position {
            value,
            rest: if value.is_some() { position.rest } else { &[] },
            is_final: is_end,
        }
    };
    positions.iter().map(moved).collect()
}
