//! The rests of work that goes through all items of a container: beside users it takes a part of the time only.

use std::time::{Duration, Instant};

use bolide_model::time::Activity;

use super::Background;
use super::pacer::USERS_STAY_FOR;

/// While users are active, work rests this many times as long as a step took: an index over a million items is built in two minutes.
const RESTS_BESIDE_USERS: u32 = 1;
/// Longest rest: nothing interrupts it.
const MAX_REST: Duration = Duration::from_secs(1);

/// Rests after the steps of some work.
pub(super) struct Rests<'b> {
    background: &'b Background,
    users: Activity,
}

impl<'b> Rests<'b> {
    pub fn new(background: &'b Background) -> Rests<'b> {
        Rests {
            background,
            users: Activity::new(background.requests(), USERS_STAY_FOR),
        }
    }

    /// Returns whether users are active.
    pub fn is_beside_users(&mut self) -> bool {
        let now = self.background.clock.now();
        self.users.look(self.background.requests(), now);
        self.users.is_recent(now)
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
