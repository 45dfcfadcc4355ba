//! A partition's counters and cursors.
//!
//! One row of the Meta space keeps what must survive a restart; it is written with every commit that changes it, so it always agrees
//! with the items (TTL-267):
//!
//! ```text
//!   format(1) ‖ stored items(8) ‖ stored bytes(8) ‖ next number(8) ‖ purged(8) ‖ spent(8, f64) ‖ billed(8, f64)
//!   ‖ purge cursor in the log(12) ‖ purge cursor in the expiry queue(20) ‖ start of the history(12)
//!   ‖ for each deleted logical partition: length(2) ‖ EPK ‖ length(2) ‖ item key to go on at ‖ lsn(8) ‖ horizon(16)
//! ```
//!
//! Rows of format 1, from before there was a history, end with the cursors.
//!
//! The ghosts counted so far are kept in memory only: [`Ghosts`] are counted again from the purge cursors after a start. So are the
//! [`Tally`] of a full check, which begins again, and the [`Forecast`].

use bolide_model::ttl::Class;
use bolide_model::{Error, ErrorKind, RequestUnits, Result};
use bytes::{BufMut, Bytes, BytesMut};

use super::forecast::Forecast;
use super::tombstones::PartitionKeyTombstones;
use crate::format::keys::{ExpiryPosition, LogPosition};
use crate::format::record::Record;

const FORMAT: u8 = 2;
/// Rows without a start of the history.
const FORMAT_1: u8 = 1;
/// First byte of a counter that is too large to be one: items, bytes, numbers and purged items stay below 2^60.
const COUNTER_END: u8 = 0x10;
const BYTES_1: usize = 1 + 6 * 8 + LogPosition::BYTES + ExpiryPosition::BYTES;
const BYTES: usize = BYTES_1 + LogPosition::BYTES;

/// What a partition knows of itself. The worker owns it; nothing else writes it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PartitionState {
    /// Items physically there, ghosts included, and the bytes of their documents.
    pub stored: Amount,
    /// The next item's resource number, without the range in its high bytes.
    pub next_number: u64,
    /// Ghosts removed since the partition's creation, by the purge or by writers.
    pub purged_total: u64,
    /// Request units the purge spent.
    pub spent_total: RequestUnits,
    /// Of these, units that were billed.
    pub billed_total: RequestUnits,
    /// Where the purge goes on.
    pub purge: Cursors,
    /// The history is complete from here on; nothing of it lies before.
    pub history_from: LogPosition,
    /// LogicalPartition partitions whose items are to be removed.
    pub tombstones: PartitionKeyTombstones,
    /// Ghosts counted so far.
    pub ghosts: Ghosts,
    /// What a full check has counted so far, if one is under way.
    pub tally: Option<Tally>,
    /// How many items end when, if that was asked for.
    pub forecast: Option<Box<Forecast>>,
}

/// A number of items and the bytes of their documents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub items: u64,
    pub bytes: u64,
}

impl Amount {
    pub fn add(&mut self, size: usize) {
        self.items += 1;
        self.bytes += size as u64;
    }

    /// What is left without some of it.
    #[must_use]
    pub fn without(self, other: Amount) -> Amount {
        Amount {
            items: self.items.saturating_sub(other.items),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    pub fn remove(&mut self, size: usize) {
        self.items = self.items.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(size as u64);
    }
}

/// A position in each of the two expiry queues; everything before it has been dealt with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cursors {
    pub log: LogPosition,
    pub expiry: ExpiryPosition,
}

/// Ghosts counted by cursors that run ahead of the purge's (TTL-253). Since horizons never fall, what lies before the cursors and
/// is still stored is a ghost, and stays one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ghosts {
    pub counted: Amount,
    pub upto: Cursors,
}

impl Ghosts {
    /// Whether a record is among those counted.
    pub fn contain(&self, record: &Record) -> bool {
        match record.stamp().class {
            Class::Inherited => record.version() < self.upto.log,
            Class::Own => record
                .expiry_position()
                .is_some_and(|position| position < self.upto.expiry),
            Class::Never => false,
        }
    }
}

/// What a full check has counted of the items whose keys lie before `upto`, ghosts among them as [`Ghosts`] has them. Commits change it as
/// they change the counters, so that in the end both must be the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub upto: Bytes,
    pub stored: Amount,
    pub ghosts: Amount,
}

impl PartitionState {
    /// A state that has nothing of this one but the figures of its purge.
    pub fn purge_figures(&self) -> PartitionState {
        PartitionState {
            purged_total: self.purged_total,
            spent_total: self.spent_total,
            billed_total: self.billed_total,
            ..PartitionState::default()
        }
    }

