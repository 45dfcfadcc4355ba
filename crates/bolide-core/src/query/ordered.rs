//! Reads the items of a sorted query in the order of an index, and ends when no later one can be among the rows of the page.
//!
//! The execution sorts as in a scan; the index only tells which items need not be read: those before the end of the previous page, and those behind the
//! worst row of a page that is full. Entries of one range are read at one version of the range, because an item that moved behind what was read would be lost. If
//! it changes before enough was read, the page begins again with a larger first read, and then is made by a scan.

use bolide_model::{Lsn, Result};
use bolide_query::index::{CompositeOrder, Interval, OrderedKeys};
use bolide_storage::Page;
use bytes::Bytes;

use super::candidates::{FEW_ITEMS, ITEMS_PER_CANDIDATE, IndexReader, MAX_CANDIDATES, interval, point};
use super::counting::Counting;
use super::covered::{ENTRIES_PER_LOOK, ENTRY_BYTES, LARGEST_READ};
use super::covered_rows::{KeysOf, covered_items, entry_read};
use super::page::{PageRun, push};
use crate::format::keys::{self, PropertyEntry};
use crate::memory::MemoryShare;
use crate::partition::{EntryRead, IndexInterval, LiveIndex};
use crate::scan::{ItemScan, Slice};
use crate::sql::query_error;

/// Number of entries of the first read beyond those that the page needs if all of their items are visible and pass the filter: at first, and when the range has
/// changed before the second read.
pub(super) const SPARE_ENTRIES: [usize; 2] = [16, READ_ENTRIES];
/// A read costs as much as this many entries.
const ENTRIES_OF_READ: usize = 8;
/// With fewer rows to skip, their items are read as those of the page.
const MIN_SKIPPED: u64 = 64;
/// Maximum number of items that are read between two looks at the time, if that is short.
const BRIEF_PUSHED: usize = 32;
/// Minimum number of items that are read at once.
const MIN_PUSHED: usize = 8;
/// Maximum number of entries of a read.
const READ_ENTRIES: usize = 1_024;

/// An index in whose order a page reads items.
pub(super) struct OrderedScan {
    /// The id of the index.
    pub index: u32,
    keys: KeysOf,
    /// How the rows come in it, if it is a composite one.
    order: Option<CompositeOrder>,
    descending: bool,
    /// Whether the entries have all that the query reads of their items.
    covers_rows: bool,
    /// The keys that pass the filter, in the order of their rows.
    intervals: Vec<OrderedKeys>,
    /// Maximum number of entries that the page reads.
    max_entries: usize,
}

impl IndexReader<'_> {
    /// Returns the index in whose order a page is read; `None` if a scan is better.
    pub fn ordered(&self) -> Option<OrderedScan> {
        let stored = self.stored_items();
        if !self.index_use.is_forced() && stored <= FEW_ITEMS {
            return None;
        }
        let max_entries = match self.index_use.is_forced() {
            true => usize::MAX,
            false => usize::try_from(stored / ITEMS_PER_CANDIDATE)
                .unwrap_or(usize::MAX)
                .min(MAX_CANDIDATES),
        };
        if let Some((id, index, order)) = &self.composite.order {
            return Some(OrderedScan {
                index: *id,
                descending: order.is_backward,
                covers_rows: self.covers_rows_by(index),
                intervals: order.parts.clone(),
                keys: KeysOf::Composite(index.clone()),
                order: Some(order.clone()),
                max_entries,
            });
        }
        let order = self.order.as_ref()?;
        let index = self.state.indexes.usable_in_order(order)?;
        let condition = self.conditions.iter().find(|condition| condition.path == order.path);
        let whole = Interval {
            from: Vec::new(),
            to: None,
        };
        let intervals = match condition {
            Some(condition) => order.ordered(&condition.intervals),
            None => order.ordered(&[whole]),
        };
        Some(OrderedScan {
            index: index.id,
            keys: KeysOf::Path(order.path.clone()),
            order: None,
            descending: order.descending,
            covers_rows: self.covers_rows(&order.path),
            intervals,
            max_entries,
        })
    }
}

