//! What a page of a query has read and returned.

/// Counts and times of the work on a page.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct QueryMetrics {
    /// Items whose content was loaded and read, and their bytes; a bare count reads no content.
    pub retrieved_items: u64,
    /// See `retrieved_items`.
    pub retrieved_bytes: u64,
    /// Rows returned, and their bytes.
    pub output_rows: u64,
    /// See `output_rows`.
    pub output_bytes: u64,
    /// Time to compile the query, and to run the page, in milliseconds.
    pub compile_ms: f64,
    /// See `compile_ms`.
    pub run_ms: f64,
    /// The part of `run_ms` in which items were read, in milliseconds.
    pub load_ms: f64,
}

impl QueryMetrics {
    /// Returns the metrics of a query that did not read the content of the items it scanned.
    pub(super) fn without_documents(self) -> QueryMetrics {
        QueryMetrics {
            retrieved_items: 0,
            retrieved_bytes: 0,
            ..self
        }
    }
}
