//! A partition's counters and cursors.
//!
//! One row of the Meta space holds what must survive a restart. It is written with every commit that changes it, so it always agrees with the items
//! (TTL-267):
//!
//! ```text
//!   format(1) ‖ stored items(8) ‖ stored bytes(8) ‖ next number(8) ‖ purged(8) ‖ spent(8, f64) ‖ billed(8, f64)
//!   ‖ purge cursor in the log(12) ‖ purge cursor in the expiry queue(20) ‖ start of the history(12)
//!   ‖ time after which the history is complete(8) ‖ time of its last entry, in the order of commits(8) and by the clock(8)
//!   ‖ positions up to which ends were told: in the log(12), in the expiry queue(20), count(2) ‖ in the queue of each date rule(25)
//!   ‖ words of full-text indexes (see `text_counters`)
//!   ‖ for each deleted logical partition: length(2) ‖ EPK ‖ length(2) ‖ item key to resume at ‖ lsn(8) ‖ horizon(16)
//! ```
//!
//! Rows of format 1 end with the cursors; they were written before there was a history. Rows of format 2 have no times of the history,
//! and rows of format 3 no words of full-text indexes.
//!
//! The counts of [`Ghosts`] and of tombstones are kept in memory only: after a start, ghosts are counted again from the purge cursors. The [`Tally`] of
//! a full check and the [`Forecast`] are in memory only, too; the check begins again after a start. So are the purge's positions in the queues of date
//! rules: an entry may be added before them, and after a start the purge begins at the start of each queue.

use bolide_model::time::CommitTime;
use bolide_model::{Error, ErrorKind, RequestUnits, Result, UnixMillis};
use bytes::{BufMut, Bytes, BytesMut};

use super::date_cursors::DateCursors;
use super::forecast::Forecast;
use super::ghosts::Ghosts;
use super::text_counters::TextCounters;
use super::tombstones::PartitionKeyTombstones;
use super::write_seal::WriteSeal;
use crate::format::keys::{ExpiryPosition, LogPosition};
use crate::format::record::Record;

const FORMAT: u8 = 4;
/// Format of rows that have no words of full-text indexes.
const FORMAT_3: u8 = 3;
/// Format of rows that have no times of the history.
const FORMAT_2: u8 = 2;
/// Format of rows that have no start of the history.
const FORMAT_1: u8 = 1;
/// Smallest first byte of a counter that must be damaged: counts of items, bytes, resource numbers and purged items stay below 2^60.
const COUNTER_END: u8 = 0x10;
const BYTES_1: usize = 1 + 6 * 8 + LogPosition::BYTES + ExpiryPosition::BYTES;
const BYTES_2: usize = BYTES_1 + LogPosition::BYTES;
const BYTES: usize = BYTES_2 + 3 * 8 + LogPosition::BYTES + ExpiryPosition::BYTES + 2;

/// The counters and cursors of a partition. Only its worker changes them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PartitionState {
    /// Number of stored items, ghosts included, and the bytes of their documents.
    pub stored: Amount,
    /// Resource number of the next item, without the range in its high bytes.
    pub next_number: u64,
    /// Number of ghosts removed since the partition's creation, by the purge or by writers.
    pub purged_total: u64,
    /// Request units that the purge has spent.
    pub spent_total: RequestUnits,
    /// The part of them that was billed.
    pub billed_total: RequestUnits,
    /// Positions at which the purge continues.
    pub purge: Cursors,
    /// Positions at which the purge continues in the queues of date rules.
    pub date_purge: DateCursors,
    /// The queue with which the next step of the purge begins if there are date rules, so that all queues are served in turn.
    pub purge_turn: usize,
    /// Position from which on the history is complete; it has no entries before.
    pub history_from: LogPosition,
    /// The history has every change after this time.
    pub history_after: CommitTime,
    /// Time of the last entry of the history.
    pub history_last: CommitTime,
    /// The same by the clock.
    pub history_happened: UnixMillis,
    /// Positions in the queues up to which the history has the ends of documents.
    pub told: Cursors,
    /// The same in the queues of date rules.
    pub told_dates: DateCursors,
    /// The latest time that a reader of the history has taken for settled; in memory only.
    pub marked: CommitTime,
    /// The words of full-text indexes.
    pub texts: TextCounters,
    /// Tombstones of deleted logical partitions whose items are not all removed yet.
    pub tombstones: PartitionKeyTombstones,
    /// The ghosts counted so far.
    pub ghosts: Ghosts,
    /// Counts of a full check, while one is running.
    pub tally: Option<Tally>,
    /// Number of items by the time until they expire, once that was requested.
    pub forecast: Option<Box<Forecast>>,
    /// The seal, which has a row of its own. It counts only while the edition says that there is one.
    pub seal: Option<WriteSeal>,
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

    /// Returns the sum of two amounts.
    #[must_use]
    pub fn with(self, other: Amount) -> Amount {
        Amount {
            items: self.items + other.items,
            bytes: self.bytes + other.bytes,
        }
    }

    /// Returns the difference of two amounts, at least zero.
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

