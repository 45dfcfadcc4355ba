//! How much the purge does at once: its highest rate, its rests beside users, and the hold after a step of the wall clock.

use std::time::{Duration, Instant};

use bolide_model::UnixMillis;

use super::scheduler::TICK;

/// A backlog loses this many items without rests, users or not: what is due in one second is rarely more.
const UNRESTED_ITEMS: u64 = 1_000;
/// Users are there for so long after a request. Most steps are shorter than the time between two requests of a busy user, so a step alone
/// does not tell.
const USERS_STAY_FOR: Duration = Duration::from_secs(1);
/// While users are there, a step takes no more items than these: a user's write that meets it waits for half a millisecond.
const ITEMS_BESIDE_USERS: u64 = 10;
/// While users are there, the purge rests this many times as long as its last step took.
const RESTS_BESIDE_USERS: u32 = 14;
/// A backlog this old is purged without rests, so that it cannot grow for ever beside users who write faster than a resting purge removes.
const PATIENT_FOR: Duration = Duration::from_secs(300);
/// A forward step of the wall clock larger than this holds the purge (TTL-204).
const STEP_HOLDS: Duration = Duration::from_secs(24 * 3600);

/// What holds the purge back, from one tick to the next.
pub(super) struct PurgePacer {
    bucket: TokenBucket,
    /// Items of the backlog that may go before the purge rests beside users.
    unrested: u64,
    /// How many requests there had been when it was last looked, and when there was a new one.
    users: (u64, Option<Instant>),
    /// Since when there has been a backlog.
    backlog_since: Option<Instant>,
}

impl PurgePacer {
    /// At most so many items a second, from `now` on.
    pub fn new(items_per_second: Option<u32>, now: Instant) -> PurgePacer {
        PurgePacer {
            bucket: TokenBucket::new(items_per_second, now),
            unrested: UNRESTED_ITEMS,
            users: (0, None),
            backlog_since: None,
        }
    }

    /// How long the purge rests after a step that began at `began` and took so long. Users first, in CPU and disk as in everything else
    /// (TTL-265): beside them it rests most of the time. What it does at once when a second begins is too little to be felt.
    pub fn rest_after(&self, began: Instant, took: Duration) -> Duration {
        took * self.rests(began)
    }

    /// How many times as long as a step the purge rests after it.
    fn rests(&self, now: Instant) -> u32 {
        if !self.is_beside_users(now) || self.unrested > 0 {
            return 0;
        }
        let age = self
            .backlog_since
            .map_or(Duration::ZERO, |since| now.duration_since(since));
        let left = 1.0 - age.as_secs_f64() / PATIENT_FOR.as_secs_f64();
        (f64::from(RESTS_BESIDE_USERS) * left).ceil() as u32
    }

    /// Notes how many requests there have been by now.
    pub fn look_for_users(&mut self, requests: u64, now: Instant) {
        if requests != self.users.0 {
            self.users = (requests, Some(now));
        }
    }

    fn is_beside_users(&self, now: Instant) -> bool {
        let seen = self.users.1;
        seen.is_some_and(|seen| now.duration_since(seen) < USERS_STAY_FOR)
    }

    /// How many items the next step may take.
    pub fn items(&mut self, now: Instant) -> u64 {
        let items = self.bucket.items(now);
        match self.rests(now) {
            0 => items,
            _ => items.min(ITEMS_BESIDE_USERS),
        }
    }

    /// Notes that a step which began at `began` removed so many.
    pub fn take(&mut self, items: u64, began: Instant) {
        self.bucket.take(items);
        self.unrested = self.unrested.saturating_sub(items);
        self.backlog_since.get_or_insert(began);
    }

    /// All that was due is gone.
    pub fn drained(&mut self) {
        self.unrested = UNRESTED_ITEMS;
        self.backlog_since = None;
    }
}

/// How many items may still be removed, by the highest rate.
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

    /// What has gathered by now, at most that of one tick.
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

/// Notices steps of the wall clock by comparing it with the monotonic one.
#[derive(Default)]
pub(super) struct ClockWatch {
    last: Option<(UnixMillis, Instant)>,
    held_until: Option<Instant>,
}

impl ClockWatch {
    /// Whether the purge is held at server time `now`, which is `instant` on the monotonic clock. `hold`: for how long a step holds it.
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
