//! Whether somebody is active, from a number of calls that grows.

use std::time::{Duration, Instant};

/// Remembers when a number of calls last rose.
///
/// Work that makes way for others looks more often than a busy user asks: a look that only compares the number with that of the look before misses most users.
#[derive(Debug)]
pub struct Activity {
    calls: u64,
    rose_at: Option<Instant>,
    stays_for: Duration,
}

impl Activity {
    /// Nobody is active yet. `calls`: those that do not count; `stays_for`: how long somebody counts as active after a call.
    pub fn new(calls: u64, stays_for: Duration) -> Activity {
        Activity {
            calls,
            rose_at: None,
            stays_for,
        }
    }

    /// Records the number of calls at `now`.
    pub fn look(&mut self, calls: u64, now: Instant) {
        if std::mem::replace(&mut self.calls, calls) != calls {
            self.rose_at = Some(now);
        }
    }

    /// Returns whether somebody is active at `now`, as far as is recorded.
    pub fn is_recent(&self, now: Instant) -> bool {
        self.rose_at.is_some_and(|at| now.duration_since(at) < self.stays_for)
    }

    /// Returns the number of calls at the last look.
    pub fn calls(&self) -> u64 {
        self.calls
    }
}
