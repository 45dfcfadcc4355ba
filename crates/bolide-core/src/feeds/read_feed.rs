//! The read feed: all live items, range by range, in the order in which they were created (cosmos-rest §5.7).
//!
//! A page contains items of one range only. Items are stored in the order of their keys, which begin with a hash. If one read holds the whole
//! range, its items are sorted by creation, as for queries. A larger range is listed in the order of keys, and each logical partition in the order
//! of creation. A continuation says how far both orders were followed ([`crate::continuation::read_feed`]).

use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_model::error::BadContinuation;
use bolide_model::{Error, RequestUnits, Result, UnixMillis, charge, limits};
use bytes::Bytes;

use super::page_items;
use super::page_memory::PageMemory;
use crate::container::{Container, ContainerState};
use crate::content::StoredItem;
use crate::continuation::{
    self,
    read_feed::{Begun, ReadFeedPosition},
};
use crate::executor::Watch;
use crate::memory::{MemoryBudget, MemoryShare};
use crate::response::{ChargedResult, Cost, Response};
use crate::runtime::{RequestContext, Runtime};
use crate::scan::{ItemScan, ScanScope, ScannedItem, ScannedItems, Slice, add_charge, begin_at};

/// A request for a page of items.
#[derive(Debug, Clone, Default)]
pub struct ReadFeed {
    /// The part of the container to read.
    pub scope: ScanScope,
    /// Maximum number of items of the page; `None`: the server decides.
    pub max_items: Option<usize>,
    /// The continuation of an earlier page.
    pub continuation: Option<String>,
}

/// A page of items.
#[derive(Debug)]
pub struct FeedPage {
    /// Live items.
    pub items: Vec<StoredItem>,
    /// Where the next page starts; `None` if this is the last.
    pub continuation: Option<String>,
    /// The memory that the page takes; held until the page is written out.
    pub memory: MemoryShare,
}

const KIND: &[u8] = b"read feed";

/// Maximum number of items, and of bytes (approximately), that are sorted by creation at once, in a range that has grown beyond one read.
const IN_ORDER_OF_CREATION: usize = 1_000;
const IN_ORDER_BYTES: usize = 2 * 1024 * 1024;

impl Runtime {
    /// See `Account::read_feed`.
    pub(crate) async fn read_feed(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        read: &ReadFeed,
    ) -> ChargedResult<FeedPage> {
        let guard = container.enter_interruptible().await?;
        let rid = container.rid().bytes();
        let owner: [&[u8]; 2] = [KIND, &rid];
        let position = match &read.continuation {
            None => ReadFeedPosition::default(),
            Some(text) => ReadFeedPosition::decode(&continuation::decode(&owner, text)?)
                .ok_or_else(|| Error::from(BadContinuation::Malformed))?,
        };
        let mut slices = read.scope.slices(&guard.state)?;
        self.admit_all(ctx, &slices, &guard)?;
        begin_at(&mut slices, &position.from);
        let max = page_items(read.max_items);

        let filling = Filling {
            container: container.clone(),
            state: guard.state.clone(),
            slices,
            now: ctx.now,
            position,
            max,
            page_time: self.query_page_time(),
            memory: self.memory().clone(),
            held: PageMemory::of(self.memory()),
        };
        let (page, cost) = self
            .execute_until(container.ending(), |watch| filling.run(watch))
            .await?;
        self.charge_touched(ctx, &guard, &cost);
        Ok(Response { value: page, cost })
    }
}

/// A page to be filled.
struct Filling {
    container: Arc<Container>,
    state: Arc<ContainerState>,
    slices: Vec<Slice>,
    now: UnixMillis,
    position: ReadFeedPosition,
    max: usize,
    page_time: Duration,
    memory: MemoryBudget,
    held: PageMemory,
}

impl Filling {
    async fn run(self, watch: Arc<Watch>) -> Result<(FeedPage, Cost)> {
        let rid = self.container.rid().bytes();
        let owner: [&[u8]; 2] = [KIND, &rid];
        let slices = self.slices.clone();
        let walk = ItemScan::new(
            watch.clock(),
            &self.memory,
            &self.container,
            &self.state,
            slices,
            self.now,
            None,
        );
        let mut page = Page {
            walk,
            slices: &self.slices,
            position: &self.position,
            until: watch.clock().now() + self.page_time,
            watch: &watch,
            max: self.max,
            items: Vec::new(),
            costs: Vec::new(),
            bytes: 0,
            held: self.held,
        };
        let mut next = None;
        while let Some(range) = page.walk.next_range() {
            next = page.fill_from(range).await?;
            if next.is_some() || !page.items.is_empty() {
                break;
            }
        }
        let mut touched = page.walk.touched().to_vec();
        for (range, cost) in &page.costs {
            add_charge(&mut touched, *range, *cost);
        }
        if next.is_none() {
            next = page.position_behind_range().await?;
        }
        let feed = FeedPage {
            items: page.items,
            continuation: next.map(|position| continuation::encode(&owner, &position.encode())),
            memory: page.held.into_share(),
        };
        Ok((feed, Cost::of_feed(touched)))
    }
}