/// A position in each of the two expiry queues that every container has. Every entry before it has been processed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cursors {
    pub log: LogPosition,
    pub expiry: ExpiryPosition,
}

/// Counts of a full check: the items whose keys lie before `upto`, and which of them are ghosts by the definition of [`Ghosts`]. Commits update them
/// as they update the counters, so at the end of the check both must be equal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub upto: Bytes,
    pub stored: Amount,
    pub ghosts: Amount,
    /// The ids of the full-text indexes that were complete when the check began, each with the words of the items.
    pub words: Vec<(u32, u64)>,
}

impl Tally {
    /// Adds the words of an item's text, if its index was complete when the check began.
    pub fn add_words(&mut self, index: u32, words: u64) {
        if let Some((_, counted)) = self.words.iter_mut().find(|(own, _)| *own == index) {
            *counted += words;
        }
    }
}

impl PartitionState {
    /// Returns a state that has only the counters of the purge from this one.
    pub fn purge_figures(&self) -> PartitionState {
        PartitionState {
            purged_total: self.purged_total,
            spent_total: self.spent_total,
            billed_total: self.billed_total,
            ..PartitionState::default()
        }
    }

    /// Updates all counts for a record that is now stored.
    pub fn added(&mut self, item_key: &[u8], record: &Record) {
        self.stored.add(record.size());
        let is_ghost = self.ghosts.add(record);
        for position in record.deadline_positions() {
            self.date_purge.lower(position);
        }
        if let Some(tally) = self.tallied(item_key) {
            tally.stored.add(record.size());
            if is_ghost {
                tally.ghosts.add(record.size());
            }
        }
        if let Some(forecast) = &mut self.forecast {
            forecast.added(record);
        }
    }

    /// Updates all counts for a record that is no longer stored.
    pub fn removed(&mut self, item_key: &[u8], record: &Record) {
        let (size, is_ghost) = (record.size(), self.is_counted_ghost(item_key, record));
        self.stored.remove(size);
        if is_ghost {
            self.ghosts.remove(record);
        }
        self.tombstones.removed(item_key, record);
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

    /// Adds the words of an item's text that is now stored.
    pub fn added_words(&mut self, index: u32, item_key: &[u8], words: u64) {
        self.texts.add(index, words);
        if let Some(tally) = self.tallied(item_key) {
            tally.add_words(index, words);
        }
    }

    /// Subtracts the words of an item's text that is no longer stored.
    pub fn removed_words(&mut self, index: u32, item_key: &[u8], words: u64) {
        self.texts.remove(index, words);
        let tally = self.tallied(item_key);
        let counted = tally.and_then(|tally| tally.words.iter_mut().find(|(own, _)| *own == index));
        if let Some((_, counted)) = counted {
            *counted = counted.saturating_sub(words);
        }
    }

    /// Returns whether a stored record is one of the counted ghosts. Items that were deleted with their partition key are not.
    pub fn is_counted_ghost(&self, item_key: &[u8], record: &Record) -> bool {
        self.ghosts.have_passed(record) && !self.tombstones.hides(item_key, record)
    }

    /// Returns whether all counts are complete, so that only items that expire later remain to be counted.
    pub fn is_settled(&self) -> bool {
        self.ghosts.are_counted() && self.ghosts.are_oldest_known() && self.tombstones.are_counted()
    }

    /// Counts one more ghost in the [`Tally`] of a full check, if one is running.
    pub fn tally_ghost(&mut self, item_key: &[u8], size: usize) {
        if let Some(tally) = self.tallied(item_key) {
            tally.ghosts.add(size);
        }
    }

    fn tallied(&mut self, item_key: &[u8]) -> Option<&mut Tally> {
        self.tally.as_mut().filter(|tally| item_key < &tally.upto[..])
    }

    /// Returns the row to store.
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
        bytes.put_u64(self.history_after.0);
        bytes.put_u64(self.history_last.0);
        bytes.put_i64(self.history_happened.0);
        self.told.log.put(&mut bytes);
        self.told.expiry.put(&mut bytes);
        self.told_dates.put(&mut bytes);
        self.texts.put(&mut bytes);
        self.tombstones.put(&mut bytes);
        bytes.freeze()
    }

