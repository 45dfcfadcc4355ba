//! Removing the items of deleted logical partitions (see `crate::partition::tombstones`): a step is as large as one of the purge, goes the same
//! way, and is paced by the same budget. Its events are deletes by a client, and the figures of expiry leave it out.

use std::sync::Arc;

use bolide_model::Result;
use bolide_storage::{Key, Scan, Space};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::PartitionContext;
use super::expire::{Budget, STEP_ITEMS};
use crate::background::job::{End, Job, JobKind, JobStep, PurgeMode, StepLimits, StepReport};
use crate::container::ContainerState;
use crate::format::keys;
use crate::format::record::Record;
use crate::items::remove_deleted;
use crate::partition::Partition;
use crate::partition::state::{Amount, PartitionState};
use crate::partition::tombstones::PartitionKeyTombstone;
use crate::partition::visibility::StoredVersion;
use crate::partition::write_batch::{Decision, WriteBatch};
use bolide_model::ttl::Horizon;

/// Bytes looked at in one step.
const SCAN_BYTES: usize = 512 * 1024;

/// See the module.
pub(in crate::background) struct DeleteByKey(PartitionContext);

impl DeleteByKey {
    pub fn new(context: PartitionContext) -> DeleteByKey {
        DeleteByKey(context)
    }
}

impl Job for DeleteByKey {
    fn kind(&self) -> JobKind {
        JobKind::DeleteByKey
    }

    fn next_due(&self) -> i64 {
        if self.0.partition.has_tombstones() {
            i64::MIN
        } else {
            i64::MAX
        }
    }

    fn step(&self, limits: StepLimits) -> BoxFuture<'_, Result<StepReport>> {
        let remove = async move |state| {
            if !self.0.partition.has_tombstones() {
                let end = End::Drained;
                return Ok(JobStep { purged: 0, end });
            }
            run(state, self.0.partition.clone(), limits.mode).await
        };
        self.0.step(remove).boxed()
    }
}

/// Runs one step in the partition's worker. `purged` counts the items removed.
async fn run(state: Arc<ContainerState>, partition: Arc<Partition>, mode: PurgeMode) -> Result<JobStep> {
    let observe = Budget::observer(mode, partition.clone());
    let decide = move |batch: &mut WriteBatch<'_>, budget: &Budget| decide(batch, &state, *budget);
    partition.background_observing(observe, decide).await
}

fn decide(batch: &mut WriteBatch<'_>, state: &ContainerState, mut budget: Budget) -> Decision<JobStep> {
    let mut step = JobStep {
        purged: 0,
        end: End::Drained,
    };
    let Some(dropped) = batch.state.tombstones.first_mut().cloned() else {
        return Ok(step);
    };
    let page = batch.scan_raw(&[scan(&dropped)])?.pop().unwrap_or_default();
    let mut from = dropped.from.clone();
    for (key, value) in page.rows {
        if budget.is_exhausted() {
            step.end = End::Exhausted;
            break;
        }
        from = keys::after(&key);
        let record = Record::decode(value)?;
        if dropped.hides(&key, &record) {
            let position = batch.next_version();
            let version = StoredVersion {
                key: Key::new(Space::Item, key),
                record,
            };
            budget.spend(remove_deleted(batch, state, position, &version));
            step.purged += 1;
        }
    }
    if step.end == End::Drained && !page.more {
        batch.state.tombstones.remove_first();
    } else if let Some(first) = batch.state.tombstones.first_mut() {
        first.from = from;
    }
    if step.purged == 0 && step.end == End::Drained {
        // Only a commit keeps how far this came.
        batch.next_lsn();
    }
    if step.end == End::Drained && !batch.state.tombstones.is_empty() {
        step.end = End::Unfinished;
    }
    Ok(step)
}

fn scan(dropped: &PartitionKeyTombstone) -> Scan {
    Scan {
        space: Space::Item,
        from: dropped.from.clone(),
        to: keys::after_prefix(&dropped.epk),
        reverse: false,
        max_rows: STEP_ITEMS as usize,
        max_bytes: SCAN_BYTES,
        keys_only: false,
    }
}

/// What is still stored of deleted logical partitions. It is neither live nor a ghost: it ended by its deletion.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hidden {
    /// What would be live.
    pub live: Amount,
    /// What would be ghosts, and is counted by what counts those.
    pub expired: Amount,
}

/// See [`Hidden`].
pub(crate) async fn hidden(partition: &Partition, counted: &PartitionState, horizon: Horizon) -> Result<Hidden> {
    let mut hidden = Hidden::default();
    for_each_hidden(partition, counted, |record| {
        let is_live = record.stamp().is_live(horizon);
        if is_live { &mut hidden.live } else { &mut hidden.expired }.add(record.size());
    })
    .await?;
    Ok(hidden)
}

/// Visits what is still stored of deleted logical partitions.
pub(crate) async fn for_each_hidden(
    partition: &Partition,
    counted: &PartitionState,
    mut visit: impl FnMut(&Record),
) -> Result<()> {
    for (at, dropped) in counted.tombstones.iter().enumerate() {
        // A key may have been deleted again before the first deletion is through: an item belongs to the first that hides it.
        let is_taken = |key: &[u8], record: &Record| {
            counted
                .tombstones
                .iter()
                .take(at)
                .any(|earlier| earlier.hides(key, record))
        };
        let mut scan = scan(dropped);
        loop {
            let request = bolide_storage::ReadRequest {
                scans: vec![scan.clone()],
                ..bolide_storage::ReadRequest::default()
            };
            let page = partition.read_raw(request).await?.pages.pop().unwrap_or_default();
            for (key, value) in &page.rows {
                let record = Record::decode(value.clone())?;
                if dropped.hides(key, &record) && !is_taken(key, &record) {
                    visit(&record);
                }
                scan.from = keys::after(key);
            }
            if !page.more {
                break;
            }
        }
    }
    Ok(())
}
