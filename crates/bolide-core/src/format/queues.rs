//! The two expiry queues of a partition, and the one code that reads their entries: for the purge and for figures.
//!
//! ```text
//!   ExpiryPosition   Expiry space, by (_ts + ttl, lsn, seq)   items with a ttl of their own
//!   LogPosition      the log, by (lsn, seq) and so by _ts     items that live by the container's default; others are stepped over
//! ```
//!
//! Each is sorted by what its thresholds are compared with, so its first entry that is not due ends what is due. Entries are named by their
//! positions, which are the keys.

use bolide_model::ttl::{Class, Horizon, Stamp};
use bolide_model::{Error, ErrorKind, Result, UnixSeconds};
use bolide_storage::{Page, Scan, Space};
use bytes::Bytes;

use crate::format::keys::{self, ExpiryPosition, LogPosition};
use crate::format::record::{ExpiryEntry, LogEntry};

/// An entry of a queue.
pub(crate) struct QueueEntry<P> {
    pub position: P,
    /// The version that it was made for. The item may be another by now.
    pub version: LogPosition,
    pub stamp: Stamp,
    /// Bytes of the item's document.
    pub size: usize,
    pub item_key: Bytes,
}

/// A place in a queue. Names the queue by its type.
pub(crate) trait Queue: Copy + Ord + Default {
    /// The class of its items; entries of other classes are stepped over.
    const CLASS: Class;
    const SPACE: Space;

    /// Before every entry with this base that the queue has or will have, if that is known.
    fn of_base(base: i64) -> Option<Self>;

    /// The first place behind this one.
    fn next(self) -> Self;

    fn to_bytes(self) -> Bytes;

    /// The end of the queue in its space; `None`: that of the space.
    fn end() -> Option<Bytes>;

    /// Entries with a base up to here are due.
    fn threshold(horizon: Horizon) -> i64;

    /// # Errors
    /// `Corrupt` if the row is no entry.
    fn entry(key: &[u8], value: &Bytes) -> Result<QueueEntry<Self>>;
}

impl Queue for ExpiryPosition {
    const CLASS: Class = Class::Own;
    const SPACE: Space = Space::Expiry;

    fn of_base(base: i64) -> Option<ExpiryPosition> {
        Some(ExpiryPosition {
            base: UnixSeconds(base),
            version: LogPosition::default(),
        })
    }

    fn next(self) -> ExpiryPosition {
        ExpiryPosition::next(self)
    }

    fn to_bytes(self) -> Bytes {
        ExpiryPosition::to_bytes(self)
    }

    fn end() -> Option<Bytes> {
        None
    }

    fn threshold(horizon: Horizon) -> i64 {
        horizon.own
    }

    fn entry(key: &[u8], value: &Bytes) -> Result<QueueEntry<ExpiryPosition>> {
        let position = ExpiryPosition::decode(key).ok_or_else(damaged)?;
        let entry = ExpiryEntry::decode(value)?;
        Ok(QueueEntry {
            position,
            version: position.version,
            stamp: Stamp {
                class: Class::Own,
                base: position.base,
            },
            size: entry.size as usize,
            item_key: entry.item_key,
        })
    }
}

impl Queue for LogPosition {
    const CLASS: Class = Class::Inherited;
    const SPACE: Space = Space::Log;

    /// New entries come at the end of the log, whatever their base is.
    fn of_base(_: i64) -> Option<LogPosition> {
        None
    }

    fn next(self) -> LogPosition {
        LogPosition::next(self)
    }

    fn to_bytes(self) -> Bytes {
        LogPosition::to_bytes(self)
    }

    fn end() -> Option<Bytes> {
        Some(keys::log_end())
    }

    fn threshold(horizon: Horizon) -> i64 {
        horizon.inherited
    }

    fn entry(key: &[u8], value: &Bytes) -> Result<QueueEntry<LogPosition>> {
        let position = LogPosition::decode(key).ok_or_else(damaged)?;
        let entry = LogEntry::decode(value)?;
        Ok(QueueEntry {
            position,
            version: position,
            stamp: Stamp {
                class: entry.class,
                // Of a version with a ttl of its own it is not the base, and its class keeps it from being compared.
                base: entry.last_modified,
            },
            size: entry.size as usize,
            item_key: entry.item_key,
        })
    }
}

impl<P: Queue> QueueEntry<P> {
    /// Whether the queue is that of the item; otherwise the entry is stepped over.
    pub fn belongs(&self) -> bool {
        self.stamp.class == P::CLASS
    }
}

/// The next entries of a queue.
pub(crate) fn scan<P: Queue>(from: P, to: Option<P>, max_rows: usize, max_bytes: usize) -> Scan {
    Scan {
        space: P::SPACE,
        from: from.to_bytes(),
        to: to.map(P::to_bytes).or_else(P::end),
        reverse: false,
        max_rows,
        max_bytes,
        keys_only: false,
    }
}

/// The entries of a page.
pub(crate) fn entries<P: Queue>(page: &Page) -> impl Iterator<Item = Result<QueueEntry<P>>> {
    page.rows.iter().map(|(key, value)| P::entry(key, value))
}

fn damaged() -> Error {
    Error::new(ErrorKind::Corrupt, "an expiry queue is damaged")
}

#[cfg(test)]
mod tests;
