//! Time: its units, and the clock for `_ts` and TTL.
//!
//! Server time is the wall clock in UTC, made monotone by the engine (TTL-201, TTL-202). A [`Clock`] is the wall clock or, for tests, a virtual one
//! that moves only by request (TTL-206). [`Monotonic`] is the clock for durations and timeouts. Nothing else in the product may read the machine's
//! time; `clippy.toml` forbids it.

mod activity;
mod commit_time;
mod monotonic;

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

pub use activity::Activity;
pub use commit_time::CommitTime;
pub use monotonic::Monotonic;

/// Whole seconds since 1970-01-01T00:00:00Z, leap seconds ignored: the unit of `_ts` and of every expiry decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UnixSeconds(pub i64);

/// Milliseconds since 1970-01-01T00:00:00Z, leap seconds ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UnixMillis(pub i64);

impl UnixMillis {
    /// The second that contains this instant: rounded down, before 1970 too (TTL-201, TTL-207).
    pub fn seconds(self) -> UnixSeconds {
        UnixSeconds(self.0.div_euclid(1000))
    }

    /// The first second that does not begin before this instant: rounded up.
    pub fn seconds_up(self) -> UnixSeconds {
        UnixSeconds(self.0.saturating_add(999).div_euclid(1000))
    }
}

impl UnixSeconds {
    /// The first millisecond of this second.
    pub fn millis(self) -> UnixMillis {
        UnixMillis(self.0.saturating_mul(1000))
    }
}

/// An interval that certainly contains the server time: `lo <= now <= hi`. On one machine both are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Not later than now.
    pub lo: UnixMillis,
    /// Not earlier than now.
    pub hi: UnixMillis,
}

impl Span {
    /// The interval of a clock that is exact.
    pub fn point(now: UnixMillis) -> Span {
        Span { lo: now, hi: now }
    }
}

/// The clock of a server: the wall clock, or one that stands still until it is moved.
#[derive(Debug)]
pub enum Clock {
    /// The machine's wall clock.
    System,
    /// Epoch milliseconds; moves only by [`Clock::set`] and [`Clock::advance`].
    Virtual(AtomicI64),
}

impl Clock {
    /// A virtual clock that shows `start`.
    pub fn virtual_at(start: UnixMillis) -> Clock {
        Clock::Virtual(AtomicI64::new(start.0))
    }

    /// The time that the clock shows. It may run backwards; server time, from [`MonotoneClock`], does not.
    pub fn now(&self) -> UnixMillis {
        match self {
            Clock::System => wall_clock(),
            Clock::Virtual(millis) => UnixMillis(millis.load(Ordering::SeqCst)),
        }
    }

    /// Whether the clock is moved by hand.
    pub fn is_virtual(&self) -> bool {
        matches!(self, Clock::Virtual(_))
    }

    /// Sets a virtual clock, backwards too. Returns whether the clock is virtual; a system clock does not change.
    pub fn set(&self, to: UnixMillis) -> bool {
        match self {
            Clock::System => false,
            Clock::Virtual(millis) => {
                millis.store(to.0, Ordering::SeqCst);
                true
            }
        }
    }

    /// Moves a virtual clock by `by_ms`, backwards if negative. Returns whether the clock is virtual.
    pub fn advance(&self, by_ms: i64) -> bool {
        match self {
            Clock::System => false,
            Clock::Virtual(millis) => {
                // Saturating: requests set the clock, and an extreme step must not wrap it.
                let _ = millis.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |at| Some(at.saturating_add(by_ms)));
                true
            }
        }
    }
}

/// The machine's time of day. For signatures' dates and certificates, which use real time even under a virtual clock (TTL-206).
#[expect(clippy::disallowed_methods, reason = "the one place that asks the machine")]
pub fn wall_clock() -> UnixMillis {
    let millis = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    };
    UnixMillis(millis)
}

/// Server time: the clock, but never below a time that it showed or observed before (TTL-202).
///
/// Engines hold one; they pass the stamps found on disk and of every commit to `observe`.
#[derive(Debug)]
pub struct MonotoneClock {
    clock: std::sync::Arc<Clock>,
    floor: AtomicI64,
}

impl MonotoneClock {
    /// Server time based on `clock`, not below `floor`.
    pub fn new(clock: std::sync::Arc<Clock>, floor: UnixMillis) -> MonotoneClock {
        MonotoneClock {
            clock,
            floor: AtomicI64::new(floor.0),
        }
    }

    /// Server time now.
    pub fn now(&self) -> UnixMillis {
        self.observe(self.clock.now())
    }

    /// Raises the floor to `seen`, and returns server time: the highest time seen so far.
    pub fn observe(&self, seen: UnixMillis) -> UnixMillis {
        UnixMillis(self.floor.fetch_max(seen.0, Ordering::SeqCst).max(seen.0))
    }
}

#[cfg(test)]
mod tests;
