//! Runs a bound query over items that are pushed to it, a page at a time.
//!
//!   push(item) ─▶ FROM/JOIN/WHERE ─▶ stage: stream | groups | sorter | ranker ─▶ DISTINCT ─▶ OFFSET/LIMIT ─▶ page of rows
//!
//! Streams return rows while items come in; the other stages hold theirs until [`Execution::finish`].

mod ahead;
mod best_rows;
mod distinct;
mod emitted_rows;
mod item_filter;
mod nested;
mod output;
mod prefilter;
mod ranker;
mod resume;
mod resume_filter;
mod skipping;
mod sort_hash;
mod sort_value;
mod sorter;
mod stage;
#[cfg(test)]
mod tests;
mod writing;

use std::sync::Arc;

pub use ahead::Ahead;
pub use item_filter::ItemFilter;
pub use output::{PageLimit, Rows};
pub use resume::Resume;
pub use resume_filter::ResumeFilter;

use crate::bind::Bound;
use crate::error::Result;
use crate::eval::{Flow, Row, each_row, project};
use crate::index::{self, CompositeIndex, CompositeOrder, Interval, TextStatistics};
use crate::program::{Ordering, Select};
use crate::session::Session;
use crate::value::{Item, SameKey};
use distinct::Distinct;
use emitted_rows::{EmittedRows, Ordinals};
use nested::Nested;
use output::{EarlierPages, Output};
use prefilter::SubstringPrefilter;
use stage::{Stage, ranking};

/// What the caller should do after a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Push the next item.
    Continue,
    /// The page is full and this item has rows that did not fit: finish now, and begin the next page with the same item.
    PageFull,
    /// The query is complete and no later page has rows: finish now.
    Done,
}

/// Counters of the work of one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Metrics {
    /// Items pushed.
    pub items: u64,
    /// Bytes of these items.
    pub item_bytes: u64,
    /// Items of which only an entry of an index was read.
    pub index_entries: u64,
    /// Items whose rows were made from an entry of an index, and which cost as much as pushed ones.
    pub covered_items: u64,
    /// Bytes of these items.
    pub covered_bytes: u64,
    /// Rows of the page.
    pub rows: u64,
    /// Bytes of these rows, without separators.
    pub row_bytes: u64,
}

/// The end of a page.
#[derive(Debug)]
pub struct Finished {
    /// The rows of the page.
    pub rows: Rows,
    /// The state for the next page; `None` when the query is complete.
    pub resume: Option<String>,
    /// Counters of the work.
    pub metrics: Metrics,
    /// A row did not fit and is left for the next page.
    pub is_full: bool,
    /// The rows that follow the page, after [`Execution::keep_following_rows`] or [`Execution::restore`].
    pub ahead: Option<Ahead>,
}

/// One page of a query in progress.
#[derive(Debug)]
pub struct Execution {
    bound: Bound,
    session: Session,
    fingerprint: u32,
    stage: Stage,
    prefilter: SubstringPrefilter,
    nested: Option<Nested>,
    distinct: Option<Distinct>,
    output: Output,
    metrics: Metrics,
    /// Rows of the first item that earlier pages have already processed.
    within: Option<resume::PartialItem>,
    /// Rows of the current item processed so far.
    item_rows: u64,
    ordinals: Ordinals,
    /// Rows that FROM, JOIN and subqueries visited for the items before the current one.
    rows_before: u64,
    /// Rows that passed FROM and WHERE.
    rows_passed: u64,
    /// The item that must be pushed again.
    push_again: Option<resume::PartialItem>,
    /// The last group returned, if groups are ordered by the identity of their keys.
    group: Option<SameKey>,
    /// Earlier pages returned more rows than a continuation can list.
    is_counted: bool,
    /// See [`Execution::rows_to_skip`].
    skips_by_keys: bool,
    /// Whether the keys of an index tell which items pass the filter; found out when the first entry is pushed.
    filters_by_keys: Option<bool>,
}

/// Whether every page reads all items again, instead of continuing where the scan stopped.
pub fn rescans(select: &Select) -> bool {
    !select.reads_items()
        || select.distinct
        || select.grouping.is_some()
        || !matches!(select.ordering, Ordering::None)
        || has_blocking_subquery(select)
}

