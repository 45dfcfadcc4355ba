//! What was read for a write batch, and what is still missing.

use std::collections::HashMap;

use bolide_model::{Error, ErrorKind};
use bolide_storage::{Key, Page, ReadRequest, ReadResponse, Scan, Space};
use bytes::Bytes;

use super::write_batch::{Decision, Stop};

/// From so many bytes on, no more is read for one write batch: what is still missing is read for the transactions that need it, one
/// after the other.
const WRITE_BATCH_BYTES: usize = 8 * 1024 * 1024;

/// What was read so far for a write batch, all at one head.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(super) gets: HashMap<Key, Option<Bytes>>,
    /// How long the values of `gets` are together, and how long they may be.
    bytes: usize,
    max: Option<usize>,
    pub(super) scans: HashMap<ScanId, Page>,
}

/// Names a scan within a write batch. A decision is made again after each read, and later: where it ends a scan by the time, that may be elsewhere then.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ScanId {
    space: Space,
    from: Bytes,
    to: Option<Bytes>,
}

impl ScanId {
    pub fn of(scan: &Scan) -> ScanId {
        ScanId {
            space: scan.space,
            from: scan.from.clone(),
            to: scan.to.clone(),
        }
    }
}

/// What is still to be read for a write batch.
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
    /// Nothing yet, and at most about so many bytes: whoever needs more is refused.
    pub fn up_to(max: usize) -> Loaded {
        Loaded {
            max: Some(max),
            ..Loaded::default()
        }
    }

    /// Asks for all that is missing, or as much as one read may hold and there is room for.
    pub fn read_request(&self, missing: &Missing) -> ReadRequest {
        let room = self.max.map_or(WRITE_BATCH_BYTES, |max| max.saturating_sub(self.bytes));
        ReadRequest {
            gets: missing.gets.clone(),
            scans: missing.scans.clone(),
            max_bytes: WRITE_BATCH_BYTES.min(room.max(1)),
        }
    }

    /// Takes the answer to what was missing, as far as it goes.
    pub fn take(&mut self, missing: Missing, response: ReadResponse) {
        for (key, value) in missing.gets.into_iter().zip(response.gets) {
            self.bytes += value.as_ref().map_or(0, Bytes::len);
            self.gets.insert(key, value);
        }
        let ids = missing.scans.iter().map(ScanId::of);
        self.scans
            .extend(ids.zip(response.pages).filter(|(_, page)| page.is_made()));
    }

    /// Whether it is as much as a write batch of several transactions reads.
    pub fn is_full(&self) -> bool {
        self.bytes >= WRITE_BATCH_BYTES
    }

    /// # Errors
    /// `Refused` if it is as much as a transaction may read.
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
