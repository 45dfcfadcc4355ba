//! Answers queries that group or aggregate items from the entries of an index, or from the counters of the partitions, without the items.
//!
//! Every range's entries are read at one version of it, with what tells which of their items are ghosts. The items are then shown to the execution with
//! nothing but the value of the index, in the order in which a scan would read them, so that the result is that of a scan. Where only the number of equal
//! values matters, see [`super::covered_runs`].

use bolide_model::Result;
use bolide_query::index::{IndexPath, Interval};
use bytes::Bytes;

use super::candidates::{FEW_ITEMS, IndexReader, interval};
use super::counting::Counting;
use super::page::PageRun;
use crate::format::keys::PropertyEntry;
use crate::memory::{MemoryBudget, MemoryShare};
use crate::partition::{EntryRead, IndexInterval, LiveIndex};
use crate::scan::{ItemScan, Slice};
use crate::sql::query_error;

/// The first read of entries.
pub(super) const FIRST_READ: EntryRead = EntryRead {
    descending: false,
    rows: 2_000,
    bytes: 512 * 1024,
    keys_only: true,
};
/// The largest read of entries whose order matters: they are sorted in memory.
pub(super) const LARGEST_READ: EntryRead = EntryRead {
    descending: false,
    rows: 250_000,
    bytes: 32 * 1024 * 1024,
    keys_only: true,
};
/// Memory for an entry in addition to its key, in bytes: its places in two lists, and the key of its item.
pub(super) const ENTRY_BYTES: usize = 256;
/// Number of entries between two looks at whether the query has to end.
pub(super) const ENTRIES_PER_LOOK: usize = 1_024;

/// What a query reads instead of items.
pub(super) enum CoveredScan {
    /// The number of items.
    Counters,
    /// The entries of an index.
    Entries {
        /// The id of the index.
        index: u32,
        path: IndexPath,
        intervals: Vec<Interval>,
        /// Whether a scan would process all items in the order of their creation.
        is_small: bool,
    },
}

impl CoveredScan {
    /// Returns the id of the index that is read.
    pub fn index(&self) -> Option<u32> {
        match self {
            CoveredScan::Counters => None,
            CoveredScan::Entries { index, .. } => Some(*index),
        }
    }
}

impl IndexReader<'_> {
    /// Returns what the query reads instead of items; `None` if it needs them, or if there are few.
    pub fn covered(&self) -> Option<CoveredScan> {
        if !self.is_of_ranges || !self.state.settings.dates.is_empty() {
            return None;
        }
        let mut covered = self.covered_by_text()?;
        let stored = self.stored_items();
        if let CoveredScan::Entries { is_small, .. } = &mut covered {
            *is_small = stored <= FEW_ITEMS && self.slices.len() == 1;
        }
        let is_faster = self.index_use.is_forced() || stored > FEW_ITEMS;
        is_faster.then_some(covered)
    }

    fn covered_by_text(&self) -> Option<CoveredScan> {
        if self.query.counts_items() {
            return Some(CoveredScan::Counters);
        }
        let path = self.query.covering_path()?;
        let index = self.state.indexes.usable(&path)?;
        let condition = self.conditions.iter().find(|condition| condition.path == path);
        let intervals = match condition {
            Some(condition) => condition.intervals.clone(),
            // Without a condition, items without a value count.
            None if index.has_undefined() => vec![Interval {
                from: Vec::new(),
                to: None,
            }],
            None => return None,
        };
        Some(CoveredScan::Entries {
            index: index.id,
            path,
            intervals,
            is_small: false,
        })
    }
}

impl PageRun<'_> {
    /// Shows the execution all items of a page. Returns `false` if the items are needed after all; the execution cannot be used then.
    ///
    /// # Errors
    /// From the engine and the execution; if the query has to end.
    pub async fn scan_covered(
        &self,
        execution: &mut Counting,
        walk: &mut ItemScan<'_>,
        covered: &CoveredScan,
    ) -> Result<bool> {
        let intervals: Vec<IndexInterval> = match covered {
            CoveredScan::Counters => Vec::new(),
            CoveredScan::Entries { index, intervals, .. } => {
                intervals.iter().map(|values| interval(*index, values)).collect()
            }
        };
        if let CoveredScan::Entries { path, is_small, .. } = covered
            && self.query.counts_runs()
        {
            return self.scan_runs(execution, walk, &intervals, (path, *is_small)).await;
        }
        for slice in self.slices {
            execution.enter(slice.partition.range);
            let Some((live, memory)) = self.read_live(walk, slice, &intervals).await? else {
                return Ok(false);
            };
            let is_done = match covered {
                CoveredScan::Counters => {
                    execution.push_counted(live.items);
                    true
                }
                CoveredScan::Entries { path, is_small, .. } => {
                    self.push_entries(execution, &live, (path, *is_small))?
                }
            };
            drop(memory);
            if !is_done {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads all entries of some intervals in one range; `None` if there are too many, or if they do not tell which items are live.
    async fn read_live(
        &self,
        walk: &mut ItemScan<'_>,
        slice: &Slice,
        intervals: &[IndexInterval],
    ) -> Result<Option<(LiveIndex, MemoryShare)>> {
        for read in [FIRST_READ, LARGEST_READ] {
            let Some((live, memory)) = self.read_entries(walk, slice, intervals, read).await? else {
                return Ok(None);
            };
            if live.is_complete() {
                return Ok(Some((live, memory)));
            }
            self.watch.give_up_if_brief()?;
        }
        Ok(None)
    }

    /// Reads entries, with what tells which of their items are live; `None` if only the items tell, or if there is no memory for the entries.
    ///
    /// # Errors
    /// From the engine; if the query has to end.
    pub(super) async fn read_entries(
        &self,
        walk: &mut ItemScan<'_>,
        slice: &Slice,
        intervals: &[IndexInterval],
        read: EntryRead,
    ) -> Result<Option<(LiveIndex, MemoryShare)>> {
        self.check()?;
        let Ok(memory) = take(self.memory, read) else {
            return Ok(None);
        };
        let live = walk.read_live_index(&slice.partition, intervals, read).await?;
        Ok(live.map(|live| (live, memory)))
    }

    /// Shows the execution the items of some entries, in the order of a scan, with nothing but their values in the index. Returns
    /// `false` if one has a key that other values have, too.
    fn push_entries(
        &self,
        execution: &mut Counting,
        live: &LiveIndex,
        (path, is_small): (&IndexPath, bool),
    ) -> Result<bool> {
        let entries = live.pages.iter().flat_map(|page| &page.rows);
        let entries = entries.filter_map(|(key, _)| PropertyEntry::parse(key));
        let entries = entries.filter(|entry| live.shows_entry(entry));
        let mut sorted: Vec<(Bytes, PropertyEntry<'_>)> = entries.map(|entry| (entry.item_key(), entry)).collect();
        match is_small {
            true => sorted.sort_unstable_by_key(|(_, entry)| entry.number()),
            false => sorted.sort_unstable_by(|(a, _), (b, _)| a.cmp(b)),
        }
        for (at, (_, entry)) in sorted.into_iter().enumerate() {
            if at % ENTRIES_PER_LOOK == 0 {
                self.check()?;
            }
            let Some(item) = path.item_with_key(entry.value) else {
                return Ok(false);
            };
            execution.push_covered(&item, entry.number()).map_err(query_error)?;
        }
        Ok(true)
    }
}

/// Takes the memory for what a read returns.
pub(super) fn take(memory: &MemoryBudget, read: EntryRead) -> Result<MemoryShare> {
    memory.try_take(read.bytes + read.rows * ENTRY_BYTES)
}
