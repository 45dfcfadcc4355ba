//! Scans of a collection's documents in natural order, forward and backward.

use std::sync::Arc;

use bolide_model::epk::Epk;
use bolide_model::{Error, Result};
use bolide_storage::{ReadRequest, Scan, Space};
use bytes::Bytes;

use super::{ReadScope, StoredDocument};
use crate::container::{Container, Layout};
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
        let direction = self.place.direction();
        let partition = self.place.partition(&state.layout)?;
        let request = || ReadRequest {
            scans: vec![self.place.scan(self.within.as_ref(), self.rows)],
            ..ReadRequest::default()
        };
        let as_of = AsOf::Horizon(&state.settings.horizon(now));
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
        let next = next.or_else(|| self.place.beyond(partition));
        match next.filter(|next| self.within.as_ref().is_none_or(|within| !next.is_behind(within))) {
            Some(next) => self.place = next,
            None => self.is_done = true,
        }
        self.rows = PAGE_ROWS;
        let mut documents = Vec::with_capacity(page.rows.len());
        for row in page.rows {
            if let Some((key, record)) = snapshot.visible(row)? {
                documents.push(StoredDocument::new(key, record));
            }
        }
        let bytes = documents.iter().map(|document| document.record().size()).sum();
        scope.charge_scan(container, (&state, partition), (documents.len(), bytes));
        Ok(Some(DocumentPage { documents }))
    }
}
