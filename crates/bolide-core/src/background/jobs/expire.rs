//! The purge of ghosts: each step is a transaction that removes the due items at the heads of the queues: that of the log, that of items with a ttl of
//! their own, and one for each date rule ([`dates`]).

mod dates;

use std::sync::Arc;
use std::time::Instant;

use bolide_model::ttl::{Horizon, Policy};
use bolide_model::{RequestUnits, Result, UnixMillis};
use bolide_storage::{Key, Page, Space};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, OptionFuture};

use super::{PartitionContext, WaitForUsers};
use crate::background::fault::PurgeFault;
use crate::background::job::{End, Job, JobKind, JobStep, PurgeMode, StepLimits, StepReport};
use crate::container::ContainerState;
use crate::format::keys::{DeadlinePosition, ExpiryPosition, LogPosition};
use crate::format::queues;
use crate::format::record::Record;
use crate::items::remove_ghost;
use crate::partition::Partition;
use crate::partition::date_cursors::DateCursors;
use crate::partition::state::{Cursors, PartitionState};
use crate::partition::visibility::StoredVersion;
use crate::partition::write_batch::{Decision, WriteBatch};

/// Maximum number of items of one step. A larger step would delay the users' writes in the same write batch.
pub(super) const STEP_ITEMS: u64 = 100;
/// Maximum number of items of one step if several containers spend one budget, so that each gets a part of it (TTL-264).
const SHARED_STEP_ITEMS: u64 = 10;
/// Number of log rows read in addition to the items that a step may remove: entries with an own ttl are skipped, and there may be many.
const STEPPED_OVER: usize = 50;
/// Maximum number of bytes of each queue scanned in one step.
const SCAN_BYTES: usize = 256 * 1024;

/// The queues that every container has.
const CORE_QUEUES: usize = 2;

/// Maximum size of the items that one step removes, in bytes: the step reads them.
const STEP_BYTES: usize = 4 * 1024 * 1024;

/// Removes ghosts; see the module.
pub(in crate::background) struct Expire {
    context: PartitionContext,
    fault: Arc<PurgeFault>,
}

impl Expire {
    pub fn new(context: PartitionContext, fault: Arc<PurgeFault>) -> Expire {
        Expire { context, fault }
    }

    fn limits(&self, state: &ContainerState, limits: StepLimits) -> StepLimits {
        let step_items = match state.shared_meter() {
            Some(_) => SHARED_STEP_ITEMS,
            None => STEP_ITEMS,
        };
        let until_fault = self.fault.items_left().unwrap_or(u64::MAX);
        StepLimits {
            items: limits.items.min(step_items).min(until_fault).max(1),
            ..limits
        }
    }
}

impl Job for Expire {
    fn kind(&self) -> JobKind {
        JobKind::Expire
    }

    fn next_due(&self) -> i64 {
        self.context.partition.next_expiry()
    }

    fn step(&self, limits: StepLimits) -> BoxFuture<'_, Result<StepReport>> {
        let purge = async move |state: Arc<ContainerState>, partition| {
            let limits = self.limits(&state, limits);
            let wait = self.context.wait_for_users(limits);
            let step = run(&self.context, state, partition, limits, wait).await?;
            self.fault.purged(step.purged);
            Ok(step)
        };
        self.context.step(purge).boxed()
    }
}

/// The due entries of one queue, and the position after them.
struct QueueHead {
    due: Vec<DueEntry>,
    /// Whether the queue was read to its first entry that is not due, or to its end.
    is_complete: bool,
    /// The second at which the first entry that is not due will be due, if it is known.
    next_end: Option<i64>,
    /// The position after everything that was skipped or is gone: without it, each step would read over the deleted rows of all earlier steps. `None` if
    /// nothing was read.
    resume: Option<Position>,
}

/// An entry that is due: the item's key, the version that it was queued for, and the position after it.
struct DueEntry {
    item_key: Bytes,
    size: usize,
    version: LogPosition,
    after: Position,
}

/// A position in one of the queues.
#[derive(Debug, Clone, Copy)]
enum Position {
    Own(ExpiryPosition),
    Log(LogPosition),
    Date(DeadlinePosition),
}

/// The positions in all queues up to which a step has come.
struct Progress {
    cursors: Cursors,
    dates: DateCursors,
}

