//! Scans of a collection's documents in natural order, forward and backward. One that is for the documents of a filter may find them by indexes.

use std::collections::VecDeque;
use std::sync::Arc;

use bolide_model::epk::Epk;
use bolide_model::ttl::Horizon;
use bolide_model::{Error, Result};
use bolide_storage::{Key, ReadRequest, Scan, Space};
use bytes::Bytes;

use super::selection::Found;
use super::{ReadScope, ScanPlan, Selection, StoredDocument};
use crate::container::{Container, ContainerState, Layout};
use crate::format::keys;
use crate::partition::{AsOf, Partition};

/// Maximum number of rows of one read, and approximately of bytes.
const PAGE_ROWS: usize = 1_000;
const PAGE_BYTES: usize = 2 * 1024 * 1024;
/// Rows of the first read: most commands need few documents.
const FIRST_ROWS: usize = 101;

/// The direction of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanDirection {
    /// In the order of insertion.
    Forward,
    /// The last one inserted is the first.
    Backward,
}

/// A scan of a collection. It is between pages, and may rest there for a client that asks for more.
#[derive(Debug, Clone)]
pub struct DocumentScan {
    /// Where it goes on: a key, so that it does not matter whether a range is split between two pages.
    place: Place,
    /// The keys that it reads: their beginning, and their end. Empty: all.
    within: Option<(Bytes, Option<Bytes>)>,
    rows: usize,
    is_done: bool,
    /// What it is for; only if it goes forward.
    selection: Option<Arc<Selection>>,
    /// Candidates that are still to be read, and where the scan goes on after them.
    found: Option<(VecDeque<Bytes>, Option<Place>)>,
    /// Up to this key it is known whether indexes help. `None`: nowhere.
    planned_to: Option<Bytes>,
    plan: ScanPlan,
    keys_examined: u64,
}

/// Where a scan goes on.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// Forward, from this key on.
    From(Bytes),
    /// Backward, before this key; `None` is the end.
    Before(Option<Bytes>),
}

impl Place {
    fn start(direction: ScanDirection) -> Place {
        match direction {
            ScanDirection::Forward => Place::From(Bytes::new()),
            ScanDirection::Backward => Place::Before(None),
        }
    }

    fn direction(&self) -> ScanDirection {
        match self {
            Place::From(_) => ScanDirection::Forward,
            Place::Before(_) => ScanDirection::Backward,
        }
    }

    /// Returns the partition in which the scan goes on.
    fn partition<'l>(&self, layout: &'l Layout) -> Result<&'l Arc<Partition>> {
        match self {
            Place::From(from) => layout.partition_of(&Epk::from_bytes(&from[..])),
            Place::Before(to) => {
                let mut partitions = layout.partitions.iter().rev();
                let is_before = |epk: &Epk| to.as_ref().is_none_or(|to| epk.as_bytes() < &to[..]);
                let found =
                    partitions.find(|partition| is_before(&partition.epk.min) || partition.epk.min == Epk::start());
                found.ok_or_else(|| Error::internal("a collection without ranges"))
            }
        }
    }

    /// Returns where the scan goes on after all rows of a partition; `None` if it was the last.
    fn beyond(&self, partition: &Partition) -> Option<Place> {
        let bytes = |epk: &Epk| Bytes::copy_from_slice(epk.as_bytes());
        match self {
            Place::From(_) => (partition.epk.max < Epk::end()).then(|| Place::From(bytes(&partition.epk.max))),
            Place::Before(_) => {
                (partition.epk.min > Epk::start()).then(|| Place::Before(Some(bytes(&partition.epk.min))))
            }
        }
    }

    /// Tells whether all of these keys are behind.
    fn is_behind(&self, (begin, end): &(Bytes, Option<Bytes>)) -> bool {
        match self {
            Place::From(from) => end.as_ref().is_some_and(|end| from >= end),
            Place::Before(to) => to.as_ref().is_some_and(|to| to <= begin),
        }
    }

    fn scan(&self, within: Option<&(Bytes, Option<Bytes>)>, rows: usize) -> Scan {
        let (begin, end) = within.cloned().unwrap_or_default();
        let (from, to) = match self {
            Place::From(from) => (from.clone(), end),
            Place::Before(to) => (begin, to.clone()),
        };
        Scan {
            space: Space::Item,
            from,
            to,
            reverse: self.direction() == ScanDirection::Backward,
            max_rows: rows,
            max_bytes: PAGE_BYTES,
            keys_only: false,
        }
    }
}