    /// Takes note of a record that is now stored.
    pub fn added(&mut self, item_key: &[u8], record: &Record) {
        self.stored.add(record.size());
        if let Some(tally) = self.tallied(item_key) {
            tally.stored.add(record.size());
        }
        if let Some(forecast) = &mut self.forecast {
            forecast.added(record);
        }
    }

    /// Takes note of a record that is no longer stored.
    pub fn removed(&mut self, item_key: &[u8], record: &Record) {
        let (size, is_ghost) = (record.size(), self.ghosts.contain(record));
        self.stored.remove(size);
        if is_ghost {
            self.ghosts.counted.remove(size);
        }
        if let Some(tally) = self.tallied(item_key) {
            tally.stored.remove(size);
            if is_ghost {
                tally.ghosts.remove(size);
            }
        }
        if let Some(forecast) = &mut self.forecast {
            forecast.removed(record);
        }
    }

    /// Counts one more ghost.
    pub fn count_ghost(&mut self, item_key: &[u8], size: usize) {
        self.ghosts.counted.add(size);
        if let Some(tally) = self.tallied(item_key) {
            tally.ghosts.add(size);
        }
    }

    fn tallied(&mut self, item_key: &[u8]) -> Option<&mut Tally> {
        self.tally.as_mut().filter(|tally| item_key < &tally.upto[..])
    }

    /// The row to store.
    pub fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(BYTES);
        bytes.put_u8(FORMAT);
        bytes.put_u64(self.stored.items);
        bytes.put_u64(self.stored.bytes);
        bytes.put_u64(self.next_number);
        bytes.put_u64(self.purged_total);
        bytes.put_f64(self.spent_total.0);
        bytes.put_f64(self.billed_total.0);
        self.purge.log.put(&mut bytes);
        self.purge.expiry.put(&mut bytes);
        self.history_from.put(&mut bytes);
        self.tombstones.put(&mut bytes);
        bytes.freeze()
    }

    /// The counters of a partition from its row, which a partition without writes does not have.
    ///
    /// # Errors
    /// As [`PartitionState::decode`].
    pub fn of_row(row: Option<Bytes>) -> Result<PartitionState> {
        row.map_or_else(|| Ok(PartitionState::default()), |row| PartitionState::decode(&row))
    }

    /// Reads a stored row. Counting of ghosts starts at the purge cursors.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not such a row.
    pub fn decode(bytes: &[u8]) -> Result<PartitionState> {
        Self::decode_row(bytes).ok_or_else(|| Error::new(ErrorKind::Corrupt, "a partition's counters are damaged"))
    }

    fn decode_row(bytes: &[u8]) -> Option<PartitionState> {
        let (format, rest) = bytes.split_first()?;
        let (rest, history_from, tombstones) = match (*format, bytes.len()) {
            (FORMAT, BYTES..) => {
                let (rest, later) = rest.split_at(BYTES_1 - 1);
                let (history_from, tombstones) = later.split_at(LogPosition::BYTES);
                (
                    rest,
                    LogPosition::decode(history_from)?,
                    PartitionKeyTombstones::decode(tombstones)?,
                )
            }
            (FORMAT_1, BYTES_1) => (rest, LogPosition::default(), PartitionKeyTombstones::default()),
            _ => return None,
        };
        let (words, cursors) = rest.split_at(6 * 8);
        // Numbers that no store comes to are damage, and adding to them would overflow.
        let (counters, _) = words.split_at(4 * 8);
        if counters.chunks_exact(8).any(|counter| counter[0] >= COUNTER_END) {
            return None;
        }
        let mut words = words
            .chunks_exact(8)
            .map(|word| u64::from_be_bytes(word.try_into().expect("chunks of eight")));
        let mut next = || words.next().unwrap_or_default();
        let stored = Amount {
            items: next(),
            bytes: next(),
        };
        let (next_number, purged_total) = (next(), next());
        let (spent_total, billed_total) = (
            RequestUnits(f64::from_bits(next())),
            RequestUnits(f64::from_bits(next())),
        );
        let (log, expiry) = cursors.split_at(LogPosition::BYTES);
        let purge = Cursors {
            log: LogPosition::decode(log)?,
            expiry: ExpiryPosition::decode(expiry)?,
        };
        let ghosts = Ghosts {
            counted: Amount::default(),
            upto: purge,
        };
        Some(PartitionState {
            stored,
            next_number,
            purged_total,
            spent_total,
            billed_total,
            purge,
            history_from,
            tombstones,
            ghosts,
            tally: None,
            forecast: None,
        })
    }
}

#[cfg(test)]
mod tests;
