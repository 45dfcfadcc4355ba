//! ORDER BY: keeps the rows of one page in order, and the position where it ended (cosmos-sql §13).
//!
//! Ties: by resource id, ascending, or descending if the first key is; rows of one item in the order in which they came.

mod wanted;

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque, hash_map};
use std::sync::Arc;

use bolide_model::UnixSeconds;
use bolide_model::ttl::{Class, Stamp};
use smallvec::SmallVec;

use super::ahead::{Ahead, KeepLimit};
use super::best_rows::BestRows;
use super::emitted_rows;
use super::output::{Offer, Output, Written};
use super::resume_filter::ResumeFilter;
use super::sort_value::SortValue;
use crate::error::Result;
use crate::eval::Row;
use crate::fuel::KEY_BYTE;
use crate::limits::ORDER_BY_KEYS;
use crate::memory::{ALLOCATION_BYTES, Memory, TABLE_ENTRY_BYTES};
use crate::program;
use crate::value::{SameKey, Value, append_same_key, same_key, write_json};

/// The position of a row in the order.
#[derive(Debug, Clone, PartialEq)]
pub struct SortPosition {
    pub values: SmallVec<[SortValue; 2]>,
    pub rid: u64,
    /// The number of the row within its item.
    pub ordinal: u64,
}

#[derive(Debug)]
pub(super) struct Entry {
    position: SortPosition,
    row: Box<[u8]>,
    directions: Directions,
    written: Written,
    /// The stamp by which its item expires; needed only for rows that are kept for later pages.
    pub(super) stamp: Stamp,
}

/// Bit n: key n descends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Directions(u64);

const _: () = assert!(ORDER_BY_KEYS <= u64::BITS as usize, "each key has a bit");

impl Directions {
    fn of(keys: &[program::SortKey]) -> Directions {
        let bits = keys.iter().enumerate().map(|(n, key)| u64::from(key.descending) << n);
        Directions(bits.fold(0, |bits, bit| bits | bit))
    }

    fn descends(self, key: usize) -> bool {
        self.0 >> key & 1 == 1
    }

    fn compare(self, a: &SortPosition, b: &SortPosition) -> Ordering {
        self.compare_values(&a.values, &b.values)
            .then_with(|| self.compare_rids(a.rid, b.rid))
            .then(a.ordinal.cmp(&b.ordinal))
    }

    /// The order of the values of two rows.
    pub fn compare_values(self, a: &[SortValue], b: &[SortValue]) -> Ordering {
        for (key, (x, y)) in a.iter().zip(b).enumerate() {
            let order = x.order(y);
            if order.is_ne() {
                return if self.descends(key) { order.reverse() } else { order };
            }
        }
        Ordering::Equal
    }

    /// The order of two items with equal values.
    pub fn compare_rids(self, a: u64, b: u64) -> Ordering {
        let order = a.cmp(&b);
        if self.descends(0) { order.reverse() } else { order }
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        self.directions.compare(&self.position, &other.position)
    }
}

/// For rows that are not kept for later pages.
const UNKNOWN: Stamp = Stamp {
    class: Class::Never,
    base: UnixSeconds(0),
};

/// The best rows so far, the worst of them on top.
#[derive(Debug)]
pub(super) struct Sorter {
    directions: Directions,
    best: BestRows<Entry>,
    /// Maximum number of rows that the page needs.
    max_rows: Option<usize>,
    /// How much to keep beyond them.
    keep_limit: KeepLimit,
    best_bytes: usize,
    /// The first position whose row was not kept.
    dropped: Option<SortPosition>,
    /// The rows of the page and those after it, if an earlier page has sorted them.
    restored: Option<Ahead>,
    /// The rows after the page.
    ahead: Option<Ahead>,
    stamp: Stamp,
    boundary: Option<SortPosition>,
    /// The client's filter of rows.
    filter: Option<Arc<ResumeFilter>>,
    last_emitted: Option<SortPosition>,
    /// Rows for which only the whole of a string that was cut in `boundary` could tell whether they were returned.
    unsure: Vec<Entry>,
    /// Number of rows that passed the filters, those of earlier pages included.
    seen: u64,
    /// With DISTINCT: the first row of each value.
    by_value: Option<HashMap<SameKey, Entry>>,
    /// Where rows are written, before it is known how long they are.
    scratch: Vec<u8>,
}