/// Documents in the order of the scan.
#[derive(Debug)]
pub struct DocumentPage {
    /// Visible documents; may be empty before the end.
    pub documents: Vec<StoredDocument>,
}

impl Default for DocumentScan {
    /// Returns a scan in the order of insertion.
    fn default() -> DocumentScan {
        DocumentScan::new(ScanDirection::Forward)
    }
}

impl DocumentScan {
    /// Returns a scan of the whole collection.
    pub fn new(direction: ScanDirection) -> DocumentScan {
        DocumentScan {
            place: Place::start(direction),
            within: None,
            rows: FIRST_ROWS,
            is_done: false,
            selection: None,
            found: None,
            planned_to: None,
            plan: ScanPlan::new(),
            keys_examined: 0,
        }
    }

    /// Returns a scan of the documents at one place of a sharded collection.
    pub fn at_place(place: &Epk, direction: ScanDirection) -> DocumentScan {
        let begin = Bytes::copy_from_slice(place.as_bytes());
        let end = keys::after_prefix(&begin);
        DocumentScan {
            place: match direction {
                ScanDirection::Forward => Place::From(begin.clone()),
                ScanDirection::Backward => Place::Before(end.clone()),
            },
            within: (!begin.is_empty()).then_some((begin, end)),
            ..DocumentScan::new(direction)
        }
    }

    /// The same, which may leave out documents that a filter does not match. A scan backward reads all.
    #[must_use]
    pub fn selecting(self, selection: Selection) -> DocumentScan {
        let is_forward = self.place.direction() == ScanDirection::Forward;
        DocumentScan {
            selection: is_forward.then(|| Arc::new(selection)),
            ..self
        }
    }

    /// Returns the indexes that it has used so far; empty if it has read everything.
    pub fn plan(&self) -> &ScanPlan {
        &self.plan
    }

    /// Returns how many entries of indexes it has read.
    pub fn keys_examined(&self) -> u64 {
        self.keys_examined
    }

    /// Decides how the first documents are found, without reading them.
    ///
    /// # Errors
    /// Those of [`DocumentScan::next_page`].
    pub async fn prepare(&mut self, scope: &ReadScope, container: &Arc<Container>) -> Result<()> {
        if scope.transaction().is_some() || self.is_done {
            return Ok(());
        }
        let (state, _) = scope.enter(container).await?;
        let partition = self.place.partition(&state.layout)?;
        self.find(container, &state, partition).await
    }

    /// Looks for candidates in the range in which the scan goes on, if it was not done yet.
    async fn find(&mut self, container: &Container, state: &ContainerState, partition: &Partition) -> Result<()> {
        let (Some(selection), Place::From(from)) = (self.selection.clone(), &self.place) else {
            return Ok(());
        };
        if self.found.is_some() || self.planned_to.as_ref().is_some_and(|to| from < to) {
            return Ok(());
        }
        if let Some(Found {
            mut keys,
            entries,
            plan,
        }) = selection.find(state, partition).await?
        {
            let end = self.within.as_ref().and_then(|(_, end)| end.as_ref());
            keys.retain(|key| key >= from && end.is_none_or(|end| key < end));
            self.found = Some((keys, self.place.beyond(partition)));
            self.keys_examined += entries;
            if self.plan.is_empty() {
                for part in &plan {
                    container.count_index_use(part.index);
                }
                self.plan = plan;
            }
        }
        self.planned_to = Some(Bytes::copy_from_slice(partition.epk.max.as_bytes()));
        Ok(())
    }

