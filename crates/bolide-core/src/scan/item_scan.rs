//! A scan of the live items of a scope.

use std::collections::VecDeque;
use std::time::Duration;

use bolide_model::time::Monotonic;
use bolide_model::ttl::{Horizon, Settings};
use bolide_model::{Error, Lsn, RequestUnits, Result, UnixMillis};
use bolide_storage::{Key, ReadRequest, Space};
use bytes::Bytes;

use super::Slice;
use super::parallel::{Helpers, Next, ParallelScan};
use super::scanned_items::{KeyRange, ROW_BYTES, ScannedItems, WALK_BYTES, read_of, visible_items};
use crate::container::{Container, ContainerState, ReadPin};
use crate::format::keys;
use crate::memory::{MemoryBudget, MemoryShare};
use crate::partition::{AsOf, EntryRead, HeldIndex, IndexInterval, LiveIndex, Partition, Snapshot, StoredRow};
use crate::response::RangePosition;

/// Maximum number of bytes in one read when memory is short.
const SHORT_BYTES: usize = 32 * 1024;

/// Number of slices in one read: in the first read, and at most. Scopes with many slices often consist of single keys with one or two items.
const FIRST_SLICES: usize = 16;
const MAX_SLICES: usize = 256;

/// Number of reads before there are helpers.
const READS_ALONE: usize = 2;

/// Minimum number of slices of a partition for which the scan reads the partition's number of items.
const MANY_SLICES: usize = 64;

/// Scanning this many items costs less than finding one by its key.
const ITEMS_PER_SLICE: u64 = 8;

/// Scans the live items of some slices in the order of their keys, all as of one time (TTL-211).
pub(crate) struct ItemScan<'a> {
    clock: Monotonic,
    container: &'a Container,
    settings: Settings,
    slices: VecDeque<Slice>,
    now: UnixMillis,
    horizon: Option<Horizon>,
    touched: Vec<RangePosition>,
    /// Total duration of the reads so far.
    read_time: Duration,
    /// Number of slices in the next read, and its maximum number of bytes (approximately).
    slices_at_once: usize,
    page_bytes: usize,
    memory: MemoryBudget,
    /// The partition whose many slices are being read, by its range, and whether it is scanned as a whole.
    is_whole: Option<(u32, bool)>,
    /// Where helpers for large slices come from.
    helpers: Option<Helpers>,
    /// The first slice, if it is read with helpers. Parts of it that are read here are in front of it.
    parallel: Option<ParallelScan>,
    /// Number of slices behind that one.
    slices_behind: usize,
    /// Number of reads so far.
    reads: usize,
    /// Keeps the purge from removing items that are still live at the time of the scan.
    _pin: ReadPin,
}

/// The rows of one read.
struct Rows {
    snapshot: Snapshot,
    rows: Vec<StoredRow>,
    memory: MemoryShare,
}

impl<'a> ItemScan<'a> {
    /// Creates a scan at server time `now` or a little later. `after`: only items behind this key.
    pub fn new(
        clock: &Monotonic,
        memory: &MemoryBudget,
        container: &'a Container,
        state: &ContainerState,
        slices: Vec<Slice>,
        now: UnixMillis,
        after: Option<&[u8]>,
    ) -> Self {
        let mut slices = slices;
        if let Some(after) = after {
            begin_at(&mut slices, &keys::after(after));
        }
        ItemScan {
            clock: clock.clone(),
            container,
            settings: state.settings.clone(),
            slices: VecDeque::from(slices),
            now,
            horizon: None,
            touched: Vec::new(),
            read_time: Duration::ZERO,
            slices_at_once: FIRST_SLICES,
            page_bytes: WALK_BYTES,
            memory: memory.clone(),
            is_whole: None,
            helpers: None,
            parallel: None,
            slices_behind: 0,
            reads: 0,
            _pin: container.pin_reads_at(now),
        }
    }

    /// Reads large slices with helpers from now on, which leave items out.
    pub fn read_with(&mut self, helpers: Helpers) {
        self.helpers = Some(helpers);
    }

