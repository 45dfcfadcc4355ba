//! The rests of work that goes through all items of a container: beside users it takes a part of the time only.

use std::time::{Duration, Instant};

use super::Background;

/// While users are active, work rests this many times as long as a step took: an index over a million items is built in two minutes.
const RESTS_BESIDE_USERS: u32 = 1;
/// Longest rest: nothing interrupts it.
const MAX_REST: Duration = Duration::from_secs(1);
/// How long users count as active after a request: most steps are shorter than the time between two requests of a busy user.
const USERS_STAY_FOR: Duration = Duration::from_secs(1);

/// Rests after the steps of some work.
pub(super) struct Rests<'b> {
    background: &'b Background,
    /// Number of requests of users at the last look, and when it last rose.
    requests: u64,
    asked_at: Option<Instant>,
}

impl<'b> Rests<'b> {
    pub fn new(background: &'b Background) -> Rests<'b> {
        Rests {
            background,
            requests: background.requests(),
            asked_at: None,
        }
    }

    /// Returns whether users are active.
    pub fn is_beside_users(&mut self) -> bool {
        let (now, requests) = (self.background.clock.now(), self.background.requests());
        if std::mem::replace(&mut self.requests, requests) != requests {
            self.asked_at = Some(now);
        }
        self.asked_at.is_some_and(|at| now.duration_since(at) < USERS_STAY_FOR)
    }

    /// Rests after a step that began at an instant.
    pub async fn after(&mut self, began: Instant) {
        let took = self.background.clock.since(began);
        if self.is_beside_users() {
            let rest = (took * RESTS_BESIDE_USERS).min(MAX_REST);
            self.background.clock.sleep(rest).await;
        } else {
            tokio::task::yield_now().await;
        }
    }
}
