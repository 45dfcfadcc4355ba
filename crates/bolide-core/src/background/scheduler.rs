//! The keeper: the background tasks that run the purge and make server time durable ([`clock::stay_ahead`]).
//!
//! The purge sleeps until the second at which the first item ends, and is woken when a write makes that earlier: while it has budget, an item goes
//! at its second (TTL-250), and nothing is polled for.
//!
//! With a virtual clock there is none: tests purge by a call (TTL-206), and the clock jumps where nobody can be ahead of it.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bolide_model::{ErrorKind, Result, UnixMillis, UnixSeconds};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{PurgeMode, drops};
use crate::account::Account;
use crate::background::jobs::expire::End;
use crate::clock;
use crate::container::Container;
use crate::partition::Alarm;
use crate::partition::Partition;

/// How long the keeper purges without looking up, and when it tries again what failed.
const TICK: Duration = Duration::from_millis(200);
/// The purge wakes at least this often, and looks whether the wall clock stepped.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Requests that read at the time before the purge's last about so long.
const READERS_PAUSE: Duration = Duration::from_millis(5);
/// Of a backlog, so many items go at once, users or not: what is due in one second is rarely more.
const UNRESTED_ITEMS: u64 = 1_000;
/// Users are there for so long after a request. Most steps are shorter than the time between two requests of a busy user, so a step alone
/// does not tell.
const USERS_STAY_FOR: Duration = Duration::from_secs(1);
/// While users are there, a step takes no more items than these: a user's write that meets it waits for half a millisecond.
const ITEMS_BESIDE_USERS: u64 = 10;
/// While users are there, the purge rests this many times as long as its last step took.
const RESTS_BESIDE_USERS: u32 = 14;
/// A backlog this old is purged without rests, so that it cannot grow for ever beside users who write faster than a resting purge removes.
const PATIENT_FOR: Duration = Duration::from_secs(300);
/// A forward step of the wall clock larger than this holds the purge (TTL-204).
const STEP_HOLDS: Duration = Duration::from_secs(24 * 3600);

/// The running background tasks.
pub(crate) struct Keeper {
    stop: watch::Sender<bool>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

/// How the background purge is held back, besides its budget.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Most items a second in the whole account.
    pub items_per_second: Option<u32>,
    /// How long a large step of the clock holds the purge; zero: not at all.
    pub hold: Duration,
    /// Whether anything is removed at all.
    pub is_purging: bool,
}

impl Keeper {
    /// Starts the tasks. They end by themselves when the account is gone.
    pub fn start(account: Weak<Account>, alarm: Arc<Alarm>, pace: Pace) -> Keeper {
        let (stop, stopped) = watch::channel(false);
        let tasks = vec![
            tokio::spawn(clock::stay_ahead(account.clone(), stopped.clone())),
            tokio::spawn(keep(account, alarm, pace, stopped)),
        ];
        Keeper {
            stop,
            tasks: Mutex::new(tasks),
        }
    }

    /// Stops the tasks, and waits for the steps they are in.
    pub async fn stop(&self) {
        let _ = self.stop.send(true);
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            let _ = task.await;
        }
    }
}

async fn keep(account: Weak<Account>, alarm: Arc<Alarm>, pace: Pace, mut stopped: watch::Receiver<bool>) {
    let mut watch = ClockWatch::default();
    let mut restraint = Restraint::new(pace);
    let mut again_in = None;
    loop {
        let Some(pause) = account.upgrade().map(|account| rest(&account, &alarm, again_in)) else {
            return;
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = alarm.rung() => {}
            _ = stopped.changed() => return,
        }
        let Some(account) = account.upgrade() else { return };
        let is_held = watch.look(account.server_time(), pace.hold);
        account.set_purge_held(is_held);
        again_in = if !pace.is_purging {
            Some(HEARTBEAT)
        } else if is_held {
            Some(TICK)
        } else {
            purge_due(&account, &mut restraint, &stopped).await
        };
    }
}

