//! The figures of a partition in memory: what its newest commit left, beside the counters that it wrote. Whoever watches reads them without
//! asking the worker or the engine.

use bolide_model::RequestUnits;
use bolide_model::ttl::Stamp;
use parking_lot::Mutex;

use super::state::{Amount, PartitionState};

/// What a partition holds and has purged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Statistics {
    /// What is stored, without what has expired or was deleted with its partition key, as far as that is counted.
    pub live: Amount,
    /// What has expired and is not purged yet.
    pub ghosts: Amount,
    /// The first of these in each expiry queue.
    pub oldest: [Option<Stamp>; 2],
    /// Ghosts removed since the partition's creation.
    pub purged_total: u64,
    /// Request units spent on that.
    pub spent_total: RequestUnits,
    /// Of these, units that were billed.
    pub billed_total: RequestUnits,
    /// Nothing is left to be counted but what expires from now on.
    pub is_settled: bool,
}

impl Statistics {
    pub fn of(state: &PartitionState) -> Statistics {
        let ghosts = state.ghosts.amount();
        Statistics {
            live: state.stored.without(ghosts).without(state.tombstones.hidden()),
            ghosts,
            oldest: state.ghosts.oldest(),
            purged_total: state.purged_total,
            spent_total: state.spent_total,
            billed_total: state.billed_total,
            is_settled: state.is_settled(),
        }
    }
}

/// The statistics of the newest commit. The worker writes them, once for each commit.
#[derive(Debug, Default)]
pub(crate) struct PublishedStatistics(Mutex<Option<Statistics>>);

impl PublishedStatistics {
    /// Shows what a commit left. What was shown before stays where ghosts were never counted since the state was read.
    pub fn publish(&self, state: &PartitionState) {
        if state.ghosts.are_counted() {
            *self.0.lock() = Some(Statistics::of(state));
        }
    }

    /// `None` until ghosts were counted for the first time.
    pub fn newest(&self) -> Option<Statistics> {
        *self.0.lock()
    }
}