/// Runs one step in the partition's worker.
async fn run(
    context: &PartitionContext,
    state: Arc<ContainerState>,
    partition: Arc<Partition>,
    limits: StepLimits,
    wait: WaitForUsers,
) -> Result<JobStep> {
    let WaitForUsers { patience, mut begin } = wait;
    let mut observe = {
        let (context, mut budget) = (context.clone(), Budget::observer(limits.mode, partition.clone()));
        move |now, began| Observed {
            began,
            judged: context.judged(now),
            budget: budget(now),
        }
    };
    let decider = Decider { state, limits };
    let prepare = patience
        .is_some()
        .then(|| partition.prepare(|batch, now| decider.decide(batch, &observe(now, None))));
    let prepared = OptionFuture::from(prepare).await.flatten();
    let observe = move |now| observe(now, Some(begin()));
    let decide = move |batch: &mut WriteBatch<'_>, observed: &Observed| decider.decide(batch, observed);
    partition
        .background_beside_users((patience, prepared), observe, decide)
        .await
}

/// The inputs of a step that are not rows of the partition.
struct Observed {
    /// When the worker took the step up; `None` before.
    began: Option<Instant>,
    /// The time at which an item must have expired to be a ghost.
    judged: UnixMillis,
    budget: Budget,
}

struct Decider {
    state: Arc<ContainerState>,
    limits: StepLimits,
}

impl Decider {
    fn decide(&self, batch: &mut WriteBatch<'_>, observed: &Observed) -> Decision<JobStep> {
        let Observed {
            began,
            judged,
            mut budget,
        } = *observed;
        let horizon = self.state.settings.horizon(judged);
        let queues = self.queues(batch, &horizon)?;
        let candidates = in_turn(&queues, batch.state.purge_turn, self.limits.items);
        let keys: Vec<Key> = candidates
            .iter()
            .map(|due| Key::new(Space::Item, due.item_key.clone()))
            .collect();
        batch.get_all_raw(&keys)?;

        let mut purged = 0;
        let mut progress = Progress::of(&batch.state);
        let mut exhausted = false;
        for (due, key) in candidates.iter().zip(keys) {
            if budget.is_exhausted() {
                exhausted = true;
                break;
            }
            progress.pass(due.after);
            // Looked up again: a document may be due in several queues, and be removed already.
            let Some(record) = batch.get_raw(&key)?.map(Record::decode).transpose()? else {
                continue;
            };
            // TTL-268: an entry of another version is only skipped; the commit that replaced the version has deleted it.
            if record.version() != due.version || record.is_live(&horizon) {
                continue;
            }
            let (position, before) = (batch.next_version(), batch.state.purged_total);
            budget.spend(remove_ghost(
                batch,
                &self.state,
                position,
                &StoredVersion { key, record },
            ));
            purged += batch.state.purged_total - before;
        }
        let due: usize = queues.iter().map(|queue| queue.due.len()).sum();
        let drained = !exhausted && candidates.len() == due;
        if queues.len() > CORE_QUEUES {
            batch.state.purge_turn = (batch.state.purge_turn + candidates.len()) % queues.len();
        }
        let (is_complete, rests) = advance(batch, progress, &queues, drained, judged);
        let end = match () {
            () if exhausted => End::Exhausted,
            () if !is_complete => End::Unfinished,
            () if rests => End::Drained,
            () => End::Read,
        };
        Ok(JobStep { purged, end, began })
    }

    /// Returns the due entries at the heads of all queues.
    fn queues(&self, batch: &mut WriteBatch<'_>, horizon: &Horizon) -> Decision<Vec<QueueHead>> {
        let items = usize::try_from(self.limits.items).unwrap_or(usize::MAX);
        let from = batch.state.purge;
        let scans = [
            queues::scan(from.expiry, None, items.saturating_add(1), SCAN_BYTES),
            queues::scan(from.log, None, items.saturating_add(STEPPED_OVER), SCAN_BYTES),
        ];
        let pages = batch.scan_raw(&scans);
        let rules = &self.state.settings.dates;
        let dates = dates::read(batch, rules, items)?;
        let pages = pages?;
        let policy = self.state.settings.policy;
        let mut heads = Vec::with_capacity(CORE_QUEUES + dates.len());
        heads.push(QueueHead::of(&pages[0], horizon, policy, Position::Own)?);
        heads.push(QueueHead::of(&pages[1], horizon, policy, Position::Log)?);
        for page in &dates {
            heads.push(QueueHead::of_dates(page, horizon, rules)?);
        }
        Ok(heads)
    }
}