    /// Decodes the row of a partition, or returns empty counters for a partition that has no row because it has no writes yet.
    ///
    /// # Errors
    /// The errors of [`PartitionState::decode`].
    pub fn of_row(row: Option<Bytes>) -> Result<PartitionState> {
        row.map_or_else(|| Ok(PartitionState::default()), |row| PartitionState::decode(&row))
    }

    /// Returns the state with the seal of a stored row.
    ///
    /// # Errors
    /// The errors of [`WriteSeal::decode`].
    pub fn with_seal(self, row: Option<Bytes>) -> Result<PartitionState> {
        let seal = row.as_deref().map(WriteSeal::decode).transpose()?;
        Ok(PartitionState { seal, ..self })
    }

    /// Decodes a stored row. The count of ghosts starts at the purge cursors.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not a valid row.
    pub fn decode(bytes: &[u8]) -> Result<PartitionState> {
        Self::decode_row(bytes).ok_or_else(|| Error::new(ErrorKind::Corrupt, "a partition's counters are damaged"))
    }

    fn decode_row(bytes: &[u8]) -> Option<PartitionState> {
        let (format, rest) = bytes.split_first()?;
        let (rest, later) = match (*format, bytes.len()) {
            (FORMAT | FORMAT_3, BYTES..) | (FORMAT_2, BYTES_2..) => rest.split_at(BYTES_1 - 1),
            (FORMAT_1, BYTES_1) => (rest, &[][..]),
            _ => return None,
        };
        let later = Later::decode(*format, later)?;
        let (words, cursors) = rest.split_at(6 * 8);
        // Numbers larger than any store can reach are damage; additions to them would overflow.
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
        Some(PartitionState {
            stored,
            next_number,
            purged_total,
            spent_total,
            billed_total,
            purge,
            date_purge: DateCursors::default(),
            purge_turn: 0,
            history_from: later.history_from,
            history_after: later.history_after,
            history_last: later.history_last,
            history_happened: later.history_happened,
            told: later.told,
            told_dates: later.told_dates,
            marked: CommitTime::default(),
            texts: later.texts,
            tombstones: later.tombstones,
            ghosts: Ghosts::behind(purge),
            tally: None,
            forecast: None,
            seal: None,
        })
    }
}

/// What later formats have added to a row.
#[derive(Default)]
struct Later {
    history_from: LogPosition,
    history_after: CommitTime,
    history_last: CommitTime,
    history_happened: UnixMillis,
    told: Cursors,
    told_dates: DateCursors,
    texts: TextCounters,
    tombstones: PartitionKeyTombstones,
}

impl Later {
    fn decode(format: u8, bytes: &[u8]) -> Option<Later> {
        let mut later = Later::default();
        if format == FORMAT_1 {
            return Some(later);
        }
        let (from, mut rest) = bytes.split_at_checked(LogPosition::BYTES)?;
        later.history_from = LogPosition::decode(from)?;
        if format != FORMAT_2 {
            for time in [&mut later.history_after, &mut later.history_last] {
                let (stored, after) = rest.split_first_chunk()?;
                *time = CommitTime(u64::from_be_bytes(*stored));
                rest = after;
            }
            let (happened, after) = rest.split_first_chunk()?;
            later.history_happened = UnixMillis(i64::from_be_bytes(*happened));
            let (log, after) = after.split_at_checked(LogPosition::BYTES)?;
            let (expiry, after) = after.split_at_checked(ExpiryPosition::BYTES)?;
            later.told = Cursors {
                log: LogPosition::decode(log)?,
                expiry: ExpiryPosition::decode(expiry)?,
            };
            (later.told_dates, rest) = DateCursors::decode(after)?;
        }
        if format == FORMAT {
            (later.texts, rest) = TextCounters::decode(rest)?;
        }
        later.tombstones = PartitionKeyTombstones::decode(rest)?;
        Some(later)
    }
}

#[cfg(test)]
mod tests;
