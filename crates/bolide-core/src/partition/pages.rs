//! A walk over one whole space of a partition, page by page, as it is stored: for `background` and `admin`. Each page is a snapshot of its
//! own.

use bolide_model::Result;
use bolide_storage::{ReadRequest, Scan, Space};
use bytes::Bytes;

use super::Partition;
use super::tombstones::TombstoneView;
use crate::format::keys;

/// Rows and bytes of one page: few reads, little memory.
const ROWS: usize = 5_000;
/// Rows of the first page of a walk that mostly ends there.
const FIRST_ROWS: usize = 16;
const BYTES: usize = 4 * 1024 * 1024;

/// See the module.
pub(crate) struct RawPages<'a> {
    partition: &'a Partition,
    space: Space,
    to: Option<Bytes>,
    /// Where the next page begins; `None` behind the last.
    from: Option<Bytes>,
    rows: usize,
    tombstones: TombstoneView,
}

impl<'a> RawPages<'a> {
    /// A walk over a space; over the log without the history behind it.
    pub fn over(partition: &'a Partition, space: Space) -> RawPages<'a> {
        RawPages {
            partition,
            space,
            to: (space == Space::Log).then(keys::log_end),
            from: Some(Bytes::new()),
            rows: ROWS,
            tombstones: TombstoneView::default(),
        }
    }

    /// As [`RawPages::over`], from a place on, to find what mostly is among the first rows.
    pub fn behind(partition: &'a Partition, space: Space, from: Bytes) -> RawPages<'a> {
        RawPages {
            from: Some(from),
            rows: FIRST_ROWS,
            ..RawPages::over(partition, space)
        }
    }

    /// The tombstones that hide some of the rows that came last.
    pub fn tombstones(&self) -> &TombstoneView {
        &self.tombstones
    }

    /// The next rows; none at the end.
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
