//! One page of a query: a scan of live items pushed into an execution.

use std::sync::Arc;
use std::time::Instant;

use bolide_model::{RequestUnits, Result, UnixMillis, charge, limits};
use bolide_query::{Ahead, Environment, Execution, Item, Metrics, PageLimit, Progress, Query, ResumeFilter};
use bolide_storage::Head;
use bytes::Bytes;

use super::access::{Access, Pushed};
use super::ahead::{AheadOf, Heads, Kept};
use super::candidates::{Candidates, IndexReader};
use super::counting::{Counting, work};
use super::page_done::PageDone;
use super::parallel::ScanThreads;
use crate::container::{Container, ContainerState};
use crate::content::StoredItem;
use crate::continuation::query::{After, Owner, QueryPosition};
use crate::executor::Watch;
use crate::feeds::page_items;
use crate::memory::MemoryBudget;
use crate::partition::tombstones::TombstoneView;
use crate::partition::visibility::Visibility;
use crate::response::RangePosition;
use crate::scan::{ItemScan, ScannedItems, Slice, WALK_BYTES, add_charge, record_range};
use crate::sql::query_error;

/// Maximum number of items, and of bytes (approximately), that are held to be processed in the order of creation: as much as one read returns.
const IN_ORDER_OF_CREATION: usize = 1_000;
const IN_ORDER_BYTES: usize = WALK_BYTES;

/// Maximum number of slices of which one read each is held for that.
const SLICES_READ_AHEAD: usize = 16;

/// Number of rows after which a page ends before its next item, as it does when it has taken long.
const PAGE_ROWS: u64 = 2_000_000;

/// Number of small items between two checks of the clock.
const ITEMS_PER_LOOK: u64 = 64;

/// Everything one page needs.
pub(super) struct PageRun<'a> {
    pub container: &'a Container,
    pub state: &'a Arc<ContainerState>,
    pub query: &'a Query,
    pub slices: &'a [Slice],
    pub access: Access,
    pub indexes: IndexReader<'a>,
    /// Where the rows begin, as given by the client.
    pub filter: Option<Arc<ResumeFilter>>,
    /// The cache of rows that follow a page, for queries that can use it; the first page keeps none.
    pub ahead: Option<AheadOf<'a>>,
    pub environment: Environment,
    /// The memory budget for the items that are held between two reads.
    pub memory: &'a MemoryBudget,
    pub watch: Arc<Watch>,
    /// The threads that may help a scan.
    pub threads: ScanThreads,
    pub limit: PageLimit,
    /// Whether a full page is never the last, so that an empty page follows it.
    pub ends_with_empty_page: bool,
    /// The time at which the page ends because it has taken long enough.
    pub until: Instant,
}

