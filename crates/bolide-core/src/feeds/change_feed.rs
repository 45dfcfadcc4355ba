//! The change feed in its latest-version mode: each live item once, in the order of its last write (cosmos-rest §8.2).
//!
//! The feed shows neither deletes nor an item from its expiry on (TTL-249): the log has one entry for each stored item, and expired items are
//! left out. A continuation names the next LSN of each range of its scope; a child of a split continues where its parent stopped, because it
//! inherits the parent's log.

use std::sync::Arc;

use bolide_model::{Error, ErrorKind, Lsn, Result, UnixMillis, UnixSeconds, charge, limits};
use bolide_storage::{Key, Page, ReadRequest, Space};
use bytes::Bytes;

use super::page_items;
use super::page_memory::PageMemory;
use crate::container::{Container, ContainerState};
use crate::content::StoredItem;
use crate::continuation::change_feed::{ChangeFeedPosition, decode, encode, resume};
use crate::executor::Watch;
use crate::format::keys::LogPosition;
use crate::format::record::LogEntry;
use crate::memory::MemoryShare;
use crate::partition::{AsOf, Partition};
use crate::response::{ChargedResult, Cost, RangePosition, Response};
use crate::runtime::{RequestContext, Runtime};
use crate::scan::{ScanScope, Slice, add_charge, record_range};

/// Maximum number of log entries, and of their bytes, in one read.
const PAGE_ROWS: usize = 1_000;
const PAGE_BYTES: usize = 1024 * 1024;

/// A request for changes.
#[derive(Debug, Clone)]
pub struct ReadChanges {
    /// The part of the container to read.
    pub scope: ScanScope,
    /// From where on to read.
    pub start: FeedStart,
    /// Maximum number of items of the page; a transaction is not cut in two, so a page may have more. `None`: the server decides.
    pub max_items: Option<usize>,
}

/// Where a change feed starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedStart {
    /// With the oldest change.
    Beginning,
    /// With the next change.
    Now,
    /// With the first change after this second.
    Time(UnixSeconds),
    /// Where a page ended.
    After(String),
}

/// A page of changes.
#[derive(Debug)]
pub struct ChangePage {
    /// Live items in the order of their last write, range by range.
    pub items: Vec<StoredItem>,
    /// Where the next page starts. Never empty.
    pub continuation: String,
    /// The memory that the page takes; held until the page is written out.
    pub memory: MemoryShare,
}

impl Runtime {
    /// See `Account::change_feed`.
    pub(crate) async fn change_feed(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        read: &ReadChanges,
    ) -> ChargedResult<ChangePage> {
        let guard = container.enter_interruptible().await?;
        let slices = read.scope.slices(&guard.state)?;
        self.admit_all(ctx, &slices, &guard)?;
        let max = page_items(read.max_items);

        let job = Job {
            container: container.clone(),
            state: guard.state.clone(),
            slices,
            start: read.start.clone(),
            now: ctx.now,
            max,
            held: PageMemory::of(self.memory()),
        };
        let (page, cost) = self.execute_until(container.ending(), |watch| job.run(watch)).await?;
        self.charge_touched(ctx, &guard, &cost);
        Ok(Response { value: page, cost })
    }
}

/// The job of reading one page.
struct Job {
    container: Arc<Container>,
    state: Arc<ContainerState>,
    slices: Vec<Slice>,
    start: FeedStart,
    now: UnixMillis,
    max: usize,
    held: PageMemory,
}

impl Job {
    async fn run(self, watch: Arc<Watch>) -> Result<(ChangePage, Cost)> {
        let _pin = self.container.pin_reads_at(self.now);
        let mut positions = start(&self.start, &self.slices).await?;
        let now = match self.slices.first() {
            // As in an item scan: items that the purge removed before this reader was registered had expired by this time.
            Some(slice) => self.now.max(slice.partition.now().await?),
            None => self.now,
        };
        let mut filling = Filling {
            max: self.max,
            items: Vec::new(),
            bytes: 0,
            touched: Vec::new(),
            held: self.held,
        };
        for (slice, position) in self.slices.iter().zip(&mut positions) {
            // A page contains items of one range only, as the service's do: clients take that range's session token with the page.
            if !filling.items.is_empty() || filling.is_full() {
                break;
            }
            let reader = ChangeReader {
                container: &self.container,
                state: &self.state,
                slice,
                now,
                watch: &watch,
            };
            position.next = reader.read(position.next, &mut filling).await?;
        }
        let Filling {
            items,
            mut touched,
            held,
            ..
        } = filling;
        if items.is_empty() {
            for slice in &self.slices {
                record_range(&mut touched, slice.partition.range, slice.partition.newest_lsn().await?);
            }
        }
        let page = ChangePage {
            items,
            continuation: encode(&positions),
            memory: held.into_share(),
        };
        Ok((page, Cost::of_feed(touched)))
    }
}

async fn start(start: &FeedStart, slices: &[Slice]) -> Result<Vec<ChangeFeedPosition>> {
    let known = match start {
        FeedStart::After(text) => Some(decode(text)?),
        _ => None,
    };
    let mut positions = Vec::with_capacity(slices.len());
    for slice in slices {
        let partition = &slice.partition;
        let next = match start {
            FeedStart::Beginning => Lsn(0),
            FeedStart::Now => partition.newest_lsn().await?.next(),
            FeedStart::Time(second) => first_after(partition, *second).await?,
            FeedStart::After(_) => resume(
                partition.range,
                &partition.parents,
                known.as_deref().unwrap_or_default(),
            ),
        };
        positions.push(ChangeFeedPosition {
            range: partition.range,
            next,
        });
    }
    Ok(positions)
}

