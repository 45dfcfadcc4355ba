//! The documents of `$densify`.
//!
//! Documents are sorted by partition and field. In each partition a grid of values runs beside them; a value of the grid that no document
//! has becomes a document.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::sync::Arc;

use bson::DateTime;
use bson::raw::{RawBson, RawBsonRef, RawDocumentBuf};

use super::densify::{Bounds, Densify, Point, Step};
use super::nested;
use super::window::add_to_date;
use crate::aggregation::document::Document;
use crate::aggregation::source::{BoxSource, Source};
use crate::aggregation::stage::Run;
use crate::context::memory::StageMemory;
use crate::error::{Error, Result};
use crate::sort::Sorter;
use crate::value::key;

/// The most documents that one stage makes.
const MAX_MADE: u64 = 500_000;

/// Gives the documents of the input, and those between them.
pub(super) struct Densifier {
    stage: Arc<Densify>,
    run: Arc<Run>,
    input: Option<BoxSource>,
    rows: Option<Rows>,
    /// The least and greatest value of all documents.
    extent: Option<(Point, Point)>,
    partition: Option<Partition>,
    made: u64,
}

type Rows = Peekable<Box<dyn Iterator<Item = Row> + Send>>;

struct Row {
    partition: Vec<u8>,
    point: Option<Point>,
    document: Document,
}

/// The partition that is given.
struct Partition {
    key: Vec<u8>,
    /// A document with the partition's fields.
    template: RawDocumentBuf,
    grid: Option<Grid>,
}

/// The values that a partition must have.
struct Grid {
    first: Point,
    steps: i64,
    next: Point,
    end: Point,
    includes_end: bool,
}

impl Densifier {
    /// Returns a source over the input.
    pub(super) fn new(stage: Arc<Densify>, input: BoxSource, run: &Arc<Run>) -> Densifier {
        Densifier {
            stage,
            run: Arc::clone(run),
            input: Some(input),
            rows: None,
            extent: None,
            partition: None,
            made: 0,
        }
    }

    /// Takes all documents of the input.
    fn read(&mut self, mut input: BoxSource) -> Result<()> {
        let mut sorter = Sorter::new(None, StageMemory::new("$densify"));
        while let Some(document) = input.next()? {
            let point = self.stage.point(&document.bytes)?;
            if let Some(point) = point {
                self.extent = Some(match self.extent {
                    Some((low, high)) => (least(low, point), greatest(high, point)),
                    None => (point, point),
                });
            }
            let partition = self.partition_key(&document)?;
            let mut key = partition.clone();
            let value = point.map_or(RawBson::Null, Point::value);
            key::encode(value.as_raw_bson_ref(), None, &mut key);
            let bytes = document.memory() + partition.len();
            let row = Row {
                partition,
                point,
                document,
            };
            sorter.push(key, row, bytes)?;
        }
        let rows: Box<dyn Iterator<Item = Row> + Send> = Box::new(sorter.finish());
        let mut rows = rows.peekable();
        if rows.peek().is_none() && self.stage.partition_by.is_empty() {
            // An explicit range is filled even without documents.
            self.partition = Some(Partition {
                key: Vec::new(),
                template: RawDocumentBuf::new(),
                grid: self.grid(None),
            });
        }
        self.rows = Some(rows);
        Ok(())
    }

    fn partition_key(&self, document: &Document) -> Result<Vec<u8>> {
        let mut key = Vec::new();
        for path in &self.stage.partition_by {
            let value = nested::get(&document.bytes, path.names())?.unwrap_or(RawBsonRef::Null);
            key::encode(value, self.run.collation(), &mut key);
        }
        Ok(key)
    }

    /// Returns the grid of a partition whose first value is `first`.
    fn grid(&self, first: Option<Point>) -> Option<Grid> {
        let (first, end, includes_end) = match (self.stage.bounds, self.extent) {
            (Bounds::Range(low, high), _) => (low, high, false),
            (Bounds::Full, Some((low, high))) => (low, high, true),
            (Bounds::Partition, Some((_, high))) => (first?, high, false),
            (_, None) => return None,
        };
        Some(Grid {
            first,
            steps: 0,
            next: first,
            end,
            includes_end,
        })
    }

    /// Begins the partition of a row.
    fn start(&mut self) -> Result<bool> {
        let Some(row) = self.rows.as_mut().and_then(|rows| rows.peek()) else {
            return Ok(false);
        };
        let mut template = RawDocumentBuf::new();
        for path in &self.stage.partition_by {
            if let Some(value) = nested::get(&row.document.bytes, path.names())? {
                template = nested::set(&template, path.names(), Some(value))?;
            }
        }
        let (key, point) = (row.partition.clone(), row.point);
        self.partition = Some(Partition {
            grid: self.grid(point),
            key,
            template,
        });
        Ok(true)
    }

