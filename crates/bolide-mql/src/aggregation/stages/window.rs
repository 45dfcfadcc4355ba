//! `$setWindowFields`
//!
//! Documents are sorted by partition, and in it by `sortBy`. A partition at a time, each function computes a value for every document, from
//! the documents around it.

mod bounds;
mod dates;
mod function;
mod numeric;
mod parse;
mod partition;
mod position;

use std::collections::VecDeque;
use std::iter::Peekable;
use std::sync::Arc;

use bson::raw::{RawBson, RawBsonRef};

pub(super) use dates::{DateUnit, add_to_date};
pub(in crate::aggregation) use parse::parse;

use super::nested;
use crate::aggregation::document::Document;
use crate::aggregation::source::{BoxSource, Source};
use crate::aggregation::stage::{Run, Stage};
use crate::context::memory::StageMemory;
use crate::error::{Code, Error, Result};
use crate::expression::Expression;
use crate::path::field::FieldPath;
use crate::projection::check_depth;
use crate::sort::{Sort, Sorter};
use crate::value::key;
pub(super) use function::Function;
use partition::Partition;

/// The stage.
#[derive(Debug)]
pub(super) struct Window {
    partition_by: Option<Expression>,
    sort_by: Option<Sort>,
    output: Vec<(FieldPath, Function)>,
}

impl Stage for Window {
    fn open(self: Arc<Self>, input: BoxSource, run: &Arc<Run>) -> Result<BoxSource> {
        Ok(Box::new(Windowed {
            stage: self,
            run: Arc::clone(run),
            input: Some(input),
            rows: None,
            output: VecDeque::new(),
        }))
    }
}

/// A document with the keys of its partition and of its place there.
struct Row {
    partition: Vec<u8>,
    place: Vec<u8>,
    document: Document,
}

type Rows = Peekable<Box<dyn Iterator<Item = Row> + Send>>;

struct Windowed {
    stage: Arc<Window>,
    run: Arc<Run>,
    input: Option<BoxSource>,
    rows: Option<Rows>,
    output: VecDeque<Document>,
}

impl Source for Windowed {
    fn next(&mut self) -> Result<Option<Document>> {
        if let Some(input) = self.input.take() {
            self.rows = Some(self.stage.sorted(input, &self.run)?);
        }
        if self.output.is_empty() {
            self.output = self.next_partition()?;
        }
        Ok(self.output.pop_front())
    }
}

impl Windowed {
    /// Computes the next partition; none is left if it is empty.
    fn next_partition(&mut self) -> Result<VecDeque<Document>> {
        let Some(rows) = &mut self.rows else {
            return Ok(VecDeque::new());
        };
        let Some(first) = rows.next() else {
            return Ok(VecDeque::new());
        };
        let key = first.partition.clone();
        let mut partition = vec![first];
        while let Some(row) = rows.next_if(|row| row.partition == key) {
            partition.push(row);
        }
        self.stage.compute(partition, &self.run)
    }
}

impl Window {
    fn sorted(&self, mut input: BoxSource, run: &Run) -> Result<Rows> {
        let mut sorter = Sorter::new(None, StageMemory::new("$setWindowFields"));
        while let Some(document) = input.next()? {
            let partition = self.partition_key(&document, run)?;
            let place = match &self.sort_by {
                Some(sort) => sort.key(&document.bytes, run.collation())?,
                None => Vec::new(),
            };
            let bytes = document.memory() + partition.len() + place.len();
            let key = [partition.as_slice(), place.as_slice()].concat();
            let row = Row {
                partition,
                place,
                document,
            };
            sorter.push(key, row, bytes)?;
        }
        let rows: Box<dyn Iterator<Item = Row> + Send> = Box::new(sorter.finish());
        Ok(rows.peekable())
    }

    fn partition_key(&self, document: &Document, run: &Run) -> Result<Vec<u8>> {
        let Some(partition_by) = &self.partition_by else {
            return Ok(Vec::new());
        };
        let value = partition_by
            .evaluate(&document.scope(&run.context))?
            .unwrap_or(RawBson::Null);
        if matches!(value, RawBson::Array(_)) {
            let text = "An expression used to partition cannot evaluate to value of type array";
            return Err(Error::new(Code::TYPE_MISMATCH, text));
        }
        Ok(key::of(value.as_raw_bson_ref(), run.collation()))
    }

    /// Computes all functions over one partition.
    fn compute(&self, rows: Vec<Row>, run: &Arc<Run>) -> Result<VecDeque<Document>> {
        let mut partition = Partition::new(rows, self.sort_by.as_ref(), run)?;
        let mut memory = StageMemory::new("$setWindowFields");
        let mut columns = Vec::with_capacity(self.output.len());
        for (path, function) in &self.output {
            columns.push((path, function.values(&mut partition, &mut memory)?.into_iter()));
        }
        let mut documents = VecDeque::new();
        for mut document in partition.into_documents() {
            for (path, values) in &mut columns {
                run.context.interrupt.check(1)?;
                let value = values.next().flatten();
                let value = value.as_ref().map(RawBson::as_raw_bson_ref);
                document.bytes = set(&document, path, value)?;
            }
            check_depth(&document.bytes)?;
            documents.push_back(document);
        }
        Ok(documents)
    }
}

fn set(document: &Document, path: &FieldPath, value: Option<RawBsonRef<'_>>) -> Result<bson::RawDocumentBuf> {
    nested::set(&document.bytes, path.names(), value)
}
