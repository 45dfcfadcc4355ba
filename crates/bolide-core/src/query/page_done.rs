//! The result of a page of a query.

use bolide_model::{RequestUnits, charge};
use bolide_query::Finished;
use bytes::Bytes;

use super::QueryMetrics;
use super::counting::work;
use crate::response::RangePosition;

/// A finished page.
pub(super) struct PageDone {
    pub count: usize,
    pub rows: Bytes,
    pub continuation: Option<String>,
    pub metrics: QueryMetrics,
    /// The charge of the page.
    pub charge: RequestUnits,
    pub touched: Vec<RangePosition>,
}

impl PageDone {
    pub fn of(finished: Finished, continuation: Option<String>, touched: Vec<RangePosition>) -> PageDone {
        PageDone {
            count: finished.rows.len(),
            charge: (charge::QUERY_START + work(&finished.metrics)).rounded(),
            continuation,
            metrics: QueryMetrics {
                retrieved_items: finished.metrics.items,
                retrieved_bytes: finished.metrics.item_bytes,
                output_rows: finished.metrics.rows,
                output_bytes: finished.metrics.row_bytes,
                ..QueryMetrics::default()
            },
            rows: Bytes::from(finished.rows.into_joined()),
            touched,
        }
    }
}
