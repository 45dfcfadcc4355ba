//! How much the purge does at once: its maximum rate, its rests while users send requests, and its pause after a step of the wall clock.

use std::time::{Duration, Instant};

use bolide_model::UnixMillis;
use bolide_model::time::Activity;

use super::scheduler::TICK;

/// Number of items of a backlog that are purged without rests even while users send requests: rarely more items become due in one second.
const UNRESTED_ITEMS: u64 = 1_000;
/// Maximum number of items of each of these first steps while users are active: a user's write in the same batch waits for about a millisecond.
const UNRESTED_STEP_ITEMS: u64 = 25;
/// Maximum number of rows that a step of counting ghosts reads while users are active: their writes wait for it, well below a millisecond.
const COUNTED_BESIDE_USERS: u64 = 200;
/// How long users count as active after a request. Most steps are shorter than the time between two requests of a busy user, so a single step
/// does not show whether users are active.
pub(super) const USERS_STAY_FOR: Duration = Duration::from_secs(1);
/// Number of items of a step while users are active, so that a user's write in the same batch waits about a quarter of a millisecond.
const ITEMS_BESIDE_USERS: u64 = 10;
/// Maximum number of items of a step that has to make up for the time for which the step before it waited for a user's write.
const MAX_ITEMS_BESIDE_USERS: u64 = 25;
/// While users are active, the purge rests at most this many times as long as its last step took: then it is some two per cent of a processor.
const MAX_RESTS: u32 = 60;
/// Longest rest: nothing interrupts it.
const MAX_REST: Duration = Duration::from_secs(1);
/// Maximum time for which a step waits for a user's write: other background work of its partition waits behind it.
const MAX_PATIENCE: Duration = Duration::from_millis(20);
/// Time in which a backlog is removed beside users, at an even pace: a faster purge would only be felt more, because nobody sees ghosts.
const REMOVED_WITHIN: Duration = Duration::from_secs(420);
/// Minimum time in which what is left is to be removed. If items become due as fast as the purge removes them, the backlog stays at what becomes due in
/// this time.
const LEAST_TIME_LEFT: Duration = Duration::from_secs(30);
/// Minimum forward step of the wall clock that pauses the purge (TTL-204).
const STEP_HOLDS: Duration = Duration::from_secs(24 * 3600);

/// Limits the purge, with state from one tick to the next.
pub(super) struct PurgePacer {
    bucket: TokenBucket,
    /// Number of items of the backlog that may be removed before the purge rests for users.
    unrested: u64,
    /// The requests of users.
    users: Activity,
    /// Number of items that are to be removed, as far as they are counted.
    backlog: u64,
    /// The time since which there has been a backlog.
    backlog_since: Option<Instant>,
    /// How long the last step took.
    last_took: Duration,
    /// When the last step began.
    last_began: Option<Instant>,
    /// The time between the beginnings of the last two steps.
    last_cycle: Duration,
}

impl PurgePacer {
    /// Creates a pacer that allows at most `items_per_second` items per second, from `now` on.
    pub fn new(items_per_second: Option<u32>, now: Instant) -> PurgePacer {
        PurgePacer {
            bucket: TokenBucket::new(items_per_second, now),
            unrested: UNRESTED_ITEMS,
            users: Activity::new(0, USERS_STAY_FOR),
            backlog: 0,
            backlog_since: None,
            last_took: Duration::ZERO,
            last_began: None,
            last_cycle: Duration::ZERO,
        }
    }

    /// Returns how long the purge rests after a step that began at `began` and took `took`. Users come first, in CPU and disk as in request units
    /// (TTL-265): while they are active, the purge goes at the pace at which its backlog ends in time. Part of the rest the next step spends waiting for
    /// a user's write. The items that it removes without rests when a second begins are too few to slow users down.
    pub fn rest_after(&mut self, began: Instant, took: Duration) -> Duration {
        self.last_took = took;
        let rest = self.rest(began);
        rest - waiting_part(rest)
    }

    /// Returns how long the next step may wait for a user's write to be committed with, because syncs of its own are what users would feel most: the
    /// part of its rest that is left for this, and longer as long as a larger step makes up for it.
    pub fn patience(&self, now: Instant) -> Duration {
        let rest = self.rest(now);
        if rest.is_zero() {
            return Duration::ZERO;
        }
        let part = waiting_part(rest);
        let largest = self.time_of(MAX_ITEMS_BESIDE_USERS, now).saturating_sub(self.last_took);
        part.max(largest.saturating_sub(rest - part).min(MAX_PATIENCE))
    }

    /// Returns the time between the last step and the next one.
    fn rest(&self, now: Instant) -> Duration {
        if !self.is_beside_users(now) || self.unrested > 0 {
            return Duration::ZERO;
        }
        self.time_of(ITEMS_BESIDE_USERS, now)
            .saturating_sub(self.last_took)
            .min(self.last_took * MAX_RESTS)
            .min(MAX_REST)
    }

