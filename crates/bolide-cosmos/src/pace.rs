//! The pace of answers to those who have shown no key: refusals, and pages that need none.
//!
//! Such an answer costs the server a signature and an answer, and its client next to nothing. So they are given out at a steady pace, all
//! connections together; who asks now and then does not notice.

use std::time::{Duration, Instant};

use bolide_model::time::Monotonic;
use parking_lot::Mutex;

/// Between two answers when there are many: 2,000 in a second.
const STEP: Duration = Duration::from_micros(500);
/// Longest wait. Beyond, a client is answered all the same, so that it does not take the server for dead.
const PATIENCE: Duration = Duration::from_secs(2);
/// Answers that may come at once before anybody waits.
const BURST: u32 = 100;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// When the next one is due if there were no burst; `None` before the first.
    next: Mutex<Option<Instant>>,
}

impl Pace {
    /// Waits for the time of an answer.
    pub(crate) async fn wait(&self, clock: &Monotonic) {
        let wait = self.reserve(clock.now());
        if !wait.is_zero() {
            clock.sleep(wait).await;
        }
    }

    /// Takes the next place; how long it is until then.
    fn reserve(&self, now: Instant) -> Duration {
        let mut next = self.next.lock();
        let place = next.map_or(now, |next| next.max(now));
        // A line that is as long as anybody waits does not grow: it would outlast those who are in it.
        *next = Some((place + STEP).min(now + PATIENCE + STEP * BURST));
        place.duration_since(now).saturating_sub(STEP * BURST).min(PATIENCE)
    }
}

#[cfg(test)]
mod tests;
