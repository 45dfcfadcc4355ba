//! How the items of a page are found: by a scan, as candidates, or in the order of an index.

use bolide_model::{Result, UnixMillis};
use bytes::Bytes;

use super::candidates::{Candidates, FEW_CANDIDATES, IndexReader, MAX_CANDIDATES};
use super::counting::Counting;
use super::ordered::{OrderedScan, SPARE_ENTRIES};
use super::page::{PageRun, Scanned};
use crate::continuation::query::{After, QueryPosition};
use crate::scan::{ItemScan, Slice};

/// An execution with the items of its page.
pub(super) struct Pushed<'a> {
    pub execution: Counting,
    pub walk: ItemScan<'a>,
    pub scanned: Scanned,
}

impl IndexReader<'_> {
    /// Returns how an index finds the items of the query, if that is faster than a scan: a few candidates, the order of an index, more candidates.
    ///
    /// # Errors
    /// From the engine; if the query has to end.
    pub async fn access(&self) -> Result<(Option<Candidates>, Option<OrderedScan>)> {
        let few = self.candidates(FEW_CANDIDATES).await?;
        if few.is_some() || self.conditions.is_empty() && self.order.is_none() {
            return Ok((few, None));
        }
        match self.ordered().await? {
            None => Ok((self.candidates(MAX_CANDIDATES).await?, None)),
            ordered => Ok((None, ordered)),
        }
    }
}

impl PageRun<'_> {
    /// Pushes the items of the page, found in the order of an index, as candidates, or by a scan.
    pub(super) async fn push_items(&self, now: UnixMillis, position: QueryPosition) -> Result<Pushed<'_>> {
        let Some(ordered) = &self.ordered else {
            return self.push_scanned(now, position, self.candidates.as_ref()).await;
        };
        for spare in SPARE_ENTRIES {
            let pushed = self.push_in_index_order(now, &position, (ordered, spare)).await?;
            if let Some(pushed) = pushed {
                return Ok(pushed);
            }
        }
        let found = self.indexes.candidates(MAX_CANDIDATES).await?;
        self.push_scanned(now, position, found.as_ref()).await
    }

    /// Pushes candidates, or the items of a scan if there are none.
    async fn push_scanned(
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
        let scanned = Scanned {
            after: After::Nothing,
            is_end: true,
            is_at_boundary: false,
        };
        Ok(Some(Pushed {
            execution,
            walk,
            scanned,
        }))
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
    fn walk_over(&self, slices: Vec<Slice>, now: UnixMillis, after: Option<&Bytes>) -> ItemScan<'_> {
        ItemScan::new(
            self.watch.clock(),
            self.memory,
            self.container,
            self.state,
            slices,
            now,
            after.map(|key| &key[..]),
        )
    }
}
