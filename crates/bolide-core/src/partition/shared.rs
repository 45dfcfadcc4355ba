//! State that a partition's worker shares with its handle: published positions, counters, and the effects of commits outside of the partition.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bolide_model::UnixSeconds;
use parking_lot::RwLock;

use super::Signals;
use super::after_commit::AfterCommit;
use super::commit_times::CommitTimes;
use super::dirty_keys::DirtyKeys;
use super::edition::SettingsNumber;
use super::endings::Endings;
use super::heard::{Conflicts, Heard};
use super::lost_history::LostHistory;
use super::purge_rate::PurgeRate;
use super::ranked_texts::RankedTexts;
use super::recent_writes::Interest;
use super::rivals::Rivals;
use super::schedule::Schedule;
use super::state::PartitionState;
use super::statistics::PublishedStatistics;
use super::tombstones::PublishedTombstones;
use crate::throughput::SharedMeter;

/// See the module.
pub(crate) struct Shared {
    /// The newest log sequence number.
    pub lsn: AtomicU64,
    /// Number of items that are stored at that number, ghosts included.
    pub stored_items: AtomicU64,
    /// The count of deletions by partition key to which `tombstones` belong.
    pub deletions: AtomicU64,
    pub tombstones: PublishedTombstones,
    pub purge_rate: PurgeRate,
    pub dirty_keys: Arc<DirtyKeys>,
    /// Held while it matters which keys are written.
    pub interest: Interest,
    pub schedule: Schedule,
    pub statistics: PublishedStatistics,
    /// Request units that users consumed and that the purge may spend.
    pub meter: RwLock<SharedMeter>,
    /// Writes the ends of documents into the history, by settings of this number.
    pub endings: RwLock<Option<(SettingsNumber, Arc<dyn Endings>)>>,
    /// The order of the commits of all partitions.
    pub times: Arc<CommitTimes>,
    /// Lists of full-text indexes that are kept in memory.
    pub ranked: Arc<RankedTexts>,
    pub heard: Arc<Heard>,
    pub conflicts: Arc<Conflicts>,
    pub lost: Arc<LostHistory>,
    waits_out: Arc<AtomicBool>,
    /// Whether other servers write the partition at the same time.
    pub rivals: Rivals,
}

impl Shared {
    pub fn new(meter: SharedMeter, signals: Signals) -> Shared {
        let Signals {
            wakeup,
            times,
            list_memory,
            heard,
            conflicts,
            lost,
            waits_out,
        } = signals;
        Shared {
            lsn: AtomicU64::new(0),
            deletions: AtomicU64::new(0),
            stored_items: AtomicU64::new(0),
            tombstones: PublishedTombstones::default(),
            purge_rate: PurgeRate::default(),
            dirty_keys: Arc::default(),
            interest: Interest::default(),
            schedule: Schedule::new(wakeup),
            statistics: PublishedStatistics::default(),
            meter: RwLock::new(meter),
            endings: RwLock::new(None),
            times,
            ranked: RankedTexts::new(list_memory),
            heard,
            conflicts,
            lost,
            waits_out,
            rivals: Rivals::default(),
        }
    }

    /// Returns whether writes wait until a version has ended that is about to.
    pub fn waits_out(&self) -> bool {
        self.waits_out.load(Ordering::Relaxed)
    }

    /// Publishes the statistics of the partition's state after a commit at this second, and applies its [`AfterCommit`].
    pub fn committed(&self, after: &AfterCommit, now: UnixSeconds, state: &PartitionState) {
        // Published before the schedule changes: the schedule must not say that all ghosts are counted while older statistics are visible.
        self.statistics.publish(state);
        self.schedule.committed(after);
        self.spend(after, now);
    }

    /// Like [`Shared::committed`], for a commit whose outcome is unknown.
    pub fn perhaps_committed(&self, after: &AfterCommit, now: UnixSeconds) {
        self.schedule.perhaps_committed(after);
        // Counting is due now: its scans return the current head, so the worker learns whether the commit succeeded.
        self.schedule.expect_count(i64::MIN);
        self.spend(after, now);
    }

    fn spend(&self, after: &AfterCommit, now: UnixSeconds) {
        if after.purge_spent.0 > 0.0 {
            self.meter.read().lock().spend(now, after.purge_spent);
        }
    }
}