impl PageRun<'_> {
    /// Runs the page whose continuation is `from`, or the first page.
    pub async fn run(&self, now: UnixMillis, owner: &Owner, from: Option<&str>) -> Result<PageDone> {
        let position = match from {
            Some(text) => owner.read(text)?,
            None => QueryPosition::default(),
        };
        if let Some((text, ahead)) = from.zip(self.ahead.as_ref())
            && let Some(kept) = ahead.take(text)
            && let Some(done) = self.run_ahead(now, owner, &position, kept).await?
        {
            return Ok(done);
        }
        let Pushed {
            execution,
            walk,
            scanned,
        } = self.push_items(now, position).await?;
        let (execution, costs) = execution.into_parts();
        let is_open = self.ends_with_empty_page && execution.metrics().rows == self.limit.rows as u64;
        let mut finished = execution.finish(scanned.is_end && !is_open).map_err(query_error)?;
        let touched = self.touched(walk.touched(), &costs, &finished.metrics);
        let rows_ahead = finished.ahead.take();

        let after = if self.query.rescans() && !self.query.replays() {
            After::Nothing
        } else {
            scanned.after
        };
        let next = finished.resume.take().map(|resume| QueryPosition {
            after,
            resume: Some(resume),
        });
        let continuation = match next {
            Some(next) if scanned.is_at_boundary && !self.has_more(now, &next).await? => None,
            next => next.map(|next| owner.write(&next)),
        };
        if let (Some(rows), Some(continuation)) = (rows_ahead, &continuation) {
            let read = walk.touched().iter().map(|position| (position.range, position.lsn));
            self.keep(continuation, rows, read.collect()).await?;
        }
        let mut done = PageDone::of(finished, continuation, touched);
        done.metrics.load_ms = walk.read_time().as_secs_f64() * 1000.0;
        Ok(done)
    }

    /// Runs a page from the rows that the page before left over; `None` if they are not the rows that come next, or too few.
    async fn run_ahead(
        &self,
        now: UnixMillis,
        owner: &Owner,
        position: &QueryPosition,
        kept: Kept,
    ) -> Result<Option<PageDone>> {
        let Some(first) = self.slices.first() else {
            return Ok(None);
        };
        let now = now.max(first.partition.now().await?);
        let (Some(head), heads) = self.heads().await? else {
            return Ok(None);
        };
        let horizon = self.state.settings.horizon(now.max(head.stamp));
        // No partition has changed, so no partition key was deleted either.
        let visibility = Visibility::new(horizon, TombstoneView::default());
        let Some((mut rows, _memory)) = kept.if_unchanged(&heads, self.state) else {
            return Ok(None);
        };
        rows.retain(|stamp| visibility.still_shows(stamp));
        let is_all = rows.is_all();
        let mut execution = self.execution(self.limit, position.resume.as_deref())?;
        execution.restore(rows);
        let mut finished = execution.finish(is_all).map_err(query_error)?;
        if !finished.is_full && finished.resume.is_some() {
            return Ok(None);
        }
        finished.metrics.items = finished.metrics.rows;
        finished.metrics.item_bytes = finished.metrics.row_bytes;
        let mut touched = Vec::new();
        for (range, lsn) in &heads {
            record_range(&mut touched, *range, *lsn);
        }
        let touched = self.touched(&touched, &[], &finished.metrics);
        let next = finished.resume.take().map(|resume| QueryPosition {
            after: After::Nothing,
            resume: Some(resume),
        });
        let continuation = next.map(|next| owner.write(&next));
        if let (Some(rows), Some(continuation), Some(ahead)) = (finished.ahead.take(), &continuation, &self.ahead) {
            ahead.put(continuation, rows, heads, self.state);
        }
        Ok(Some(PageDone::of(finished, continuation, touched)))
    }

    /// Keeps the rows that follow a page, if nothing has changed since the first read of each partition.
    async fn keep(&self, continuation: &str, rows: Ahead, read: Heads) -> Result<()> {
        let Some(ahead) = &self.ahead else { return Ok(()) };
        let (_, heads) = self.heads().await?;
        if heads == read {
            ahead.put(continuation, rows, heads, self.state);
        }
        Ok(())
    }

    /// Returns the head of the first partition that is read, and the LSN of each, in their order.
    async fn heads(&self) -> Result<(Option<Head>, Heads)> {
        let (mut first, mut heads) = (None, Heads::new());
        for slice in self.slices {
            if heads.iter().all(|(range, _)| *range != slice.partition.range) {
                let head = slice.partition.head().await?;
                first.get_or_insert(head);
                heads.push((slice.partition.range, head.lsn));
            }
        }
        Ok((first, heads))
    }

    /// Returns the ranges that were read, each with the cost of its loaded items and of the rows made from them. The cost of the start is divided
    /// evenly between the ranges; the cost of rows made from items of several ranges is divided in proportion to the ranges' other costs.
    fn touched(
        &self,
        touched: &[RangePosition],
        costs: &[(u32, RequestUnits)],
        metrics: &Metrics,
    ) -> Vec<RangePosition> {
        let mut touched = touched.to_vec();
        let first = self.slices.first().map(|slice| &slice.partition);
        if let (true, Some(first)) = (touched.is_empty(), first.or(self.state.layout.partitions.first())) {
            // A query that reads no items is still charged to a range: to one that it is for, because clients take the session token for that range's.
            record_range(&mut touched, first.range, first.lsn());
        }
        for (range, cost) in costs {
            add_charge(&mut touched, *range, *cost);
        }
        let own: RequestUnits = costs.iter().map(|(_, cost)| *cost).sum();
        let growth = if own.0 > 0.0 { work(metrics).0 / own.0 } else { 1.0 };
        let start = charge::QUERY_START.0 / touched.len() as f64;
        for position in &mut touched {
            position.charge = RequestUnits(position.charge.0 * growth + start);
        }
        touched
    }

    pub(super) fn execution(&self, limit: PageLimit, resume: Option<&str>) -> Result<Execution> {
        let environment = Environment {
            interrupts: Some(self.watch.interrupts()),
            ..self.environment.clone()
        };
        self.query
            .filtered_execution(environment, limit, resume, self.filter.clone())
            .map_err(query_error)
    }

    /// Pushes items until the page is full, the query is done, or the scan ends. A query without a merge also stops at the end of a range, because
    /// the service's pages end there: a range without rows ends in an empty page, which others follow.
    ///
    /// If one read holds all items, they are processed in the order of creation, as in the service, where that order shows in TOP without ORDER BY;
    /// larger parts are processed in the order of keys.
    pub(super) async fn scan(
        &self,
        execution: &mut Counting,
        (walk, candidates): (&mut ItemScan<'_>, Option<&Candidates>),
        after: After,
    ) -> Result<Scanned> {
        let replayed = after.key().cloned().filter(|_| self.query.replays());
        let mut scanned = Scanned {
            after,
            is_end: false,
            is_at_boundary: false,
        };
        if execution.is_done() || !self.query.reads_items() {
            scanned.is_end = true;
            return Ok(scanned);
        }
        let mut read = ScannedItems::default();
        if scanned.after == After::Nothing && self.is_in_one_partition(candidates) {
            read = read_ahead(walk).await?;
            if walk.slices_left() == 0 {
                self.push_in_order_of_creation(execution, read, &mut scanned).await?;
                return Ok(scanned);
            }
            self.watch.give_up_if_brief()?;
        }
        if candidates.is_none() && replayed.is_none() {
            self.get_helpers(walk);
        }
        let mut has_advanced = false;
        let mut range = walk.next_range();
        let mut next = Some(read).filter(|read| !read.items.is_empty());
        loop {
            let read = match next.take() {
                Some(read) => Ok(Some(read)),
                None => walk.next_page().await,
            };
            let read = match read {
                Ok(Some(read)) => read,
                Ok(None) => break,
                // The page ends with the rows that it has.
                Err(error) if error.is_throttled() && has_advanced && !self.query.rescans() => return Ok(scanned),
                Err(error) => return Err(error),
            };
            self.check()?;
            let before = scanned.after.clone();
            if self.push_in_order_of_keys(execution, read, replayed.as_ref(), &mut scanned)? {
                return Ok(scanned);
            }
            has_advanced |= scanned.after != before;
            let left = std::mem::replace(&mut range, walk.next_range());
            if let (Some(left), true) = (left, range.is_some() && left != range && !self.query.rescans()) {
                scanned.after = self.end_of_range(left)?;
                // Only a page with rows checks for more: checking after every range without rows would scan all of them again and again.
                scanned.is_at_boundary = execution.has_rows();
                return Ok(scanned);
            }
        }
        scanned.is_end = true;
        Ok(scanned)
    }

    /// Pushes items in the order of keys; items up to `replayed` were processed by earlier pages. Returns whether the page ends with one of them.
    fn push_in_order_of_keys(
        &self,
        execution: &mut Counting,
        read: ScannedItems,
        replayed: Option<&Bytes>,
        scanned: &mut Scanned,
    ) -> Result<bool> {
        let mut left_out = read.left_out.into_iter().peekable();
        for (at, scanned_item) in read.items.into_iter().enumerate() {
            execution.enter(scanned_item.range);
            while let Some(others) = left_out.next_if(|others| others.before <= at) {
                if self.pass_over(execution, others, scanned) {
                    return Ok(true);
                }
            }
            if replayed.is_some_and(|last| scanned_item.key <= last) {
                replay(execution, &scanned_item.item)?;
                continue;
            }
            match push(execution, &scanned_item.item)? {
                Progress::Continue => {
                    scanned.after = After::Key(scanned_item.key);
                    if self.is_long(execution) {
                        return Ok(true);
                    }
                }
                Progress::PageFull => {
                    if scanned.after == After::Nothing {
                        scanned.after = After::Key(Bytes::new());
                    }
                    return Ok(true);
                }
                Progress::Done => {
                    scanned.is_end = true;
                    return Ok(true);
                }
            }
        }
        Ok(left_out.any(|others| self.pass_over(execution, others, scanned)))
    }

    /// Returns the position after all of a range, so that the next page does not read in it again.
    pub(super) fn end_of_range(&self, range: u32) -> Result<After> {
        let end = &self.state.layout.partition_with_id(range)?.epk.max;
        Ok(After::Key(Bytes::copy_from_slice(end.as_bytes())))
    }

    /// Returns whether only a few slices of a single partition are read.
    pub(super) fn is_in_one_partition(&self, candidates: Option<&Candidates>) -> bool {
        // The order is that of a scan.
        if let Some(candidates) = candidates {
            return candidates.is_small;
        }
        let mut ranges = self.slices.iter().map(|slice| slice.partition.range);
        let first = ranges.next();
        self.slices.len() <= SLICES_READ_AHEAD && ranges.all(|range| Some(range) == first)
    }

    /// Continues after an item in the order of creation. If the part has grown beyond one read meanwhile, each page processes one read's worth.
    pub(super) async fn scan_in_order_of_creation(
        &self,
        execution: &mut Counting,
        walk: &mut ItemScan<'_>,
        after: u64,
    ) -> Result<Scanned> {
        let mut next = ScannedItems::default();
        let mut is_all = true;
        while let Some(read) = walk.next_page().await? {
            self.check()?;
            next.memory.merge(read.memory);
            for scanned_item in read.items {
                if scanned_item.item.rid().number > after {
                    next.items.push(scanned_item);
                } else if self.query.replays() {
                    execution.enter(scanned_item.range);
                    replay(execution, &scanned_item.item)?;
                }
            }
            is_all &= next.keep_oldest(IN_ORDER_OF_CREATION, IN_ORDER_BYTES);
        }
        let mut scanned = Scanned {
            after: After::Rid(after),
            is_end: false,
            is_at_boundary: false,
        };
        self.push_in_order_of_creation(execution, next, &mut scanned).await?;
        scanned.is_end &= is_all;
        Ok(scanned)
    }

    /// Pushes items in the order of their creation, which is that of their resource ids.
    async fn push_in_order_of_creation(
        &self,
        execution: &mut Counting,
        mut read: ScannedItems,
        scanned: &mut Scanned,
    ) -> Result<()> {
        read.sort_by_creation();
        for scanned_item in read.items {
            execution.enter(scanned_item.range);
            match push(execution, &scanned_item.item)? {
                Progress::Continue => {
                    scanned.after = After::Rid(scanned_item.item.rid().number);
                    if self.is_long(execution) {
                        return Ok(());
                    }
                }
                Progress::PageFull => {
                    if scanned.after == After::Nothing {
                        // The page ends within the first item: the next page has to continue in this order, too.
                        scanned.after = After::Rid(scanned_item.item.rid().number.saturating_sub(1));
                    }
                    return Ok(());
                }
                Progress::Done => break,
            }
        }
        scanned.is_end = true;
        Ok(())
    }

    /// Ends a page that no request waits for. A page that finds no items reaches no other check.
    pub(super) fn check(&self) -> Result<()> {
        self.watch.check()
    }

    /// Returns whether the page has read for long enough and its query can continue after the item that was read last. (A query that starts again on
    /// every page would make no progress.)
    pub(super) fn is_long(&self, execution: &mut Counting) -> bool {
        if self.query.rescans() {
            return false;
        }
        let is_look_due = execution.has_worked() || execution.metrics().items % ITEMS_PER_LOOK == 1;
        execution.rows_visited() >= PAGE_ROWS || (is_look_due && self.watch.clock().now() >= self.until)
    }

    /// Returns whether any row follows a position, so that no page is empty except an only one.
    async fn has_more(&self, now: UnixMillis, position: &QueryPosition) -> Result<bool> {
        let one_row = PageLimit { rows: 1, ..self.limit };
        let mut execution = self.execution(one_row, position.resume.as_deref())?;
        let mut walk = self.walk(self.access.candidates(), now, position.after.key());
        while let Some(read) = walk.next_page().await? {
            self.check()?;
            for scanned_item in read.items {
                let progress = push(&mut execution, &scanned_item.item)?;
                if execution.has_rows() {
                    return Ok(true);
                }
                if progress == Progress::Done {
                    return Ok(false);
                }
            }
        }
        Ok(false)
    }
}