impl PageRun<'_> {
    /// Pushes items in the order of an index until the page has its rows. Returns `false` if a scan is needed after all; the execution cannot be used then.
    pub async fn scan_in_order(
        &self,
        execution: &mut Counting,
        walk: &mut ItemScan<'_>,
        (ordered, spare): (&OrderedScan, usize),
    ) -> Result<bool> {
        if let (KeysOf::Composite(index), Some(order)) = (&ordered.keys, &ordered.order) {
            execution.read_composite(index, order);
        }
        let mut entries = 0;
        // Keys whose rows come in two places. All of them are read for the second one, but none is read again.
        let mut shared = ordered.intervals.iter().filter(|interval| interval.rows_at.is_some());
        let shared = shared.next().map(|interval| &interval.keys);
        for slice in self.slices {
            execution.enter(slice.partition.range);
            let mut version = None;
            let mut read = None;
            for interval in &ordered.intervals {
                let mut interval = interval.clone();
                if shared == Some(&interval.keys) {
                    let wanted = ordered.wanted(execution, &interval);
                    let Some(unread) = wanted.as_ref().and_then(|wanted| unread(wanted, read.as_ref())) else {
                        continue;
                    };
                    interval.keys = unread;
                    read = wanted;
                }
                let is_complete = self
                    .scan_interval(
                        (execution, walk),
                        (ordered, spare),
                        (slice, &interval),
                        (&mut version, &mut entries),
                    )
                    .await?;
                if !is_complete {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Pushes the items of one interval in one range. `version`: the one at which the range's entries are read.
    async fn scan_interval(
        &self,
        (execution, walk): (&mut Counting, &mut ItemScan<'_>),
        (ordered, spare): (&OrderedScan, usize),
        (slice, interval): (&Slice, &OrderedKeys),
        (version, entries): (&mut Option<Lsn>, &mut usize),
    ) -> Result<bool> {
        let needed = execution.rows_wanted().unwrap_or(usize::MAX);
        let mut rows = needed.saturating_add(spare).min(READ_ENTRIES);
        let mut read_to: Option<Bytes> = None;
        loop {
            let wanted = ordered.wanted(execution, interval);
            let Some(rest) = wanted.and_then(|wanted| ordered.rest(&wanted, read_to.as_ref())) else {
                return Ok(true);
            };
            self.check()?;
            let mut read = self
                .skip_entries((execution, walk), (ordered, spare), slice, &rest)
                .await?;
            if read.is_none() && ordered.covers_rows {
                read = self.read_covering_entries(walk, ordered, slice, (&rest, rows)).await?;
            }
            let read = match read {
                Some(read) => read,
                None => read_entries(walk, ordered, slice, (rest, rows)).await?,
            };
            let ReadEntries { lsn, page, behind, .. } = &read;
            *entries += page.rows.len() - behind + ENTRIES_OF_READ;
            if version.get_or_insert(*lsn) != lsn || *entries > ordered.max_entries {
                return Ok(false);
            }
            let is_satisfied = self
                .push_items_of((execution, walk), ordered, (slice, interval), &read)
                .await?;
            if is_satisfied || !page.more {
                return Ok(true);
            }
            read_to = page.rows.last().map(|(key, _)| key.clone());
            rows = (2 * rows).min(READ_ENTRIES);
        }
    }
}

impl PageRun<'_> {
    /// Pushes the items of entries, first those that the page needs if all are visible and pass the filter. Returns whether no later entry is wanted.
    async fn push_items_of(
        &self,
        (execution, walk): (&mut Counting, &mut ItemScan<'_>),
        ordered: &OrderedScan,
        (slice, interval): (&Slice, &OrderedKeys),
        read: &ReadEntries,
    ) -> Result<bool> {
        let mut entries = &read.page.rows[read.behind..];
        while let Some((next, _)) = entries.first() {
            let wanted = ordered
                .wanted(execution, interval)
                .and_then(|wanted| ordered.rest(&wanted, None));
            if !wanted.is_some_and(|wanted| wanted.contains(next)) {
                return Ok(true);
            }
            self.check()?;
            let at_once = if self.watch.is_brief() {
                BRIEF_PUSHED
            } else {
                usize::MAX
            };
            let (pushed, left) = entries.split_at(rows_to_push(execution).min(at_once).min(entries.len()));
            entries = left;
            let live = read.live.as_ref();
            if let Some(items) = live.and_then(|live| covered_items(slice, &ordered.keys, live, pushed)) {
                for item in items {
                    item.push(execution)?;
                }
                continue;
            }
            let found = pushed.iter().filter_map(|(key, _)| PropertyEntry::parse(key));
            let mut found: Vec<Bytes> = found.map(|entry| entry.item_key()).collect();
            found.retain(|key| slice.contains(key));
            found.sort_unstable();
            found.dedup();
            walk.continue_with(found.into_iter().map(|key| point(slice, key)));
            while let Some(read) = walk.next_page().await? {
                self.check()?;
                for scanned in read.items {
                    push(execution, &scanned.item)?;
                }
            }
        }
        Ok(false)
    }

    /// Reads entries that have all that the query reads of their items; `None` if they do not tell which of the items are live.
    async fn read_covering_entries(
        &self,
        walk: &mut ItemScan<'_>,
        ordered: &OrderedScan,
        slice: &Slice,
        (rest, rows): (&IndexInterval, usize),
    ) -> Result<Option<ReadEntries>> {
        let read = entry_read(ordered.descending, rows);
        let intervals = std::slice::from_ref(rest);
        let live = self.read_entries(walk, slice, intervals, read).await?;
        Ok(live.map(|(mut live, memory)| ReadEntries {
            lsn: live.lsn,
            page: live.pages.pop().unwrap_or_default(),
            behind: 0,
            live: Some(live),
            _memory: memory,
        }))
    }

    /// Reads entries and skips rows by them for OFFSET, without their items. Returns `None` if none are to be skipped, or if only the items tell which.
    async fn skip_entries(
        &self,
        (execution, walk): (&mut Counting, &mut ItemScan<'_>),
        (ordered, spare): (&OrderedScan, usize),
        slice: &Slice,
        rest: &IndexInterval,
    ) -> Result<Option<ReadEntries>> {
        // Rows of several ranges are skipped when they are merged.
        if execution.rows_to_skip() < MIN_SKIPPED || self.slices.len() > 1 {
            return Ok(None);
        }
        let needed = execution.rows_wanted().unwrap_or(usize::MAX);
        self.watch.give_up_if_brief()?;
        let rows = needed.saturating_add(READ_ENTRIES).min(LARGEST_READ.rows);
        let read = EntryRead {
            descending: ordered.descending,
            rows,
            bytes: rows * ENTRY_BYTES,
            keys_only: true,
        };
        let intervals = std::slice::from_ref(rest);
        let Some((mut live, memory)) = self.read_entries(walk, slice, intervals, read).await? else {
            return Ok(None);
        };
        let mut page = live.pages.pop().unwrap_or_default();
        let mut skipped = 0;
        for (key, _) in &page.rows {
            if execution.rows_to_skip() == 0 {
                break;
            }
            if skipped % ENTRIES_PER_LOOK == 0 {
                self.check()?;
            }
            if let Some(entry) = PropertyEntry::parse(key)
                && live.shows_entry(&entry)
            {
                let Some(item) = ordered.keys.item_with_key(entry.value) else {
                    break;
                };
                execution.skip_covered(&item, entry.number()).map_err(query_error)?;
            }
            skipped += 1;
        }
        let wanted = execution.rows_wanted().unwrap_or(usize::MAX);
        let end = skipped.saturating_add(wanted).saturating_add(spare);
        page.more |= end < page.rows.len();
        page.rows.truncate(end);
        Ok(Some(ReadEntries {
            lsn: live.lsn,
            page,
            behind: skipped,
            live: None,
            _memory: memory,
        }))
    }
}

/// Returns the keys that were not read: of an interval with the same end, a beginning or an end was.
fn unread(keys: &Interval, read: Option<&Interval>) -> Option<Interval> {
    let Some(read) = read else {
        return Some(keys.clone());
    };
    let is_before = read.from <= keys.from;
    let (from, to) = match (&read.to, &keys.to) {
        (Some(end), to) if is_before && to.as_ref().is_none_or(|to| end < to) => (end.clone(), to.clone()),
        _ if is_before => return None,
        _ => (keys.from.clone(), Some(read.from.clone())),
    };
    Some(Interval { from, to })
}

/// Number of items to push before the next look at which keys are still wanted: those that the page lacks, and a few of each further range, since a full page needs
/// hardly any of them.
fn rows_to_push(execution: &Counting) -> usize {
    let needed = execution.rows_wanted().unwrap_or(usize::MAX);
    let had = usize::try_from(execution.rows_sorted()).unwrap_or(usize::MAX);
    needed.saturating_sub(had).max(needed / 4).max(MIN_PUSHED)
}

/// Entries at one version.
struct ReadEntries {
    lsn: Lsn,
    page: Page,
    /// Number of entries whose rows were skipped.
    behind: usize,
    /// What tells which of their items are live, if they have all that the query reads of these.
    live: Option<LiveIndex>,
    _memory: MemoryShare,
}

async fn read_entries(
    walk: &mut ItemScan<'_>,
    ordered: &OrderedScan,
    slice: &Slice,
    (rest, rows): (IndexInterval, usize),
) -> Result<ReadEntries> {
    let partition = &slice.partition;
    let (head, mut pages) = partition.read_index(&[rest], ordered.descending, rows).await?;
    walk.record_read(partition.range, head.lsn);
    Ok(ReadEntries {
        lsn: head.lsn,
        page: pages.pop().unwrap_or_default(),
        behind: 0,
        live: None,
        _memory: MemoryShare::default(),
    })
}

impl OrderedScan {
    /// Returns the keys of an interval whose rows may still be wanted; `None` if there are none.
    fn wanted(&self, execution: &Counting, interval: &OrderedKeys) -> Option<Interval> {
        let rows = match &self.order {
            None => execution.wanted_keys()?,
            Some(order) => execution.wanted_composite_keys(order)?,
        };
        interval.wanted(&rows)
    }

    /// Returns the entries of an interval behind those that were read; `None` if there are none.
    fn rest(&self, wanted: &Interval, read_to: Option<&Bytes>) -> Option<IndexInterval> {
        let mut rest = interval(self.index, wanted);
        match read_to {
            None => {}
            Some(last) if self.descending => {
                let to = rest.to.map_or_else(|| last.clone(), |to| to.min(last.clone()));
                rest.to = Some(to);
            }
            Some(last) => rest.from = rest.from.max(keys::after(last)),
        }
        let is_possible = rest.to.as_ref().is_none_or(|to| rest.from < *to);
        is_possible.then_some(rest)
    }
}
