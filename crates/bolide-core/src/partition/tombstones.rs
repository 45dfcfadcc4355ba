//! Tombstones of logical partitions that were deleted as a whole (cosmos-rest §5.6).
//!
//! The deletion of a logical partition is a single small commit: a tombstone with the log sequence number of that moment. From then on every item of
//! that key up to this number is hidden, and a background job removes these items (`crate::background::jobs::delete_by_key`). Newer items of the key
//! are not affected. Neither are ghosts: items that had expired by then did not exist any more, and are purged as expired items.
//!
//! Tombstones are part of the partition's state, so decisions see them in commit order. Readers see them once they are committed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bolide_model::ttl::{DateHorizon, Horizon, Stamp};
use bolide_model::{Lsn, Result};
use bolide_storage::{Page, Scan, Space};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use parking_lot::RwLock;

use super::state::Amount;
use crate::format::keys;
use crate::format::record::Record;

/// Maximum number of tombstones of one physical partition: all of them are stored in one row, and every read checks them.
pub(crate) const MAX: usize = 100;

/// Maximum number of tombstones of one logical partition, so that one key does not use up those of its physical partition.
pub(crate) const MAX_PER_KEY: usize = 4;

/// The tombstone of one logical partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartitionKeyTombstone {
    pub epk: Bytes,
    /// Versions up to this log sequence number are hidden.
    pub upto: Lsn,
    /// The horizon of the deletion: only versions that were live then are hidden.
    pub horizon: Horizon,
    /// Item key at which the removal continues.
    pub from: Bytes,
    pub hidden: HiddenItems,
}

/// Count of the items that a tombstone hides and that are still stored, kept in memory only. If several tombstones hide an item, only the oldest one
/// counts it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HiddenItems {
    amount: Amount,
    /// Item key at which counting continues.
    upto: Bytes,
    /// Whether all hidden items are counted.
    is_complete: bool,
}

impl HiddenItems {
    fn has_counted(&self, item_key: &[u8]) -> bool {
        self.is_complete || item_key < &self.upto[..]
    }
}

impl PartitionKeyTombstone {
    pub fn hides(&self, item_key: &[u8], record: &Record) -> bool {
        self.hides_version(item_key, record.version().lsn, record.stamp())
    }

    fn hides_version(&self, item_key: &[u8], lsn: Lsn, stamp: Stamp) -> bool {
        keys::epk_of_item(item_key) == self.epk && lsn <= self.upto && stamp.is_live(&self.horizon)
    }
}

/// The tombstones of a partition, oldest first: those whose items are not all removed yet. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PartitionKeyTombstones(Arc<Vec<PartitionKeyTombstone>>);

impl PartitionKeyTombstones {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &PartitionKeyTombstone> {
        self.0.iter()
    }

    /// Returns the number of tombstones of a logical partition.
    pub fn count_of(&self, epk: &[u8]) -> usize {
        self.0.iter().filter(|tombstone| tombstone.epk == epk).count()
    }

    /// Tells whether a tombstone hides a stored version.
    pub fn hides(&self, item_key: &[u8], record: &Record) -> bool {
        self.first_that_hides(item_key, record).is_some()
    }

    /// Like [`PartitionKeyTombstones::hides`], for a version of which only the entry in a queue was read.
    pub fn hides_version(&self, item_key: &[u8], lsn: Lsn, stamp: Stamp) -> bool {
        let mut tombstones = self.0.iter();
        tombstones.any(|tombstone| tombstone.hides_version(item_key, lsn, stamp))
    }

    fn first_that_hides(&self, item_key: &[u8], record: &Record) -> Option<usize> {
        self.0.iter().position(|tombstone| tombstone.hides(item_key, record))
    }

    /// Returns the number and bytes of the counted items that tombstones hide and that are still stored.
    pub fn hidden(&self) -> Amount {
        let hidden = self.0.iter().map(|tombstone| tombstone.hidden.amount);
        hidden.fold(Amount::default(), Amount::with)
    }

