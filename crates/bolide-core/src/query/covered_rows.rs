//! Makes rows from the entries of the index that finds their items, if the value of the index and the id are all that the query reads.
//!
//! The candidates say which items a page may have; their entries are read once more, with what tells which of the items are ghosts. They are shown to the
//! execution in the order in which the items would be, so that pages end and continue as without.

use std::sync::Arc;

use bolide_model::{Result, UnixMillis};
use bolide_query::Progress;
use bolide_query::index::{CompositeIndex, IndexCondition, IndexPath};
use bytes::Bytes;

use super::access::Pushed;
use super::candidates::{Candidates, IndexReader, interval};
use super::counting::Counting;
use super::covered::ENTRY_BYTES;
use super::page::{PageRun, Scanned};
use crate::continuation::query::{After, QueryPosition};
use crate::format::entries::PropertyValue;
use crate::format::keys::PropertyEntry;
use crate::memory::MemoryShare;
use crate::partition::{EntryRead, IndexInterval, LiveIndex};
use crate::runtime::IndexUse;
use crate::scan::{ItemScan, Slice};
use crate::sql::query_error;

/// Reading fewer items takes less time than reading which of them are ghosts.
pub(super) const MIN_COVERED: usize = 16;
/// Number of entries that may have been added since the candidates were found.
const SPARE_ENTRIES: usize = 64;

/// Number of bytes that a read may have at least: what tells which items are ghosts is part of it.
const MIN_READ_BYTES: usize = 256 * 1024;

/// Returns a read of so many entries with their values.
pub(super) fn entry_read(descending: bool, rows: usize) -> EntryRead {
    EntryRead {
        descending,
        rows,
        bytes: (rows * ENTRY_BYTES).max(MIN_READ_BYTES),
        keys_only: false,
    }
}

/// What the keys of an index are of.
#[derive(Clone)]
pub(super) enum KeysOf {
    Path(IndexPath),
    Composite(Arc<CompositeIndex>),
}

impl KeysOf {
    /// See [`IndexPath::item_with_key`], [`CompositeIndex::item_with_key`].
    pub fn item_with_key(&self, key: &[u8]) -> Option<Vec<u8>> {
        match self {
            KeysOf::Path(path) => path.item_with_key(key),
            KeysOf::Composite(index) => index.item_with_key(key),
        }
    }

    fn item_with_key_and_id(&self, key: &[u8], id: &str) -> Option<Vec<u8>> {
        match self {
            KeysOf::Path(path) => path.item_with_key_and_id(key, id),
            KeysOf::Composite(index) => index.item_with_key_and_id(key, id),
        }
    }
}

/// What an entry has of an item.
pub(super) struct CoveredItem {
    range: u32,
    key: Bytes,
    number: u64,
    /// As JSON.
    members: Vec<u8>,
    /// Bytes of the item.
    bytes: u64,
}

impl CoveredItem {
    /// `None` if the entry does not have the value and the id: it was written before entries had ids, or the key is not that of equal values only.
    fn of(range: u32, keys: &KeysOf, entry: &PropertyEntry<'_>, value: &[u8]) -> Option<CoveredItem> {
        let value = PropertyValue::decode(value)?;
        Some(CoveredItem {
            range,
            key: entry.item_key(),
            number: entry.number(),
            members: keys.item_with_key_and_id(entry.value, value.id)?,
            bytes: value.item_bytes.into(),
        })
    }

    /// Shows an execution the item.
    pub fn push(&self, execution: &mut Counting) -> Result<Progress> {
        execution
            .push_covered_row(&self.members, self.bytes, self.number)
            .map_err(query_error)
    }
}

/// Returns what entries have of those items of a slice that are live; `None` if the items have to be read.
pub(super) fn covered_items<'e>(
    slice: &Slice,
    keys: &KeysOf,
    live: &LiveIndex,
    entries: impl IntoIterator<Item = &'e (Bytes, Bytes)>,
) -> Option<Vec<CoveredItem>> {
    let mut items = Vec::new();
    for (key, value) in entries {
        let Some(entry) = PropertyEntry::parse(key) else {
            continue;
        };
        if slice.contains(&entry.item_key()) && live.shows_entry(&entry) {
            items.push(CoveredItem::of(slice.partition.range, keys, &entry, value)?);
        }
    }
    Some(items)
}

impl IndexReader<'_> {
    /// Returns whether entries of an index on a path have all that the query reads of their items, and tell which of these are live.
    pub fn covers_rows(&self, path: &IndexPath) -> bool {
        self.may_cover_rows() && self.query.covers_rows(path)
    }

    /// The same of a composite index.
    pub fn covers_rows_by(&self, index: &CompositeIndex) -> bool {
        self.may_cover_rows() && self.query.covers_rows_by(index)
    }

    fn may_cover_rows(&self) -> bool {
        self.index_use != IndexUse::AlwaysInOrder && self.state.settings.dates.is_empty()
    }
}

