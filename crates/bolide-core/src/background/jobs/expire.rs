//! The purge of ghosts: each step is a transaction that removes what is due at the heads of the two lines.

use std::sync::Arc;

use bolide_model::ttl::{Class, Horizon};
use bolide_model::{ErrorKind, RequestUnits, Result, UnixSeconds};
use bolide_storage::{Key, Page, Scan, Space};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::PartitionContext;
use crate::background::fault::PurgeFault;
use crate::background::job::{End, Job, JobKind, PurgeMode, Step, StepLimits, StepReport};
use crate::container::{Container, ContainerState};
use crate::format::keys::{self, ExpiryPosition, LogPosition};
use crate::format::record::{ExpiryEntry, LogEntry, Record};
use crate::items::remove_ghost;
use crate::partition::Partition;
use crate::partition::round::{Round, Step as Decided};
use crate::partition::state::Cursors;

/// Most items of one step: a larger one would hold up the users' writes of its round.
pub(super) const STEP_ITEMS: u64 = 100;
/// Most items of one step where several containers spend one budget: each is to get its turn (TTL-264).
const SHARED_STEP_ITEMS: u64 = 10;
/// Rows of the log looked at beyond the items that a step may take: entries with an own ttl are stepped over, and there may be many.
const STEPPED_OVER: usize = 50;
/// Bytes looked at in one step.
const SCAN_BYTES: usize = 256 * 1024;

/// Bytes of items that one step removes: they are read for it.
const STEP_BYTES: usize = 4 * 1024 * 1024;

/// See the module.
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
        self.context.partition.next_due()
    }

    fn step(&self, limits: StepLimits) -> BoxFuture<'_, Result<StepReport>> {
        let purge = async move |state: Arc<ContainerState>| {
            let limits = self.limits(&state, limits);
            let (container, partition) = (self.context.container.clone(), self.context.partition.clone());
            let step = run(container, state, partition, limits).await?;
            self.fault.purged(step.purged);
            Ok(step)
        };
        self.context.step(purge).boxed()
    }
}

/// What a step found at the heads of the lines.
struct Lines {
    own: Line,
    log: Line,
}

/// The due entries of one line, and where it goes on.
struct Line {
    due: Vec<Due>,
    /// The line was read to its first entry that is not due, or to its end.
    is_complete: bool,
    /// The second at which the first entry that is not due will be, if that is known.
    next_end: Option<i64>,
    /// Behind everything that was stepped over.
    resume: Cursors,
}

/// An entry that is due: where the item is, which version it was queued for, and the cursors behind it.
struct Due {
    item_key: Bytes,
    size: usize,
    version: LogPosition,
    after: Cursors,
}

/// Runs one step in the partition's worker.
async fn run(
    container: Arc<Container>,
    state: Arc<ContainerState>,
    partition: Arc<Partition>,
    limits: StepLimits,
) -> Result<Step> {
    let decider = Decider {
        container,
        state,
        partition: partition.clone(),
        limits,
    };
    let attempt = Arc::new(Mutex::new(None));
    let noted = attempt.clone();
    let decided = partition
        .upkeep(move |round| {
            let decided = decider.decide(round);
            *noted.lock() = decided.as_ref().ok().map(|(_, spent, now)| (*spent, *now));
            decided
        })
        .await;
    if let Err(error) = &decided {
        // What was to be removed may still be there; or it is gone, and then it was spent.
        partition.expect_due(i64::MIN);
        if let (ErrorKind::Timeout, Some((spent, now))) = (&error.kind, *attempt.lock()) {
            partition.meter().lock().spend(now, spent);
        }
    }
    let (step, spent, now) = decided?;
    partition.meter().lock().spend(now, spent);
    Ok(step)
}

struct Decider {
    container: Arc<Container>,
    state: Arc<ContainerState>,
    partition: Arc<Partition>,
    limits: StepLimits,
}

impl Decider {
    fn decide(&self, round: &mut Round<'_>) -> Decided<(Step, RequestUnits, UnixSeconds)> {
        let now = round.seconds();
        // Requests that read in several steps must not lose what was live when they began.
        let judged = self.container.oldest_reader().map_or(now, |oldest| oldest.min(now));
        let horizon = self.state.settings.horizon(judged);
        let scans = [self.own_scan(round), self.log_scan(round)];
        let mut pages = round.scan_all(&scans)?;
        let log = self.log_line(round.state.purge, &pages.remove(1), horizon)?;
        let own = self.own_line(round.state.purge, &pages.remove(0), horizon)?;
        let lines = Lines { own, log };

        let candidates = in_turn(&lines, self.limits.items);
        let keys: Vec<Key> = candidates
            .iter()
            .map(|due| Key::new(Space::Item, due.item_key.clone()))
            .collect();
        let records = round.get_all(&keys)?;

        let mut budget = Budget::of(self.limits.mode, &self.partition, now);
        let mut purged = 0;
        let mut cursors = round.state.purge;
        let mut exhausted = false;
        for ((due, key), record) in candidates.iter().zip(&keys).zip(records) {
            if budget.is_exhausted() {
                exhausted = true;
                break;
            }
            cursors = cursors.max_of(due.after);
            let Some(record) = record.map(Record::decode).transpose()? else {
                continue;
            };
            // TTL-268: an entry of another version is only stepped over; the commit that replaced the version has dropped it.
            if record.version() != due.version || record.stamp().is_live(horizon) {
                continue;
            }
            let (version, before) = (round.next_version(), round.state.purged_total);
            let cost = remove_ghost(round, &self.partition, &self.state, version, key, &record);
            budget.spend(cost);
            purged += round.state.purged_total - before;
        }
        let drained = !exhausted && candidates.len() == lines.own.due.len() + lines.log.due.len();
        if drained {
            cursors = cursors.max_of(lines.own.resume).max_of(lines.log.resume);
        }
        round.state.purge = cursors;
        let is_complete = drained && lines.own.is_complete && lines.log.is_complete;
        if is_complete && judged == now {
            self.partition.rest_until(next_end(&lines));
        }
        let end = match () {
            () if exhausted => End::Exhausted,
            () if !is_complete => End::Unfinished,
            () if judged == now => End::Drained,
            () => End::Read,
        };
        let step = Step { purged, end };
        Ok((step, budget.spent, now))
    }

