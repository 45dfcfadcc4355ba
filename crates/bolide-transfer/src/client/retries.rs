//! How long to wait before another try, and when to give up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::failure::{Failure, Result};

/// The longest time that one request waits for throughput, all tries together.
const THROTTLED: Duration = Duration::from_secs(600);
/// The longest time that one request waits for a server that is not available, all tries together.
const UNAVAILABLE: Duration = Duration::from_secs(60);
/// The first and the longest wait for a server that is not available; each is twice the one before.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The wait if a server that is out of throughput does not say how long.
const DEFAULT_RETRY_AFTER_MS: u64 = 100;
/// The longest wait that a server can ask for.
const LONGEST_RETRY_AFTER_MS: u64 = 60_000;
/// How soon a wait notices that it is no longer of use.
const STEP: Duration = Duration::from_millis(50);

/// The tries of one request, counted by the time that they have waited.
#[derive(Default)]
pub(crate) struct Retries {
    throttled: Duration,
    unavailable: Duration,
    tries: u32,
}

impl Retries {
    /// The wait after a 429; `None` to give up.
    pub fn throttled(&mut self, retry_after_ms: Option<u64>) -> Option<Duration> {
        let asked = retry_after_ms.unwrap_or(DEFAULT_RETRY_AFTER_MS);
        let wait = Duration::from_millis(asked.clamp(1, LONGEST_RETRY_AFTER_MS));
        self.throttled += wait;
        (self.throttled <= THROTTLED).then_some(wait)
    }

    /// The wait after a failure that may pass; `None` to give up.
    pub fn unavailable(&mut self) -> Option<Duration> {
        let wait = FIRST_WAIT.saturating_mul(1 << self.tries.min(16)).min(LONGEST_WAIT);
        self.tries += 1;
        self.unavailable += wait;
        (self.unavailable <= UNAVAILABLE).then_some(wait)
    }
}

/// Ends waits of several threads when one of them has failed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits.
    ///
    /// # Errors
    /// Another thread has failed.
    pub fn wait(&self, mut time: Duration) -> Result<()> {
        while !time.is_zero() && !self.is_set() {
            let step = time.min(STEP);
            std::thread::sleep(step);
            time -= step;
        }
        match self.is_set() {
            true => Err(Failure::of_other()),
            false => Ok(()),
        }
    }
}
