//! Groups, counts and distinct values of the entries of an index, whatever their number.
//!
//! Equal values are next to each other in an index, so that the execution sees each value once, with the number of its items. In which order groups come
//! follows from their first items in the order of a scan.

use bolide_model::Result;
use bolide_query::Progress;
use bolide_query::index::IndexPath;
use bolide_storage::Page;
use bytes::Bytes;

use super::counting::Counting;
use super::covered::{ENTRIES_PER_LOOK, FIRST_READ, take};
use super::page::PageRun;
use crate::format::keys::{self, PropertyEntry};
use crate::memory::MemoryShare;
use crate::partition::{EntryRead, IndexInterval, LiveIndex};
use crate::scan::{ItemScan, Slice};
use crate::sql::query_error;

/// Each read of a held snapshot. If the first read has all entries, none is held.
const READ: EntryRead = EntryRead {
    descending: false,
    rows: 20_000,
    bytes: 4 * 1024 * 1024,
    keys_only: true,
};
/// Maximum number of runs whose order matters.
const MAX_RUNS: usize = 100_000;
/// Memory for a run in addition to its value, in bytes.
const RUN_BYTES: usize = 160;

/// Items of a slice that have one value.
struct Run {
    /// The number of the slice.
    slice: usize,
    value: Vec<u8>,
    items: u64,
    /// The key of the item that a scan finds first.
    first: Bytes,
}

/// The runs of entries in the order of an index.
struct Runs<'p> {
    path: &'p IndexPath,
    /// Whether entries are only counted.
    is_counted: bool,
    /// Whether a scan finds items in the order of their creation.
    is_by_creation: bool,
    /// Whether the order of runs does not matter, so that none is kept.
    is_unordered: bool,
    /// The number of the slice that is being read.
    slice: usize,
    current: Option<Run>,
    ended: Vec<Run>,
    /// Bytes of those that are kept, and their memory.
    bytes: usize,
    memory: MemoryShare,
}

impl Runs<'_> {
    fn continues(&self, entry: &PropertyEntry<'_>) -> bool {
        self.current.as_ref().is_none_or(|run| run.value == entry.value)
    }

    /// Adds an item to the current run, or to a new one if there is none.
    fn add(&mut self, entry: &PropertyEntry<'_>) {
        let Some(run) = &mut self.current else {
            self.current = Some(Run {
                slice: self.slice,
                value: entry.value.to_vec(),
                items: 1,
                first: entry.item_key(),
            });
            return;
        };
        run.items += 1;
        let is_first = match self.is_by_creation {
            _ if self.is_unordered => false,
            true => entry.number() < keys::number_of_item(&run.first),
            false => entry.is_before(&run.first),
        };
        if is_first {
            run.first = entry.item_key();
        }
    }

    /// Returns the runs that were kept, in the order in which a scan finds their first items.
    fn take_in_order(&mut self) -> Vec<Run> {
        let mut runs = std::mem::take(&mut self.ended);
        match self.is_by_creation {
            true => runs.sort_unstable_by_key(|run| keys::number_of_item(&run.first)),
            false => runs.sort_unstable_by(|a, b| (a.slice, &a.first).cmp(&(b.slice, &b.first))),
        }
        runs
    }
}

