//! The expiry queues of a partition, and the only code that reads their entries, for the purge and for statistics.
//!
//! ```text
//!   ExpiryPosition    Expiry space, by (_ts + ttl, lsn, seq)         items with a ttl of their own
//!   LogPosition       the log, by (lsn, seq) and so by _ts           items that live by the container's default; others are skipped
//!   DeadlinePosition  Expiry space, by (rule, date, lsn, seq)        documents that have a date under a date rule: a queue for each rule
//! ```
//!
//! Each queue is sorted by the value that its threshold is compared with, so no entry after the first one that is not due is due. An entry is
//! identified by its position, which is its key.

use bolide_model::ttl::{Class, Horizon, Stamp};
use bolide_model::{Error, ErrorKind, Result, UnixSeconds};
use bolide_storage::{Page, Scan, Space};
use bytes::Bytes;

use crate::format::keys::{self, DeadlinePosition, ExpiryPosition, LogPosition};
use crate::format::record::{ExpiryEntry, LogEntry};

/// An entry of a queue.
pub(crate) struct QueueEntry<P> {
    pub position: P,
    /// The version that the entry was made for. The item may have a newer version by now.
    pub version: LogPosition,
    pub stamp: Stamp,
    /// Bytes of the item's document.
    pub size: usize,
    pub item_key: Bytes,
}

/// A position in a queue. Its type names the queue.
pub(crate) trait Queue: Copy + Ord + Default {
    /// The class of the queue's items; entries of other classes are skipped.
    const CLASS: Class;
    const SPACE: Space;

    /// Returns the position before every entry with this base that the queue has or will have, if it is known.
    fn of_base(base: i64) -> Option<Self>;

    /// Returns the lowest position behind this one.
    fn next(self) -> Self;

    fn to_bytes(self) -> Bytes;

    /// Returns the end of the queue in its space; `None`: the end of the space.
    fn end() -> Option<Bytes>;

    /// Returns the highest base that is due.
    fn threshold(horizon: &Horizon) -> i64;

    /// Returns a position before every entry that the queue has or will have, if `first` is the first one and is not due at `horizon`.
    fn before_rest(first: &QueueEntry<Self>, horizon: &Horizon) -> Self;

    /// Decodes a row.
    ///
    /// # Errors
    /// `Corrupt` if the row is not an entry of the queue.
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
        Some(keys::expiry_end())
    }

    fn threshold(horizon: &Horizon) -> i64 {
        horizon.own
    }

    /// An item that is written later may end before `first`, but not before the horizon.
    fn before_rest(first: &QueueEntry<ExpiryPosition>, horizon: &Horizon) -> ExpiryPosition {
        ExpiryPosition::of_base(horizon.own.saturating_add(1)).map_or(first.position, |next| next.min(first.position))
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

    /// Returns `None`: new entries are appended to the log, whatever their base is.
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

    fn threshold(horizon: &Horizon) -> i64 {
        horizon.inherited
    }

    /// New entries are appended to the log.
    fn before_rest(first: &QueueEntry<LogPosition>, _: &Horizon) -> LogPosition {
        first.position
    }

    fn entry(key: &[u8], value: &Bytes) -> Result<QueueEntry<LogPosition>> {
        let position = LogPosition::decode(key).ok_or_else(damaged)?;
        let entry = LogEntry::decode(value)?;
        Ok(QueueEntry {
            position,
            version: position,
            stamp: Stamp {
                class: entry.class,
                // For a version with a ttl of its own this is not the base; its class keeps it from being compared.
                base: entry.last_modified,
            },
            size: entry.size as usize,
            item_key: entry.item_key,
        })
    }
}

impl<P: Queue> QueueEntry<P> {
    /// Returns whether this is the queue of the entry's item; otherwise the entry is skipped.
    pub fn belongs(&self) -> bool {
        self.stamp.class == P::CLASS
    }
}

/// Returns a scan of the next entries of a queue.
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

/// Returns the entries of a page.
pub(crate) fn entries<P: Queue>(page: &Page) -> impl Iterator<Item = Result<QueueEntry<P>>> {
    page.rows.iter().map(|(key, value)| P::entry(key, value))
}

/// An entry of the queue of a date rule.
pub(crate) struct DateEntry {
    pub position: DeadlinePosition,
    /// Bytes of the document.
    pub size: usize,
    pub item_key: Bytes,
}

/// Returns a scan of the next entries of the queue of a date rule, up to a position, or to the end of the queue.
pub(crate) fn scan_dates(
    from: DeadlinePosition,
    to: Option<DeadlinePosition>,
    max_rows: usize,
    max_bytes: usize,
) -> Scan {
    let end = || DeadlinePosition::end(from.deadline.rule);
    Scan {
        space: Space::Expiry,
        from: from.to_bytes(),
        to: to.map(DeadlinePosition::to_bytes).or_else(end),
        reverse: false,
        max_rows,
        max_bytes,
        keys_only: false,
    }
}

/// Returns the entries of a page of the queue of a date rule.
pub(crate) fn date_entries(page: &Page) -> impl Iterator<Item = Result<DateEntry>> {
    page.rows.iter().map(|(key, value)| {
        let entry = ExpiryEntry::decode(value)?;
        Ok(DateEntry {
            position: DeadlinePosition::decode(key).ok_or_else(damaged)?,
            size: entry.size as usize,
            item_key: entry.item_key,
        })
    })
}

fn damaged() -> Error {
    Error::new(ErrorKind::Corrupt, "an expiry queue is damaged")
}

#[cfg(test)]
mod tests;
