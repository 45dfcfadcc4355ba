//! What was read for a round, and what is still missing.

use std::collections::HashMap;

use bolide_model::{Error, ErrorKind};
use bolide_storage::{Key, Page, ReadRequest, ReadResponse, Scan, Space};
use bytes::Bytes;

use super::write_batch::{Step, Stop};

/// From so many bytes on, what was read for a round is enough for one: what is still missing is read for the transactions that need it, one
/// after the other.
const ROUND_BYTES: usize = 8 * 1024 * 1024;

/// What was read so far for a round, all at one head.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(super) gets: HashMap<Key, Option<Bytes>>,
    /// How long the values of `gets` are together, and how long they may be.
    bytes: usize,
    most: Option<usize>,
    pub(super) scans: HashMap<ScanId, Page>,
}

/// Names a scan within a round. A decision is made again after each read, and later: where it ends a scan by the time, that may be elsewhere then.
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

/// What is still to be read for a round.
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
    pub fn up_to(most: usize) -> Loaded {
        Loaded {
            most: Some(most),
            ..Loaded::default()
        }
    }

    /// Asks for all that is missing, or as much as one read may hold and there is room for.
    pub fn read_request(&self, missing: &Missing) -> ReadRequest {
        let room = self.most.map_or(ROUND_BYTES, |most| most.saturating_sub(self.bytes));
        ReadRequest {
            gets: missing.gets.clone(),
            scans: missing.scans.clone(),
            max_bytes: ROUND_BYTES.min(room.max(1)),
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

    /// Whether it is as much as a round of several transactions reads.
    pub fn is_full(&self) -> bool {
        self.bytes >= ROUND_BYTES
    }

    /// # Errors
    /// `Refused` if it is as much as a transaction may read.
    pub fn check(&self) -> Step<()> {
        match self.most {
            Some(most) if self.bytes >= most => Err(Stop::Refused(Error::new(
                ErrorKind::TooLarge,
                format!(
                    "The items that the transaction needs are larger together than one may read. limit={most} bytes"
                ),
            ))),
            _ => Ok(()),
        }
    }
}
