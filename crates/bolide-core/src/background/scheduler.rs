//! The scheduler: the tasks that run background work, and when they run.
//!
//! It sleeps until the second at which the first item expires, and is woken when a write makes that second earlier: while the purge has budget, an
//! item is removed in the second of its expiry (TTL-250), without polling.
//!
//! With a virtual clock there is no scheduler: tests purge by a call (TTL-206), and the scheduler could not foresee when the clock jumps.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bolide_model::time::Monotonic;
use bolide_model::{Error, ErrorKind, UnixMillis, UnixSeconds};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::Background;
use super::driver::{Driver, StepPolicy};
use super::job::{End, Job, JobKind, JobSource, PurgeMode, StepLimits, StepReport};
use super::jobs::durable_second;
use super::pacer::{ClockWatch, PurgePacer};
use crate::partition::Wakeup;

/// Maximum duration of a tick, after which the scheduler checks everything again, and the delay before failed work is tried again.
pub(super) const TICK: Duration = Duration::from_millis(200);
/// Maximum time between two wake-ups; each checks whether the wall clock stepped.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Delay before the work of a store is tried again that refuses writes, because it is copied or has moved.
const SEALED_PAUSE: Duration = Duration::from_secs(1);
/// Delay before items that readers keep are tried again: a request that reads at an earlier second lasts about this long.
pub(crate) const READERS_PAUSE: Duration = Duration::from_millis(5);

/// The running background tasks.
pub(crate) struct PurgeScheduler {
    stop: watch::Sender<bool>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

/// The limits of the background purge, besides its budget.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PurgeOptions {
    /// Maximum number of items per second in the whole account.
    pub items_per_second: Option<u32>,
    /// How long the purge pauses after a large step of the clock; zero: not at all.
    pub hold: Duration,
    /// Whether anything is removed.
    pub is_purging: bool,
    /// Delay before items that readers keep are tried again.
    pub readers_pause: Duration,
}

impl PurgeScheduler {
    /// Starts the tasks. They end by themselves when the account is dropped.
    pub fn start(background: &Arc<Background>, wakeup: Arc<Wakeup>, options: PurgeOptions) -> PurgeScheduler {
        let (stop, stopped) = watch::channel(false);
        let schedule = Schedule::new(background.clock.clone(), wakeup.clone(), options);
        let tasks = vec![
            tokio::spawn(durable_second::run(Arc::downgrade(background), wakeup, stopped.clone())),
            tokio::spawn(run(Arc::downgrade(background), schedule, stopped)),
        ];
        PurgeScheduler {
            stop,
            tasks: Mutex::new(tasks),
        }
    }

    /// Stops the tasks, and waits for their current steps.
    pub async fn stop(&self) {
        let _ = self.stop.send(true);
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            let _ = task.await;
        }
    }
}

async fn run(background: Weak<Background>, mut schedule: Schedule, mut stopped: watch::Receiver<bool>) {
    loop {
        let Some(pause) = background.upgrade().map(|open| schedule.pause(&open)) else {
            return;
        };
        // In this order and not in one by chance, so that a simulation can be repeated.
        tokio::select! {
            biased;
            _ = stopped.changed() => return,
            () = schedule.wakeup.rung() => {}
            () = schedule.clock.sleep(pause) => {}
        }
        let Some(open) = background.upgrade() else { return };
        schedule.wake(&open, &stopped).await;
    }
}

/// The scheduler's state from one tick to the next.
struct Schedule {
    clock: Monotonic,
    wakeup: Arc<Wakeup>,
    options: PurgeOptions,
    pacer: PurgePacer,
    clock_watch: ClockWatch,
    /// Number of ticks so far.
    ticks: usize,
    /// Whether items and history entries may be removed now. If not, only the job that counts ghosts runs.
    is_removing: bool,
    /// The delay before work that is due but could not be done is tried again.
    again_in: Option<Duration>,
}

impl Schedule {
    fn new(clock: Monotonic, wakeup: Arc<Wakeup>, options: PurgeOptions) -> Schedule {
        Schedule {
            wakeup,
            options,
            pacer: PurgePacer::new(options.items_per_second, clock.now()),
            clock_watch: ClockWatch::default(),
            ticks: 0,
            is_removing: true,
            again_in: None,
            clock,
        }
    }

    /// Returns how long to sleep: until the second at which the first job is due, and at most until the heartbeat.
    fn pause(&self, background: &Background) -> Duration {
        self.pause_between(&background.sources(), background.server_time())
    }

    fn pause_between<S: JobSource>(&self, sources: &[S], now: UnixMillis) -> Duration {
        self.wakeup.stay_awake();
        let (mut first, mut is_due) = (i64::MAX, false);
        for source in sources {
            match source.next_due() {
                second if second <= now.seconds().0 => is_due = true,
                second => first = first.min(second),
            }
        }
        self.wakeup.sleep_until(first);
        let until_first = UnixSeconds(first).millis().0.saturating_sub(now.0);
        let mut pause = Duration::from_millis(until_first.max(1).unsigned_abs()).min(HEARTBEAT);
        if is_due {
            pause = pause.min(self.again_in.unwrap_or(Duration::ZERO));
        }
        pause
    }