/// Whether the first input is a subquery over the items of the container that groups them or removes duplicates.
pub fn has_blocking_subquery(select: &Select) -> bool {
    Nested::of(select).is_some()
}

/// Whether items before the position of the previous page are replayed instead of pushed, for pages that start again.
pub fn replays(select: &Select) -> bool {
    select.reads_items()
        && select.distinct
        && select.grouping.is_none()
        && matches!(select.ordering, Ordering::None)
        && !has_blocking_subquery(select)
}

/// Whether pages start again and only a complete list of the returned rows tells where to continue.
fn needs_all_emitted(select: &Select) -> bool {
    match (&select.grouping, &select.ordering) {
        (_, Ordering::Keys(_)) => false,
        (Some(_), _) => is_cut(select),
        (None, Ordering::Rank(_)) => true,
        (None, Ordering::None) => has_blocking_subquery(select),
    }
}

/// Whether TOP or OFFSET LIMIT select among the rows.
fn is_cut(select: &Select) -> bool {
    select.take.is_some() || select.skip > 0
}

/// The result of earlier pages.
fn earlier_pages(select: &Select, resume: &mut Resume) -> EarlierPages {
    let is_listed = needs_all_emitted(select) && !resume.emitted.is_empty();
    // A position, and a complete list of rows, already account for what was skipped and returned.
    let started =
        resume.boundary.is_some() || resume.group.is_some() || is_listed || !rescans(select) || replays(select);
    EarlierPages {
        skip: if started {
            select.skip.saturating_sub(resume.skipped)
        } else {
            select.skip
        },
        drop: if started { 0 } else { resume.returned },
        returned: resume.returned,
        skipped: if started { resume.skipped } else { 0 },
        emitted: std::mem::take(&mut resume.emitted),
    }
}

impl Execution {
    pub(crate) fn new(
        bound: Bound,
        session: Session,
        page: PageLimit,
        mut resume: Resume,
        filter: Option<Arc<ResumeFilter>>,
        fingerprint: u32,
    ) -> Execution {
        let select = Arc::clone(&bound.select);
        let take = select.take.map(|take| take.saturating_sub(resume.returned));
        let earlier_pages = earlier_pages(&select, &mut resume);
        let is_counted = earlier_pages.drop > 0;
        let output = Output::new(page, take, earlier_pages);
        let stage = Stage::new(&select, output.rows_wanted(), resume.boundary, filter);
        Execution {
            session,
            fingerprint,
            stage,
            prefilter: SubstringPrefilter::of(&select),
            nested: Nested::of(&select),
            distinct: select.distinct.then(Distinct::default),
            output,
            metrics: Metrics::default(),
            within: resume.within,
            item_rows: 0,
            rows_before: 0,
            rows_passed: 0,
            ordinals: Ordinals::default(),
            push_again: None,
            group: resume.group,
            is_counted,
            skips_by_keys: index::tells_rows(&bound),
            filters_by_keys: None,
            bound,
        }
    }

    /// Keeps the rows that follow the page, see [`Ahead`]. Only for queries sorted by keys, without DISTINCT, over items that have an expiry stamp.
    pub fn keep_following_rows(&mut self) {
        if let (Stage::Sort(sorter), false) = (&mut self.stage, self.bound.select.distinct) {
            sorter.keep_following_rows();
        }
    }

    /// Takes the rows that the previous page kept, instead of items; finish next. The next page is known only if [`Finished::is_full`], or if these
    /// were all rows.
    pub fn restore(&mut self, ahead: Ahead) {
        if let Stage::Sort(sorter) = &mut self.stage {
            sorter.restore(ahead);
        }
    }

    /// Ranks by these statistics instead of those of the items that are pushed, for [`crate::Query::text_ranking`]. Before the first item.
    pub fn rank_by(&mut self, statistics: &TextStatistics) {
        if let Stage::Rank(ranker) = &mut self.stage {
            ranker.fix(statistics);
        }
    }

