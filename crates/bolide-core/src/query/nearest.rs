//! Finds the items whose vectors are nearest to that of a query, through the lists of a vector index.
//!
//! ```text
//!   lists in the order of their centres ─▶ entries of the first ones ─▶ those with the best estimates ─▶ their items ─▶ execution
//!                    ▲                                                                                               │
//!                    └───────────────── more lists, more items, until enough rows pass ──────────────────────────────┘
//! ```
//!
//! The execution computes the distances from the items and sorts by these, so that only which items are compared depends on the index. Items that are not visible, or
//! do not pass the filter, are made up for by others. The search of a query is the same on all of its pages: a page shows what comes behind the previous one, by
//! distance and resource id, of all items that are found. If much was read in vain, a scan compares all items.
//!
//! Entries of several lists are read at several heads. An item whose vector is replaced meanwhile may be missed, as one that lies in a list that is not read.

use std::collections::HashSet;

use bolide_index::vector::Target;
use bolide_model::Result;
use bolide_query::index::NearestQuery;
use bolide_query::schema::DistanceFunction;
use bolide_storage::{Page, Space};
use bytes::Bytes;

use super::candidates::{FEW_ITEMS, ITEMS_PER_CANDIDATE, IndexReader, MAX_CANDIDATES, point};
use super::counting::Counting;
use super::page::{PageRun, push};
use crate::format::keys::{self, PropertyEntry};
use crate::index::{PropertyIndexes, UNQUANTIZED, VectorIndex, WITHOUT_VECTOR};
use crate::memory::MemoryShare;
use crate::partition::IndexInterval;
use crate::scan::{ItemScan, Slice};

/// Number of entries that the first lists have together by their mean length, in all ranges of a container, with the default multiplier of the query.
const FIRST_ENTRIES: f64 = 4_096.0;
const DEFAULT_LIST_MULTIPLIER: f64 = 10.0;
/// Minimum number of entries for each candidate.
const ENTRIES_OF_CANDIDATE: f64 = 4.0;
/// Minimum number of the first lists.
const MIN_LISTS: usize = 4;
/// Maximum number of rows that are searched by an index, of all pages together.
const MAX_ROWS: u64 = 1_000;
/// Candidates that do not become rows are made up for until this many rows are found for each that is wanted: the order by estimates is about that of distances.
const ROWS_FOUND: f64 = 2.0;
/// Maximum number of slices: each list is looked up in each.
const MAX_SLICES: usize = 64;
/// A part of a range is searched through the index if it has more than this many items, and one of so many of the range.
const PART_ITEMS: u64 = 2_000;
const RANGE_OF_PART: u64 = 16;
const MAX_COUNTED: u64 = 20_000;
/// Maximum number of entries whose items are not looked at yet.
const MAX_WAITING: usize = 50_000;
/// Maximum number of entries of one read of items without a vector, and of those whose vector has no estimate.
const READ_WITHOUT: usize = 256;
const MAX_UNQUANTIZED: usize = 1_024;

/// A search through an index of vectors.
pub(super) struct NearestScan {
    /// The id of the index.
    pub index: u32,
    target: Target,
    wanted: NearestQuery,
    /// All lists, in the order in which they are read.
    order: Vec<u32>,
    /// Number of lists that are read first.
    first_lists: usize,
    /// Maximum number of items that are looked at.
    max_items: usize,
    /// Whether entries must be compared with the slice: it is a part of a range.
    is_part: bool,
}

