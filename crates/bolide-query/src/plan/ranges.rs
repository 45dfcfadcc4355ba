//! Partition key ranges from WHERE, at the level of key values (cosmos-sql §22.3).
//!
//! A condition becomes a list of boxes: each box bounds some components of the key, and an item can pass only if one box contains it. AND intersects
//! boxes pairwise, OR concatenates the lists. A condition that cannot be analysed becomes the box without bounds.

mod analysis;
mod bounds;

use std::cmp::Ordering;
use std::fmt;

use crate::bind::Bound;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::Number;
use crate::schema::Schema;
use analysis::Analysis;

/// A component of a partition key.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyValue {
    /// The property is missing.
    Undefined,
    /// null
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    String(String),
    /// An array or object; all of them are the same key.
    Complex,
}

/// An end of a range of key components; only the legacy range kind uses ends other than values.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyEnd {
    /// This value.
    Value(KeyValue),
    /// Below all numbers.
    MinNumber,
    /// Above all numbers.
    MaxNumber,
    /// Below all strings.
    MinString,
    /// Above all strings.
    MaxString,
}

/// A range of partition keys. A point has equal ends; fewer components than the container has paths mean all keys with this prefix.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyRange {
    /// The lowest key, component by component.
    pub min: Vec<KeyEnd>,
    /// The highest key.
    pub max: Vec<KeyEnd>,
    /// Whether the range includes `min`.
    pub min_inclusive: bool,
    /// Whether the range includes `max`.
    pub max_inclusive: bool,
    /// Whether every component is bounded.
    pub complete: bool,
}

impl KeyRange {
    /// The key, or prefix of a key, that this range consists of; `None` if its ends differ.
    pub fn as_point(&self) -> Option<Vec<&KeyValue>> {
        if self.min != self.max {
            return None;
        }
        self.min
            .iter()
            .map(|end| {
                if let KeyEnd::Value(value) = end {
                    Some(value)
                } else {
                    None
                }
            })
            .collect()
    }
}

/// The ranges that may have results of a query.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyRanges {
    /// All ranges.
    All,
    /// No range: the filter is contradictory, or there is no FROM. The service returns its lowest point, `[[],[]]`.
    Nothing,
    /// These ranges.
    Some(Vec<KeyRange>),
}

impl KeyRanges {
    /// Whether it is exactly one partition key.
    pub fn is_single_key(&self) -> bool {
        matches!(self, KeyRanges::Some(list) if matches!(list.as_slice(), [range] if range.complete && range.as_point().is_some()))
    }
}

/// The ranges of a bound query.
///
/// # Errors
/// As [`Memory::take`].
pub fn key_ranges(bound: &Bound, schema: &Schema, memory: &Memory) -> Result<KeyRanges> {
    if !bound.select.reads_items() {
        return Ok(KeyRanges::Nothing);
    }
    let mut analysis = Analysis::new(bound, schema, memory);
    let boxes = |analysis: &Analysis<'_>| match &bound.select.filter {
        Some(filter) => analysis.boxes(filter),
        None => vec![analysis.unbounded()],
    };
    // Conditions in subqueries never narrow the ranges, but may show that no item can pass.
    let is_impossible = boxes(&analysis).is_empty();
    memory.release(memory.used());
    analysis.deep = false;
    let boxes = if is_impossible { Vec::new() } else { boxes(&analysis) };
    analysis.into_ranges(boxes)
}

impl KeyRange {
    /// An order in which equal ranges are next to each other.
    fn order(&self, other: &KeyRange) -> Ordering {
        let ends = |a: &[KeyEnd], b: &[KeyEnd]| {
            let differs = a.iter().zip(b).map(|(x, y)| x.order(y)).find(|order| order.is_ne());
            differs.unwrap_or_else(|| a.len().cmp(&b.len()))
        };
        ends(&self.min, &other.min)
            .then_with(|| ends(&self.max, &other.max))
            .then_with(|| self.min_inclusive.cmp(&other.min_inclusive))
            .then_with(|| self.max_inclusive.cmp(&other.max_inclusive))
            .then_with(|| self.complete.cmp(&other.complete))
    }
}

impl fmt::Display for KeyRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyRanges::All => f.write_str("all"),
            KeyRanges::Nothing => f.write_str("none"),
            KeyRanges::Some(list) => write!(f, "{} range(s)", list.len()),
        }
    }
}
