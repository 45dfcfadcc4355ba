//! The purge: removes ghosts, so that their space comes back.
//!
//! Reads are exact without it (see `bolide_model::ttl`): it is an ordinary client of the partition's worker, in small steps.
//!
//! ```text
//!   own line     expiry queue, by (_ts + ttl, lsn)          due while base <= X(T)
//!   log line     the log from the cursor, by (_ts, lsn)     due while _ts <= W(T); entries with an own ttl are stepped over
//! ```
//!
//! Each line is sorted by what it is compared with, so its first entry that is not due ends it: no scan over items. The cursor only
//! moves forward, since an item that was stepped over becomes one without an own ttl only by a write, which gives it a new
//! place at the end of the log. A settings change needs nothing but new horizons (TTL-234).
//!
//! Steps hold at most [`STEP_ITEMS`] items and share a round with users' writes (TTL-265); they are paced by the units users left
//! over (TTL-259). Out of scope: reclaiming bytes on disk, which is each engine's business.

pub(crate) mod jobs;
mod scheduler;

use std::collections::BTreeSet;
use std::sync::Arc;

use bolide_model::{ErrorKind, Result};

use jobs::delete_by_key as drops;
use jobs::expire::{self as step, End, Step, StepLimits};
pub(crate) use scheduler::{Keeper, Pace};

use crate::account::Account;
use crate::change_log as history;
use crate::container::{Container, Visit};
use crate::partition::Partition;

/// Most items of one step: a larger one would hold up the users' writes of its round.
const STEP_ITEMS: u64 = 100;

/// Most items of one step where several containers spend one budget: each is to get its turn (TTL-264).
const SHARED_STEP_ITEMS: u64 = 10;

/// Whether a purge keeps to its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurgeMode {
    /// All that is due, whatever it costs.
    Force,
    /// No more than users left over.
    Paced,
}

impl Account {
    /// Purges a container now, at most `max` items. Returns how many were removed.
    ///
    /// # Errors
    /// From the engine; what was removed before stays removed.
    pub async fn purge(&self, container: &Arc<Container>, mode: PurgeMode, max: Option<u64>) -> Result<u64> {
        let (mut purged, mut done) = (0, BTreeSet::new());
        // After a split of what is being purged its children come next.
        let next = |done: &BTreeSet<u32>| {
            let state = container.state();
            let mut partitions = state.layout.partitions.iter();
            partitions.find(|partition| !done.contains(&partition.range)).cloned()
        };
        while let Some(partition) = next(&done) {
            match self
                .purge_partition(container, &partition, mode, max, &mut purged)
                .await
            {
                Ok(()) if max.is_some_and(|max| purged >= max) => return Ok(purged),
                Ok(()) => {
                    done.insert(partition.range);
                }
                Err(error) if error.kind == ErrorKind::RangeGone => {}
                Err(error) => return Err(error),
            }
        }
        Ok(purged)
    }

    /// Purges a partition, and adds to `purged` as it goes. Does nothing more once that is `max`.
    ///
    /// # Errors
    /// `RangeGone` if the partition was split; otherwise from the engine.
    async fn purge_partition(
        &self,
        container: &Arc<Container>,
        partition: &Arc<Partition>,
        mode: PurgeMode,
        max: Option<u64>,
        purged: &mut u64,
    ) -> Result<()> {
        loop {
            let left = max.map_or(u64::MAX, |max| max - *purged);
            if left == 0 {
                return Ok(());
            }
            // A visit a step: a change of settings waits for one step, not for the whole backlog.
            let visit = visit_of(container, partition).await?;
            let step = self.purge_step(container, &visit, partition, mode, left).await?;
            *purged += step.purged;
            if step.end != End::Unfinished {
                break;
            }
        }
        // What was deleted with its partition key, as far as the budget goes.
        while partition.has_tombstones() {
            let visit = visit_of(container, partition).await?;
            let step = drops::run(visit.state.clone(), partition.clone(), mode).await?;
            if step.end != End::Unfinished {
                break;
            }
        }
        self.trim_history(container, partition).await
    }

    /// Takes out of a partition's history what is over its retention.
    pub(crate) async fn trim_history(&self, container: &Arc<Container>, partition: &Arc<Partition>) -> Result<()> {
        loop {
            // A visit a step, as above.
            let visit = visit_of(container, partition).await?;
            if history::trim::step(&visit.state, partition).await? {
                return Ok(());
            }
        }
    }

    /// One step of the purge in one partition.
    pub(crate) async fn purge_step(
        &self,
        container: &Arc<Container>,
        visit: &Visit<'_>,
        partition: &Arc<Partition>,
        mode: PurgeMode,
        most: u64,
    ) -> Result<Step> {
        let items = most
            .min(if visit.state.shared_meter().is_some() {
                SHARED_STEP_ITEMS
            } else {
                STEP_ITEMS
            })
            .min(self.purge_fault().items_left().unwrap_or(u64::MAX))
            .max(1);
        let limits = StepLimits { items, mode };
        let step = step::run(container.clone(), visit.state.clone(), partition.clone(), limits).await?;
        self.purge_fault().purged(step.purged);
        Ok(step)
    }
}

/// Enters a container to work on a partition, which must still be there.
///
/// # Errors
/// `RangeGone` if it was split; `NotFound` if the container was deleted.
async fn visit_of<'a>(container: &'a Container, partition: &Partition) -> Result<Visit<'a>> {
    let visit = container.enter().await?;
    visit.state.layout.partition_with_id(partition.range)?;
    Ok(visit)
}
