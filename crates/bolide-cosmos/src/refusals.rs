//! The pace of refusals: how many in a second go to those who have shown no key.
//!
//! A refusal costs the server a signature and an answer, and its client next to nothing. So they are given out at a steady pace, all
//! connections together; who is refused now and then does not notice.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Between two refusals when there are many: 2,000 in a second.
const PACE: Duration = Duration::from_micros(500);
/// Longest wait. Beyond, a client is answered all the same, so that it does not take the server for dead.
const PATIENCE: Duration = Duration::from_secs(2);
/// Refusals that may come at once before anybody waits.
const BURST: u32 = 100;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// When the next one is due if there were no burst; `None` before the first.
    next: Mutex<Option<Instant>>,
}

impl Refusals {
    /// Waits for the time of a refusal.
    pub(crate) async fn wait(&self) {
        let now = Instant::now();
        let wait = self.reserve(now);
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    /// Takes the next place; how long it is until then.
    fn reserve(&self, now: Instant) -> Duration {
        let mut next = self.next.lock();
        let place = next.map_or(now, |next| next.max(now));
        // A line that is as long as anybody waits does not grow: it would outlast those who are in it.
        *next = Some((place + PACE).min(now + PATIENCE + PACE * BURST));
        place.duration_since(now).saturating_sub(PACE * BURST).min(PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_do_not_wait_and_many_do() {
        let (refusals, now) = (Refusals::default(), Instant::now());
        let waits: Vec<Duration> = (0..10_000).map(|_| refusals.reserve(now)).collect();
        let free = waits.iter().take_while(|wait| wait.is_zero()).count();
        assert_eq!(free, BURST as usize + 1);
        assert_eq!(waits[free], PACE);
        assert!(waits.is_sorted());
        assert_eq!(waits.last(), Some(&PATIENCE));
    }

    #[test]
    fn the_line_is_gone_when_nobody_comes() {
        let (refusals, now) = (Refusals::default(), Instant::now());
        for _ in 0..10_000 {
            refusals.reserve(now);
        }
        assert_eq!(refusals.reserve(now + 2 * PATIENCE), Duration::ZERO);
    }
}