    /// Reads the next candidates; `None` if there are none.
    async fn next_found(
        &mut self,
        (state, horizon): (&ContainerState, &Horizon),
    ) -> Result<Option<(Arc<Partition>, Vec<StoredDocument>)>> {
        let Some((keys, beyond)) = &mut self.found else {
            return Ok(None);
        };
        let first = keys.front().cloned().unwrap_or_default();
        let partition = state.layout.partition_of(&Epk::from_bytes(&first[..]))?.clone();
        let end = partition.epk.max.as_bytes();
        let is_here = |key: &&Bytes| partition.epk.max == Epk::end() || key[..] < *end;
        let chunk: Vec<Bytes> = keys.iter().take(self.rows).take_while(is_here).cloned().collect();
        let mut documents = Vec::with_capacity(chunk.len());
        if !chunk.is_empty() {
            let request = || ReadRequest {
                gets: chunk.iter().map(|key| Key::new(Space::Item, key.clone())).collect(),
                max_bytes: PAGE_BYTES,
                ..ReadRequest::default()
            };
            let mut snapshot = partition.snapshot(request, AsOf::Horizon(horizon)).await?;
            let read = snapshot.take_gets(&chunk);
            keys.drain(..read.len());
            for row in read.into_iter().flatten() {
                if let Some((key, record)) = snapshot.visible(row)? {
                    documents.push(StoredDocument::new(key, record));
                }
            }
        }
        if keys.is_empty() {
            let beyond = beyond.take();
            self.found = None;
            self.go_on(beyond);
        }
        Ok(Some((partition, documents)))
    }

    fn go_on(&mut self, next: Option<Place>) {
        match next.filter(|next| self.within.as_ref().is_none_or(|within| !next.is_behind(within))) {
            Some(next) => self.place = next,
            None => self.is_done = true,
        }
    }

    /// Returns the next documents; `None` at the end.
    ///
    /// # Errors
    /// From the engine; `NotFound` if the collection was removed; `Throttled` if its throughput is used up.
    pub async fn next_page(&mut self, scope: &ReadScope, container: &Arc<Container>) -> Result<Option<DocumentPage>> {
        if self.is_done {
            return Ok(None);
        }
        if let Some(transaction) = scope.transaction() {
            let limits = (self.rows, PAGE_BYTES);
            let (documents, next) = transaction.page(container, &self.place, limits).await?;
            self.rows = PAGE_ROWS;
            match next {
                Some(next) => self.place = next,
                None => self.is_done = true,
            }
            return Ok(Some(DocumentPage { documents }));
        }
        let (state, now) = scope.enter(container).await?;
        let horizon = state.settings.horizon(now);
        let partition = self.place.partition(&state.layout)?.clone();
        self.find(container, &state, &partition).await?;
        if let Some((partition, documents)) = self.next_found((&state, &horizon)).await? {
            self.rows = PAGE_ROWS;
            let bytes = documents.iter().map(|document| document.record().size()).sum();
            scope.charge_scan(container, (&state, &partition), (documents.len(), bytes));
            return Ok(Some(DocumentPage { documents }));
        }
        let direction = self.place.direction();
        let request = || ReadRequest {
            scans: vec![self.place.scan(self.within.as_ref(), self.rows)],
            ..ReadRequest::default()
        };
        let as_of = AsOf::Horizon(&horizon);
        let mut snapshot = partition.snapshot(request, as_of).await?;
        let page = snapshot.take_pages().pop();
        let Some(page) = page else {
            self.is_done = true;
            return Ok(None);
        };
        let next = match direction {
            ScanDirection::Forward => page.resumes_at().map(Place::From),
            ScanDirection::Backward => page.resumes_before().map(|key| Place::Before(Some(key))),
        };
        let next = next.or_else(|| self.place.beyond(&partition));
        self.go_on(next);
        self.rows = PAGE_ROWS;
        let mut documents = Vec::with_capacity(page.rows.len());
        for row in page.rows {
            if let Some((key, record)) = snapshot.visible(row)? {
                documents.push(StoredDocument::new(key, record));
            }
        }
        let bytes = documents.iter().map(|document| document.record().size()).sum();
        scope.charge_scan(container, (&state, &partition), (documents.len(), bytes));
        Ok(Some(DocumentPage { documents }))
    }
}
