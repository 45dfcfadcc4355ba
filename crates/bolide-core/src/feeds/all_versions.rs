//! The change feed in its all-versions mode: every version and every delete, in the order of commit (cosmos-rest §8.4).
//!
//! It shows the container's history (`crate::change_log`). A change stays readable for the retention period, even if the item has expired or was
//! deleted since; the end of an item by its ttl appears when the item is purged, not before (TTL-250). Continuations are those of the
//! latest-version mode: the next LSN of each range.

use std::sync::Arc;

use bolide_model::error::{HistoryStart, ItemOperation};
use bolide_model::{Error, ErrorKind, Lsn, Reason, RequestUnits, Result, UnixMillis, UnixSeconds, charge, limits};
use bolide_storage::{Head, Page};

use super::page_memory::PageMemory;
use super::{FeedStart, ReadChanges, page_items};
use crate::change_log::{ChangeKind, HistoryEntry, has_left};
use crate::container::{Container, ContainerState};
use crate::content::StoredItem;
use crate::continuation::change_feed::{ChangeFeedPosition, decode, encode, resume};
use crate::executor::Watch;
use crate::format::keys::{self, LogPosition};
use crate::memory::MemoryShare;
use crate::response::{ChargedResult, Cost, RangePosition, Response};
use crate::runtime::{RequestContext, Runtime};
use crate::scan::{Slice, add_charge, record_range};

/// Maximum number of entries, and of their bytes, in one read.
const PAGE_ROWS: usize = 200;
const PAGE_BYTES: usize = 1024 * 1024;

/// One change of one item.
#[derive(Debug, Clone)]
pub struct ItemChange {
    /// What happened.
    pub kind: ChangeKind,
    /// The log sequence number of the change's commit.
    pub lsn: Lsn,
    /// Server time of that commit.
    pub crts: UnixSeconds,
    /// The new version; `None` for deletes.
    pub current: Option<StoredItem>,
    /// The previous version; `None` for creates.
    pub previous: Option<StoredItem>,
}

/// A page of the all-versions feed.
#[derive(Debug)]
pub struct VersionPage {
    /// In the order of commit, range by range.
    pub changes: Vec<ItemChange>,
    /// Where the next page starts. Never empty.
    pub continuation: String,
    /// The memory that the page takes; held until the page is written out.
    pub memory: MemoryShare,
}

// Shaped like `change_feed` on purpose: their pages and jobs have different parts, and what they share is in `feeds` and `Runtime`.
impl Runtime {
    /// See `Account::all_versions`.
    pub(crate) async fn all_versions(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        read: &ReadChanges,
    ) -> ChargedResult<VersionPage> {
        let guard = container.enter_interruptible().await?;
        guard.state.check_is_not_collection(ItemOperation::AllVersions)?;
        let slices = read.scope.slices(&guard.state)?;
        let positions = start(&read.start, &slices).await?;
        if guard.state.retention().is_none() {
            return Err(Error::from(Reason::HistoryOff).into());
        }
        self.admit_all(ctx, &slices, &guard)?;
        let max = page_items(read.max_items);

        let job = Job {
            container: container.clone(),
            state: guard.state.clone(),
            slices,
            positions,
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
    positions: Vec<ChangeFeedPosition>,
    now: UnixMillis,
    max: usize,
    held: PageMemory,
}

impl Job {
    async fn run(mut self, watch: Arc<Watch>) -> Result<(VersionPage, Cost)> {
        let mut filling = Filling {
            now: self.now,
            container: &self.container,
            state: &self.state,
            watch: &watch,
            changes: Vec::new(),
            bytes: 0,
            max: self.max,
            touched: Vec::new(),
            held: self.held,
        };
        for (slice, position) in self.slices.iter().zip(&mut self.positions) {
            // As in the other mode, a page contains changes of one range only.
            if !filling.changes.is_empty() || filling.is_full() {
                break;
            }
            position.next = filling.read(slice, position.next).await?;
        }
        let Filling {
            changes,
            mut touched,
            held,
            ..
        } = filling;
        if changes.is_empty() {
            for slice in &self.slices {
                record_range(&mut touched, slice.partition.range, slice.partition.newest_lsn().await?);
            }
        }
        let page = VersionPage {
            changes,
            continuation: encode(&self.positions),
            memory: held.into_share(),
        };
        Ok((page, Cost::of_feed(touched)))
    }
}

async fn start(start: &FeedStart, slices: &[Slice]) -> Result<Vec<ChangeFeedPosition>> {
    let refused = |start| Error::from(Reason::HistoryStart { start });
    let known = match start {
        FeedStart::Beginning => return Err(refused(HistoryStart::Beginning)),
        FeedStart::Time(_) => return Err(refused(HistoryStart::Time)),
        FeedStart::Now => None,
        FeedStart::After(text) => Some(decode(text)?),
    };
    let mut positions = Vec::with_capacity(slices.len());
    for slice in slices {
        positions.push(ChangeFeedPosition {
            range: slice.partition.range,
            next: match &known {
                None => slice.partition.newest_lsn().await?.next(),
                Some(known) => resume(slice.partition.range, &slice.partition.parents, known),
            },
        });
    }
    Ok(positions)
}

/// Returns the charge of a change: that of reading its version.
fn cost(change: &ItemChange) -> RequestUnits {
    let shown = change.current.as_ref().or(change.previous.as_ref());
    charge::point_read(shown.map_or(0, |item| item.record().size()))
}

/// A page that is being filled.
struct Filling<'a> {
    now: UnixMillis,
    container: &'a Container,
    state: &'a ContainerState,
    watch: &'a Watch,
    changes: Vec<ItemChange>,
    bytes: usize,
    max: usize,
    touched: Vec<RangePosition>,
    held: PageMemory,
}

impl Filling<'_> {
    fn is_full(&self) -> bool {
        self.changes.len() >= self.max || self.bytes >= limits::PAGE_BYTES || self.held.is_short()
    }