/// How long there is nothing to do: until the second at which the first item ends, if that comes before the heartbeat. `again_in`: when
/// to take up again what is due and could not be done.
fn rest(account: &Account, alarm: &Alarm, again_in: Option<Duration>) -> Duration {
    alarm.stay_awake();
    let now = account.server_time();
    let (mut first, mut is_due) = (i64::MAX, false);
    for container in account.all_containers() {
        for partition in &container.state().layout.partitions {
            match partition.next_upkeep() {
                second if second <= now.seconds().0 => is_due = true,
                second => first = first.min(second),
            }
        }
    }
    alarm.sleep_until(first);
    let until_first = UnixSeconds(first).millis().0.saturating_sub(now.0);
    let mut rest = Duration::from_millis(until_first.max(1).unsigned_abs()).min(HEARTBEAT);
    if is_due {
        rest = rest.min(again_in.unwrap_or(Duration::ZERO));
    }
    rest
}

/// Purges what is due, a step of each partition in turn, for one tick. Returns when to go on with what could not be done now.
async fn purge_due(
    account: &Arc<Account>,
    restraint: &mut Restraint,
    stopped: &watch::Receiver<bool>,
) -> Option<Duration> {
    let deadline = Instant::now() + TICK;
    let mut containers = account.all_containers();
    // Where one budget is for several, it must not always be the same that comes first (TTL-264).
    restraint.turn += 1;
    let first = restraint.turn % containers.len().max(1);
    containers.rotate_left(first);
    let mut pass = Pass {
        account,
        restraint,
        again_in: None,
    };
    loop {
        let mut is_busy = false;
        for container in &containers {
            if *stopped.borrow() || Instant::now() >= deadline {
                return Some(Duration::ZERO);
            }
            is_busy |= pass.purge_container(container).await;
        }
        if !is_busy {
            if pass.again_in.is_none() {
                pass.restraint.drained();
            }
            return pass.again_in;
        }
    }
}

/// What holds the purge back, from one tick to the next.
struct Restraint {
    allowance: Allowance,
    /// Items of the backlog that may go before the purge rests beside users.
    unrested: u64,
    /// How many requests there had been when it was last looked, and when there was a new one.
    users: (u64, Option<Instant>),
    /// Since when there has been a backlog.
    backlog_since: Option<Instant>,
    /// Counts ticks.
    turn: usize,
}

impl Restraint {
    fn new(pace: Pace) -> Restraint {
        Restraint {
            allowance: Allowance::new(pace.items_per_second),
            unrested: UNRESTED_ITEMS,
            users: (0, None),
            backlog_since: None,
            turn: 0,
        }
    }

    /// How many times as long as a step the purge rests after it.
    fn rests(&self, now: Instant) -> u32 {
        if !self.is_beside_users(now) || self.unrested > 0 {
            return 0;
        }
        let age = self
            .backlog_since
            .map_or(Duration::ZERO, |since| now.duration_since(since));
        let left = 1.0 - age.as_secs_f64() / PATIENT_FOR.as_secs_f64();
        (f64::from(RESTS_BESIDE_USERS) * left).ceil() as u32
    }

    /// Notes how many requests there have been by now.
    fn look_for_users(&mut self, requests: u64, now: Instant) {
        if requests != self.users.0 {
            self.users = (requests, Some(now));
        }
    }

    fn is_beside_users(&self, now: Instant) -> bool {
        let seen = self.users.1;
        seen.is_some_and(|seen| now.duration_since(seen) < USERS_STAY_FOR)
    }

    /// How many items the next step may take.
    fn items(&mut self, now: Instant) -> u64 {
        let most = self.allowance.items();
        match self.rests(now) {
            0 => most,
            _ => most.min(ITEMS_BESIDE_USERS),
        }
    }

    fn take(&mut self, purged: u64, now: Instant) {
        self.allowance.take(purged);
        self.unrested = self.unrested.saturating_sub(purged);
        self.backlog_since.get_or_insert(now);
    }

    /// All that was due is gone.
    fn drained(&mut self) {
        self.unrested = UNRESTED_ITEMS;
        self.backlog_since = None;
    }
}

/// One tick of purging.
struct Pass<'a> {
    account: &'a Arc<Account>,
    restraint: &'a mut Restraint,
    again_in: Option<Duration>,
}