    /// Returns whether all hidden items are counted.
    pub fn are_counted(&self) -> bool {
        self.0.iter().all(|tombstone| tombstone.hidden.is_complete)
    }

    /// Returns the scan of the next items among which hidden items must be counted; `None` if all are counted.
    pub fn uncounted(&self, max_rows: usize, max_bytes: usize) -> Option<Scan> {
        let tombstone = self.0.iter().find(|tombstone| !tombstone.hidden.is_complete)?;
        Some(Scan {
            space: Space::Item,
            from: tombstone.from.clone().max(tombstone.hidden.upto.clone()),
            to: keys::after_prefix(&tombstone.epk),
            reverse: false,
            max_rows,
            max_bytes,
            keys_only: false,
        })
    }

    /// Counts the hidden items in a page of the scan of [`PartitionKeyTombstones::uncounted`].
    ///
    /// # Errors
    /// `Corrupt` if a row is not a valid record.
    pub fn count_hidden(&mut self, page: &Page) -> Result<()> {
        let Some(at) = self.0.iter().position(|tombstone| !tombstone.hidden.is_complete) else {
            return Ok(());
        };
        let mut hidden = self.0[at].hidden.clone();
        for (key, value) in &page.rows {
            let record = Record::decode(value.clone())?;
            if self.first_that_hides(key, &record) == Some(at) {
                hidden.amount.add(record.size());
            }
            hidden.upto = keys::after(key);
        }
        hidden.is_complete = !page.more;
        Arc::make_mut(&mut self.0)[at].hidden = hidden;
        Ok(())
    }

    /// Subtracts a record that is no longer stored, if it was counted as hidden.
    pub fn removed(&mut self, item_key: &[u8], record: &Record) {
        if let Some(at) = self.first_that_hides(item_key, record)
            && self.0[at].hidden.has_counted(item_key)
        {
            Arc::make_mut(&mut self.0)[at].hidden.amount.remove(record.size());
        }
    }

    fn contains(&self, tombstone: &PartitionKeyTombstone) -> bool {
        let is_same = |other: &PartitionKeyTombstone| other.upto == tombstone.upto && other.epk == tombstone.epk;
        self.0.iter().any(is_same)
    }

    pub fn push(&mut self, tombstone: PartitionKeyTombstone) {
        Arc::make_mut(&mut self.0).push(tombstone);
    }

    /// Returns the log sequence number of the newest tombstone.
    pub fn newest(&self) -> Option<Lsn> {
        self.0.last().map(|tombstone| tombstone.upto)
    }

    /// Returns the oldest tombstone: the one whose items are being removed.
    pub fn first_mut(&mut self) -> Option<&mut PartitionKeyTombstone> {
        if self.0.is_empty() {
            return None;
        }
        Arc::make_mut(&mut self.0).first_mut()
    }

    /// Removes the oldest tombstone.
    pub fn remove_first(&mut self) {
        Arc::make_mut(&mut self.0).remove(0);
    }

    /// Returns the tombstones for which `keep` is true.
    pub fn filtered(&self, keep: impl Fn(&PartitionKeyTombstone) -> bool) -> PartitionKeyTombstones {
        PartitionKeyTombstones(Arc::new(
            self.0.iter().filter(|tombstone| keep(tombstone)).cloned().collect(),
        ))
    }

    /// Appends the tombstones to a row of the partition state; an empty list takes no bytes.
    pub fn put(&self, bytes: &mut BytesMut) {
        for tombstone in self.0.iter() {
            for part in [&tombstone.epk, &tombstone.from] {
                bytes.put_u16(u16::try_from(part.len()).expect("limits::KEY_BYTES fits"));
                bytes.put_slice(part);
            }
            bytes.put_u64(tombstone.upto.0);
            bytes.put_i64(tombstone.horizon.inherited);
            bytes.put_i64(tombstone.horizon.own);
        }
    }

