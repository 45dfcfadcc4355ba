//! Logical partitions that were deleted as a whole (cosmos-rest §5.6).
//!
//! Deleting one is a single small commit: it notes how far the log had come. From then on every item of that key up to there is hidden,
//! and the purge removes them in the background (`crate::purge::drops`). Newer items of the key are not affected. Neither are ghosts:
//! what had expired by then was gone already, and is purged as such.
//!
//! The notes are part of the partition's counters, so that decisions see them in their order; readers see them once they are committed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bolide_model::Lsn;
use bolide_model::ttl::{Horizon, Stamp};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use parking_lot::RwLock;

use crate::keys;
use crate::record::Record;

/// Logical partitions that may wait for their removal at once, in one physical partition.
pub(crate) const MOST: usize = 100;

/// One deleted logical partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub epk: Bytes,
    /// Versions up to here are hidden.
    pub upto: Lsn,
    /// What was live when it was deleted.
    pub horizon: Horizon,
    /// The item key at which the removal goes on.
    pub from: Bytes,
}

impl Dropped {
    pub fn hides(&self, item_key: &[u8], record: &Record) -> bool {
        self.hides_version(item_key, record.version().lsn, record.stamp())
    }

    fn hides_version(&self, item_key: &[u8], lsn: Lsn, stamp: Stamp) -> bool {
        keys::epk_of_item(item_key) == self.epk && lsn <= self.upto && stamp.is_live(self.horizon)
    }
}

/// Those whose items are not all removed yet, oldest first. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Drops(Arc<Vec<Dropped>>);

impl Drops {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Dropped> {
        self.0.iter()
    }

    /// Whether a stored version is hidden.
    pub fn hides(&self, item_key: &[u8], record: &Record) -> bool {
        self.0.iter().any(|dropped| dropped.hides(item_key, record))
    }

    pub fn push(&mut self, dropped: Dropped) {
        Arc::make_mut(&mut self.0).push(dropped);
    }

    /// The one that is being removed.
    pub fn first_mut(&mut self) -> Option<&mut Dropped> {
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
    pub fn filtered(&self, keep: impl Fn(&Dropped) -> bool) -> Drops {
        Drops(Arc::new(
            self.0.iter().filter(|dropped| keep(dropped)).cloned().collect(),
        ))
    }

    /// Nothing if there are none.
    pub fn put(&self, bytes: &mut BytesMut) {
        for dropped in self.0.iter() {
            for part in [&dropped.epk, &dropped.from] {
                bytes.put_u16(u16::try_from(part.len()).expect("limits::KEY_BYTES fits"));
                bytes.put_slice(part);
            }
            bytes.put_u64(dropped.upto.0);
            bytes.put_i64(dropped.horizon.inherited);
            bytes.put_i64(dropped.horizon.own);
        }
    }

    pub fn decode(mut bytes: &[u8]) -> Option<Drops> {
        let mut drops = Vec::new();
        while bytes.has_remaining() {
            let mut part = || {
                let length = usize::from(bytes.try_get_u16().ok()?);
                (length <= bytes.len()).then(|| bytes.copy_to_bytes(length))
            };
            let (epk, from) = (part()?, part()?);
            drops.push(Dropped {
                epk,
                from,
                upto: Lsn(bytes.try_get_u64().ok()?),
                horizon: Horizon {
                    inherited: bytes.try_get_i64().ok()?,
                    own: bytes.try_get_i64().ok()?,
                },
            });
        }
        Some(Drops(Arc::new(drops)))
    }
}

/// The drops that readers see: those of the newest commit.
#[derive(Debug, Default)]
pub(crate) struct PublishedDrops {
    /// There usually are none, and readers need not take a lock to know it.
    are_any: AtomicBool,
    drops: RwLock<Drops>,
}

impl PublishedDrops {
    pub fn publish(&self, drops: &Drops) {
        if drops.is_empty() && !self.are_any() {
            return;
        }
        *self.drops.write() = drops.clone();
        self.are_any.store(!drops.is_empty(), Ordering::Release);
    }

    pub fn are_any(&self) -> bool {
        self.are_any.load(Ordering::Acquire)
    }

    pub fn hides(&self, item_key: &[u8], record: &Record) -> bool {
        self.are_any() && self.drops.read().hides(item_key, record)
    }

    /// As `hides`, of a version that is known by an entry of a queue only.
    pub fn hides_version(&self, item_key: &[u8], lsn: Lsn, stamp: Stamp) -> bool {
        let drops = || self.drops.read();
        self.are_any()
            && drops()
                .iter()
                .any(|dropped| dropped.hides_version(item_key, lsn, stamp))
    }
}