    /// Returns the document for the next value of the grid, and moves on.
    fn make(&mut self, point: Point) -> Result<Document> {
        self.made += 1;
        if self.made > MAX_MADE {
            let text = format!(
                "Generated {} documents in $densify, which is over the limit of {MAX_MADE}",
                self.made
            );
            return Err(Error::new(5897900, text));
        }
        self.run.context.interrupt.check(1)?;
        self.advance()?;
        let template = self
            .partition
            .as_ref()
            .map(|partition| partition.template.clone())
            .unwrap_or_default();
        let value = point.value();
        let bytes = nested::set(&template, self.stage.field.names(), Some(value.as_raw_bson_ref()))?;
        Ok(Document::new(bytes))
    }

    fn advance(&mut self) -> Result<()> {
        let step = self.stage.step;
        if let Some(grid) = self.partition.as_mut().and_then(|partition| partition.grid.as_mut()) {
            grid.advance(step)?;
        }
        Ok(())
    }
}

impl Source for Densifier {
    fn next(&mut self) -> Result<Option<Document>> {
        if let Some(input) = self.input.take() {
            self.read(input)?;
        }
        loop {
            let Some(partition) = &mut self.partition else {
                if self.start()? {
                    continue;
                }
                return Ok(None);
            };
            let Some(rows) = &mut self.rows else {
                return Ok(None);
            };
            let next = partition.grid.as_ref().and_then(Grid::next);
            let Some(row) = rows.next_if(|row| row.partition == partition.key && !is_before(next, row.point)) else {
                let is_same = rows.peek().is_some_and(|row| row.partition == partition.key);
                match next {
                    Some(point) => return self.make(point).map(Some),
                    None if is_same => return Ok(rows.next().map(|row| row.document)),
                    None => self.partition = None,
                }
                continue;
            };
            // In bounds of a partition, the grid begins at the first value, behind rows without one.
            let lacks_grid = partition.grid.is_none() && row.point.is_some();
            if lacks_grid && matches!(self.stage.bounds, Bounds::Partition) {
                let grid = self.grid(row.point);
                if let Some(partition) = &mut self.partition {
                    partition.grid = grid;
                }
            }
            let grid = self.partition.as_ref().and_then(|partition| partition.grid.as_ref());
            let is_on_grid = match (grid.and_then(Grid::next), row.point) {
                (Some(next), Some(point)) => compare(next, point).is_eq(),
                _ => false,
            };
            if is_on_grid {
                self.advance()?;
            }
            return Ok(Some(row.document));
        }
    }
}

impl Grid {
    /// Returns the next value, if it is in bounds.
    fn next(&self) -> Option<Point> {
        let is_inside = match compare(self.next, self.end) {
            Ordering::Less => true,
            Ordering::Equal => self.includes_end,
            Ordering::Greater => false,
        };
        is_inside.then_some(self.next)
    }

    fn advance(&mut self, step: Step) -> Result<()> {
        self.steps += 1;
        self.next = match (self.next, step) {
            (Point::Number(next), Step::Number(step)) => Point::Number(next.add(step)),
            // From the first date, as the ends of months would move otherwise.
            (Point::Date(next), Step::Date(step, unit)) => {
                let first = if let Point::Date(first) = self.first {
                    first
                } else {
                    next
                };
                Point::Date(add_to_date(first, unit, step.saturating_mul(self.steps))?)
            }
            (next, _) => next,
        };
        Ok(())
    }
}

/// Returns true if a value of the grid comes before a row.
fn is_before(next: Option<Point>, row: Option<Point>) -> bool {
    match (next, row) {
        (Some(next), Some(row)) => compare(next, row).is_lt(),
        _ => false,
    }
}

impl Point {
    fn value(self) -> RawBson {
        match self {
            Point::Number(number) => number.into(),
            Point::Date(date) => RawBson::DateTime(DateTime::from_millis(date)),
        }
    }
}

/// Compares values of one type.
fn compare(a: Point, b: Point) -> Ordering {
    match (a, b) {
        (Point::Number(a), Point::Number(b)) => a.compare(b),
        (Point::Date(a), Point::Date(b)) => a.cmp(&b),
        (Point::Number(_), Point::Date(_)) => Ordering::Less,
        (Point::Date(_), Point::Number(_)) => Ordering::Greater,
    }
}

fn least(a: Point, b: Point) -> Point {
    if compare(b, a).is_lt() { b } else { a }
}

fn greatest(a: Point, b: Point) -> Point {
    if compare(b, a).is_gt() { b } else { a }
}