impl IndexReader<'_> {
    /// Returns the search for the nearest vectors of the query; `None` if comparing all of them is better, or if there is no index.
    ///
    /// # Errors
    /// From the engine.
    pub async fn nearest(&self) -> Result<Option<NearestScan>> {
        let Some(wanted) = self.nearest.as_ref().filter(|_| self.slices.len() <= MAX_SLICES) else {
            return Ok(None);
        };
        let (Some((index, vectors)), 1..=MAX_ROWS) = (self.state.indexes.usable_for_nearest(wanted), wanted.rows)
        else {
            return Ok(None);
        };
        let Some(target) = Target::of(&wanted.vector, vectors.similarity) else {
            return Ok(None);
        };
        let is_part = !self.is_of_ranges;
        let stored = self.stored_items();
        let always = self.index_use.is_forced();
        if !always && (stored <= FEW_ITEMS || (is_part && self.is_small_part(stored).await?)) {
            return Ok(None);
        }
        Ok(Some(NearestScan {
            index,
            first_lists: self.first_lists(wanted, vectors, stored),
            order: vectors.centroids().order(&target),
            target,
            wanted: wanted.clone(),
            max_items: match always {
                true => usize::MAX,
                false => MAX_CANDIDATES.min(usize::try_from(stored / ITEMS_PER_CANDIDATE).unwrap_or(usize::MAX)),
            },
            is_part,
        }))
    }

    /// Whether a scan of the slices compares so few items that no search is faster.
    async fn is_small_part(&self, stored: u64) -> Result<bool> {
        let most = (stored / RANGE_OF_PART).clamp(PART_ITEMS, MAX_COUNTED);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let mut rows = 0;
        for slice in self.slices {
            let (from, to) = (&slice.from, slice.to.as_ref());
            rows += slice.partition.count_rows(Space::Item, from, to, most).await?;
            if rows >= most {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn first_lists(&self, wanted: &NearestQuery, vectors: &VectorIndex, stored: u64) -> usize {
        let lists = vectors.centroids().lists();
        let ranges = self.state.layout.partitions.len().max(1) as f64;
        let read = self.slices.len().min(self.state.layout.partitions.len()).max(1) as f64;
        let usual = FIRST_ENTRIES * wanted.list_multiplier / DEFAULT_LIST_MULTIPLIER * read / ranges;
        let entries = usual.max(ENTRIES_OF_CANDIDATE * wanted.rows as f64 * wanted.candidate_multiplier);
        let of_list = (stored as f64 / lists as f64).max(1.0);
        // Both are positive, and far below what loses its exactness.
        ((entries / of_list).ceil() as usize).max(MIN_LISTS).min(lists)
    }
}

/// Describes the index that finds the nearest vectors of a query.
pub(super) fn explain(wanted: Option<NearestQuery>, indexes: &PropertyIndexes) -> Option<String> {
    let wanted = wanted?;
    let (_, vectors) = indexes.usable_for_nearest(&wanted)?;
    let lists = vectors.centroids().lists();
    Some(format!(
        "index: {} finds the nearest vectors, in {lists} lists\n",
        wanted.path
    ))
}

/// An entry whose item was not looked at yet.
struct Waiting {
    estimate: f32,
    /// The index of its slice.
    slice: usize,
    entry: Bytes,
}

impl PageRun<'_> {
    /// Pushes the items that are nearest to the query's vector. Returns `false` if a scan is needed after all; the execution cannot be used then.
    pub async fn scan_nearest(
        &self,
        execution: &mut Counting,
        walk: &mut ItemScan<'_>,
        scan: &NearestScan,
    ) -> Result<bool> {
        let search = Search {
            run: self,
            scan,
            execution,
            walk,
            pushed: HashSet::new(),
            waiting: Vec::new(),
            is_cut: false,
            lists: 0,
            memory: self.memory.try_take(0)?,
        };
        search.run().await
    }
}

/// A search in progress.
struct Search<'s, 'w> {
    run: &'s PageRun<'s>,
    scan: &'s NearestScan,
    execution: &'s mut Counting,
    walk: &'s mut ItemScan<'w>,
    /// The keys of the items that were looked at: one that moves from list to list meanwhile has one row all the same.
    pushed: HashSet<Bytes>,
    waiting: Vec<Waiting>,
    /// Whether entries were left out because there were too many.
    is_cut: bool,
    /// Number of lists that were read.
    lists: usize,
    memory: MemoryShare,
}

impl Search<'_, '_> {
    /// Runs the search. Returns `false` if a scan is needed after all.
    async fn run(mut self) -> Result<bool> {
        let wanted = &self.scan.wanted;
        let comes_first = wanted.function == DistanceFunction::Euclidean;
        if comes_first && !wanted.is_defined {
            if !self.push_without(false).await? {
                return Ok(false);
            }
            if self.execution.rows_sorted() >= wanted.rows {
                return Ok(true);
            }
        }
        if !self.push_unquantized().await? || !self.push_nearest().await? {
            return Ok(false);
        }
        match !comes_first && self.execution.rows_sorted() < wanted.rows {
            true => self.push_without(true).await,
            false => Ok(true),
        }
    }

    /// Reads lists, and pushes the items with the best estimates, until enough rows pass or nothing is left.
    async fn push_nearest(&mut self) -> Result<bool> {
        let (scan, wanted) = (self.scan, &self.scan.wanted);
        let before = self.execution.rows_sorted();
        let enough = wanted.rows as f64 * wanted.candidate_multiplier.min(ROWS_FOUND);
        let mut candidates = (wanted.rows as f64 * wanted.candidate_multiplier).ceil() as usize;
        loop {
            let to = (2 * self.lists).max(scan.first_lists).min(scan.order.len());
            for at in 0..self.run.slices.len() {
                self.read_lists(&scan.order[self.lists..to], at).await?;
            }
            self.lists = to;
            if !self.pushed.is_empty() && self.pushed.len() + candidates > scan.max_items {
                return Ok(false);
            }
            self.push_best(candidates).await?;
            if (self.execution.rows_sorted() - before) as f64 >= enough {
                return Ok(true);
            }
            if self.lists == scan.order.len() && self.waiting.is_empty() {
                return Ok(!self.is_cut);
            }
            candidates = candidates.saturating_mul(2);
        }
    }

    /// Reads the entries of some lists in one slice, and adds their estimates.
    async fn read_lists(&mut self, lists: &[u32], at: usize) -> Result<()> {
        let slice = &self.run.slices[at];
        let mut left: Vec<IndexInterval> = lists.iter().map(|list| list_of(self.scan.index, *list)).collect();
        // The next one is at the end.
        left.reverse();
        while !left.is_empty() {
            self.run.check()?;
            let next: Vec<IndexInterval> = left.iter().rev().cloned().collect();
            let (head, pages) = slice.partition.read_index_entries(&next).await?;
            self.walk.record_read(slice.partition.range, head.lsn);
            for page in pages.into_iter().take_while(Page::is_made) {
                let Some(mut read) = left.pop() else { break };
                let last = page.rows.last().map(|(key, _)| key.clone());
                let more = page.more;
                self.add(page.rows, at);
                if let Some(last) = last.filter(|_| more) {
                    read.from = keys::after(&last);
                    left.push(read);
                    break;
                }
            }
            self.bound()?;
        }
        Ok(())
    }

    /// Adds entries of a slice.
    fn add(&mut self, rows: Vec<(Bytes, Bytes)>, slice: usize) {
        for (entry, value) in rows {
            if self.scan.is_part {
                let item = PropertyEntry::parse(&entry).map(|entry| entry.item_key());
                if !item.is_some_and(|item| self.run.slices[slice].contains(&item)) {
                    continue;
                }
            }
            if let Some(estimate) = self.scan.target.estimate(&value) {
                self.waiting.push(Waiting { estimate, slice, entry });
            }
        }
    }

    /// Bounds the number of entries, and takes memory for them.
    fn bound(&mut self) -> Result<()> {
        if self.waiting.len() > MAX_WAITING {
            self.waiting = self.take_best(MAX_WAITING / 2);
            self.is_cut = true;
        }
        let entry = self.waiting.first().map_or(0, |waiting| waiting.entry.len());
        let needed = self.waiting.len() * (size_of::<Waiting>() + entry);
        match needed.checked_sub(self.memory.bytes()) {
            Some(more) => self.run.memory.try_grow(&mut self.memory, more),
            None => Ok(()),
        }
    }

    /// Takes the entries with the best estimates.
    fn take_best(&mut self, count: usize) -> Vec<Waiting> {
        if count >= self.waiting.len() {
            return std::mem::take(&mut self.waiting);
        }
        // Equal estimates in the order of their entries, so that every page takes the same.
        self.waiting.select_nth_unstable_by(count, |one, other| {
            let estimates = one.estimate.total_cmp(&other.estimate);
            estimates.then_with(|| (one.slice, &one.entry).cmp(&(other.slice, &other.entry)))
        });
        let rest = self.waiting.split_off(count);
        std::mem::replace(&mut self.waiting, rest)
    }

    /// Pushes the items of the entries with the best estimates.
    async fn push_best(&mut self, candidates: usize) -> Result<()> {
        let mut best = self.take_best(candidates);
        best.sort_unstable_by_key(|waiting| waiting.slice);
        for of_slice in best.chunk_by(|one, other| one.slice == other.slice) {
            let slice = &self.run.slices[of_slice[0].slice];
            self.push_items_of(slice, of_slice.iter().map(|waiting| &waiting.entry))
                .await?;
        }
        Ok(())
    }

    /// Pushes the items of some entries of one slice.
    async fn push_items_of(&mut self, slice: &Slice, entries: impl Iterator<Item = &Bytes>) -> Result<()> {
        let entries = entries.filter_map(|entry| PropertyEntry::parse(entry));
        let mut items: Vec<Bytes> = entries.map(|entry| entry.item_key()).collect();
        items.retain(|key| slice.contains(key) && self.pushed.insert(key.clone()));
        items.sort_unstable();
        self.execution.enter(slice.partition.range);
        self.walk.continue_with(items.into_iter().map(|key| point(slice, key)));
        while let Some(read) = self.walk.next_page().await? {
            self.run.check()?;
            for scanned in read.items {
                push(self.execution, &scanned.item)?;
            }
        }
        Ok(())
    }

    /// Pushes items without a distance in the order of their rows, until each slice has given as many rows as are wanted. Returns `false` if that takes too many.
    async fn push_without(&mut self, descending: bool) -> Result<bool> {
        for slice in self.run.slices {
            let before = self.execution.rows_sorted();
            let (mut rest, mut items) = (list_of(self.scan.index, WITHOUT_VECTOR), 0);
            loop {
                let (entries, more) = self.one_page(slice, &rest, descending).await?;
                items += entries.len();
                self.push_items_of(slice, entries.iter()).await?;
                if self.execution.rows_sorted() - before >= self.scan.wanted.rows {
                    break;
                }
                match entries.last().filter(|_| more) {
                    None => break,
                    Some(_) if items > self.scan.max_items => return Ok(false),
                    Some(last) if descending => rest.to = Some(last.clone()),
                    Some(last) => rest.from = keys::after(last),
                }
            }
        }
        Ok(true)
    }

    /// Pushes all items whose vector has no estimate. Returns `false` if there are many.
    async fn push_unquantized(&mut self) -> Result<bool> {
        for slice in self.run.slices {
            let (mut rest, mut items) = (list_of(self.scan.index, UNQUANTIZED), 0);
            loop {
                let (entries, more) = self.one_page(slice, &rest, false).await?;
                items += entries.len();
                if items > MAX_UNQUANTIZED {
                    return Ok(false);
                }
                self.push_items_of(slice, entries.iter()).await?;
                match entries.last().filter(|_| more) {
                    None => break,
                    Some(last) => rest.from = keys::after(last),
                }
            }
        }
        Ok(true)
    }

    /// Reads some keys of a list, and whether there are more.
    async fn one_page(&mut self, slice: &Slice, rest: &IndexInterval, descending: bool) -> Result<(Vec<Bytes>, bool)> {
        self.run.check()?;
        let intervals = std::slice::from_ref(rest);
        let (head, mut pages) = slice.partition.read_index(intervals, descending, READ_WITHOUT).await?;
        self.walk.record_read(slice.partition.range, head.lsn);
        let page = pages.pop().unwrap_or_default();
        Ok((page.rows.into_iter().map(|(key, _)| key).collect(), page.more))
    }
}

/// Returns the entries of a list.
fn list_of(index: u32, list: u32) -> IndexInterval {
    let prefix = [&keys::property_prefix(index)[..], &list.to_be_bytes()].concat();
    IndexInterval {
        to: keys::after_prefix(&prefix),
        from: prefix.into(),
    }
}