impl PageRun<'_> {
    /// Shows the execution each value of the entries, with the number of its items. Returns `false` if the items are needed after all; the execution cannot
    /// be used then.
    ///
    /// # Errors
    /// From the engine and the execution; if the query has to end.
    pub(super) async fn scan_runs(
        &self,
        execution: &mut Counting,
        walk: &mut ItemScan<'_>,
        intervals: &[IndexInterval],
        (path, is_by_creation): (&IndexPath, bool),
    ) -> Result<bool> {
        let mut runs = Runs {
            path,
            is_counted: self.query.counts_condition(),
            is_by_creation,
            is_unordered: self.query.is_independent_of_order(),
            slice: 0,
            current: None,
            ended: Vec::new(),
            bytes: 0,
            memory: MemoryShare::default(),
        };
        for (number, slice) in self.slices.iter().enumerate() {
            execution.enter(slice.partition.range);
            runs.slice = number;
            let is_done = self.add_slice((execution, walk), slice, intervals, &mut runs).await?;
            if !is_done || !self.end_run(execution, &mut runs)? {
                return Ok(false);
            }
        }
        for run in runs.take_in_order() {
            match push(execution, &run, path)? {
                Some(Progress::Continue) => {}
                Some(Progress::Done) => break,
                // Which item comes after a page of distinct values, the entries do not tell.
                Some(Progress::PageFull) | None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Adds all entries of a slice; `false` if the items have to be read.
    async fn add_slice(
        &self,
        (execution, walk): (&mut Counting, &mut ItemScan<'_>),
        slice: &Slice,
        intervals: &[IndexInterval],
        runs: &mut Runs<'_>,
    ) -> Result<bool> {
        let Some((live, memory)) = self.read_entries(walk, slice, intervals, FIRST_READ).await? else {
            return Ok(false);
        };
        if live.is_complete() {
            for page in &live.pages {
                if !self.add_page(execution, runs, &live, page)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        drop((live, memory));
        self.watch.give_up_if_brief()?;
        let Ok(_memory) = take(self.memory, READ) else {
            return Ok(false);
        };
        let Some(held) = walk.hold_live_index(&slice.partition).await? else {
            return Ok(false);
        };
        for interval in intervals {
            let mut rest = Some(interval.clone());
            while let Some(interval) = rest.take() {
                self.check()?;
                let Some(page) = held.read(&interval, READ).await? else {
                    return Ok(false);
                };
                if !self.add_page(execution, runs, &held.live, &page)? {
                    return Ok(false);
                }
                let last = page.rows.last().filter(|_| page.more);
                rest = last.map(|(key, _)| IndexInterval {
                    from: keys::after(key),
                    to: interval.to,
                });
            }
        }
        Ok(true)
    }

    /// Adds entries whose items are live; `false` if the items have to be read.
    fn add_page(&self, execution: &mut Counting, runs: &mut Runs<'_>, live: &LiveIndex, page: &Page) -> Result<bool> {
        let mut shown = 0;
        for (at, (key, _)) in page.rows.iter().enumerate() {
            if at % ENTRIES_PER_LOOK == 0 {
                self.check()?;
            }
            let entry = PropertyEntry::parse(key).filter(|entry| live.shows_entry(entry));
            let Some(entry) = entry else { continue };
            shown += 1;
            if runs.is_counted {
                continue;
            }
            if !runs.continues(&entry) && !self.end_run(execution, runs)? {
                return Ok(false);
            }
            runs.add(&entry);
        }
        execution.count_index_entries(shown);
        if runs.is_counted {
            execution.push_counted(shown);
        }
        Ok(true)
    }

    /// Ends the current run; `false` if the items have to be read.
    fn end_run(&self, execution: &mut Counting, runs: &mut Runs<'_>) -> Result<bool> {
        let Some(run) = runs.current.take() else {
            return Ok(true);
        };
        if runs.is_unordered {
            return Ok(push(execution, &run, runs.path)?.is_some());
        }
        runs.bytes += run.value.len() + RUN_BYTES;
        let is_kept = runs.ended.len() < MAX_RUNS && self.memory.try_grow(&mut runs.memory, runs.bytes).is_ok();
        runs.ended.push(run);
        Ok(is_kept)
    }
}

/// Shows an execution the items of a run; `None` if its key is also that of other values.
fn push(execution: &mut Counting, run: &Run, path: &IndexPath) -> Result<Option<Progress>> {
    let Some(item) = path.item_with_key(&run.value) else {
        return Ok(None);
    };
    let number = keys::number_of_item(&run.first);
    let progress = execution.push_covered_run(&item, run.items, number);
    progress.map(Some).map_err(query_error)
}
