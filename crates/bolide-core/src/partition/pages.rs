//! Scans a whole space of a partition, page by page, ghosts included: for `background` and `admin`. Each page is a snapshot of its own.

use bolide_model::Result;
use bolide_storage::{ReadRequest, Scan, Space};
use bytes::Bytes;

use super::Partition;
use super::tombstones::TombstoneView;
use crate::format::keys;

/// Maximum number of rows of one page, so that a scan needs few reads and little memory.
const ROWS: usize = 5_000;
/// Maximum number of rows of the first page of a scan that mostly ends within that page.
const FIRST_ROWS: usize = 16;
const BYTES: usize = 4 * 1024 * 1024;

/// See the module.
pub(crate) struct RawPages<'a> {
    partition: &'a Partition,
    space: Space,
    to: Option<Bytes>,
    /// Key at which the next page begins; `None` after the last page.
    from: Option<Bytes>,
    rows: usize,
    tombstones: TombstoneView,
}

impl<'a> RawPages<'a> {
    /// Returns a scan of a space. A scan of the log does not include the history, which is stored after it, and one of the items' expiry queue does not
    /// include the queues of date rules.
    pub fn over(partition: &'a Partition, space: Space) -> RawPages<'a> {
        RawPages {
            partition,
            space,
            to: match space {
                Space::Log => Some(keys::log_end()),
                Space::Expiry => Some(keys::expiry_end()),
                Space::Item | Space::Index | Space::Meta => None,
            },
            from: Some(Bytes::new()),
            rows: ROWS,
            tombstones: TombstoneView::default(),
        }
    }

    /// Like [`RawPages::over`], but begins at a key: to find a row that is mostly among the first ones.
    pub fn behind(partition: &'a Partition, space: Space, from: Bytes) -> RawPages<'a> {
        RawPages {
            from: Some(from),
            rows: FIRST_ROWS,
            ..RawPages::over(partition, space)
        }
    }

    /// Returns the tombstones that hide some of the rows of the last page.
    pub fn tombstones(&self) -> &TombstoneView {
        &self.tombstones
    }

    /// Returns the next rows; an empty list at the end.
    ///
    /// # Errors
    /// From the engine.
    pub async fn next(&mut self) -> Result<Vec<(Bytes, Bytes)>> {
        let Some(from) = self.from.take() else {
            return Ok(Vec::new());
        };
        let scan = Scan {
            space: self.space,
            from,
            to: self.to.clone(),
            reverse: false,
            max_rows: std::mem::replace(&mut self.rows, ROWS),
            max_bytes: BYTES,
            keys_only: false,
        };
        let request = || ReadRequest {
            scans: vec![scan.clone()],
            ..ReadRequest::default()
        };
        let (mut reply, tombstones) = self.partition.read_raw_with_tombstones(request).await?;
        self.tombstones = tombstones;
        let page = reply.pages.pop().unwrap_or_default();
        if page.more {
            self.from = page.rows.last().map(|(key, _)| keys::after(key));
        }
        Ok(page.rows)
    }
}