/// A page that is being filled.
struct Page<'a> {
    walk: ItemScan<'a>,
    slices: &'a [Slice],
    position: &'a ReadFeedPosition,
    until: Instant,
    watch: &'a Watch,
    max: usize,
    items: Vec<StoredItem>,
    costs: Vec<(u32, RequestUnits)>,
    bytes: usize,
    held: PageMemory,
}

impl Page<'_> {
    /// Adds the items of one range. Returns where the next page starts if they did not all fit.
    async fn fill_from(&mut self, range: u32) -> Result<Option<ReadFeedPosition>> {
        let is_begun = self
            .walk
            .next_key()
            .is_some_and(|key| self.position.begun_at(&key).is_some());
        let mut read = self.next().await?;
        if self.walk.next_range() != Some(range) {
            return self.add_in_order_of_creation(range, read, true);
        }
        if is_begun {
            return self.go_on_in_order_of_creation(range, read).await;
        }
        loop {
            // From here on the page's own share counts the items. Nothing waits for memory before that.
            let ScannedItems { items, memory, .. } = read;
            drop(memory);
            for scanned in items {
                if self.is_full() {
                    return Ok(Some(self.position.later(scanned.key, None)));
                }
                self.add(scanned)?;
            }
            let Some(next) = self.walk.next_key().filter(|_| self.walk.next_range() == Some(range)) else {
                return Ok(None);
            };
            if !self.items.is_empty() && self.watch.clock().now() >= self.until {
                return Ok(Some(self.position.later(next, None)));
            }
            read = match self.next().await {
                Err(error) if error.is_throttled() && !self.items.is_empty() => {
                    return Ok(Some(self.position.later(next, None)));
                }
                read => read?,
            };
        }
    }

    /// Returns the next items that were not listed yet.
    async fn next(&mut self) -> Result<ScannedItems> {
        self.watch.check()?;
        let mut read = self.walk.next_page().await?.unwrap_or_default();
        read.items
            .retain(|scanned| !self.position.has_listed(&scanned.key, scanned.item.rid().number));
        Ok(read)
    }

    /// Adds the oldest of the remaining items of a range that was begun in the order of creation and has grown beyond one read since.
    async fn go_on_in_order_of_creation(
        &mut self,
        range: u32,
        first: ScannedItems,
    ) -> Result<Option<ReadFeedPosition>> {
        let mut oldest = first;
        let mut is_all = true;
        while self.walk.next_range() == Some(range) {
            let next = self.next().await?;
            oldest.append(next);
            is_all &= oldest.keep_oldest(IN_ORDER_OF_CREATION, IN_ORDER_BYTES);
        }
        self.add_in_order_of_creation(range, oldest, is_all)
    }

    /// Adds items in the order of their creation, which is that of their resource ids. `is_all`: the range has no others.
    fn add_in_order_of_creation(
        &mut self,
        range: u32,
        mut read: ScannedItems,
        is_all: bool,
    ) -> Result<Option<ReadFeedPosition>> {
        read.sort_by_creation();
        let ScannedItems { items, memory, .. } = read;
        drop(memory);
        let mut last = None;
        for scanned in items {
            if self.is_full() {
                return Ok(last.and_then(|rid| self.position_in(range, rid)));
            }
            last = Some(scanned.item.rid().number);
            self.add(scanned)?;
        }
        Ok(last.filter(|_| !is_all).and_then(|rid| self.position_in(range, rid)))
    }

    /// Returns the position in a range whose items with a resource number up to `rid` were all listed.
    fn position_in(&self, range: u32, rid: u64) -> Option<ReadFeedPosition> {
        let slice = self.slices.iter().find(|slice| slice.partition.range == range)?;
        let epk = &slice.partition.epk;
        let from = slice.from.clone().max(Bytes::copy_from_slice(epk.min.as_bytes()));
        let end = Bytes::copy_from_slice(epk.max.as_bytes());
        let to = slice.to.clone().map_or(end.clone(), |to| to.min(end));
        Some(self.position.later(from, Some(Begun { to: Some(to), rid })))
    }

    fn is_full(&self) -> bool {
        let has_enough = self.bytes >= limits::PAGE_BYTES || self.held.is_short();
        self.items.len() >= self.max || (has_enough && !self.items.is_empty())
    }

    fn add(&mut self, scanned: ScannedItem) -> Result<()> {
        self.bytes += scanned.item.document_bytes();
        let size = scanned.item.record().size();
        self.costs.push((scanned.range, charge::point_read(size)));
        self.items.push(scanned.item);
        self.held.grow(self.bytes, self.items.len())
    }

    /// Returns the position after the range that the page ends with, if any item follows it, so that no page is empty except an only one.
    async fn position_behind_range(&mut self) -> Result<Option<ReadFeedPosition>> {
        if self.items.is_empty() {
            return Ok(None);
        }
        while let Some(next) = self.walk.next_key() {
            match self.next().await {
                Ok(read) if read.items.is_empty() => {}
                Err(error) if !error.is_throttled() => return Err(error),
                _ => return Ok(Some(self.position.later(next, None))),
            }
        }
        Ok(None)
    }
}