    /// Number of ranked or sorted rows so far, earlier pages included.
    pub fn rows_ordered(&self) -> u64 {
        match &self.stage {
            Stage::Rank(ranker) => ranker.candidates(),
            _ => self.rows_passed,
        }
    }

    /// Records that entries of an index were read without their items.
    pub fn count_index_entries(&mut self, entries: u64) {
        self.metrics.index_entries += entries;
    }

    /// Sets the results of the aggregates, for [`crate::Query::text_aggregates`], instead of pushing items.
    pub fn set_aggregates(&mut self, values: &[u64]) {
        if let Stage::Groups(groups) | Stage::SortedGroups(groups, _) = &mut self.stage {
            groups.set(values);
        }
    }

    /// Processes one item: its complete JSON text, system properties included, and its resource id.
    ///
    /// # Errors
    /// [`crate::QueryError::BadItem`] for text that is not UTF-8, [`crate::QueryError::TooLarge`] if sorting, grouping or DISTINCT exceed their
    /// memory, and errors of UDFs and scalar subqueries. The execution cannot be used afterwards.
    pub fn push(&mut self, item: &[u8], rid: u64) -> Result<Progress> {
        self.push_item(&Item::complete(item)?, rid)
    }

    /// As [`Execution::push`], for an item in parts.
    ///
    /// # Errors
    /// As [`Execution::push`].
    pub fn push_item(&mut self, item: &Item<'_>, rid: u64) -> Result<Progress> {
        if self.output.is_done() || !self.bound.select.reads_items() {
            return Ok(Progress::Done);
        }
        self.metrics.items += 1;
        self.metrics.item_bytes += item.bytes() as u64;
        self.process(item, rid)
    }

    /// Counts items that [`ItemFilter::may_pass`] refused, as if they were pushed: so many, of so many bytes in all.
    pub fn leave_out(&mut self, items: u64, bytes: u64) {
        self.metrics.items += items;
        self.metrics.item_bytes += bytes;
    }

    /// As [`Execution::push`], for an item of which only an entry of an index was read ([`crate::Query::covering_path`]).
    ///
    /// # Errors
    /// As [`Execution::push`].
    pub fn push_covered(&mut self, item: &[u8], rid: u64) -> Result<Progress> {
        if self.output.is_done() {
            return Ok(Progress::Done);
        }
        self.metrics.index_entries += 1;
        self.process(&Item::complete(item)?, rid)
    }

    /// As [`Execution::push_covered`], for so many items with one value ([`crate::Query::counts_runs`]). The caller counts the entries.
    ///
    /// # Errors
    /// As [`Execution::push`].
    pub fn push_covered_run(&mut self, item: &[u8], items: u64, rid: u64) -> Result<Progress> {
        if self.output.is_done() {
            return Ok(Progress::Done);
        }
        self.process_items(&Item::complete(item)?, rid, (false, items))
    }

    /// As [`Execution::push`], for an item of which only an entry of an index was read ([`crate::Query::covers_rows`]) and which has so many bytes. Its key
    /// must be one that the condition on the path admits.
    ///
    /// # Errors
    /// As [`Execution::push`].
    pub fn push_covered_row(&mut self, item: &[u8], bytes: u64, rid: u64) -> Result<Progress> {
        if self.output.is_done() {
            return Ok(Progress::Done);
        }
        self.metrics.covered_items += 1;
        self.metrics.covered_bytes += bytes;
        let passes_filter = *self
            .filters_by_keys
            .get_or_insert_with(|| index::is_exact_filter(&self.bound));
        self.process_items(&Item::complete(item)?, rid, (passes_filter, 1))
    }

    /// Counts items of which nothing is read, for a query that does nothing else ([`crate::Query::counts_items`]).
    pub fn push_counted(&mut self, items: u64) {
        if let Stage::Groups(groups) = &mut self.stage {
            groups.count(items);
        }
    }

    /// Processes one item, whatever was read for it.
    fn process(&mut self, item: &Item<'_>, rid: u64) -> Result<Progress> {
        self.process_items(item, rid, (false, 1))
    }

