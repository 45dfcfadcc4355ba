//! Logical partitions that were deleted as a whole (cosmos-rest §5.6).
//!
//! Deleting one is a single small commit: it notes how far the log had come. From then on every item of that key up to there is hidden,
//! and the purge removes them in the background (`crate::background::jobs::delete_by_key`). Newer items of the key are not affected. Neither are ghosts:
//! what had expired by then was gone already, and is purged as such.
//!
//! The notes are part of the partition's counters, so that decisions see them in their order; readers see them once they are committed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bolide_model::Lsn;
use bolide_model::ttl::{Horizon, Stamp};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use parking_lot::RwLock;

use crate::format::keys;
use crate::format::record::Record;

/// Logical partitions that may wait for their removal at once, in one physical partition.
pub(crate) const MOST: usize = 100;

/// How often one of them may be among these.
pub(crate) const MOST_OF_ONE: usize = 4;

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

    /// How often a logical partition is among them.
    pub fn count_of(&self, epk: &[u8]) -> usize {
        self.0.iter().filter(|dropped| dropped.epk == epk).count()
    }

    /// Whether a stored version is hidden.
    pub fn hides(&self, item_key: &[u8], record: &Record) -> bool {
        self.0.iter().any(|dropped| dropped.hides(item_key, record))
    }

    pub fn push(&mut self, dropped: Dropped) {
        Arc::make_mut(&mut self.0).push(dropped);
    }

    /// The log sequence number of the newest.
    pub fn newest(&self) -> Option<Lsn> {
        self.0.last().map(|dropped| dropped.upto)
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

/// How long a drop is remembered once its items are removed: far longer than a reader takes from reading a row to asking about it.
const REMEMBERED: Duration = Duration::from_secs(10);

/// The drops that readers see: those of the newest commit, and those that were done a moment ago. A reader may have read rows before their
/// removal, and must not take them for live because their drop is done.
#[derive(Debug, Default)]
pub(crate) struct PublishedDrops {
    /// There usually are none, and nobody need take a lock to know it.
    are_any: AtomicBool,
    may_hide: AtomicBool,
    seen: RwLock<Arc<Seen>>,
}

/// The drops as they were at one moment. All rows of a read must be judged by the same ones, taken after it: a deletion by key hides all
/// of them or none.
#[derive(Debug)]
pub(crate) struct Hiding(Option<Arc<Seen>>);

impl Hiding {
    /// Whether there is nothing that hides anything.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether a stored version belongs to a logical partition that was deleted after it was written.
    pub fn hides(&self, item_key: &[u8], record: &Record) -> bool {
        self.hides_version(item_key, record.version().lsn, record.stamp())
    }

    /// As [`Hiding::hides`], of a version that is known by an entry of a queue only.
    pub fn hides_version(&self, item_key: &[u8], lsn: Lsn, stamp: Stamp) -> bool {
        let hides = |dropped: &Dropped| dropped.hides_version(item_key, lsn, stamp);
        self.0.as_ref().is_some_and(|seen| seen.iter().any(hides))
    }
}

#[derive(Debug, Clone, Default)]
struct Seen {
    drops: Drops,
    done: VecDeque<(Instant, Dropped)>,
}

impl Seen {
    fn iter(&self) -> impl Iterator<Item = &Dropped> {
        self.drops.iter().chain(self.done.iter().map(|(_, dropped)| dropped))
    }
}

impl PublishedDrops {
    /// Shows the drops of a commit.
    pub fn publish(&self, drops: &Drops) {
        self.publish_at(drops, Instant::now);
    }

    fn publish_at(&self, drops: &Drops, now: impl FnOnce() -> Instant) {
        if drops.is_empty() && !self.may_hide() {
            return;
        }
        let now = now();
        let mut seen = self.seen.write();
        let Seen { drops: before, done } = Arc::make_mut(&mut seen);
        let is_left = |dropped: &Dropped| {
            drops
                .iter()
                .any(|left| left.upto == dropped.upto && left.epk == dropped.epk)
        };
        done.extend(
            before
                .iter()
                .filter(|dropped| !is_left(dropped))
                .map(|dropped| (now, dropped.clone())),
        );
        while done.front().is_some_and(|(at, _)| now.duration_since(*at) > REMEMBERED) {
            done.pop_front();
        }
        *before = drops.clone();
        self.are_any.store(!drops.is_empty(), Ordering::Release);
        self.may_hide
            .store(!(drops.is_empty() && done.is_empty()), Ordering::Release);
    }

    /// Whether any is to be removed.
    pub fn are_any(&self) -> bool {
        self.are_any.load(Ordering::Acquire)
    }

    /// Whether any may hide a row that was read a moment ago.
    pub fn may_hide(&self) -> bool {
        self.may_hide.load(Ordering::Acquire)
    }

    /// What hides rows that were read until now.
    pub fn hiding(&self) -> Hiding {
        Hiding(self.may_hide().then(|| self.seen.read().clone()))
    }
}

#[cfg(test)]
mod tests;