/// A longer row is written to memory of its own.
const SCRATCH_BYTES: usize = 16 * 1024;

impl Sorter {
    /// Keeps at most `max_rows` rows, all of them after `boundary` and accepted by `filter`.
    pub fn new(
        keys: &[program::SortKey],
        max_rows: Option<usize>,
        boundary: Option<SortPosition>,
        filter: Option<Arc<ResumeFilter>>,
        is_distinct: bool,
    ) -> Sorter {
        Sorter {
            directions: Directions::of(keys),
            best: BestRows::default(),
            max_rows,
            keep_limit: KeepLimit::NONE,
            best_bytes: 0,
            dropped: None,
            restored: None,
            ahead: None,
            stamp: UNKNOWN,
            boundary,
            filter,
            last_emitted: None,
            unsure: Vec::new(),
            seen: 0,
            by_value: is_distinct.then(HashMap::new),
            scratch: Vec::new(),
        }
    }

    /// Also keeps rows for later pages.
    pub fn keep_following_rows(&mut self) {
        self.keep_limit = KeepLimit::AHEAD;
    }

    /// Takes the rows that an earlier page kept. No row may be added then.
    pub fn restore(&mut self, ahead: Ahead) {
        self.restored = Some(ahead);
    }

    /// The rows after the page that was returned.
    pub fn take_following_rows(&mut self) -> Option<Ahead> {
        self.ahead.take()
    }

    /// Whether the rows begin with the first, and none was added.
    pub fn is_fresh(&self) -> bool {
        self.boundary.is_none() && self.filter.is_none() && self.best.is_empty() && self.unsure.is_empty()
    }

    /// Keeps at most so many rows from now on.
    pub fn want(&mut self, max_rows: Option<usize>) {
        self.max_rows = max_rows;
    }

    /// Number of rows that were added, those of earlier pages and those that are too far behind included.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Called before the rows of another item.
    pub fn enter(&mut self, stamp: Option<Stamp>) {
        match stamp {
            Some(stamp) => self.stamp = stamp,
            None => self.keep_limit = KeepLimit::NONE,
        }
    }

    /// Adds a row if it is among the best; `write` appends its result and returns whether there is one.
    pub fn add<'a>(
        &mut self,
        keys: &'a [program::SortKey],
        row: &mut Row<'a>,
        ordinal: u64,
        write: impl FnOnce(&mut Row<'a>, &mut Vec<u8>) -> Result<bool>,
    ) -> Result<()> {
        let Some(position) = self.sort_position(keys, row, ordinal)? else {
            return Ok(());
        };
        self.learn(&position);
        let is_undecided = self.is_undecided(&position);
        if !is_undecided && self.is_behind(&position) {
            self.seen += 1;
            return Ok(());
        }
        let Some(text) = self.text(row, write)? else {
            return Ok(());
        };
        self.seen += 1;
        let entry = Entry {
            position,
            row: text,
            directions: self.directions,
            written: Written::Row,
            stamp: self.stamp,
        };
        let memory = &row.session.memory;
        if is_undecided {
            memory.take(entry.bytes())?;
            self.unsure.push(entry);
            return Ok(());
        }
        self.keep(entry, memory)
    }

    /// What `write` appends; `None` if it has no result.
    fn text<'a>(
        &mut self,
        row: &mut Row<'a>,
        write: impl FnOnce(&mut Row<'a>, &mut Vec<u8>) -> Result<bool>,
    ) -> Result<Option<Box<[u8]>>> {
        let mut out = std::mem::take(&mut self.scratch);
        out.clear();
        let is_written = write(row, &mut out)?;
        if out.capacity() > SCRATCH_BYTES {
            return Ok(is_written.then(|| out.into()));
        }
        let text = is_written.then(|| Box::from(&*out));
        self.scratch = out;
        Ok(text)
    }

