//! How the items of a page are found: by a scan, as candidates, by a search for the nearest vectors, or in the order of an index.

use bolide_model::{Result, UnixMillis};
use bolide_query::index::IndexPath;
use bytes::Bytes;

use super::candidates::{Candidates, FEW_CANDIDATES, IndexReader, MAX_CANDIDATES};
use super::counting::Counting;
use super::covered::CoveredScan;
use super::nearest::NearestScan;
use super::ordered::{OrderedScan, SPARE_ENTRIES};
use super::page::{PageRun, Scanned};
use super::ranked::TextAccess;
use crate::continuation::query::{After, QueryPosition};
use crate::runtime::IndexUse;
use crate::scan::{ItemScan, Slice};

/// An execution with the items of its page.
pub(super) struct Pushed<'a> {
    pub execution: Counting,
    pub walk: ItemScan<'a>,
    pub scanned: Scanned,
}

impl<'a> Pushed<'a> {
    /// All items that the page needs were pushed.
    pub(super) fn at_end(execution: Counting, walk: ItemScan<'a>) -> Pushed<'a> {
        let scanned = Scanned {
            after: After::Nothing,
            is_end: true,
            is_at_boundary: false,
        };
        Pushed {
            execution,
            walk,
            scanned,
        }
    }
}

/// What a page reads.
pub(super) enum Access {
    /// All items.
    Scan,
    /// Entries of an index, or counters, instead of items.
    Covered(CoveredScan),
    /// The lists of a full-text index, and the items with the highest scores.
    Texts(TextAccess),
    /// The items that an index finds.
    Candidates(Candidates),
    /// Items in the order of an index.
    Ordered(OrderedScan),
    /// The items whose vectors are nearest to that of the query.
    Nearest(NearestScan),
}

/// Reading so many items takes less than a millisecond, unless all of them come from the disk.
const BRIEF_CANDIDATES: usize = 32;
/// And so many bytes of items.
const BRIEF_BYTES: usize = 128 * 1024;
/// If a filter selects so few items, all of these are compared with a vector.
const COMPARED_CANDIDATES: usize = 2_048;

impl Access {
    /// Returns the id of the index that is read.
    pub fn index(&self) -> Option<u32> {
        match self {
            Access::Scan => None,
            Access::Covered(covered) => covered.index(),
            Access::Texts(texts) => Some(texts.index),
            Access::Candidates(candidates) => Some(candidates.index),
            Access::Ordered(ordered) => Some(ordered.index),
            Access::Nearest(nearest) => Some(nearest.index),
        }
    }

    /// Returns whether an index finds the rows behind a page as fast as those of the page.
    pub fn is_ordered(&self) -> bool {
        matches!(self, Access::Ordered(_) | Access::Texts(_) | Access::Nearest(_))
    }

    /// Returns whether little is read, or in steps: the page may take less than a millisecond.
    pub fn is_brief(&self, reader: &IndexReader<'_>) -> bool {
        match self {
            Access::Candidates(found) => found.slices.len() <= BRIEF_CANDIDATES,
            Access::Ordered(_) | Access::Covered(_) => true,
            // The items of a partition key are often few.
            Access::Scan => reader.is_pinned,
            Access::Texts(_) | Access::Nearest(_) => false,
        }
    }