impl PageRun<'_> {
    /// Pushes candidates, or what their entries have of them if that is enough.
    pub(super) async fn push_candidates(
        &self,
        now: UnixMillis,
        position: QueryPosition,
        found: &Candidates,
    ) -> Result<Pushed<'_>> {
        if let Some(condition) = self.covering_condition(found) {
            let mut walk = self.walk_over(Vec::new(), now, None);
            for (range, lsn) in &found.read {
                walk.record_read(*range, *lsn);
            }
            if let Some((items, _memory)) = self.read_covered(&mut walk, found, condition).await? {
                let mut execution = Counting::of(self.execution(self.limit, position.resume.as_deref())?);
                let scanned = self.push_covered_items(&mut execution, (items, found), position.after)?;
                return Ok(Pushed {
                    execution,
                    walk,
                    scanned,
                });
            }
        }
        self.push_scanned(now, position, Some(found)).await
    }

    /// Returns the condition by which candidates were found, if its index has all that the query reads of them. Rows that are kept for later pages need
    /// the stamps of their items.
    fn covering_condition(&self, found: &Candidates) -> Option<&IndexCondition> {
        let is_worthwhile = self.indexes.index_use.is_forced() || found.slices.len() >= MIN_COVERED;
        if !is_worthwhile || self.ahead.is_some() {
            return None;
        }
        let is_found_by = |condition: &&IndexCondition| {
            let index = self.state.indexes.usable(&condition.path);
            index.is_some_and(|index| index.id == found.index)
        };
        let condition = self.indexes.conditions.iter().find(is_found_by)?;
        self.indexes.covers_rows(&condition.path).then_some(condition)
    }

    /// Reads the entries of candidates, in the order of their items' keys; `None` if the items have to be read.
    async fn read_covered(
        &self,
        walk: &mut ItemScan<'_>,
        found: &Candidates,
        condition: &IndexCondition,
    ) -> Result<Option<(Vec<CoveredItem>, MemoryShare)>> {
        let intervals = condition.intervals.iter();
        let intervals: Vec<IndexInterval> = intervals.map(|values| interval(found.index, values)).collect();
        let rows = 2 * found.slices.len() + SPARE_ENTRIES;
        let read = entry_read(false, rows);
        let keys = KeysOf::Path(condition.path.clone());
        let (mut items, mut memory) = (Vec::new(), MemoryShare::default());
        for slice in self.slices {
            let Some((live, share)) = self.read_entries(walk, slice, &intervals, read).await? else {
                return Ok(None);
            };
            if !live.is_complete() {
                return Ok(None);
            }
            memory.merge(share);
            let entries = live.pages.iter().flat_map(|page| &page.rows);
            let Some(mut of_slice) = covered_items(slice, &keys, &live, entries) else {
                return Ok(None);
            };
            of_slice.sort_unstable_by(|a, b| a.key.cmp(&b.key));
            items.append(&mut of_slice);
        }
        Ok(Some((items, memory)))
    }

    /// Pushes items until the page is full or its range ends, as [`PageRun::scan`] does.
    fn push_covered_items(
        &self,
        execution: &mut Counting,
        (mut items, found): (Vec<CoveredItem>, &Candidates),
        after: After,
    ) -> Result<Scanned> {
        let is_by_creation = match &after {
            After::Nothing => self.is_in_one_partition(Some(found)),
            After::Rid(_) => true,
            After::Key(_) => false,
        };
        match &after {
            After::Nothing => {}
            After::Rid(number) => items.retain(|item| item.number > *number),
            After::Key(key) => items.retain(|item| item.key > *key),
        }
        if is_by_creation {
            items.sort_unstable_by_key(|item| item.number);
        }
        let mut scanned = Scanned {
            after,
            is_end: false,
            is_at_boundary: false,
        };
        let mut items = items.into_iter().peekable();
        while let (Some(item), false) = (items.next(), execution.is_done()) {
            execution.enter(item.range);
            match item.push(execution)? {
                Progress::Continue if is_by_creation => scanned.after = After::Rid(item.number),
                Progress::Continue => scanned.after = After::Key(item.key),
                Progress::PageFull => {
                    if scanned.after == After::Nothing {
                        // The page ends within the first item.
                        scanned.after = match is_by_creation {
                            true => After::Rid(item.number.saturating_sub(1)),
                            false => After::Key(Bytes::new()),
                        };
                    }
                    return Ok(scanned);
                }
                Progress::Done => break,
            }
            if self.is_long(execution) {
                return Ok(scanned);
            }
            let is_last_of_range = items.peek().is_some_and(|next| next.range != item.range);
            if is_last_of_range && !is_by_creation && !self.query.rescans() {
                scanned.after = self.end_of_range(item.range)?;
                scanned.is_at_boundary = execution.has_rows();
                return Ok(scanned);
            }
        }
        scanned.is_end = true;
        Ok(scanned)
    }
}