    fn own_scan(&self, round: &Round<'_>) -> Scan {
        let rows = self.items().saturating_add(1);
        scan_from(Space::Expiry, round.state.purge.expiry.to_bytes(), rows)
    }

    fn items(&self) -> usize {
        usize::try_from(self.limits.items).unwrap_or(usize::MAX)
    }

    fn log_scan(&self, round: &Round<'_>) -> Scan {
        let to = Some(keys::log_end());
        Scan {
            to,
            ..scan_from(
                Space::Log,
                round.state.purge.log.to_bytes(),
                self.items().saturating_add(STEPPED_OVER),
            )
        }
    }

    fn own_line(&self, from: Cursors, page: &Page, horizon: Horizon) -> Result<Line> {
        let mut line = Line::at(from);
        for (key, value) in &page.rows {
            let position = ExpiryPosition::decode(key).ok_or_else(damaged)?;
            if position.base.0 > horizon.own {
                return Ok(line.ends_before(self.state.settings.policy.is_on().then_some(position.base.0)));
            }
            let after = Cursors {
                expiry: position.next(),
                ..from
            };
            let entry = ExpiryEntry::decode(value)?;
            line.take(entry.item_key, entry.size as usize, position.version, after);
        }
        line.is_complete = !page.more;
        Ok(line)
    }

    fn log_line(&self, from: Cursors, page: &Page, horizon: Horizon) -> Result<Line> {
        let mut line = Line::at(from);
        for (key, value) in &page.rows {
            let version = LogPosition::decode(key).ok_or_else(damaged)?;
            let entry = LogEntry::decode(value)?;
            let after = Cursors {
                log: version.next(),
                ..from
            };
            match entry.class {
                Class::Own | Class::Never => line.resume = after,
                Class::Inherited if entry.last_modified.0 > horizon.inherited => {
                    let stamp = bolide_model::ttl::Stamp {
                        class: Class::Inherited,
                        base: entry.last_modified,
                    };
                    return Ok(line.ends_before(stamp.ends_at(self.state.settings.policy)));
                }
                Class::Inherited => line.take(entry.item_key, entry.size as usize, version, after),
            }
        }
        line.is_complete = !page.more;
        Ok(line)
    }
}

impl Line {
    fn at(from: Cursors) -> Line {
        Line {
            due: Vec::new(),
            is_complete: false,
            next_end: None,
            resume: from,
        }
    }

    fn take(&mut self, item_key: Bytes, size: usize, version: LogPosition, after: Cursors) {
        self.due.push(Due {
            item_key,
            size,
            version,
            after,
        });
        self.resume = after;
    }

    fn ends_before(mut self, next_end: Option<i64>) -> Line {
        self.is_complete = true;
        self.next_end = next_end;
        self
    }
}

impl Cursors {
    fn max_of(self, other: Cursors) -> Cursors {
        Cursors {
            log: self.log.max(other.log),
            expiry: self.expiry.max(other.expiry),
        }
    }
}

/// What may be spent in one step. The next item may begin while there is credit left; the last one may overdraw it (TTL-259).
pub(crate) struct Budget {
    credit: Option<f64>,
    pub spent: RequestUnits,
}

impl Budget {
    pub fn of(mode: PurgeMode, partition: &Partition, now: UnixSeconds) -> Budget {
        let credit = match mode {
            PurgeMode::Force => None,
            PurgeMode::Paced => partition.meter().lock().credit(now),
        };
        Budget {
            credit,
            spent: RequestUnits::ZERO,
        }
    }

    pub fn is_exhausted(&self) -> bool {
        self.credit.is_some_and(|credit| credit - self.spent.0 <= 0.0)
    }

    pub fn spend(&mut self, cost: RequestUnits) {
        self.spent += cost;
    }
}

/// Takes the due entries of both lines in turn, so that neither starves (TTL-266), up to so many and to the one that reaches [`STEP_BYTES`].
fn in_turn(lines: &Lines, most: u64) -> Vec<&Due> {
    let mut own = lines.own.due.iter();
    let mut log = lines.log.due.iter();
    let mut taken = Vec::new();
    let mut bytes = 0;
    while (taken.len() as u64) < most && bytes < STEP_BYTES {
        let turn = if taken.len() % 2 == 0 {
            own.next().or_else(|| log.next())
        } else {
            log.next().or_else(|| own.next())
        };
        let Some(due) = turn else { break };
        bytes += due.size;
        taken.push(due);
    }
    taken
}

fn next_end(lines: &Lines) -> i64 {
    [lines.own.next_end, lines.log.next_end]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(i64::MAX)
}

fn scan_from(space: Space, from: Bytes, max_rows: usize) -> Scan {
    Scan {
        space,
        from,
        to: None,
        reverse: false,
        max_rows,
        max_bytes: SCAN_BYTES,
        keys_only: false,
    }
}

pub(crate) fn damaged() -> bolide_model::Error {
    bolide_model::Error::new(ErrorKind::Corrupt, "a queue of the purge is damaged")
}
