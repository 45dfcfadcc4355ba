//! What the worker of a partition and everybody else share: where it stands, and what commits have to do with the rest of the server.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bolide_model::UnixSeconds;
use parking_lot::RwLock;

use super::Wakeup;
use super::after_commit::AfterCommit;
use super::dirty_keys::DirtyKeys;
use super::purge_rate::PurgeRate;
use super::schedule::Schedule;
use super::state::PartitionState;
use super::statistics::PublishedStatistics;
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
    pub statistics: PublishedStatistics,
    /// What users consumed, and what the purge may spend.
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
            statistics: PublishedStatistics::default(),
            meter: RwLock::new(meter),
        }
    }

    /// Does what is to be done after a commit of this second that left the partition in this state.
    pub fn committed(&self, after: &AfterCommit, now: UnixSeconds, state: &PartitionState) {
        // Before the schedule says that all is counted.
        self.statistics.publish(state);
        self.schedule.committed(after);
        self.spend(after, now);
    }

    /// As [`Shared::committed`], for a commit whose outcome is unknown.
    pub fn perhaps_committed(&self, after: &AfterCommit, now: UnixSeconds) {
        self.schedule.perhaps_committed(after);
        // Who counts finds out where the partition stands.
        self.schedule.expect_count(i64::MIN);
        self.spend(after, now);
    }

    fn spend(&self, after: &AfterCommit, now: UnixSeconds) {
        if after.purge_spent.0 > 0.0 {
            self.meter.read().lock().spend(now, after.purge_spent);
        }
    }
}
