//! What a script is given of time and memory, and how it is ended early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bolide_model::time::Monotonic;
use parking_lot::Mutex;

use crate::host::Pace;
use crate::sandbox::Limits;

/// Ends a script at once, from anywhere: whoever waited for it is gone.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends what was given this. There is no way back.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What one run may use.
#[derive(Debug, Clone)]
pub struct Grant {
    /// Sizes.
    pub limits: Limits,
    /// Where `Math.random` starts.
    pub random_seed: u64,
    /// Server time at its start, in milliseconds since 1970: what `Date` shows.
    pub now_ms: i64,
    /// Whether `Date` moves on while the script runs.
    pub is_clock_running: bool,
    /// How long it may run, operations of the host included. The functions of a query are given theirs with each call.
    pub time: Duration,
    /// Ends it at once.
    pub cancel: Cancel,
}

/// The time of a grant, where the script runs.
pub(crate) struct Deadline {
    clock: Monotonic,
    started: Instant,
    now_ms: i64,
    is_clock_running: bool,
    until: Mutex<Instant>,
    cancels: [Cancel; 2],
}

impl Deadline {
    /// Begins now. `cancel`: ends the place where the script runs; `clock`: that of the place.
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

    /// Gives so much time from now on.
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
