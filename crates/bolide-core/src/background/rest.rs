//! The rests of work that goes through all items of a container: beside users it takes a part of the time only.

use std::time::{Duration, Instant};

use super::Background;

/// While users are active, work rests this many times as long as a step took.
const RESTS_BESIDE_USERS: u32 = 2;
/// Longest rest: nothing interrupts it.
const MAX_REST: Duration = Duration::from_secs(1);

/// Rests after the steps of some work.
pub(super) struct Rests<'b> {
    background: &'b Background,
    /// Number of requests of users before the last step.
    requests: u64,
}

impl<'b> Rests<'b> {
    pub fn new(background: &'b Background) -> Rests<'b> {
        Rests {
            background,
            requests: background.requests(),
        }
    }

    /// Rests after a step that began at an instant.
    pub async fn after(&mut self, began: Instant) {
        let took = self.background.clock.since(began);
        let before = std::mem::replace(&mut self.requests, self.background.requests());
        if self.requests == before {
            tokio::task::yield_now().await;
        } else {
            let rest = (took * RESTS_BESIDE_USERS).min(MAX_REST);
            self.background.clock.sleep(rest).await;
        }
    }
}