    /// Adds the changes of one slice from `next` on, whole transactions only. Returns the LSN where the next page starts.
    async fn read(&mut self, slice: &Slice, next: Lsn) -> Result<Lsn> {
        let begin = LogPosition { lsn: next, seq: 0 };
        let mut from = begin;
        let mut last_lsn = None;
        loop {
            self.watch.check()?;
            let (head, page, history_from) = slice.partition.read_history(from, PAGE_ROWS, PAGE_BYTES).await?;
            record_range(&mut self.touched, slice.partition.range, head.lsn);
            if from == begin && (begin < history_from || self.first_has_left(&page, head)?) {
                return Err(Reason::HistoryLeft.into());
            }
            for (key, value) in &page.rows {
                let position = keys::history_position(key).ok_or_else(damaged)?;
                if self.is_full() && last_lsn.is_some_and(|last| last != position.lsn) {
                    return Ok(position.lsn);
                }
                let entry = HistoryEntry::decode(value)?;
                if slice.contains(&entry.item_key) {
                    self.add(slice.partition.range, position.lsn, entry, value.len())?;
                    last_lsn = Some(position.lsn);
                }
                from = position.next();
            }
            if !page.more {
                return Ok(next.max(head.lsn.next()));
            }
        }
    }

    fn add(&mut self, range: u32, lsn: Lsn, entry: HistoryEntry, bytes: usize) -> Result<()> {
        let rid = self.container.rid();
        let shown = |record| StoredItem::new(rid, record);
        let change = ItemChange {
            kind: entry.kind,
            lsn,
            crts: entry.crts,
            current: entry.current.map(shown),
            previous: entry.previous.map(shown),
        };
        self.bytes += bytes;
        add_charge(&mut self.touched, range, cost(&change));
        self.changes.push(change);
        self.held.grow(self.bytes, self.changes.len())
    }

    /// Returns whether the oldest requested entry is older than the retention period, whether it is still stored or not.
    fn first_has_left(&self, page: &Page, head: Head) -> Result<bool> {
        let now = self.now.max(head.stamp).seconds();
        let Some((_, value)) = page.rows.first() else {
            return Ok(false);
        };
        let crts = HistoryEntry::crts_of(value).ok_or_else(damaged)?;
        Ok(has_left(crts, self.state.retention(), now))
    }
}

fn damaged() -> Error {
    Error::new(ErrorKind::Corrupt, "a key of the history is damaged")
}