    /// Returns the time in which a number of items is removed at the even pace of the backlog.
    fn time_of(&self, items: u64, now: Instant) -> Duration {
        self.time_left(now).div_f64(self.backlog.div_ceil(items).max(1) as f64)
    }

    /// Returns the time in which the backlog is to be removed.
    fn time_left(&self, now: Instant) -> Duration {
        let age = self
            .backlog_since
            .map_or(Duration::ZERO, |since| now.duration_since(since));
        REMOVED_WITHIN.saturating_sub(age).max(LEAST_TIME_LEFT)
    }

    /// Returns the number of items of a step at the even pace: as many as belong to the time since the step before it, as far as that is known.
    fn items_beside_users(&self, now: Instant) -> u64 {
        let due = self.backlog as f64 * self.last_cycle.div_duration_f64(self.time_left(now));
        (due.round() as u64).clamp(ITEMS_BESIDE_USERS, MAX_ITEMS_BESIDE_USERS)
    }

    /// Records how many items are to be removed.
    pub fn look_at_backlog(&mut self, items: u64) {
        self.backlog = items;
    }

    /// Records the number of requests at `now`.
    pub fn look_for_users(&mut self, requests: u64, now: Instant) {
        self.users.look(requests, now);
    }

    fn is_beside_users(&self, now: Instant) -> bool {
        self.users.is_recent(now)
    }

    /// Returns the maximum number of rows of the next step that counts ghosts.
    pub fn counted(&self, now: Instant) -> u64 {
        match self.is_beside_users(now) {
            true => COUNTED_BESIDE_USERS,
            false => u64::MAX,
        }
    }

    /// Returns the maximum number of items of the next step.
    pub fn items(&mut self, now: Instant) -> u64 {
        let items = self.bucket.items(now);
        if !self.is_beside_users(now) {
            return items;
        }
        if self.unrested > 0 {
            return items.min(UNRESTED_STEP_ITEMS);
        }
        match self.rest(now).is_zero() && !self.last_took.is_zero() {
            // Small steps are too slow.
            true => items,
            false => items.min(self.items_beside_users(now)),
        }
    }

    /// Records that a step which began at `began` removed `items` items.
    pub fn take(&mut self, items: u64, began: Instant) {
        self.bucket.take(items);
        self.unrested = self.unrested.saturating_sub(items);
        self.backlog_since.get_or_insert(began);
        let last = self.last_began.replace(began).unwrap_or(began);
        self.last_cycle = began.duration_since(last);
    }

    /// Records that everything that was due has been removed.
    pub fn drained(&mut self) {
        self.unrested = UNRESTED_ITEMS;
        self.backlog_since = None;
        self.last_began = None;
    }
}

/// Returns the part of a rest that the next step may spend waiting for a user's write.
fn waiting_part(rest: Duration) -> Duration {
    (rest / 2).min(MAX_PATIENCE)
}

/// The number of items that may still be removed at the maximum rate.
struct TokenBucket {
    per_second: Option<u32>,
    items: f64,
    filled_at: Instant,
}

impl TokenBucket {
    fn new(per_second: Option<u32>, now: Instant) -> TokenBucket {
        TokenBucket {
            per_second,
            items: 0.0,
            filled_at: now,
        }
    }

    /// Returns the number of items that may be removed now, at most those of one tick.
    fn items(&mut self, now: Instant) -> u64 {
        let Some(per_second) = self.per_second.map(f64::from) else {
            return u64::MAX;
        };
        let gathered = self.items + per_second * now.duration_since(self.filled_at).as_secs_f64();
        self.items = gathered.min((per_second * TICK.as_secs_f64()).max(1.0));
        self.filled_at = now;
        self.items as u64
    }

    fn take(&mut self, items: u64) {
        self.items -= items as f64;
    }
}

/// Detects steps of the wall clock by comparing it with the monotonic clock.
#[derive(Default)]
pub(super) struct ClockWatch {
    last: Option<(UnixMillis, Instant)>,
    held_until: Option<Instant>,
}

impl ClockWatch {
    /// Returns whether the purge pauses at server time `now`, which is `instant` on the monotonic clock. `hold`: how long it pauses after a step.
    pub fn look(&mut self, now: UnixMillis, instant: Instant, hold: Duration) -> bool {
        if let Some((last, at)) = self.last.replace((now, instant)) {
            let stepped = now.0 - last.0 - instant.duration_since(at).as_millis() as i64;
            if stepped > STEP_HOLDS.as_millis() as i64 && !hold.is_zero() {
                tracing::error!(
                    stepped_seconds = stepped / 1000,
                    hold_seconds = hold.as_secs(),
                    "the wall clock stepped forward by more than a day: expired items are hidden, their purge is held"
                );
                self.held_until = Some(instant + hold);
            }
        }
        self.held_until.is_some_and(|until| instant < until)
    }
}

#[cfg(test)]
mod tests;
