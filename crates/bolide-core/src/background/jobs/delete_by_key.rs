//! Removes the items of deleted logical partitions (see `crate::partition::tombstones`): a step has about the size of a purge's step, runs in the
//! same way, and is paced by the same budget. Its events are deletes by a client, and the statistics of expiry do not count them.

use std::sync::Arc;
use std::time::Instant;

use bolide_model::Result;
use bolide_storage::{Key, Scan, Space};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, OptionFuture};

use super::expire::{Budget, STEP_ITEMS};
use super::{PartitionContext, WaitForUsers};
use crate::background::job::{End, Job, JobKind, JobStep, PurgeMode, StepLimits, StepReport};
use crate::container::ContainerState;
use crate::format::keys;
use crate::format::record::Record;
use crate::items::remove_deleted;
use crate::partition::Partition;
use crate::partition::state::PartitionState;
use crate::partition::tombstones::PartitionKeyTombstone;
use crate::partition::visibility::StoredVersion;
use crate::partition::write_batch::{Decision, WriteBatch};

/// Maximum number of bytes scanned in one step.
const SCAN_BYTES: usize = 512 * 1024;

/// Removes the items of deleted logical partitions; see the module.
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
        let remove = async move |state, partition: Arc<Partition>| {
            if !partition.has_tombstones() {
                return Ok(JobStep::new(0, End::Drained));
            }
            let wait = self.0.wait_for_users(limits);
            run(state, partition, limits.mode, wait).await
        };
        self.0.step(remove).boxed()
    }
}

/// Runs one step in the partition's worker. `purged` counts the items removed.
async fn run(
    state: Arc<ContainerState>,
    partition: Arc<Partition>,
    mode: PurgeMode,
    wait: WaitForUsers,
) -> Result<JobStep> {
    let WaitForUsers { patience, mut begin } = wait;
    let mut budget = Budget::observer(mode, partition.clone());
    let prepare = patience
        .is_some()
        .then(|| partition.prepare(|batch, now| decide(batch, &state, (None, budget(now)))));
    let prepared = OptionFuture::from(prepare).await.flatten();
    let observe = move |now| (Some(begin()), budget(now));
    let decide =
        move |batch: &mut WriteBatch<'_>, observed: &(Option<Instant>, Budget)| decide(batch, &state, *observed);
    partition
        .background_beside_users((patience, prepared), observe, decide)
        .await
}

fn decide(
    batch: &mut WriteBatch<'_>,
    state: &ContainerState,
    (began, mut budget): (Option<Instant>, Budget),
) -> Decision<JobStep> {
    let mut step = JobStep {
        began,
        ..JobStep::new(0, End::Drained)
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
        // Only a commit stores the cursor.
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

/// Calls `visit` for each item of deleted logical partitions that is still stored.
pub(crate) async fn for_each_hidden(
    partition: &Partition,
    counted: &PartitionState,
    mut visit: impl FnMut(&Record),
) -> Result<()> {
    for (at, dropped) in counted.tombstones.iter().enumerate() {
        // A key may be deleted again before its first deletion is finished: an item belongs to the first deletion that hides it.
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
