//! Limits the time, the request units and the bytes of a script.

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
/// Divisor of a script's time: while others wait to write its partition, a script may begin operations only in the first tenth of its time (half a
/// second of five), counted from its first operation. A script that can continue later loses little by this, and others wait for it no longer than
/// for a slow disk. The first operation is accepted whenever it comes, so that each call makes progress.
const BESIDE_OTHERS_PART: u32 = 10;
/// Maximum request units of a transaction; after them, no further operation is accepted.
const CHARGE: f64 = 50_000.0;
/// Maximum size in bytes of a transaction's writes, which become one commit; after them, no further operation is accepted.
const WRITTEN_BYTES: usize = 32 * 1024 * 1024;
/// Size in bytes of a transaction's writes at which operations fail. Operations that were accepted together fit in a script's memory, so only a
/// script that has broken out of its engine can write this much.
const MAX_WRITTEN_BYTES: usize = 4 * WRITTEN_BYTES;

/// The budget of a transaction of scripts, in time, request units and bytes. It is shared by the scripts' threads and the worker that serves them.
pub(super) struct ScriptBudget {
    clock: Monotonic,
    started: Instant,
    /// Server time when it began.
    now: UnixMillis,
    /// Maximum duration (cosmos-rest §11.2).
    time: Duration,
    /// Whether the clock is moved only by hand, so that a script sees no time pass.
    is_virtual: bool,
    used: Mutex<Used>,
    charge_limit: f64,
    /// Tells whether others wait to write the partition.
    others_wait: OthersWait,
}

#[derive(Debug, Clone, Copy, Default)]
struct Used {
    charge: f64,
    written_bytes: usize,
}

impl ScriptBudget {
    /// Returns the budget of a transaction that begins now. `charge_limit`: the request units that the throughput allows, if it is enforced.
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

    /// Returns the clock that measures the time of scripts.
    pub fn clock(&self) -> &Monotonic {
        &self.clock
    }

    /// Counts the request units and bytes that an operation used.
    pub fn used(&self, charge: RequestUnits, written_bytes: usize) {
        let mut used = self.used.lock();
        used.charge += charge.0;
        used.written_bytes += written_bytes;
    }

    fn elapsed(&self) -> Duration {
        self.clock.since(self.started)
    }

    /// Returns the request units that all operations so far have used.
    pub fn charge(&self) -> RequestUnits {
        RequestUnits(self.used.lock().charge)
    }

    /// Tells whether one more operation is accepted at `since_first` after the script's first one. In the last fifth of its time no operation is
    /// accepted, so that the script returns with a continuation of its own; if others wait, this begins earlier.
    fn accepts(&self, since_first: Duration) -> bool {
        let used = *self.used.lock();
        let is_long = since_first >= self.time / BESIDE_OTHERS_PART;
        self.elapsed() < self.time * 4 / 5
            && !(is_long && (self.others_wait)())
            && used.charge < self.charge_limit
            && used.written_bytes < WRITTEN_BYTES
    }

    /// Tells whether more was written than a script can write without breaking out of its engine.
    pub fn is_excessive(&self) -> bool {
        self.used.lock().written_bytes > MAX_WRITTEN_BYTES
    }

    /// Returns the maximum duration of the transaction.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// Returns how long scripts may still run.
    pub fn left(&self) -> Duration {
        self.time.saturating_sub(self.elapsed())
    }

    /// Returns how long to wait for a script.
    pub fn timeout(&self) -> Duration {
        self.left() + GRACE
    }

    /// Returns the server time that a script sees now.
    pub fn now(&self) -> UnixMillis {
        if self.is_virtual {
            return self.now;
        }
        let elapsed = i64::try_from(self.elapsed().as_millis()).unwrap_or(0);
        UnixMillis(self.now.0.saturating_add(elapsed))
    }
}

/// One script of a transaction, while it is served.
pub(super) struct Running {
    pub budget: Arc<ScriptBudget>,
    /// Cancelled when the script is not served any more.
    pub cancel: Cancel,
    /// Time of its first operation.
    first_asked: OnceLock<Instant>,
    /// Whether the host aborted an operation of the script because its time was over.
    is_late: AtomicBool,
}

impl Running {
    /// Returns a script that begins now.
    pub fn new(budget: Arc<ScriptBudget>, cancel: Cancel) -> Running {
        Running {
            budget,
            cancel,
            first_asked: OnceLock::new(),
            is_late: AtomicBool::new(false),
        }
    }

    /// Tells whether one more operation is accepted.
    pub fn accepts(&self) -> bool {
        let clock = &self.budget.clock;
        let first_asked = *self.first_asked.get_or_init(|| clock.now());
        self.budget.accepts(clock.since(first_asked))
    }

    /// Tells whether the script, and any operation that the host runs for it, must be aborted.
    pub fn is_over(&self) -> bool {
        self.cancel.is_cancelled() || self.is_late_now()
    }

    /// Tells whether an operation was aborted because the script's time was over. Then the script counts as late, even if it handled that error.
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

    /// Returns the limits for its process.
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
