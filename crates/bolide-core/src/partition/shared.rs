//! State that a partition's worker shares with its handle: published positions, counters, and the effects of commits outside of the partition.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bolide_model::UnixSeconds;
use parking_lot::RwLock;

use super::Wakeup;
use super::after_commit::AfterCommit;
use super::dirty_keys::DirtyKeys;
use super::purge_rate::PurgeRate;
use super::schedule::Schedule;
use super::tombstones::PublishedTombstones;
use crate::throughput::SharedMeter;

/// See the module.
pub(crate) struct Shared {
    /// The newest log sequence number.
    pub lsn: AtomicU64,
    pub tombstones: PublishedTombstones,
    pub purge_rate: PurgeRate,
    pub dirty_keys: Arc<DirtyKeys>,
    pub schedule: Schedule,
    /// Request units that users consumed and that the purge may spend.
    pub meter: RwLock<SharedMeter>,
}

impl Shared {
    pub fn new(meter: SharedMeter, wakeup: Arc<Wakeup>) -> Shared {
        Shared {
            lsn: AtomicU64::new(0),
            tombstones: PublishedTombstones::default(),
            purge_rate: PurgeRate::default(),
            dirty_keys: Arc::default(),
            schedule: Schedule::new(wakeup),
            meter: RwLock::new(meter),
        }
    }

    /// Applies an [`AfterCommit`] after a commit at this second.
    pub fn committed(&self, after: &AfterCommit, now: UnixSeconds) {
        self.schedule.committed(after);
        self.spend(after, now);
    }

    /// Like [`Shared::committed`], for a commit whose outcome is unknown.
    pub fn perhaps_committed(&self, after: &AfterCommit, now: UnixSeconds) {
        self.schedule.perhaps_committed(after);
        self.spend(after, now);
    }

    fn spend(&self, after: &AfterCommit, now: UnixSeconds) {
        if after.purge_spent.0 > 0.0 {
            self.meter.read().lock().spend(now, after.purge_spent);
        }
    }
}