/// Reads slices that fit in one read each, until the scan ends or reaches a larger one.
async fn read_ahead(walk: &mut ItemScan<'_>) -> Result<ScannedItems> {
    let mut read = ScannedItems::default();
    loop {
        let slices_left = walk.slices_left();
        match walk.next_page().await? {
            None => return Ok(read),
            Some(next) => read.append(next),
        }
        if walk.slices_left() == slices_left {
            return Ok(read);
        }
    }
}

/// Returns the maximum size of a page.
pub(super) fn page_limit(max_items: Option<usize>) -> PageLimit {
    PageLimit {
        rows: page_items(max_items),
        bytes: limits::PAGE_BYTES,
    }
}

/// How far a scan got.
pub(super) struct Scanned {
    pub after: After,
    /// Every item has been pushed, or no more items are needed.
    pub is_end: bool,
    /// The scan stopped between two ranges.
    pub is_at_boundary: bool,
}

pub(super) fn push(execution: &mut Execution, item: &StoredItem) -> Result<Progress> {
    Item::stored(item.document_json(), item)
        .and_then(|pushed| execution.push_item(&pushed, item.record().number()))
        .map_err(query_error)
}

/// Shows the execution an item that earlier pages have processed.
fn replay(execution: &mut Execution, item: &StoredItem) -> Result<()> {
    Item::stored(item.document_json(), item)
        .and_then(|again| execution.replay(&again, item.record().number()))
        .map_err(query_error)
}
