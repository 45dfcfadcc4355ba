//! The meter of one physical partition: how much users consumed in the current second, and how much the purge may spend.
//!
//! Time is divided into windows of one second of server time. When window *s* has ended (TTL-259):
//!
//! ```text
//!   credit(s+1) = min(0, credit(s) − spent(s)) + max(0, B(s) − U(s))
//! ```
//!
//! *B* is the budget, *U* the units that users consumed, *spent* those that the purge spent. So the purge spends what users left over in the
//! previous second; unspent credit lapses, debt stays. Credit is 0 at the start.

use std::sync::Arc;

use bolide_model::{RequestUnits, UnixMillis, UnixSeconds};
use parking_lot::Mutex;

use super::{Pacing, PacingSettings};

const SECONDS_PER_HOUR: i64 = 3600;

/// The meter of a partition, or of all partitions that share a database's throughput.
pub(crate) type SharedMeter = Arc<Mutex<Meter>>;

/// Counts the units of users and of the purge in windows of a second; see the module.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    pacing: Pacing,
    window: UnixSeconds,
    used: f64,
    credit: f64,
    spent: f64,
    /// Highest use of a window so far in the clock hour of `window`, without `window` itself, in request units.
    hour_peak: f64,
}

impl Meter {
    /// As [`Meter::new`], for sharing.
    pub fn shared(settings: &PacingSettings, partitions: usize, now: UnixSeconds) -> SharedMeter {
        Arc::new(Mutex::new(Meter::new(settings, partitions, now)))
    }

    /// Creates a meter that starts at `now` without credit, for one of `partitions` equal shares of a container's budget.
    pub fn new(settings: &PacingSettings, partitions: usize, now: UnixSeconds) -> Meter {
        let pacing = settings.pacing.share(partitions);
        Meter {
            pacing,
            window: now,
            used: 0.0,
            credit: 0.0,
            spent: 0.0,
            hour_peak: 0.0,
        }
    }

    /// Changes the budget from `now` on; what was used, left over and owed before stays.
    pub fn set_pacing(&mut self, settings: &PacingSettings, partitions: usize, now: UnixSeconds) {
        self.roll(now);
        self.pacing = settings.pacing.share(partitions);
    }

    /// Checks whether users may begin an operation now; the error is the number of milliseconds until the next window.
    pub fn admit(&mut self, now: UnixMillis) -> Result<(), u64> {
        self.roll(now.seconds());
        match self.pacing.ceiling() {
            Some(ceiling) if self.used >= ceiling => Err(1000 - now.0.rem_euclid(1000).unsigned_abs()),
            _ => Ok(()),
        }
    }

    /// Adds the units that an operation of users consumed.
    pub fn consume(&mut self, now: UnixSeconds, units: RequestUnits) {
        self.roll(now);
        self.used += units.0;
    }

    /// Consumes `units` if they fit into the current window; returns whether they did.
    pub fn try_consume(&mut self, now: UnixSeconds, units: RequestUnits) -> bool {
        self.roll(now);
        if self
            .pacing
            .ceiling()
            .is_some_and(|ceiling| self.used + units.0 > ceiling)
        {
            return false;
        }
        self.used += units.0;
        true
    }

    /// Returns the units that the purge may spend now, `None` without a limit. At zero or less it may not begin another item.
    pub fn credit(&mut self, now: UnixSeconds) -> Option<f64> {
        self.roll(now);
        (self.pacing != Pacing::Unlimited).then_some(self.credit - self.spent)
    }

    /// Adds the units that the purge spent.
    pub fn spend(&mut self, now: UnixSeconds, units: RequestUnits) {
        self.roll(now);
        self.spent += units.0;
    }

    /// Ends every window before `now`.
    fn roll(&mut self, now: UnixSeconds) {
        while self.window < now {
            self.end_window();
            let idle = self.used == 0.0 && self.spent == 0.0;
            if idle && self.credit >= 0.0 && self.window < now {
                self.skip_idle_windows(now);
            }
        }
    }

    fn end_window(&mut self) {
        let left_over = (self.budget() - self.used).max(0.0);
        self.credit = (self.credit - self.spent).min(0.0) + left_over;
        self.enter(UnixSeconds(self.window.0 + 1), self.hour_peak.max(self.used));
    }

    /// Skips idle windows: after a window without use, spending or debt, each window up to `now` has only the leftovers of the one before it.
    fn skip_idle_windows(&mut self, now: UnixSeconds) {
        self.enter(UnixSeconds(now.0 - 1), self.hour_peak);
        self.credit = 0.0;
        self.end_window();
    }

    fn enter(&mut self, window: UnixSeconds, peak: f64) {
        let same_hour = window.0.div_euclid(SECONDS_PER_HOUR) == self.window.0.div_euclid(SECONDS_PER_HOUR);
        self.hour_peak = if same_hour { peak } else { 0.0 };
        self.window = window;
        self.used = 0.0;
        self.spent = 0.0;
    }

    /// Returns *B* of the current window (TTL-260…263).
    fn budget(&self) -> f64 {
        match self.pacing {
            Pacing::Provisioned { ru } => ru,
            Pacing::Autoscale { max_ru } => (max_ru / 10.0).max(self.hour_peak.max(self.used)),
            Pacing::Serverless => super::SERVERLESS_RU,
            Pacing::Unlimited => 0.0,
        }
    }
}

#[cfg(test)]
mod tests;
