//! Scans of a collection's documents in natural order.

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

/// A scan of a collection. It is between pages, and may rest there for a client that asks for more.
#[derive(Debug, Clone)]
pub struct DocumentScan {
    /// The partition to read, by its position in the layout.
    partition: usize,
    /// The first key to read.
    from: Bytes,
    rows: usize,
    is_done: bool,
}

/// Documents in natural order.
#[derive(Debug)]
pub struct DocumentPage {
    /// Visible documents; may be empty before the end.
    pub documents: Vec<StoredDocument>,
}

impl Default for DocumentScan {
    /// Returns a scan from the beginning.
    fn default() -> DocumentScan {
        DocumentScan {
            partition: 0,
            from: Bytes::new(),
            rows: FIRST_ROWS,
            is_done: false,
        }
    }
}

impl DocumentScan {
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
            let (documents, next) = transaction.page(container, &self.from, limits).await?;
            self.rows = PAGE_ROWS;
            match next {
                Some(next) => self.from = next,
                None => self.is_done = true,
            }
            return Ok(Some(DocumentPage { documents }));
        }
        let (state, now) = scope.enter(container).await?;
        let Some(partition) = state.layout.partitions.get(self.partition) else {
            self.is_done = true;
            return Ok(None);
        };
        let request = || ReadRequest {
            scans: vec![Scan {
                space: Space::Item,
                from: self.from.clone(),
                to: None,
                reverse: false,
                max_rows: self.rows,
                max_bytes: PAGE_BYTES,
                keys_only: false,
            }],
            ..ReadRequest::default()
        };
        let as_of = AsOf::Horizon(&state.settings.horizon(now));
        let mut snapshot = partition.snapshot(request, as_of).await?;
        let page = snapshot.take_pages().pop();
        let Some(page) = page else {
            self.is_done = true;
            return Ok(None);
        };
        match page.resumes_at() {
            Some(from) => self.from = from,
            None => (self.partition, self.from) = (self.partition + 1, Bytes::new()),
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
