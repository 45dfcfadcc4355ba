//! The rows that were read for a write batch, and those that are still missing.

use std::collections::HashMap;

use bolide_model::{Error, ErrorKind};
use bolide_storage::{Key, Page, ReadRequest, ReadResponse, Scan, Space};
use bytes::Bytes;

use super::write_batch::{Decision, Stop};

/// Maximum number of bytes that is read for a write batch of several transactions, so that its memory stays bounded. Rows that are still missing then
/// are read for the transactions that need them, one transaction after the other.
const WRITE_BATCH_BYTES: usize = 8 * 1024 * 1024;

/// The rows that were read so far for a write batch, as they are at one head.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(super) gets: HashMap<Key, Option<Bytes>>,
    /// Bytes of all values in `gets`, and the maximum for them.
    bytes: usize,
    max: Option<usize>,
    pub(super) scans: HashMap<ScanId, Page>,
}

/// Identifies a scan within a write batch. A decision is made again after each read, at a later time: if the end of its scan depends on the time, the
/// scan may then have another end, and counts as another scan.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ScanId {
    space: Space,
    from: Bytes,
    to: Option<Bytes>,
    reverse: bool,
}

impl ScanId {
    pub fn of(scan: &Scan) -> ScanId {
        ScanId {
            space: scan.space,
            from: scan.from.clone(),
            to: scan.to.clone(),
            reverse: scan.reverse,
        }
    }

    /// Tells whether the page might be another one if the scan were made after `key` was written.
    fn depends_on(&self, page: &Page, key: &Key) -> bool {
        let bytes = &key.bytes;
        let is_in_range =
            key.space == self.space && *bytes >= self.from && self.to.as_ref().is_none_or(|to| bytes < to);
        let is_after_page = match page.rows.last().filter(|_| page.more) {
            Some((last, _)) if self.reverse => bytes < last,
            Some((last, _)) => bytes > last,
            None => false,
        };
        is_in_range && !is_after_page
    }
}

/// The rows that are still to be read for a write batch.
#[derive(Debug, Default)]
pub(crate) struct Missing {
    pub(super) gets: Vec<Key>,
    pub(super) scans: Vec<Scan>,
}

impl Missing {
    pub fn is_empty(&self) -> bool {
        self.gets.is_empty() && self.scans.is_empty()
    }
}

impl Loaded {
    /// Returns an empty set of at most about `max` bytes. A transaction that needs more is refused.
    pub fn up_to(max: usize) -> Loaded {
        Loaded {
            max: Some(max),
            ..Loaded::default()
        }
    }

    /// Returns the request for all missing rows, limited to what one read may hold and to the room that is left.
    pub fn read_request(&self, missing: &Missing) -> ReadRequest {
        let room = self.max.map_or(WRITE_BATCH_BYTES, |max| max.saturating_sub(self.bytes));
        ReadRequest {
            gets: missing.gets.clone(),
            scans: missing.scans.clone(),
            max_bytes: WRITE_BATCH_BYTES.min(room.max(1)),
        }
    }

    /// Adds the rows of a response. It may hold fewer rows than were missing.
    pub fn take(&mut self, missing: Missing, response: ReadResponse) {
        for (key, value) in missing.gets.into_iter().zip(response.gets) {
            self.bytes += value.as_ref().map_or(0, Bytes::len);
            self.gets.insert(key, value);
        }
        let ids = missing.scans.iter().map(ScanId::of);
        self.scans
            .extend(ids.zip(response.pages).filter(|(_, page)| page.is_made()));
    }

    /// Removes the rows that depend on a key that was written after they were read.
    pub(super) fn forget_written(&mut self, key: &Key) {
        if let Some(value) = self.gets.remove(key) {
            self.bytes -= value.as_ref().map_or(0, Bytes::len);
        }
        self.scans.retain(|scan, page| !scan.depends_on(page, key));
    }

    /// Tells whether as many bytes were read as a write batch of several transactions may read.
    pub fn is_full(&self) -> bool {
        self.bytes >= WRITE_BATCH_BYTES
    }

    /// # Errors
    /// `Refused` if as many bytes were read as one transaction may read.
    pub fn check(&self) -> Decision<()> {
        match self.max {
            Some(max) if self.bytes >= max => Err(Stop::Refused(Error::new(
                ErrorKind::TooLarge,
                format!(
                    "The items that the transaction needs are larger together than one may read. limit={max} bytes"
                ),
            ))),
            _ => Ok(()),
        }
    }
}
