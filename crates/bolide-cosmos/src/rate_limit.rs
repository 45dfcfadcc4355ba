//! Rate limit of responses to clients without a key: refusals, and pages that need no key.
//!
//! Such a response costs the server a signature check and a response, and its client very little. So they are sent at a fixed rate, over all
//! connections together; occasional requests are not delayed.

use std::time::{Duration, Instant};

use bolide_model::time::Monotonic;
use parking_lot::Mutex;

/// Time between two responses under load: 2,000 per second.
const STEP: Duration = Duration::from_micros(500);
/// Longest delay. After it a client gets its response anyway, so that it does not consider the server dead.
const MAX_DELAY: Duration = Duration::from_secs(2);
/// Number of responses that may be sent without delay in a burst.
const BURST: u32 = 100;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct RateLimit {
    /// When the next response is due, without the burst; `None` before the first.
    next: Mutex<Option<Instant>>,
}

impl RateLimit {
    /// Waits until the response may be sent.
    pub(crate) async fn wait(&self, clock: &Monotonic) {
        let wait = self.reserve(clock.now());
        if !wait.is_zero() {
            clock.sleep(wait).await;
        }
    }

    /// Reserves the next time slot; returns the delay until then.
    fn reserve(&self, now: Instant) -> Duration {
        let mut next = self.next.lock();
        let slot = next.map_or(now, |next| next.max(now));
        // The queue is limited to the longest delay; otherwise it would outlast the clients in it.
        *next = Some((slot + STEP).min(now + MAX_DELAY + STEP * BURST));
        slot.duration_since(now).saturating_sub(STEP * BURST).min(MAX_DELAY)
    }
}

#[cfg(test)]
mod tests;
