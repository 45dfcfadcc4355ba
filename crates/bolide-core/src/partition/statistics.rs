//! Statistics of a partition in memory: each commit publishes them beside the counters that it writes. Metrics read them without a request to the
//! worker or the engine.

use bolide_model::RequestUnits;
use bolide_model::ttl::{Deadline, Stamp};
use parking_lot::Mutex;

use super::state::{Amount, PartitionState};

/// Statistics of the items of a partition and of its purge.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Statistics {
    /// Stored items, without the counted ghosts and the counted items that were deleted with their partition key.
    pub live: Amount,
    /// Ghosts counted so far: items that are expired and not purged yet.
    pub ghosts: Amount,
    /// Items counted so far that were deleted with their partition key, and are not purged yet.
    pub hidden: Amount,
    /// Stamp of the first ghost in each core queue.
    pub oldest: [Option<Stamp>; 2],
    /// Dates of the first ghost in the queue of each date rule.
    pub oldest_dates: Vec<Deadline>,
    /// Ghosts removed since the partition's creation.
    pub purged_total: u64,
    /// Request units spent on removing them.
    pub spent_total: RequestUnits,
    /// The part of them that was billed.
    pub billed_total: RequestUnits,
    /// Whether all counts are complete, so that only items that expire later remain to be counted.
    pub is_settled: bool,
}

impl Statistics {
    pub fn of(state: &PartitionState) -> Statistics {
        let (ghosts, hidden) = (state.ghosts.amount(), state.tombstones.hidden());
        Statistics {
            live: state.stored.without(ghosts).without(hidden),
            ghosts,
            hidden,
            oldest: state.ghosts.oldest(),
            oldest_dates: state.ghosts.oldest_dates().collect(),
            purged_total: state.purged_total,
            spent_total: state.spent_total,
            billed_total: state.billed_total,
            is_settled: state.is_settled(),
        }
    }
}

/// The statistics of the newest commit. The partition's worker writes them once per commit.
#[derive(Debug, Default)]
pub(crate) struct PublishedStatistics(Mutex<Option<Statistics>>);

impl PublishedStatistics {
    /// Publishes the statistics of a state. Keeps the previous ones if the ghosts have not been counted since the state was read.
    pub fn publish(&self, state: &PartitionState) {
        if state.ghosts.are_counted() {
            *self.0.lock() = Some(Statistics::of(state));
        }
    }

    /// Returns the number of items that the newest published statistics count as ghosts or hidden.
    pub fn backlog(&self) -> u64 {
        let newest = self.0.lock();
        newest
            .as_ref()
            .map_or(0, |newest| newest.ghosts.with(newest.hidden).items)
    }

    /// Returns the newest published statistics; `None` until the ghosts were counted for the first time.
    pub fn newest(&self) -> Option<Statistics> {
        self.0.lock().clone()
    }
}
