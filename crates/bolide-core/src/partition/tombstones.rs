//! Tombstones of logical partitions that were deleted as a whole (cosmos-rest §5.6).
//!
//! Deleting one is a single small commit: its tombstone says how far the log had come. From then on every item of that key up to there is
//! hidden, and a background job removes them (`crate::background::jobs::delete_by_key`). Newer items of the key are not affected. Neither are
//! ghosts: what had expired by then was gone already, and is purged as such.
//!
//! Tombstones are part of the partition's state, so that decisions see them in their order; readers see them once they are committed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bolide_model::Lsn;
use bolide_model::ttl::{Horizon, Stamp};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use parking_lot::RwLock;

use crate::format::keys;
use crate::format::record::Record;

/// Tombstones of one physical partition, at most.
pub(crate) const MAX: usize = 100;

/// Tombstones of one logical partition, at most.
pub(crate) const MAX_PER_KEY: usize = 4;

/// The tombstone of one logical partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartitionKeyTombstone {
    pub epk: Bytes,
    /// Versions up to here are hidden.
    pub upto: Lsn,
    /// What was live when it was deleted.
    pub horizon: Horizon,
    /// The item key at which the removal goes on.
    pub from: Bytes,
}

impl PartitionKeyTombstone {
    pub fn hides(&self, item_key: &[u8], record: &Record) -> bool {
        self.hides_version(item_key, record.version().lsn, record.stamp())
    }

    fn hides_version(&self, item_key: &[u8], lsn: Lsn, stamp: Stamp) -> bool {
        keys::epk_of_item(item_key) == self.epk && lsn <= self.upto && stamp.is_live(self.horizon)
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

    /// How often a logical partition is among them.
    pub fn count_of(&self, epk: &[u8]) -> usize {
        self.0.iter().filter(|tombstone| tombstone.epk == epk).count()
    }

    /// Whether a stored version is hidden.
    pub fn hides(&self, item_key: &[u8], record: &Record) -> bool {
        self.hides_version(item_key, record.version().lsn, record.stamp())
    }

    /// As [`PartitionKeyTombstones::hides`], of a version that is known by its entry in a queue only.
    pub fn hides_version(&self, item_key: &[u8], lsn: Lsn, stamp: Stamp) -> bool {
        let mut tombstones = self.0.iter();
        tombstones.any(|tombstone| tombstone.hides_version(item_key, lsn, stamp))
    }

    fn contains(&self, tombstone: &PartitionKeyTombstone) -> bool {
        let is_same = |other: &PartitionKeyTombstone| other.upto == tombstone.upto && other.epk == tombstone.epk;
        self.0.iter().any(is_same)
    }

    pub fn push(&mut self, tombstone: PartitionKeyTombstone) {
        Arc::make_mut(&mut self.0).push(tombstone);
    }

    /// The log sequence number of the newest.
    pub fn newest(&self) -> Option<Lsn> {
        self.0.last().map(|tombstone| tombstone.upto)
    }

    /// The one that is being removed.
    pub fn first_mut(&mut self) -> Option<&mut PartitionKeyTombstone> {
        if self.0.is_empty() {
            return None;
        }
        Arc::make_mut(&mut self.0).first_mut()
    }

    /// The first one is removed.
    pub fn remove_first(&mut self) {
        Arc::make_mut(&mut self.0).remove(0);
    }

    /// Those that `keep` wants.
    pub fn filtered(&self, keep: impl Fn(&PartitionKeyTombstone) -> bool) -> PartitionKeyTombstones {
        PartitionKeyTombstones(Arc::new(
            self.0.iter().filter(|tombstone| keep(tombstone)).cloned().collect(),
        ))
    }

    /// Appends them to a row of the partition state; no bytes if there are none.
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
                upto: Lsn(bytes.try_get_u64().ok()?),
                horizon: Horizon {
                    inherited: bytes.try_get_i64().ok()?,
                    own: bytes.try_get_i64().ok()?,
                },
            });
        }
        Some(PartitionKeyTombstones(Arc::new(tombstones)))
    }
}

/// What readers know of the tombstones: those of the newest commit.
///
/// A tombstone goes when the items that it hides are removed. A reader may have read rows before that and judge them later, however much
/// later: it takes a [`TombstonePin`] before it reads, and its view is refused if a tombstone has gone since. Then it reads again, and does
/// not see the rows any more.
#[derive(Debug, Default)]
pub(crate) struct PublishedTombstones {
    /// There usually are none, and nobody need take a lock to know it.
    are_any: AtomicBool,
    /// How many publications have taken tombstones away.
    removals: AtomicU64,
    current: RwLock<PartitionKeyTombstones>,
}

/// Where the tombstones stood when a reader began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TombstonePin {
    removals: u64,
}

/// The tombstones at one moment. All rows of a read are judged by the same ones, taken after it: a deletion by key hides all of them or none.
#[derive(Debug, Clone, Default)]
pub(crate) struct TombstoneView(PartitionKeyTombstones);

impl TombstoneView {
    /// The tombstones that a decision sees.
    pub fn of(tombstones: &PartitionKeyTombstones) -> TombstoneView {
        TombstoneView(tombstones.clone())
    }

    /// Whether a stored version belongs to a logical partition that was deleted after it was written.
    pub fn hides(&self, item_key: &[u8], lsn: Lsn, stamp: Stamp) -> bool {
        self.0.hides_version(item_key, lsn, stamp)
    }
}

impl PublishedTombstones {
    /// Shows the tombstones of a commit.
    pub fn publish(&self, tombstones: &PartitionKeyTombstones) {
        if tombstones.is_empty() && !self.are_any() {
            return;
        }
        let mut current = self.current.write();
        if current.iter().any(|before| !tombstones.contains(before)) {
            // Before they go: whoever gets a view without them finds that the number has changed.
            self.removals.fetch_add(1, Ordering::SeqCst);
        }
        *current = tombstones.clone();
        self.are_any.store(!tombstones.is_empty(), Ordering::SeqCst);
    }

    /// Whether there are any.
    pub fn are_any(&self) -> bool {
        self.are_any.load(Ordering::SeqCst)
    }

    /// To be taken before a read.
    pub fn pin(&self) -> TombstonePin {
        TombstonePin {
            removals: self.removals.load(Ordering::SeqCst),
        }
    }

    /// What hides rows that were read since the pin was taken; `None` if a tombstone that hides some of them may be gone: read again.
    pub fn view(&self, pin: TombstonePin) -> Option<TombstoneView> {
        let view = match self.are_any() {
            true => TombstoneView(self.current.read().clone()),
            false => TombstoneView::default(),
        };
        (self.pin().removals == pin.removals).then_some(view)
    }
}

#[cfg(test)]
mod tests;
