//! Server time: the clock of the database server, on all nodes, as an interval (distributed.md §8).
//!
//! Every second a node asks the server for its time, and remembers how far that is from its own clock of durations. The true time of the answer lies between the
//! question and the answer, so half of the round trip is the error; it grows with age. A virtual clock is exact, and nobody is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use bolide_model::UnixMillis;
use bolide_model::time::{Clock, Monotonic, Span};
use parking_lot::Mutex;
use tokio_postgres::Error;

use crate::connection::Connection;

/// The error that a clock of durations adds with age: two parts in ten thousand.
const DRIFT_PER_MILLION: i64 = 200;
/// Questions of one look; the one with the shortest round trip counts.
const QUESTIONS: usize = 3;
const MICROS: &str = "select (extract(epoch from clock_timestamp()) * 1000000)::bigint";

/// Server time, which never goes back.
pub(crate) struct ServerTime {
    clock: Arc<Clock>,
    monotonic: Monotonic,
    sample: Mutex<Option<Sample>>,
    lo: AtomicI64,
    hi: AtomicI64,
    /// Server time does not fall below it, even after a restart.
    durable: AtomicI64,
}

/// An answer of the server.
#[derive(Debug, Clone, Copy)]
struct Sample {
    /// Microseconds since 1970, in the middle between the question and the answer.
    micros: i64,
    at: Instant,
    /// Half of the round trip.
    error: Duration,
}

impl Sample {
    /// Microseconds since 1970 that the time lies between.
    fn span(&self, age: Duration) -> (i64, i64) {
        let age = micros(age);
        let error = micros(self.error) + age.saturating_mul(DRIFT_PER_MILLION) / 1_000_000;
        (self.micros + age - error, self.micros + age + error)
    }
}

impl ServerTime {
    /// Time that is not below `floor`.
    pub(crate) fn new(clock: Arc<Clock>, monotonic: Monotonic, floor: UnixMillis) -> ServerTime {
        ServerTime {
            clock,
            monotonic,
            sample: Mutex::default(),
            lo: AtomicI64::new(floor.0),
            hi: AtomicI64::new(floor.0),
            durable: AtomicI64::new(floor.0),
        }
    }

    /// Whether the server has to be asked now and then.
    pub(crate) fn is_asked(&self) -> bool {
        !self.clock.is_virtual()
    }

    /// Asks the server.
    pub(crate) async fn ask(&self, connection: &mut Connection) -> Result<(), Error> {
        for _ in 0..QUESTIONS {
            let asked = self.monotonic.now();
            let row = connection.client().query_one(MICROS, &[]).await?;
            let error = self.monotonic.since(asked) / 2;
            self.learn(Sample {
                micros: row.try_get(0)?,
                at: asked + error,
                error,
            });
        }
        Ok(())
    }

    /// How far the time that was made durable is ahead of what the server says. Zero where nobody is asked.
    pub(crate) fn lead(&self) -> Duration {
        let Some(sample) = *self.sample.lock() else {
            return Duration::ZERO;
        };
        let (lo, _) = sample.span(self.monotonic.since(sample.at));
        let ahead = self.durable().0.saturating_mul(1_000).saturating_sub(lo);
        Duration::from_micros(u64::try_from(ahead).unwrap_or(0))
    }

    /// Keeps the sample with the smaller error by now.
    fn learn(&self, sample: Sample) {
        let mut known = self.sample.lock();
        let width = |sample: &Sample| {
            let (lo, hi) = sample.span(self.monotonic.since(sample.at));
            hi - lo
        };
        if known.as_ref().is_none_or(|known| width(&sample) <= width(known)) {
            *known = Some(sample);
        }
    }

    /// The time now.
    pub(crate) fn now(&self) -> Span {
        let sample = *self.sample.lock();
        let (lo, hi) = match sample {
            Some(sample) => {
                let (lo, hi) = sample.span(self.monotonic.since(sample.at));
                (lo.div_euclid(1_000), hi.saturating_add(999).div_euclid(1_000))
            }
            None => {
                let now = self.clock.now().0;
                (now, now)
            }
        };
        let lo = self.lo.fetch_max(lo, Ordering::SeqCst).max(lo);
        // Never below the other end, which may have been raised.
        let hi = hi.max(lo);
        let hi = self.hi.fetch_max(hi, Ordering::SeqCst).max(hi);
        // An exact clock stays exact: both ends follow what was seen.
        let lo = if sample.is_none() {
            self.lo.fetch_max(hi, Ordering::SeqCst).max(hi)
        } else {
            lo
        };
        Span {
            lo: UnixMillis(lo),
            hi: UnixMillis(hi.max(lo)),
        }
    }

    /// A stamp was seen: nothing is stamped before it from now on.
    pub(crate) fn observe(&self, stamp: UnixMillis) {
        self.hi.fetch_max(stamp.0, Ordering::SeqCst);
    }

    /// See [`bolide_storage::Engine::durable_time`].
    pub(crate) fn durable(&self) -> UnixMillis {
        UnixMillis(self.durable.load(Ordering::SeqCst))
    }

    /// The time was stored.
    pub(crate) fn made_durable(&self, until: UnixMillis) {
        self.durable.fetch_max(until.0, Ordering::SeqCst);
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