    /// Processes an item that stands for so many equal ones, and that is perhaps known to pass the filter.
    fn process_items(&mut self, item: &Item<'_>, rid: u64, (passes_filter, items): (bool, u64)) -> Result<Progress> {
        self.item_rows = 0;
        self.begin_item();
        self.session.memory.hold_rows(self.output.row_bytes() as usize)?;
        self.session.fuel.burn(item.bytes() as u64 / 16)?;
        let select = Arc::clone(&self.bound.select);
        let Execution {
            bound,
            session,
            stage,
            prefilter,
            nested,
            distinct,
            output,
            within,
            item_rows,
            ordinals,
            rows_passed,
            ..
        } = self;
        // Other items may have been inserted before it meanwhile.
        let already = within
            .take_if(|within| within.rid == rid)
            .map_or(0, |within| within.rows);
        if !prefilter.may_match(item.document()) {
            return Ok(Progress::Continue);
        }
        let mut row = Row::over(bound.slots, session, item, rid);
        row.passes_filter = passes_filter;
        row.times = items;
        if let Stage::Sort(sorter) = stage {
            sorter.enter(item.stamp());
        }
        if let Stage::Rank(ranker) = stage {
            ranker.count(&mut row, ranking(&select))?;
        }
        let flow = nested::each_item_row(&select, nested.as_mut(), &mut row, &mut |row| {
            *rows_passed += 1;
            stage.accept(&select, distinct.as_mut(), output, row, ordinals, (item_rows, already))
        })?;
        if self.output.is_done() {
            return Ok(Progress::Done);
        }
        Ok(match flow {
            Flow::Continue => Progress::Continue,
            Flow::Stop => {
                self.push_again = Some(resume::PartialItem {
                    rid,
                    rows: self.item_rows,
                });
                Progress::PageFull
            }
        })
    }

    /// Processes an item that earlier pages have processed, if [`crate::Query::replays`] requires it: its rows are recorded but not returned again.
    ///
    /// # Errors
    /// As [`Execution::push`].
    pub fn replay(&mut self, item: &Item<'_>, rid: u64) -> Result<()> {
        self.metrics.items += 1;
        self.metrics.item_bytes += item.bytes() as u64;
        self.begin_item();
        self.session.fuel.burn(item.bytes() as u64 / 16)?;
        let select = Arc::clone(&self.bound.select);
        let mut row = Row::over(self.bound.slots, &self.session, item, rid);
        let Some(distinct) = &mut self.distinct else {
            return Ok(());
        };
        each_row(&select, &mut row, &mut |row| {
            distinct.is_new(&project(&select.projection, row)?, row.session)?;
            Ok(Flow::Continue)
        })?;
        Ok(())
    }

    /// Ends the page. `end_of_scan`: every item of the query's range has been pushed, on this page or, if the scan continues over pages, on earlier ones.
    ///
    /// # Errors
    /// As [`Execution::push`].
    pub fn finish(mut self, end_of_scan: bool) -> Result<Finished> {
        let select = Arc::clone(&self.bound.select);
        if !self.output.is_done() && self.push_again.is_none() {
            self.drain(&select)?;
        }
        let end_of_scan = end_of_scan || !select.reads_items();
        let complete = self.output.is_done() || (end_of_scan && self.push_again.is_none() && !self.output.is_full());
        let resume = if complete {
            None
        } else {
            Some(self.resume().to_text(self.fingerprint))
        };
        self.session.memory.hold_rows(self.output.row_bytes() as usize)?;
        let is_full = self.output.is_full();
        let ahead = match &mut self.stage {
            Stage::Sort(sorter) => sorter.take_following_rows(),
            _ => None,
        };
        let rows = self.output.into_rows();
        let metrics = Metrics {
            rows: rows.len() as u64,
            row_bytes: rows.row_bytes() as u64,
            ..self.metrics
        };
        Ok(Finished {
            rows,
            resume,
            metrics,
            is_full,
            ahead,
        })
    }

    /// Number of sorted rows that the page needs, with one more that tells whether others follow; `None`: all.
    pub fn rows_wanted(&self) -> Option<usize> {
        self.output.rows_wanted()
    }