    pub fn decode(mut bytes: &[u8]) -> Option<PartitionKeyTombstones> {
        let mut tombstones = Vec::new();
        while bytes.has_remaining() {
            let mut part = || {
                let length = usize::from(bytes.try_get_u16().ok()?);
                (length <= bytes.len()).then(|| bytes.copy_to_bytes(length))
            };
            let (epk, from) = (part()?, part()?);
            tombstones.push(PartitionKeyTombstone {
                epk,
                from,
                hidden: HiddenItems::default(),
                upto: Lsn(bytes.try_get_u64().ok()?),
                horizon: Horizon {
                    inherited: bytes.try_get_i64().ok()?,
                    own: bytes.try_get_i64().ok()?,
                    // Only containers of items delete by partition key, and these have no date rules.
                    dates: DateHorizon::default(),
                },
            });
        }
        Some(PartitionKeyTombstones(Arc::new(tombstones)))
    }
}

/// The tombstones that readers see: those of the newest commit.
///
/// A tombstone is removed after the items that it hides. A reader may have read rows before that and check their visibility any time later. So a
/// reader takes a [`TombstonePin`] before it reads, and gets no view if a tombstone was removed since then. It reads again in that case, and no
/// longer finds the removed rows.
#[derive(Debug, Default)]
pub(crate) struct PublishedTombstones {
    /// Whether there are tombstones. Mostly there are none, and readers find that out without taking the lock.
    are_any: AtomicBool,
    /// Number of publications that removed tombstones.
    removals: AtomicU64,
    current: RwLock<PartitionKeyTombstones>,
}

/// The number of removals when a reader began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TombstonePin {
    removals: u64,
}

/// The tombstones at one point in time. All rows of a read are checked against the same view, taken after the read: a deletion by key hides all of
/// them or none.
#[derive(Debug, Clone, Default)]
pub(crate) struct TombstoneView(Option<PartitionKeyTombstones>);

impl TombstoneView {
    /// Returns a view of the tombstones that a decision sees.
    pub fn of(tombstones: &PartitionKeyTombstones) -> TombstoneView {
        TombstoneView(Some(tombstones.clone()))
    }

    /// Tells whether a stored version belongs to a logical partition that was deleted after the version was written.
    pub fn hides(&self, item_key: &[u8], lsn: Lsn, stamp: Stamp) -> bool {
        self.0
            .as_ref()
            .is_some_and(|tombstones| tombstones.hides_version(item_key, lsn, stamp))
    }
}

impl PublishedTombstones {
    /// Publishes the tombstones of a commit to readers.
    pub fn publish(&self, tombstones: &PartitionKeyTombstones) {
        if tombstones.is_empty() && !self.are_any() {
            return;
        }
        let mut current = self.current.write();
        if current.iter().any(|before| !tombstones.contains(before)) {
            // Incremented before the tombstones are replaced, so that a reader that gets a view without the removed ones finds a changed number.
            self.removals.fetch_add(1, Ordering::SeqCst);
        }
        *current = tombstones.clone();
        self.are_any.store(!tombstones.is_empty(), Ordering::SeqCst);
    }

    /// Tells whether there are tombstones.
    pub fn are_any(&self) -> bool {
        self.are_any.load(Ordering::SeqCst)
    }

    /// Returns a pin. Must be called before a read.
    pub fn pin(&self) -> TombstonePin {
        TombstonePin {
            removals: self.removals.load(Ordering::SeqCst),
        }
    }

    /// Returns the tombstones that hide rows which were read after the pin was taken; `None` if a tombstone that hides some of them may have been
    /// removed, so that the caller has to read again.
    pub fn view(&self, pin: TombstonePin) -> Option<TombstoneView> {
        let view = match self.are_any() {
            true => TombstoneView::of(&self.current.read()),
            false => TombstoneView::default(),
        };
        (self.pin().removals == pin.removals).then_some(view)
    }
}

#[cfg(test)]
mod tests;