    /// Returns the items that an index finds, if they are read.
    pub fn candidates(&self) -> Option<&Candidates> {
        match self {
            Access::Candidates(candidates) => Some(candidates),
            _ => None,
        }
    }
}

impl IndexReader<'_> {
    /// Returns what the query reads if that is faster than a scan or demanded: entries alone, a few candidates, the nearest vectors, the order
    /// of an index, more candidates.
    ///
    /// # Errors
    /// From the engine; if the query has to end.
    pub async fn access(&self) -> Result<Access> {
        if self.index_use == IndexUse::AlwaysInOrder {
            return self.access_in_order().await;
        }
        if let Some(texts) = self.texts().await? {
            return Ok(Access::Texts(texts));
        }
        if let Some(covered) = self.covered() {
            return Ok(Access::Covered(covered));
        }
        if self.is_filtered_by_order_only()
            && let Some(ordered) = self.ordered()
        {
            return Ok(Access::Ordered(ordered));
        }
        let few = match self.nearest {
            Some(_) => COMPARED_CANDIDATES,
            None => FEW_CANDIDATES,
        };
        if let Some(few) = self.candidates(few).await? {
            return Ok(Access::Candidates(few));
        }
        if let Some(nearest) = self.nearest().await? {
            return Ok(Access::Nearest(nearest));
        }
        if !self.has_conditions() && self.order.is_none() && self.composite.order.is_none() {
            return Ok(Access::Scan);
        }
        if let Some(ordered) = self.ordered() {
            return Ok(Access::Ordered(ordered));
        }
        if self.watch.is_brief() {
            return Ok(Access::Scan);
        }
        let more = self.candidates(MAX_CANDIDATES).await?;
        Ok(more.map_or(Access::Scan, Access::Candidates))
    }

    /// Whether the only conditions are on the paths of the order: the index in that order has the rows of a page next to each other, so that no look is worthwhile
    /// at how many there are in all.
    fn is_filtered_by_order_only(&self) -> bool {
        let is_of_order = |path: &IndexPath| match &self.composite.order {
            Some((_, _, order)) => order.paths.contains(path),
            None => self.order.as_ref().is_some_and(|order| order.path == *path),
        };
        !self.index_use.is_forced()
            && self.composite.is_of_order_only()
            && self.nearest.is_none()
            && self.texts.is_empty()
            && self.shapes.is_empty()
            && (!self.conditions.is_empty() || self.composite.order.is_some())
            && self.conditions.iter().all(|condition| is_of_order(&condition.path))
    }

    /// See [`IndexUse::AlwaysInOrder`].
    async fn access_in_order(&self) -> Result<Access> {
        if let Some(ordered) = self.ordered() {
            return Ok(Access::Ordered(ordered));
        }
        let found = match self.has_conditions() {
            true => self.candidates(MAX_CANDIDATES).await?,
            false => None,
        };
        Ok(found.map_or(Access::Scan, Access::Candidates))
    }
}