    /// The keys, in an index in whose order the rows come ([`crate::Query::index_order`]), of rows that may still be wanted
    /// ([`crate::index::OrderedKeys::wanted`]). It narrows while items are pushed. `None` if the query is not sorted by keys.
    pub fn wanted_keys(&self) -> Option<Interval> {
        match &self.stage {
            Stage::Sort(sorter) => Some(sorter.wanted_keys()),
            _ => None,
        }
    }

    /// As [`Execution::wanted_keys`], in a composite index.
    pub fn wanted_composite_keys(&self, order: &CompositeOrder) -> Option<Interval> {
        match &self.stage {
            Stage::Sort(sorter) => Some(sorter.wanted_composite_keys(order)),
            _ => None,
        }
    }

    /// Says that entries of this index, in the order of the rows, are shown to [`Execution::skip_covered`] and [`Execution::push_covered_row`]. Before the first one.
    pub fn read_composite(&mut self, index: &CompositeIndex, order: &CompositeOrder) {
        let tells_rows = order.has_order_of_items() && index.has_items();
        self.skips_by_keys = tells_rows && index::tells_rows_of(&self.bound, &index.only_paths());
        // The keys that are read need not be those that pass.
        self.filters_by_keys = Some(false);
    }

    /// Number of rows that passed the filter so far, for a query that is sorted by keys: those of earlier pages and those that no page shows are counted too.
    pub fn rows_sorted(&self) -> u64 {
        match &self.stage {
            Stage::Sort(sorter) => sorter.seen(),
            _ => 0,
        }
    }

    fn begin_item(&mut self) {
        self.rows_before += self.session.rows();
        self.session.begin_item();
    }

    /// Number of rows that FROM, JOIN and subqueries visited so far, which determines the time of the page.
    pub fn rows_visited(&self) -> u64 {
        self.rows_before + self.session.rows()
    }

    /// How often limits were checked: about once per millisecond of work.
    pub fn interrupt_checks(&self) -> u64 {
        self.session.fuel.interrupt_checks()
    }

    /// Whether nothing more can come, so that no more items need to be pushed.
    pub fn is_done(&self) -> bool {
        self.output.is_done()
    }

    /// The work of the page so far.
    pub fn metrics(&self) -> Metrics {
        Metrics {
            rows: self.output.rows(),
            row_bytes: self.output.row_bytes(),
            ..self.metrics
        }
    }

    /// Whether the page has a row already.
    pub fn has_rows(&self) -> bool {
        self.output.has_rows()
    }

    fn resume(&self) -> Resume {
        Resume {
            returned: self.output.returned(),
            skipped: self.output.skipped(),
            // A page that reads all items again does not continue inside an item, unless the earlier ones are replayed.
            within: self
                .push_again
                .filter(|_| !rescans(&self.bound.select) || replays(&self.bound.select)),
            boundary: match &self.stage {
                Stage::Sort(sorter) | Stage::SortedGroups(_, sorter) => sorter.last_emitted(),
                _ => None,
            },
            group: self.group.clone(),
            emitted: if self.is_counted {
                EmittedRows::default()
            } else {
                self.output.emitted().clone()
            },
            needs_all_emitted: needs_all_emitted(&self.bound.select),
        }
    }

    /// Returns the rows that stages hold back until all items are processed.
    fn drain(&mut self, select: &Arc<Select>) -> Result<()> {
        self.begin_item();
        let Execution {
            bound,
            session,
            stage,
            nested,
            distinct,
            output,
            item_rows,
            ordinals,
            group,
            ..
        } = self;
        let mut row = Row::new(bound.slots, session);
        if !select.reads_items() {
            each_row(select, &mut row, &mut |row| {
                stage.accept(select, distinct.as_mut(), output, row, ordinals, (item_rows, 0))
            })?;
        }
        nested::each_row_at_end(select, nested.take(), &mut row, &mut |row| {
            stage.accept(select, distinct.as_mut(), output, row, ordinals, (item_rows, 0))
        })?;
        stage.emit(select, distinct, output, &mut row, group)
    }
}