    /// Returns the next live items, all of one partition; a page before the end may be empty. `None` at the end.
    ///
    /// # Errors
    /// `Throttled` if there is no memory for them; a page that has items already ends there.
    pub async fn next_page(&mut self) -> Result<Option<ScannedItems>> {
        if let Some(read) = self.next_of_helpers().await {
            return Ok(Some(read));
        }
        let Some(slice) = self.slices.front() else {
            return Ok(None);
        };
        let partition = slice.partition.clone();
        self.begin(&partition).await?;
        let alike = self
            .slices
            .iter()
            .take_while(|slice| slice.partition.range == partition.range);
        let alike = alike.count();
        let Rows { snapshot, rows, memory } = if self.reads_whole(&partition, alike) {
            self.next_of_whole(&partition, alike).await?
        } else {
            self.next_of_slices(&partition, alike).await?
        };
        record_range(&mut self.touched, partition.range, snapshot.head.lsn);
        // The first snapshot fixes the time of the scan.
        self.horizon.get_or_insert_with(|| snapshot.horizon().clone());
        self.reads += 1;
        let place = (partition.range, self.container.rid());
        visible_items(&snapshot, rows, place, (&self.memory, memory)).map(Some)
    }

    /// Returns the next items of a slice that is read with helpers. If there are none, the first slice is what to read here.
    async fn next_of_helpers(&mut self) -> Option<ScannedItems> {
        if self.parallel.is_none() {
            self.get_help();
        }
        let parallel = self.parallel.as_mut()?;
        if self.slices.len() > self.slices_behind + 1 {
            return None;
        }
        let started = self.clock.now();
        let next = parallel.next().await;
        self.read_time += self.clock.since(started);
        let goes_on_at = next.as_ref().and_then(|(_, goes_on_at)| goes_on_at.clone());
        match (goes_on_at, self.slices.front_mut()) {
            (Some(from), Some(slice)) => slice.from = from,
            _ => {
                self.slices.pop_front();
                self.parallel = None;
            }
        }
        match next?.0 {
            Next::Read { read, rest } => {
                if let Some(rest) = rest {
                    self.slices.push_front(rest);
                }
                Some(read)
            }
            Next::Unread(part) => {
                self.slices.push_front(part);
                None
            }
        }
    }

    /// Begins to read the first slice with helpers, if it is large and there are some. The first reads are made here: often they are all that is needed.
    fn get_help(&mut self) {
        let (Some(helpers), Some(horizon), Some(slice)) = (&self.helpers, &self.horizon, self.slices.front()) else {
            return;
        };
        let is_begun = self
            .touched
            .iter()
            .any(|position| position.range == slice.partition.range);
        let is_due = is_begun && (self.reads >= READS_ALONE || helpers.is_forced);
        let is_whole = self.is_whole.is_some_and(|(_, is_whole)| is_whole);
        if is_due && !is_whole && slice.as_point().is_none() {
            self.parallel = ParallelScan::begin(slice, self.container.rid(), horizon, &self.memory, helpers);
            self.slices_behind = self.slices.len() - 1;
        }
    }

    /// Decides the earliest time of the scan before its first read.
    async fn begin(&mut self, partition: &Partition) -> Result<()> {
        if self.horizon.is_none() {
            // From its registration on, this scan keeps the purge from removing live items. Items that the purge removed earlier had expired by this
            // time, even if they were live when the request began.
            self.now = self.now.max(partition.now().await?);
        }
        Ok(())
    }