impl Pass<'_> {
    /// One step in each partition that may have something due; tells whether there is more to do.
    async fn purge_container(&mut self, container: &Arc<Container>) -> bool {
        let now = self.account.server_time().seconds();
        let layout = container.state().layout.clone();
        let mut is_busy = false;
        for partition in &layout.partitions {
            let mut done = match partition.may_be_due(now) {
                true => self.purge_partition(container, partition, Work::Ghosts).await,
                false => Ok(false),
            };
            if let (Ok(more), true) = (&done, partition.has_tombstones()) {
                let more = *more;
                let dropped = self.purge_partition(container, partition, Work::Drops).await;
                done = dropped.map(|even_more| more || even_more);
            }
            let done = match done {
                Ok(more) if partition.may_be_trimmed(now) => {
                    let trimmed = self.account.trim_history(container, partition).await;
                    trimmed.map(|()| more)
                }
                done => done,
            };
            match done {
                Ok(more) => is_busy |= more,
                Err(error) => {
                    if !matches!(error.kind, ErrorKind::NotFound | ErrorKind::RangeGone) {
                        tracing::warn!(%error, "the purge failed and will be tried again");
                    }
                    self.again(TICK);
                    return false;
                }
            }
        }
        is_busy
    }

    async fn purge_partition(
        &mut self,
        container: &Arc<Container>,
        partition: &Arc<Partition>,
        work: Work,
    ) -> Result<bool> {
        let now = Instant::now();
        self.restraint.look_for_users(self.account.requests(), now);
        let most = self.restraint.items(now);
        if most == 0 {
            self.again(TICK);
            return Ok(false);
        }
        let visit = super::visit_of(container, partition).await?;
        let began = Instant::now();
        let mode = PurgeMode::Paced;
        let step = match work {
            Work::Ghosts => {
                self.account
                    .purge_step(container, &visit, partition, mode, most)
                    .await?
            }
            Work::Drops => drops::run(visit.state.clone(), partition.clone(), mode).await?,
        };
        drop(visit);
        self.restraint.take(step.purged, began);
        self.restraint.look_for_users(self.account.requests(), Instant::now());
        match step.end {
            End::Unfinished | End::Drained => {}
            End::Read => self.again(READERS_PAUSE),
            End::Exhausted => self.again(until_next_second(self.account.server_time())),
        }
        // Users first, in CPU and disk as in everything else (TTL-265): beside them the purge rests most of the time. What it does at once
        // when a second begins is too little to be felt.
        match self.restraint.rests(began) {
            0 => tokio::task::yield_now().await,
            rests => tokio::time::sleep(began.elapsed() * rests).await,
        }
        Ok(step.end == End::Unfinished)
    }

    fn again(&mut self, pause: Duration) {
        self.again_in = Some(self.again_in.map_or(pause, |known| known.min(pause)));
    }
}

/// What a step removes.
#[derive(Clone, Copy)]
enum Work {
    Ghosts,
    Drops,
}

fn until_next_second(now: UnixMillis) -> Duration {
    Duration::from_millis(1000 - now.0.rem_euclid(1000).unsigned_abs())
}

/// How many items the purge may still remove, by its highest rate.
struct Allowance {
    per_second: Option<u32>,
    items: f64,
    at: Instant,
}

impl Allowance {
    fn new(per_second: Option<u32>) -> Allowance {
        Allowance {
            per_second,
            items: 0.0,
            at: Instant::now(),
        }
    }

    /// What has gathered since, at most that of one tick.
    fn items(&mut self) -> u64 {
        let Some(per_second) = self.per_second.map(f64::from) else {
            return u64::MAX;
        };
        let gathered = self.items + per_second * self.at.elapsed().as_secs_f64();
        self.items = gathered.min((per_second * TICK.as_secs_f64()).max(1.0));
        self.at = Instant::now();
        self.items as u64
    }

    fn take(&mut self, items: u64) {
        self.items -= items as f64;
    }
}

/// Notices steps of the wall clock by comparing it with the monotonic one.
#[derive(Default)]
struct ClockWatch {
    last: Option<(UnixMillis, Instant)>,
    held_until: Option<Instant>,
}

impl ClockWatch {
    /// Whether the purge is held now.
    fn look(&mut self, now: UnixMillis, hold: Duration) -> bool {
        let instant = Instant::now();
        if let Some((last, at)) = self.last.replace((now, instant)) {
            let stepped = now.0 - last.0 - instant.duration_since(at).as_millis() as i64;
            if stepped > STEP_HOLDS.as_millis() as i64 && !hold.is_zero() {
                tracing::error!(
                    stepped_seconds = stepped / 1000,
                    hold_seconds = hold.as_secs(),
                    "the wall clock stepped forward by more than a day: expired items are hidden, their purge is held"
                );
                self.held_until = Some(instant + hold);
            }
        }
        self.held_until.is_some_and(|until| instant < until)
    }
}

#[cfg(test)]
mod tests;
