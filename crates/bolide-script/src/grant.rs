//! The time and memory of a script, and how it is ended early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bolide_model::time::Monotonic;
use parking_lot::Mutex;

use crate::host::Pace;
use crate::sandbox::Limits;

/// Ends a script at once, from any thread, when nobody waits for it any more.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends every script that was given this. It cannot be undone.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The limits of one run.
#[derive(Debug, Clone)]
pub struct Grant {
    /// Limits of sizes.
    pub limits: Limits,
    /// Seed of `Math.random`.
    pub random_seed: u64,
    /// Server time at the start, in milliseconds since 1970, as `Date` shows it.
    pub now_ms: i64,
    /// Whether `Date` advances while the script runs.
    pub is_clock_running: bool,
    /// The time limit, including operations of the host. For the functions of a query each call sets its own.
    pub time: Duration,
    /// Ends it at once.
    pub cancel: Cancel,
}

/// The time limit of a run, checked where the script runs.
pub(crate) struct Deadline {
    clock: Monotonic,
    started: Instant,
    now_ms: i64,
    is_clock_running: bool,
    until: Mutex<Instant>,
    cancels: [Cancel; 2],
}

impl Deadline {
    /// Starts now. `cancel` ends the process or thread in which the script runs; `clock` is the clock there.
    pub fn start(grant: &Grant, cancel: &Cancel, clock: &Monotonic) -> Arc<Deadline> {
        let started = clock.now();
        Arc::new(Deadline {
            clock: clock.clone(),
            started,
            now_ms: grant.now_ms,
            is_clock_running: grant.is_clock_running,
            until: Mutex::new(started + grant.time),
            cancels: [grant.cancel.clone(), cancel.clone()],
        })
    }

    /// Restarts the time limit now, with `time`.
    pub fn restart(&self, time: Duration) {
        *self.until.lock() = self.clock.now() + time;
    }
}

impl Pace for Deadline {
    fn is_over(&self) -> bool {
        self.cancels.iter().any(Cancel::is_cancelled) || self.clock.now() >= *self.until.lock()
    }

    fn now_ms(&self) -> i64 {
        if !self.is_clock_running {
            return self.now_ms;
        }
        let elapsed = i64::try_from(self.clock.since(self.started).as_millis()).unwrap_or(i64::MAX);
        self.now_ms.saturating_add(elapsed)
    }
}

#[cfg(test)]
mod tests;