    /// Runs the jobs that are due. Only the job that counts ghosts runs while the purge is held or switched off.
    async fn wake(&mut self, background: &Background, stopped: &watch::Receiver<bool>) {
        let (now, instant) = (background.server_time(), self.clock.now());
        let is_held = self.clock_watch.look(now, instant, self.options.hold);
        background.set_held(is_held);
        self.is_removing = self.options.is_purging && !is_held;
        let again_in = self.tick(background.sources(), background, stopped).await;
        self.again_in = match () {
            () if !self.options.is_purging => Some(HEARTBEAT),
            () if is_held => Some(TICK),
            () => again_in,
        };
    }

    /// Runs the steps of the jobs that are due alternately, for one tick. Returns the delay before work that could not be done now is tried again.
    async fn tick<S: JobSource>(
        &mut self,
        mut sources: Vec<S>,
        account: &impl Observed,
        stopped: &watch::Receiver<bool>,
    ) -> Option<Duration> {
        let deadline = self.clock.now() + TICK;
        // If several containers share one budget, the same one must not always come first (TTL-264).
        self.ticks = self.ticks.wrapping_add(1);
        let first = self.ticks % sources.len().max(1);
        sources.rotate_left(first);
        self.pacer.look_at_backlog(sources.iter().map(JobSource::backlog).sum());
        let policy = InBackground {
            account,
            clock: &self.clock,
            pacer: &mut self.pacer,
            is_removing: self.is_removing,
            readers_pause: self.options.readers_pause,
            again_in: None,
        };
        let mut driver = Driver::new(self.clock.clone(), policy);
        loop {
            let mut is_busy = false;
            for source in &sources {
                if *stopped.borrow() || self.clock.now() >= deadline {
                    return Some(Duration::ZERO);
                }
                if source.next_due() > account.server_time().seconds().0 {
                    continue;
                }
                match driver.pass(source).await {
                    Ok(is_unfinished) => is_busy |= is_unfinished,
                    Err(error) if error.is_of_changed_settings() => {
                        let settled = source.settle().await;
                        driver.policy.failed(settled.as_ref().err());
                    }
                    Err(error) if error.is_of_sealed_store() => driver.policy.again(SEALED_PAUSE),
                    Err(error) => driver.policy.failed(Some(&error)),
                }
            }
            if !is_busy {
                let again_in = driver.policy.again_in;
                if again_in.is_none() && self.is_removing {
                    driver.policy.pacer.drained();
                }
                return again_in;
            }
        }
    }
}

/// The scheduler's view of the account: server time, and the number of user requests that have begun.
trait Observed {
    fn server_time(&self) -> UnixMillis;
    fn requests(&self) -> u64;
}

impl Observed for Background {
    fn server_time(&self) -> UnixMillis {
        Background::server_time(self)
    }

    fn requests(&self) -> u64 {
        Background::requests(self)
    }
}

/// The policy of a tick: jobs that are due run as far as the budget and users allow.
struct InBackground<'a, O> {
    account: &'a O,
    clock: &'a Monotonic,
    pacer: &'a mut PurgePacer,
    is_removing: bool,
    readers_pause: Duration,
    /// The delay before work that could not be done now is tried again.
    again_in: Option<Duration>,
}

impl<O: Observed> StepPolicy for InBackground<'_, O> {
    fn admit(&mut self, _range: u32, job: &dyn Job) -> Option<StepLimits> {
        let is_allowed = self.is_removing || job.kind() == JobKind::CountGhosts;
        if !is_allowed || job.next_due() > self.account.server_time().seconds().0 {
            return None;
        }
        let now = self.clock.now();
        self.pacer.look_for_users(self.account.requests(), now);
        let (items, patience) = match job.kind() {
            JobKind::CountGhosts => (self.pacer.counted(now), Duration::ZERO),
            kind if kind.is_paced() => (self.pacer.items(now), self.pacer.patience(now)),
            _ => (u64::MAX, Duration::ZERO),
        };
        if items == 0 {
            self.again(TICK);
            return None;
        }
        let mode = PurgeMode::Paced;
        Some(StepLimits { items, mode, patience })
    }

    fn stepped(&mut self, _range: u32, kind: JobKind, report: &StepReport) -> Duration {
        match report.step.end {
            End::Unfinished | End::Drained => {}
            End::Read => self.again(self.readers_pause),
            End::Exhausted => self.again(until_next_second(self.account.server_time())),
        }
        if !kind.is_paced() {
            return Duration::ZERO;
        }
        self.pacer.take(report.step.purged, report.began);
        self.pacer.look_for_users(self.account.requests(), self.clock.now());
        self.pacer.rest_after(report.began, report.took)
    }
}

impl<O> InBackground<'_, O> {
    /// Records that a job did not end, so that it is tried again. `error`: why, if it is a failure.
    fn failed(&mut self, error: Option<&Error>) {
        if let Some(error) = error.filter(|error| !matches!(error.kind, ErrorKind::NotFound | ErrorKind::RangeGone)) {
            tracing::warn!(%error, "the purge failed and will be tried again");
        }
        self.again(TICK);
    }

    fn again(&mut self, pause: Duration) {
        self.again_in = Some(self.again_in.map_or(pause, |known| known.min(pause)));
    }
}

fn until_next_second(now: UnixMillis) -> Duration {
    Duration::from_millis(1000 - now.0.rem_euclid(1000).unsigned_abs())
}

#[cfg(test)]
mod tests;