impl PageRun<'_> {
    /// Pushes the items of the page, or what is read instead of them.
    pub(super) async fn push_items(&self, now: UnixMillis, position: QueryPosition) -> Result<Pushed<'_>> {
        let pushed = match &self.access {
            Access::Scan => return self.push_scanned(now, position, None).await,
            Access::Candidates(found) => return self.push_candidates(now, position, found).await,
            Access::Covered(covered) => self.push_covered(now, &position, covered).await?,
            Access::Ordered(ordered) => self.push_ordered(now, &position, ordered).await?,
            Access::Texts(texts) => self.push_by_texts(now, &position, texts).await?,
            // Where a client begins, other items may be nearest.
            Access::Nearest(_) if self.filter.is_some() => None,
            Access::Nearest(nearest) => self.push_nearest(now, &position, nearest).await?,
        };
        match pushed {
            Some(pushed) => Ok(pushed),
            None => {
                self.watch.give_up_if_brief()?;
                let found = self.indexes.candidates(MAX_CANDIDATES).await?;
                self.push_scanned(now, position, found.as_ref()).await
            }
        }
    }

    /// Pushes items in the order of an index, with a larger first read the second time; `None` if a scan is needed after all.
    async fn push_ordered(
        &self,
        now: UnixMillis,
        position: &QueryPosition,
        ordered: &OrderedScan,
    ) -> Result<Option<Pushed<'_>>> {
        for spare in SPARE_ENTRIES {
            let pushed = self.push_in_index_order(now, position, (ordered, spare)).await?;
            if pushed.is_some() {
                return Ok(pushed);
            }
        }
        Ok(None)
    }

    /// Pushes candidates, or the items of a scan if there are none.
    pub(super) async fn push_scanned(
        &self,
        now: UnixMillis,
        position: QueryPosition,
        candidates: Option<&Candidates>,
    ) -> Result<Pushed<'_>> {
        let mut execution = self.execution(self.limit, position.resume.as_deref())?;
        if self.ahead.is_some() {
            execution.keep_following_rows();
        }
        let mut execution = Counting::of(execution);
        let after = position.after.key().filter(|_| !self.query.replays());
        let mut walk = self.walk(candidates, now, after);
        let scanned = match position.after {
            After::Rid(rid) => self.scan_in_order_of_creation(&mut execution, &mut walk, rid).await?,
            after => self.scan(&mut execution, (&mut walk, candidates), after).await?,
        };
        Ok(Pushed {
            execution,
            walk,
            scanned,
        })
    }

    /// Pushes what is read instead of items; `None` if they are needed after all.
    async fn push_covered(
        &self,
        now: UnixMillis,
        position: &QueryPosition,
        covered: &CoveredScan,
    ) -> Result<Option<Pushed<'_>>> {
        // Later pages of distinct values go on behind an item.
        if self.query.replays() && (position.after != After::Nothing || position.resume.is_some()) {
            return Ok(None);
        }
        let mut execution = Counting::of(self.execution(self.limit, position.resume.as_deref())?);
        let mut walk = self.walk_over(Vec::new(), now, None);
        let is_done = self.scan_covered(&mut execution, &mut walk, covered).await?;
        Ok(is_done.then(|| Pushed::at_end(execution, walk)))
    }

    /// Pushes the items that are nearest to the query's vector; `None` if a scan is needed after all.
    async fn push_nearest(
        &self,
        now: UnixMillis,
        position: &QueryPosition,
        nearest: &NearestScan,
    ) -> Result<Option<Pushed<'_>>> {
        let mut execution = Counting::of(self.execution(self.limit, position.resume.as_deref())?);
        let mut walk = self.walk_over(Vec::new(), now, None);
        let is_done = execution.is_done() || self.scan_nearest(&mut execution, &mut walk, nearest).await?;
        Ok(is_done.then(|| Pushed::at_end(execution, walk)))
    }

    /// Pushes items in the order of an index; `None` if a scan is needed after all.
    async fn push_in_index_order(
        &self,
        now: UnixMillis,
        position: &QueryPosition,
        ordered: (&OrderedScan, usize),
    ) -> Result<Option<Pushed<'_>>> {
        let mut execution = Counting::of(self.execution(self.limit, position.resume.as_deref())?);
        let mut walk = self.walk_over(Vec::new(), now, None);
        if !self.scan_in_order(&mut execution, &mut walk, ordered).await? {
            return Ok(None);
        }
        Ok(Some(Pushed::at_end(execution, walk)))
    }

    /// Returns a scan of the items behind a key; only of the candidates if there are any.
    pub(super) fn walk(&self, candidates: Option<&Candidates>, now: UnixMillis, after: Option<&Bytes>) -> ItemScan<'_> {
        let slices = match candidates {
            Some(candidates) => &candidates.slices[..],
            None => self.slices,
        };
        let mut walk = self.walk_over(slices.to_vec(), now, after);
        for (range, lsn) in candidates.iter().flat_map(|candidates| &candidates.read) {
            walk.record_read(*range, *lsn);
        }
        walk
    }

    /// Returns a scan of the items of some slices behind a key.
    pub(super) fn walk_over(&self, slices: Vec<Slice>, now: UnixMillis, after: Option<&Bytes>) -> ItemScan<'_> {
        let mut walk = ItemScan::new(
            self.watch.clock(),
            self.memory,
            self.container,
            self.state,
            slices,
            now,
            after.map(|key| &key[..]),
        );
        if self.watch.is_brief() {
            walk.read_at_most(BRIEF_BYTES);
        }
        walk
    }
}
