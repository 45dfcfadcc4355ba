//! A walk over one whole space of a partition, page by page. Each page is a snapshot of its own.

use bolide_model::Result;
use bolide_storage::{Ask, Scan, Space};
use bytes::Bytes;

use super::Partition;
use crate::format::keys;

/// Rows and bytes of one page: few reads, little memory.
const ROWS: usize = 5_000;
/// Rows of the first page of a walk that mostly ends there.
const FIRST_ROWS: usize = 16;
const BYTES: usize = 4 * 1024 * 1024;

/// See the module.
pub(crate) struct Pages<'a> {
    partition: &'a Partition,
    space: Space,
    to: Option<Bytes>,
    /// Where the next page begins; `None` behind the last.
    from: Option<Bytes>,
    rows: usize,
}

impl<'a> Pages<'a> {
    /// A walk over a space; over the log without the history behind it.
    pub fn over(partition: &'a Partition, space: Space) -> Pages<'a> {
        Pages {
            partition,
            space,
            to: (space == Space::Log).then(keys::log_end),
            from: Some(Bytes::new()),
            rows: ROWS,
        }
    }

    /// As [`Pages::over`], from a place on, to find what mostly is among the first rows.
    pub fn behind(partition: &'a Partition, space: Space, from: Bytes) -> Pages<'a> {
        Pages {
            from: Some(from),
            rows: FIRST_ROWS,
            ..Pages::over(partition, space)
        }
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
        let ask = Ask {
            scans: vec![scan],
            ..Ask::default()
        };
        let page = self.partition.read(ask).await?.pages.pop().unwrap_or_default();
        if page.more {
            self.from = page.rows.last().map(|(key, _)| keys::after(key));
        }
        Ok(page.rows)
    }
}
