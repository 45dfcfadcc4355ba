//! The documents of one partition, in order.

use bson::raw::{RawBson, RawBsonRef};
use std::sync::Arc;

use super::Row;
use crate::aggregation::document::Document;
use crate::aggregation::stage::Run;
use crate::aggregation::stages::nested;
use crate::context::memory::StageMemory;
use crate::error::{Code, Error, Result};
use crate::expression::Expression;
use crate::sort::{Sort, SortSource};
use crate::value::number::Number;
use crate::value::types;

/// One partition.
pub(super) struct Partition {
    pub(super) run: Arc<Run>,
    rows: Vec<Row>,
    /// The values of the one field that it is sorted by; `None` if there is not exactly one.
    sort_values: Option<Vec<RawBson>>,
}

/// Where a document stands on the axis of `sortBy`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Coordinate {
    /// A number.
    Number(Number),
    /// A date, in milliseconds since 1970.
    Date(i64),
}

impl Partition {
    pub(super) fn new(rows: Vec<Row>, sort: Option<&Sort>, run: &Arc<Run>) -> Result<Partition> {
        let path = sort.and_then(|sort| match sort.keys() {
            [key] => match &key.source {
                SortSource::Path(path) => Some(path),
                SortSource::TextScore => None,
            },
            _ => None,
        });
        let sort_values = match path {
            None => None,
            Some(path) => {
                let value = |row: &Row| {
                    let value = nested::get(&row.document.bytes, path.names())?;
                    Ok(value.map_or(RawBson::Null, RawBson::from))
                };
                Some(rows.iter().map(value).collect::<Result<_>>()?)
            }
        };
        Ok(Partition {
            run: Arc::clone(run),
            rows,
            sort_values,
        })
    }

    /// Returns the number of documents.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if a document has the same place in the order as the one before it.
    pub(super) fn is_tie(&self, index: usize) -> bool {
        let before = index.checked_sub(1).and_then(|before| self.rows.get(before));
        match (before, self.rows.get(index)) {
            (Some(before), Some(row)) => before.place == row.place,
            _ => false,
        }
    }

    /// Returns the documents.
    pub(super) fn documents(&self) -> impl Iterator<Item = &Document> {
        self.rows.iter().map(|row| &row.document)
    }

    /// Returns the documents.
    pub(super) fn into_documents(self) -> impl Iterator<Item = Document> {
        self.rows.into_iter().map(|row| row.document)
    }

    /// Returns the values of an expression for all documents.
    pub(super) fn evaluate(&self, expression: &Expression, memory: &mut StageMemory) -> Result<Vec<Option<RawBson>>> {
        let mut values = Vec::with_capacity(self.len());
        for document in self.documents() {
            self.run.context.interrupt.check(1)?;
            let value = expression.evaluate(&document.scope(&self.run.context))?;
            memory.add(size_of::<Option<RawBson>>())?;
            values.push(value);
        }
        Ok(values)
    }

    /// Returns the coordinates of all documents, for a function or window with a range.
    ///
    /// # Errors
    /// `TypeMismatch` (or `code`) if a value of the field is neither a number nor a date.
    pub(super) fn coordinates(&self, code: impl Into<Code> + Copy, user: &str) -> Result<Vec<Coordinate>> {
        let Some(values) = &self.sort_values else {
            return Err(Error::new(
                code,
                format!("{user} requires a sortBy of exactly one field"),
            ));
        };
        let coordinate = |value: &RawBson| {
            let value = value.as_raw_bson_ref();
            if let RawBsonRef::DateTime(date) = value {
                return Ok(Coordinate::Date(date.timestamp_millis()));
            }
            Number::of(value).map(Coordinate::Number).ok_or_else(|| {
                let found = types::name(value);
                let text = format!("{user}: the sortBy field must be a number or a date, but it was of type {found}");
                Error::new(code, text)
            })
        };
        values.iter().map(coordinate).collect()
    }
}
