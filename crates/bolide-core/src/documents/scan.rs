//! Scans of a collection's documents in natural order, forward and backward.

use std::sync::Arc;

use bolide_model::Result;
use bolide_storage::{ReadRequest, Scan, Space};
use bytes::Bytes;

use super::{ReadScope, StoredDocument};
use crate::container::Container;
use crate::partition::AsOf;

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
    /// The partition to read, by its position in the layout, counted in the direction of the scan.
    partition: usize,
    place: Place,
    rows: usize,
    is_done: bool,
}

/// Where a scan goes on in a partition.
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

    fn scan(&self, rows: usize) -> Scan {
        let (from, to) = match self {
            Place::From(from) => (from.clone(), None),
            Place::Before(to) => (Bytes::new(), to.clone()),
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
            partition: 0,
            place: Place::start(direction),
            rows: FIRST_ROWS,
            is_done: false,
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
        let mut partitions = state.layout.partitions.iter();
        let partition = match direction {
            ScanDirection::Forward => partitions.nth(self.partition),
            ScanDirection::Backward => partitions.nth_back(self.partition),
        };
        let Some(partition) = partition else {
            self.is_done = true;
            return Ok(None);
        };
        let request = || ReadRequest {
            scans: vec![self.place.scan(self.rows)],
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
        match next {
            Some(next) => self.place = next,
            None => (self.partition, self.place) = (self.partition + 1, Place::start(direction)),
        }
        self.is_done = self.partition >= state.layout.partitions.len();
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
