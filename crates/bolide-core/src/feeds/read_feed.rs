//! The read feed: all live items, range by range, in the order in which they were created (cosmos-rest §5.7).
//!
//! A page is of one range. Items lie in the order of their keys, which begin with a hash, so one read of a range is put into the order
//! of creation, as it is for queries; a range that one read does not hold is listed in the order of keys, and each logical partition in
//! that of creation. A continuation says how far both orders were followed ([`crate::continuation::read_feed`]).

use std::sync::Arc;
use std::time::{Duration, Instant};

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

/// Lists items.
#[derive(Debug, Clone, Default)]
pub struct ReadFeed {
    /// Of which part of the container.
    pub scope: ScanScope,
    /// Most items of the page; `None`: the server decides.
    pub max_items: Option<usize>,
    /// From an earlier page.
    pub continuation: Option<String>,
}

/// A page of items.
#[derive(Debug)]
pub struct FeedPage {
    /// Live items.
    pub items: Vec<StoredItem>,
    /// Where the next page goes on; `None` if this is the last.
    pub continuation: Option<String>,
    /// The memory that it takes; to be held until it is written out.
    pub memory: MemoryShare,
}

const KIND: &[u8] = b"read feed";

/// Most items of a range that has grown beyond one read that are put into the order of creation at once, and about how many bytes.
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
                .ok_or_else(|| Error::bad_request("Invalid Continuation Token: it is malformed."))?,
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

/// A page on its way.
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
    /// Adds the items of one range. Returns where to go on if they did not all fit.
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
            // From here on the page's own share counts them; nothing waits before.
            let ScannedItems { items, memory } = read;
            drop(memory);
            for walked in items {
                if self.is_full() {
                    return Ok(Some(self.position.later(walked.key, None)));
                }
                self.add(walked)?;
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

    /// The next items that were not listed.
    async fn next(&mut self) -> Result<ScannedItems> {
        self.watch.check()?;
        let mut read = self.walk.next_page().await?.unwrap_or_default();
        read.items
            .retain(|walked| !self.position.has_listed(&walked.key, walked.item.rid().number));
        Ok(read)
    }

    /// Adds what was created first of the rest of a range that has grown beyond one read since it was begun in this order.
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

    /// Adds items as they were created, which is the order of their resource ids. `is_all`: there are no others in the range.
    fn add_in_order_of_creation(
        &mut self,
        range: u32,
        mut read: ScannedItems,
        is_all: bool,
    ) -> Result<Option<ReadFeedPosition>> {
        read.sort_by_creation();
        let ScannedItems { items, memory } = read;
        drop(memory);
        let mut last = None;
        for walked in items {
            if self.is_full() {
                return Ok(last.and_then(|rid| self.position_in(range, rid)));
            }
            last = Some(walked.item.rid().number);
            self.add(walked)?;
        }
        Ok(last.filter(|_| !is_all).and_then(|rid| self.position_in(range, rid)))
    }

    /// The position in a range of which everything was listed that was created up to `rid`.
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

    fn add(&mut self, walked: ScannedItem) -> Result<()> {
        let size = walked.item.record().size();
        self.bytes += size;
        self.costs.push((walked.range, charge::point_read(size)));
        self.items.push(walked.item);
        self.held.grow(self.bytes, self.items.len())
    }

    /// The position behind the range that the page ends with, if any item comes after it: no page is empty but the only one.
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