    fn as_of(&self) -> AsOf<'_> {
        match &self.horizon {
            Some(horizon) => AsOf::Horizon(horizon),
            None => AsOf::Time {
                settings: &self.settings,
                now: self.now,
            },
        }
    }

    /// Returns whether to scan the partition as a whole, with the items between slices, because they are few.
    fn reads_whole(&mut self, partition: &Partition, slices: usize) -> bool {
        match self.is_whole {
            Some((range, is_whole)) if range == partition.range => return is_whole,
            _ if slices < MANY_SLICES => return false,
            _ => {}
        }
        let is_whole = partition.stored_items() <= ITEMS_PER_SLICE * slices as u64;
        self.is_whole = Some((partition.range, is_whole));
        is_whole
    }

    /// Reads from the first slice on, and leaves out the items between slices.
    async fn next_of_whole(&mut self, partition: &Partition, alike: usize) -> Result<Rows> {
        let (Some(first), Some(last)) = (self.slices.front(), self.slices.get(alike.saturating_sub(1))) else {
            return Err(Error::internal("there are slices to read"));
        };
        let range = (first.from.clone(), last.to.clone());
        let (mut snapshot, memory) = self.read(partition, &[range]).await?;
        let page = snapshot.take_pages().pop();
        let page = page.ok_or_else(|| Error::internal("a scan gives a page"))?;
        let mut rows = Vec::new();
        let resumed = page.resumes_at();
        for row in page.rows {
            self.drop_slices_before(partition, row.key());
            match self.slices.front() {
                Some(slice) if slice.partition.range == partition.range && slice.contains(row.key()) => {
                    rows.push(row);
                }
                _ => {}
            }
        }
        match resumed {
            Some(from) => {
                self.drop_slices_before(partition, &from);
                if let Some(slice) = self
                    .slices
                    .front_mut()
                    .filter(|slice| slice.partition.range == partition.range)
                {
                    slice.from = slice.from.clone().max(from);
                }
            }
            None => self.slices.retain(|slice| slice.partition.range != partition.range),
        }
        Ok(Rows { snapshot, rows, memory })
    }

    /// Drops the slices of a partition that end before a key.
    fn drop_slices_before(&mut self, partition: &Partition, key: &[u8]) {
        let ends_before = |slice: &mut Slice| {
            slice.partition.range == partition.range && slice.to.as_ref().is_some_and(|to| &to[..] <= key)
        };
        while self.slices.pop_front_if(ends_before).is_some() {}
    }

    /// Reads several slices at once, up to the first one that is too large for the read.
    async fn next_of_slices(&mut self, partition: &Partition, alike: usize) -> Result<Rows> {
        let count = match self.parallel {
            Some(_) => 1,
            None => alike.min(self.slices_at_once),
        };
        let points: Vec<Bytes> = self.slices.iter().take(count).map_while(Slice::as_point).collect();
        if !points.is_empty() {
            return self.next_of_points(partition, &points).await;
        }
        let of_slice = |slice: &Slice| (slice.from.clone(), slice.to.clone());
        let ranges: Vec<KeyRange> = self.slices.iter().take(count).map(of_slice).collect();
        let (mut snapshot, memory) = self.read(partition, &ranges).await?;
        self.slices_at_once = (2 * self.slices_at_once).min(MAX_SLICES);
        let mut rows = Vec::new();
        for page in snapshot.take_pages() {
            if !page.is_made {
                // The pages before it had as much as one read may return.
                break;
            }
            let last = page.resumes_at();
            if let Some(slice) = self.slices.front() {
                rows.extend(page.rows.into_iter().filter(|row| slice.has_prefix(row.key())));
            }
            if let Some(from) = last {
                if let Some(slice) = self.slices.front_mut() {
                    slice.from = from;
                }
                self.slices_at_once = 1;
                break;
            }
            self.slices.pop_front();
        }
        Ok(Rows { snapshot, rows, memory })
    }

    /// Reads ranges of items. Reads less if there is no memory for what a read returned.
    async fn read(&mut self, partition: &Partition, ranges: &[KeyRange]) -> Result<(Snapshot, MemoryShare)> {
        self.snapshot(partition, |page_bytes| read_of(ranges, page_bytes)).await
    }

    /// Reads the items of single keys, up to the first that does not fit in the read.
    async fn next_of_points(&mut self, partition: &Partition, points: &[Bytes]) -> Result<Rows> {
        let request = |page_bytes| ReadRequest {
            gets: points.iter().map(|key| Key::new(Space::Item, key.clone())).collect(),
            max_bytes: page_bytes,
            ..ReadRequest::default()
        };
        let (mut snapshot, memory) = self.snapshot(partition, request).await?;
        let found = snapshot.take_gets(points);
        self.slices.drain(..found.len());
        self.slices_at_once = (2 * self.slices_at_once).min(MAX_SLICES);
        let rows = found.into_iter().flatten().collect();
        Ok(Rows { snapshot, rows, memory })
    }

    /// Reads what `request` asks for with a maximum number of bytes.
    async fn snapshot(
        &mut self,
        partition: &Partition,
        request: impl Fn(usize) -> ReadRequest,
    ) -> Result<(Snapshot, MemoryShare)> {
        loop {
            let page_bytes = self.page_bytes;
            let started = self.clock.now();
            let snapshot = partition.snapshot(|| request(page_bytes), self.as_of()).await?;
            self.read_time += self.clock.since(started);
            match self.memory.try_take(snapshot.row_bytes(ROW_BYTES)) {
                Ok(memory) => return Ok((snapshot, memory)),
                Err(error) if self.page_bytes == SHORT_BYTES => return Err(error),
                Err(_) => self.page_bytes = SHORT_BYTES,
            }
        }
    }

    /// Reads at most about this many bytes at once.
    pub fn read_at_most(&mut self, bytes: usize) {
        self.page_bytes = self.page_bytes.min(bytes);
    }

    /// Continues with other slices, as of the same time, after all slices before were read.
    pub fn continue_with(&mut self, slices: impl Iterator<Item = Slice>) {
        self.slices.extend(slices);
        self.slices_at_once = MAX_SLICES;
        self.is_whole = None;
    }

    /// Reads entries of an index, and which of their items are live, as of the same time as items. `None` if only the items tell.
    ///
    /// # Errors
    /// As [`Partition::read_live_index`].
    pub async fn read_live_index(
        &mut self,
        partition: &Partition,
        intervals: &[IndexInterval],
        read: EntryRead,
    ) -> Result<Option<LiveIndex>> {
        self.begin(partition).await?;
        let started = self.clock.now();
        let live = partition.read_live_index(intervals, read, self.as_of()).await?;
        self.read_time += self.clock.since(started);
        if let Some(live) = &live {
            self.record_read(partition.range, live.lsn);
            self.horizon.get_or_insert_with(|| live.horizon.clone());
        }
        Ok(live)
    }

    /// As [`ItemScan::read_live_index`], for entries that are read later.
    ///
    /// # Errors
    /// As [`Partition::read_live_index`].
    pub async fn hold_live_index(&mut self, partition: &Partition) -> Result<Option<HeldIndex>> {
        self.begin(partition).await?;
        let held = partition.hold_live_index(self.as_of()).await?;
        if let Some(HeldIndex { live, .. }) = &held {
            self.record_read(partition.range, live.lsn);
            self.horizon.get_or_insert_with(|| live.horizon.clone());
        }
        Ok(held)
    }

    /// Records that a range was read at an LSN, by others than this scan.
    pub fn record_read(&mut self, range: u32, lsn: Lsn) {
        record_range(&mut self.touched, range, lsn);
    }

    /// Returns the range of the partition that is read next.
    pub fn next_range(&self) -> Option<u32> {
        self.slices.front().map(|slice| slice.partition.range)
    }

    /// Returns the key from which the scan continues.
    pub fn next_key(&self) -> Option<Bytes> {
        let slice = self.slices.front()?;
        let min = Bytes::copy_from_slice(slice.partition.epk.min.as_bytes());
        Some(slice.from.clone().max(min))
    }

    /// Returns the number of slices that are not finished.
    pub fn slices_left(&self) -> usize {
        self.slices.len()
    }

    /// Returns the total duration of the reads so far.
    pub fn read_time(&self) -> Duration {
        self.read_time
    }

    /// Returns the ranges that were read so far.
    pub fn touched(&self) -> &[RangePosition] {
        &self.touched
    }
}

/// Drops what lies before a key from slices.
pub(crate) fn begin_at(slices: &mut Vec<Slice>, from: &Bytes) {
    slices.retain(|slice| slice.to.as_ref().is_none_or(|to| from < to) && !is_before(slice, from));
    for slice in slices {
        slice.from = slice.from.clone().max(from.clone());
    }
}

/// Returns whether a slice's partition ends before `key`.
fn is_before(slice: &Slice, key: &[u8]) -> bool {
    slice.partition.epk.max.as_bytes() <= key
}

/// Records the LSN at which a range was read; the first record of a range counts.
pub(crate) fn record_range(touched: &mut Vec<RangePosition>, range: u32, lsn: Lsn) {
    if touched.iter().all(|position| position.range != range) {
        touched.push(RangePosition {
            range,
            lsn,
            charge: RequestUnits::ZERO,
        });
    }
}

/// Adds the charge of work in a range that was recorded.
pub(crate) fn add_charge(touched: &mut [RangePosition], range: u32, units: RequestUnits) {
    if let Some(position) = touched.iter_mut().find(|position| position.range == range) {
        position.charge += units;
    }
}

#[cfg(test)]
mod tests;
