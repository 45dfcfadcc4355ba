//! How long and how much a script may.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::partition::orders::OthersWait;
use bolide_model::time::Monotonic;
use bolide_model::{RequestUnits, UnixMillis};
use bolide_query::{Interrupt, Interrupts};
use bolide_script::{Cancel, Grant, Limits};
use parking_lot::Mutex;

/// How much longer to wait for the thread of a script whose time is over. Its process is killed before.
const GRACE: Duration = Duration::from_secs(1);
/// The part of its time for which a script may begin operations while others wait to write its partition, from its first one on: half a second of
/// five. A script that goes on where it stopped loses little by that, and others wait for it like for a slow disk, not for seconds. Its first operation
/// is accepted whenever it comes, so that each call gets somewhere.
const BESIDE_OTHERS_PART: u32 = 10;
/// Request units after which no further operation is accepted.
const CHARGE: f64 = 50_000.0;
/// Bytes written after which no further operation is accepted: they become one commit.
const WRITTEN_BYTES: usize = 32 * 1024 * 1024;
/// Bytes written after which none is carried out. Operations that were accepted together fit in a script's memory, so it is only one that
/// has broken out of its engine that comes so far.
const MAX_WRITTEN_BYTES: usize = 4 * WRITTEN_BYTES;

/// The budget of a transaction of scripts, in time, units and bytes: shared by the scripts' threads and whoever serves them.
pub(super) struct ScriptBudget {
    clock: Monotonic,
    started: Instant,
    /// Server time when it began.
    now: UnixMillis,
    /// How long it may last (cosmos-rest §11.2).
    time: Duration,
    /// The clock moves by hand only, so time stands still for a script.
    is_virtual: bool,
    used: Mutex<Used>,
    charge_limit: f64,
    /// Whether others wait to write the partition.
    others_wait: OthersWait,
}

#[derive(Debug, Clone, Copy, Default)]
struct Used {
    charge: f64,
    written_bytes: usize,
}

impl ScriptBudget {
    /// A transaction that begins now. `charge_limit`: what the throughput lets it use, where that is enforced.
    pub fn start(
        clock: &Monotonic,
        now: UnixMillis,
        time: Duration,
        is_virtual: bool,
        charge_limit: Option<f64>,
        others_wait: OthersWait,
    ) -> Arc<ScriptBudget> {
        Arc::new(ScriptBudget {
            started: clock.now(),
            clock: clock.clone(),
            now,
            time,
            is_virtual,
            used: Mutex::default(),
            charge_limit: charge_limit.unwrap_or(CHARGE).min(CHARGE),
            others_wait,
        })
    }

    /// The clock by which scripts have their time.
    pub fn clock(&self) -> &Monotonic {
        &self.clock
    }

    /// Counts what an operation used.
    pub fn used(&self, charge: RequestUnits, written_bytes: usize) {
        let mut used = self.used.lock();
        used.charge += charge.0;
        used.written_bytes += written_bytes;
    }

    fn elapsed(&self) -> Duration {
        self.clock.since(self.started)
    }

    /// What all operations so far used.
    pub fn charge(&self) -> RequestUnits {
        RequestUnits(self.used.lock().charge)
    }

    /// Whether one more operation is accepted, so long after the script's first. In the last fifth of its time a script is to return with a
    /// continuation of its own; sooner where others wait.
    fn accepts(&self, since_first: Duration) -> bool {
        let used = *self.used.lock();
        let is_long = since_first >= self.time / BESIDE_OTHERS_PART;
        self.elapsed() < self.time * 4 / 5
            && !(is_long && (self.others_wait)())
            && used.charge < self.charge_limit
            && used.written_bytes < WRITTEN_BYTES
    }

    /// Whether more was written than any script that is told when to stop could have.
    pub fn is_excessive(&self) -> bool {
        self.used.lock().written_bytes > MAX_WRITTEN_BYTES
    }

    /// How long all of it may last.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// How long scripts may still run.
    pub fn left(&self) -> Duration {
        self.time.saturating_sub(self.elapsed())
    }

    /// How long to wait for a script.
    pub fn timeout(&self) -> Duration {
        self.left() + GRACE
    }

    /// Server time as a script sees it now.
    pub fn now(&self) -> UnixMillis {
        if self.is_virtual {
            return self.now;
        }
        let elapsed = i64::try_from(self.elapsed().as_millis()).unwrap_or(0);
        UnixMillis(self.now.0.saturating_add(elapsed))
    }
}

/// One script of a transaction, as long as it is served.
pub(super) struct Running {
    pub budget: Arc<ScriptBudget>,
    /// Set when nobody serves it any more.
    pub cancel: Cancel,
    /// When it asked for its first operation.
    first_asked: OnceLock<Instant>,
    /// What the host did for it was ended because its time was over.
    is_late: AtomicBool,
}

impl Running {
    /// A script that begins now.
    pub fn new(budget: Arc<ScriptBudget>, cancel: Cancel) -> Running {
        Running {
            budget,
            cancel,
            first_asked: OnceLock::new(),
            is_late: AtomicBool::new(false),
        }
    }

    /// Whether one more operation is accepted.
    pub fn accepts(&self) -> bool {
        let clock = &self.budget.clock;
        let first_asked = *self.first_asked.get_or_init(|| clock.now());
        self.budget.accepts(clock.since(first_asked))
    }

    /// Whether it must end, with whatever the host does for it.
    pub fn is_over(&self) -> bool {
        self.cancel.is_cancelled() || self.is_late_now()
    }

    /// Whether an operation of it was ended because its time was over. Whatever the script makes of that, it did not complete in time.
    pub fn was_late(&self) -> bool {
        self.is_late.load(Ordering::SeqCst)
    }

    fn is_late_now(&self) -> bool {
        let is_late = self.budget.left().is_zero();
        if is_late {
            self.is_late.store(true, Ordering::SeqCst);
        }
        is_late
    }

    /// What it may use.
    pub fn grant(&self) -> Grant {
        Grant {
            limits: Limits::default(),
            random_seed: crate::sql::random_seed(),
            now_ms: self.budget.now().0,
            is_clock_running: !self.budget.is_virtual,
            time: self.budget.left(),
            cancel: self.cancel.clone(),
        }
    }
}

impl Interrupts for Running {
    fn pending(&self, _item: u64) -> Option<Interrupt> {
        if self.cancel.is_cancelled() {
            return Some(Interrupt::Cancelled);
        }
        self.is_late_now().then_some(Interrupt::DeadlineExceeded)
    }
}