    /// The position of a row; `None` if it lacks a required key, or the client already has it.
    fn sort_position<'a>(
        &self,
        keys: &'a [program::SortKey],
        row: &mut Row<'a>,
        ordinal: u64,
    ) -> Result<Option<SortPosition>> {
        let mut values = SmallVec::new();
        for key in keys {
            let value = key.value.eval(row)?;
            let value = if key.primitives_only && !value.is_primitive() {
                Value::Undefined
            } else {
                value
            };
            if key.skip_undefined && !value.is_defined() {
                return Ok(None);
            }
            row.session.fuel.burn(sort_units(&value))?;
            values.push(SortValue::new(&value));
        }
        let position = SortPosition {
            values,
            rid: row.rid,
            ordinal,
        };
        let is_wanted = self
            .filter
            .as_ref()
            .is_none_or(|filter| filter.accepts(&position, self.directions));
        Ok(is_wanted.then_some(position))
    }

    /// Takes the whole of a string that was cut in the boundary from a row that has it.
    fn learn(&mut self, position: &SortPosition) {
        let Some(boundary) = &mut self.boundary else { return };
        for (value, known) in position.values.iter().zip(&mut boundary.values) {
            if value.is_whole_of(known) {
                *known = value.clone();
            }
        }
    }

    /// Whether only the whole of a cut string could tell on which side of the boundary a row is.
    fn is_undecided(&self, position: &SortPosition) -> bool {
        let Some(boundary) = &self.boundary else { return false };
        let mut values = position.values.iter().zip(&boundary.values);
        let differs = values.find(|(value, known)| value.order(known).is_ne());
        differs.is_some_and(|(value, known)| value.is_undecided(known))
    }

    /// Adds a row if its value is new, or if it comes before the row that had the value. Rows of earlier pages are kept too: they mark values that
    /// have been returned.
    pub fn add_distinct<'a>(
        &mut self,
        keys: &'a [program::SortKey],
        row: &mut Row<'a>,
        ordinal: u64,
        value: impl FnOnce(&mut Row<'a>) -> Result<Value<'a>>,
    ) -> Result<()> {
        let Some(position) = self.sort_position(keys, row, ordinal)? else {
            return Ok(());
        };
        self.learn(&position);
        let value = value(row)?;
        if !value.is_defined() {
            return Ok(());
        }
        let mut canonical = Vec::new();
        append_same_key(&value, &mut canonical);
        row.session.fuel.burn(canonical.len() as u64 * KEY_BYTE)?;
        let directions = self.directions;
        let by_value = self.by_value.get_or_insert_default();
        match by_value.entry(same_key(&canonical)) {
            hash_map::Entry::Occupied(mut first) => {
                if directions.compare(&position, &first.get().position).is_lt() {
                    let before = first.get().bytes();
                    first.get_mut().position = position;
                    row.session.memory.take(first.get().bytes())?;
                    row.session.memory.release(before);
                }
                Ok(())
            }
            hash_map::Entry::Vacant(vacant) => {
                let mut out = Vec::new();
                write_json(&value, &mut out);
                let key_bytes = vacant.key().len();
                let written = Written::Named(emitted_rows::hash(vacant.key()));
                let entry = vacant.insert(Entry {
                    position,
                    row: out.into(),
                    directions,
                    written,
                    stamp: UNKNOWN,
                });
                let bytes = key_bytes + ALLOCATION_BYTES + TABLE_ENTRY_BYTES + entry.bytes();
                row.session.memory.take(bytes)
            }
        }
    }

    /// Whether a row was returned by an earlier page, or is worse than every kept row when no more rows are needed.
    fn is_behind(&mut self, position: &SortPosition) -> bool {
        let compare = |a: &SortPosition, b: &SortPosition| self.directions.compare(a, b);
        if self.was_emitted(position) {
            return true;
        }
        // The kept rows have no gaps: no row after a dropped one may be kept.
        if self
            .dropped
            .as_ref()
            .is_some_and(|dropped| compare(position, dropped).is_ge())
        {
            return true;
        }
        let is_worst = self.is_full()
            && self
                .best
                .worst()
                .is_none_or(|worst| compare(position, &worst.position).is_ge());
        if is_worst {
            self.dropped = Some(position.clone());
        }
        is_worst
    }

    fn is_full(&self) -> bool {
        self.max_rows.is_some_and(|max_rows| {
            let beyond = self.best.len().checked_sub(max_rows);
            beyond.is_some_and(|beyond| beyond >= self.keep_limit.rows || self.best_bytes >= self.keep_limit.bytes)
        })
    }

    fn keep(&mut self, entry: Entry, memory: &Memory) -> Result<()> {
        memory.take(entry.bytes())?;
        self.best_bytes += entry.bytes();
        self.best.add(entry);
        while self.max_rows.is_some_and(|max_rows| {
            let beyond = self.best.len().saturating_sub(max_rows);
            beyond > self.keep_limit.rows || (beyond > 0 && self.best_bytes > self.keep_limit.bytes)
        }) {
            let Some(worst) = self.best.take_worst() else { break };
            memory.release(worst.bytes());
            self.best_bytes -= worst.bytes();
            self.dropped = Some(worst.position);
        }
        Ok(())
    }

    /// Returns the rows in order until the page refuses one.
    pub fn emit(&mut self, output: &mut Output) -> Result<()> {
        if let Some(Ahead { entries, is_all }) = self.restored.take() {
            let left = self.emit_entries(entries, output)?;
            self.ahead = Some(Ahead { entries: left, is_all });
            return Ok(());
        }
        let mut entries = std::mem::take(&mut self.best).into_sorted();
        let unsorted = self.by_value.take().unwrap_or_default().into_values();
        let unsorted: Vec<Entry> = unsorted.chain(std::mem::take(&mut self.unsure)).collect();
        let is_sorted = unsorted.is_empty();
        if !is_sorted {
            entries.extend(unsorted);
            entries.retain(|entry| !self.was_emitted(&entry.position));
            entries.sort();
        }
        let left = self.emit_entries(entries.into(), output)?;
        if is_sorted && self.keep_limit.rows > 0 {
            self.ahead = Some(Ahead {
                entries: left,
                is_all: self.dropped.is_none(),
            });
        }
        Ok(())
    }

    /// Writes rows in order; returns those that the page refused.
    fn emit_entries(&mut self, mut entries: VecDeque<Entry>, output: &mut Output) -> Result<VecDeque<Entry>> {
        while let Some(entry) = entries.front() {
            let offer = output.offer(|out| {
                out.extend_from_slice(&entry.row);
                Ok(entry.written)
            })?;
            if offer == Offer::Refused {
                break;
            }
            self.last_emitted = entries.pop_front().map(|entry| entry.position);
        }
        Ok(entries)
    }

    /// If this is unknown, the answer is no: a row returned twice is better than a row lost.
    fn was_emitted(&self, position: &SortPosition) -> bool {
        let boundary = self.boundary.as_ref().filter(|_| !self.is_undecided(position));
        boundary.is_some_and(|boundary| self.directions.compare(position, boundary).is_le())
    }

    /// The position of the last row on the page, or the end of the previous page.
    pub fn last_emitted(&self) -> Option<SortPosition> {
        self.last_emitted.clone().or_else(|| self.boundary.clone())
    }
}

/// Cost of copying, hashing and comparing a value.
fn sort_units(value: &Value<'_>) -> u64 {
    match value {
        Value::String(text) => text.as_str().len() as u64 * 2,
        Value::Json(_) | Value::Array(_) | Value::Object(_) => value.written_out_bytes(usize::MAX) as u64 * KEY_BYTE,
        _ => 0,
    }
}

impl Entry {
    /// Its memory. Lists of entries grow by doubling.
    pub(super) fn bytes(&self) -> usize {
        let string = |value: &SortValue| match value {
            SortValue::String(string) => string.len() + ALLOCATION_BYTES,
            _ => 0,
        };
        let strings: usize = self.position.values.iter().map(string).sum();
        let values = if self.position.values.spilled() {
            self.position.values.capacity() * size_of::<SortValue>() + ALLOCATION_BYTES
        } else {
            0
        };
        size_of::<Entry>() * 3 / 2 + self.row.len() + ALLOCATION_BYTES + values + strings
    }
}