/// Returns the LSN of the first change after this second. The log's `_ts` never falls (TTL-208), so a binary search finds it.
async fn first_after(partition: &Partition, second: UnixSeconds) -> Result<Lsn> {
    let (mut low, mut high) = (0, partition.newest_lsn().await?.0 + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        let from = LogPosition {
            lsn: Lsn(middle),
            seq: 0,
        };
        let (_, page) = partition.read_log(from, 1, PAGE_BYTES).await?;
        match page.rows.first() {
            Some((_, value)) if LogEntry::decode(value)?.last_modified <= second => low = middle + 1,
            _ => high = middle,
        }
    }
    Ok(Lsn(low))
}

/// A page that is being filled.
struct Filling {
    max: usize,
    items: Vec<StoredItem>,
    bytes: usize,
    touched: Vec<RangePosition>,
    held: PageMemory,
}

impl Filling {
    /// Returns whether the page has reached its maximum number of items or bytes. A page takes at least one item.
    fn is_full(&self) -> bool {
        self.items.len() >= self.max || self.bytes >= limits::PAGE_BYTES || self.held.is_short()
    }

    /// Returns how many of the changes fit on the page if all their items still exist; at least one.
    fn room_for(&self, changes: &[ChangedItem]) -> usize {
        let mut bytes = self.bytes;
        let fits = changes.iter().take(self.max.saturating_sub(self.items.len()));
        let fits = fits.take_while(|change| {
            let is_first = bytes < limits::PAGE_BYTES;
            bytes += change.size;
            is_first
        });
        fits.count().max(1)
    }

    fn add(&mut self, range: u32, item: StoredItem) -> Result<()> {
        self.bytes += item.document_bytes();
        let size = item.record().size();
        add_charge(&mut self.touched, range, charge::point_read(size));
        self.items.push(item);
        self.held.grow(self.bytes, self.items.len())
    }
}

/// Reads the changes of one slice.
struct ChangeReader<'a> {
    container: &'a Container,
    state: &'a ContainerState,
    slice: &'a Slice,
    now: UnixMillis,
    watch: &'a Watch,
}

impl ChangeReader<'_> {
    /// Adds live items whose last write is `next` or later until the page is full, whole transactions only. Returns the LSN where the next page
    /// starts.
    async fn read(&self, next: Lsn, filling: &mut Filling) -> Result<Lsn> {
        let range = self.slice.partition.range;
        let mut last_lsn = None;
        let mut from = LogPosition { lsn: next, seq: 0 };
        loop {
            self.watch.check()?;
            let (head, page) = self.slice.partition.read_log(from, PAGE_ROWS, PAGE_BYTES).await?;
            record_range(&mut filling.touched, range, head.lsn);
            let changes = self.changes(&page)?;
            let mut left = &changes[..];
            while let Some(first) = left.first() {
                if filling.is_full() && last_lsn != Some(first.lsn) {
                    return Ok(first.lsn);
                }
                let (next, later) = left.split_at(filling.room_for(left));
                for (change, item) in next.iter().zip(self.fetch(next).await?) {
                    if let Some(item) = item {
                        last_lsn = Some(change.lsn);
                        filling.add(range, item)?;
                    }
                }
                left = later;
            }
            match page.rows.last() {
                Some((key, _)) if page.more => from = position_of(key)?.next(),
                _ => return Ok(next.max(head.lsn.next())),
            }
        }
    }

    /// Returns the entries of a log page that lie inside the slice.
    fn changes(&self, page: &Page) -> Result<Vec<ChangedItem>> {
        let mut changes = Vec::new();
        for (key, value) in &page.rows {
            let position = position_of(key)?;
            let entry = LogEntry::decode(value)?;
            if self.slice.contains(&entry.item_key) {
                changes.push(ChangedItem {
                    lsn: position.lsn,
                    size: entry.size as usize,
                    position,
                    item_key: entry.item_key,
                });
            }
        }
        Ok(changes)
    }

    /// Returns the live items of the changes; `None` for an item that has ended or was written again since.
    async fn fetch(&self, changes: &[ChangedItem]) -> Result<Vec<Option<StoredItem>>> {
        let key = |change: &ChangedItem| Key::new(Space::Item, change.item_key.clone());
        let request = || ReadRequest::of_keys(changes.iter().map(key).collect());
        let as_of = AsOf::Time {
            settings: &self.state.settings,
            now: self.now,
        };
        let mut snapshot = self.slice.partition.snapshot(request, as_of).await?;
        let mut items = Vec::with_capacity(changes.len());
        for (at, change) in changes.iter().enumerate() {
            let record = snapshot.record(at, &change.item_key)?;
            let current = record.filter(|record| record.version() == change.position);
            items.push(current.map(|record| StoredItem::new(self.container.rid(), record)));
        }
        Ok(items)
    }
}

struct ChangedItem {
    lsn: Lsn,
    size: usize,
    position: LogPosition,
    item_key: Bytes,
}

fn position_of(key: &[u8]) -> Result<LogPosition> {
    LogPosition::decode(key).ok_or_else(|| Error::new(ErrorKind::Corrupt, "a key of the log is damaged"))
}