/// Moves the purge's cursors: to the end of what was read if that is `drained`. Returns whether nothing more is due at `judged`, and whether nothing is at
/// the time of the batch.
fn advance(
    batch: &mut WriteBatch<'_>,
    mut progress: Progress,
    queues: &[QueueHead],
    drained: bool,
    judged: UnixMillis,
) -> (bool, bool) {
    let passed = queues.iter().filter(|queue| drained || queue.due.is_empty());
    for position in passed.filter_map(|queue| queue.resume) {
        progress.pass(position);
    }
    let is_complete = drained && queues.iter().all(|queue| queue.is_complete);
    let next_end = next_end(queues);
    let rests = is_complete && (judged == batch.now || next_end > batch.now.seconds().0);
    if rests {
        batch.after.rest_expiry_until(next_end);
        batch.state.ghosts.all_removed(progress.cursors, &progress.dates);
        batch.after.rest_count_until(next_end);
    }
    batch.state.purge = progress.cursors;
    batch.state.date_purge = progress.dates;
    (is_complete, rests)
}

impl QueueHead {
    /// Returns the due entries of a page.
    fn of<P: queues::Queue>(
        page: &Page,
        horizon: &Horizon,
        policy: Policy,
        position: fn(P) -> Position,
    ) -> Result<QueueHead> {
        let mut queue = QueueHead::empty();
        for entry in queues::entries::<P>(page) {
            let entry = entry?;
            let after = position(entry.position.next());
            if !entry.belongs() {
                queue.resume = Some(after);
                continue;
            }
            if entry.stamp.base.0 > P::threshold(horizon) {
                let resume = position(P::before_rest(&entry, horizon));
                return Ok(queue.ends_before(resume, entry.stamp.ends_at(policy)));
            }
            queue.take(entry.item_key, entry.size, entry.version, after);
        }
        queue.is_complete = !page.more;
        Ok(queue)
    }

    fn empty() -> QueueHead {
        QueueHead {
            due: Vec::new(),
            is_complete: false,
            next_end: None,
            resume: None,
        }
    }

    fn take(&mut self, item_key: Bytes, size: usize, version: LogPosition, after: Position) {
        self.due.push(DueEntry {
            item_key,
            size,
            version,
            after,
        });
        self.resume = Some(after);
    }

    fn ends_before(mut self, resume: Position, next_end: Option<i64>) -> QueueHead {
        self.is_complete = true;
        self.resume = Some(resume);
        self.next_end = next_end;
        self
    }
}

impl Progress {
    fn of(state: &PartitionState) -> Progress {
        Progress {
            cursors: state.purge,
            dates: state.date_purge.clone(),
        }
    }

    fn pass(&mut self, position: Position) {
        match position {
            Position::Own(position) => self.cursors.expiry = self.cursors.expiry.max(position),
            Position::Log(position) => self.cursors.log = self.cursors.log.max(position),
            Position::Date(position) => self.dates.raise(position),
        }
    }
}

/// The budget of one step. A step may remove another item while there is credit left; the last item may overdraw it (TTL-259).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    /// Request units; `None` without a limit.
    credit: Option<f64>,
}

impl Budget {
    /// Returns a function that reads what a step may spend in a partition at a given time.
    pub fn observer(mode: PurgeMode, partition: Arc<Partition>) -> impl FnMut(UnixMillis) -> Budget + Send + 'static {
        move |now| Budget {
            credit: match mode {
                PurgeMode::Force => None,
                PurgeMode::Paced => partition.meter().lock().credit(now.seconds()),
            },
        }
    }

    pub fn is_exhausted(&self) -> bool {
        self.credit.is_some_and(|credit| credit <= 0.0)
    }

    pub fn spend(&mut self, cost: RequestUnits) {
        if let Some(credit) = &mut self.credit {
            *credit -= cost.0;
        }
    }
}

/// Takes the due entries of all queues in turn, so that none starves (TTL-266), at most `max`, and up to the one that reaches [`STEP_BYTES`]. Begins
/// with the queue at index `first`.
fn in_turn(queues: &[QueueHead], first: usize, max: u64) -> Vec<&DueEntry> {
    let mut left: Vec<_> = queues.iter().map(|queue| queue.due.iter()).collect();
    let first = first % left.len().max(1);
    left.rotate_left(first);
    let mut taken = Vec::new();
    let mut bytes = 0;
    let mut is_empty = false;
    while !is_empty {
        is_empty = true;
        for queue in &mut left {
            if taken.len() as u64 >= max || bytes >= STEP_BYTES {
                return taken;
            }
            if let Some(due) = queue.next() {
                is_empty = false;
                bytes += due.size;
                taken.push(due);
            }
        }
    }
    taken
}

fn next_end(queues: &[QueueHead]) -> i64 {
    let ends = queues.iter().filter_map(|queue| queue.next_end);
    ends.min().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
