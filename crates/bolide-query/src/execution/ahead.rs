//! Rows that follow a page directly. The caller keeps them for the next page, so that not every page sorts everything again.

use std::collections::VecDeque;

use bolide_model::ttl::Stamp;

use super::sorter::Entry;
use crate::limits::{AHEAD_BYTES, AHEAD_ROWS};

/// The rows that follow a page of a sorted query, without a gap: at most 1,000 rows or about 1 MiB. They are valid while their items are unchanged,
/// which the caller must know. Each row has the stamp by which its item expires.
#[derive(Debug)]
pub struct Ahead {
    pub(super) entries: VecDeque<Entry>,
    /// No rows follow these.
    pub(super) is_all: bool,
}

impl Ahead {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Their memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.entries.iter().map(Entry::bytes).sum()
    }

    /// Whether no rows follow these.
    pub fn is_all(&self) -> bool {
        self.is_all
    }

    /// Drops rows whose items have expired.
    pub fn retain(&mut self, is_live: impl Fn(Stamp) -> bool) {
        self.entries.retain(|entry| is_live(entry.stamp));
    }
}

/// How many rows to keep beyond those of a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeepLimit {
    pub rows: usize,
    pub bytes: usize,
}

impl KeepLimit {
    pub const NONE: KeepLimit = KeepLimit { rows: 0, bytes: 0 };
    pub const AHEAD: KeepLimit = KeepLimit {
        rows: AHEAD_ROWS,
        bytes: AHEAD_BYTES,
    };
}
