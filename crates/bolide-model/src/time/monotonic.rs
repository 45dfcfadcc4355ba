//! The monotonic clock, for durations and timeouts. It is independent of `_ts` and TTL, which use server time.
//!
//! Code that measures or waits gets a clock as an argument, so that a test can pass one that stands still until it is moved. With the feature `tokio`
//! the machine's clock is tokio's, so a test that pauses tokio's time pauses this clock too.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The machine's monotonic clock, or one that is moved by hand. Clones show the same time.
#[derive(Debug, Clone, Default)]
pub struct Monotonic(Source);

#[derive(Debug, Clone, Default)]
enum Source {
    #[default]
    System,
    Manual(Arc<Mutex<Manual>>),
}

/// A clock that is moved by hand, and the tasks that sleep on it.
#[derive(Debug)]
struct Manual {
    now: Instant,
    sleepers: Vec<Sleeper>,
    next_number: u64,
}

#[derive(Debug)]
struct Sleeper {
    number: u64,
    until: Instant,
    waker: Waker,
}

impl Monotonic {
    /// The machine's clock.
    pub fn system() -> Monotonic {
        Monotonic(Source::System)
    }

    /// A clock that stands still; moves only by [`Monotonic::advance`].
    pub fn manual() -> Monotonic {
        Monotonic(Source::Manual(Arc::new(Mutex::new(Manual {
            now: system_now(),
            sleepers: Vec::new(),
            next_number: 0,
        }))))
    }

    /// The time that the clock shows. Never decreases.
    pub fn now(&self) -> Instant {
        match &self.0 {
            Source::System => system_now(),
            Source::Manual(manual) => manual.lock().now,
        }
    }

    /// The time passed since `earlier`; zero if that is in the future.
    pub fn since(&self, earlier: Instant) -> Duration {
        self.now().saturating_duration_since(earlier)
    }

    /// Moves a manual clock, and wakes tasks that sleep until then. Returns whether the clock is manual; the machine's clock does not change.
    pub fn advance(&self, by: Duration) -> bool {
        let Source::Manual(manual) = &self.0 else { return false };
        let woken: Vec<Waker> = {
            let mut manual = manual.lock();
            manual.now += by;
            let now = manual.now;
            let is_due = |sleeper: &Sleeper| sleeper.until <= now;
            manual
                .sleepers
                .iter()
                .filter(|sleeper| is_due(sleeper))
                .map(|sleeper| sleeper.waker.clone())
                .collect()
        };
        woken.into_iter().for_each(Waker::wake);
        true
    }

    /// The earliest time until which a task sleeps on a manual clock, for tests that move the clock exactly there. `None` if none sleeps.
    pub fn next_wake(&self) -> Option<Instant> {
        let Source::Manual(manual) = &self.0 else { return None };
        manual.lock().sleepers.iter().map(|sleeper| sleeper.until).min()
    }
}

#[cfg(feature = "tokio")]
impl Monotonic {
    /// Sleeps until the clock shows `until`. On the machine's clock only within a tokio runtime, whose timer is exact to a millisecond.
    pub async fn sleep_until(&self, until: Instant) {
        match &self.0 {
            Source::System => tokio::time::sleep_until(until.into()).await,
            Source::Manual(manual) => Reached::new(manual, until).await,
        }
    }

    /// Sleeps for a duration; as [`Monotonic::sleep_until`].
    pub async fn sleep(&self, time: Duration) {
        match &self.0 {
            Source::System => tokio::time::sleep(time).await,
            Source::Manual(_) => self.sleep_until(self.now() + time).await,
        }
    }

    /// Waits for `work`, at most until the clock shows `until`. `None`: the time was over, and `work` is dropped.
    pub async fn timeout_at<F: Future>(&self, until: Instant, work: F) -> Option<F::Output> {
        let Source::Manual(manual) = &self.0 else {
            return tokio::time::timeout_at(until.into(), work).await.ok();
        };
        let mut work = std::pin::pin!(work);
        let mut end = std::pin::pin!(Reached::new(manual, until));
        std::future::poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => end.as_mut().poll(context).map(|()| None),
        })
        .await
    }
}

/// A future that is ready when a manual clock shows a time.
#[cfg_attr(not(feature = "tokio"), allow(dead_code))]
struct Reached {
    manual: Arc<Mutex<Manual>>,
    until: Instant,
    /// Its number among the sleepers, once it is registered.
    number: Option<u64>,
}

#[cfg_attr(not(feature = "tokio"), allow(dead_code))]
impl Reached {
    fn new(manual: &Arc<Mutex<Manual>>, until: Instant) -> Reached {
        Reached {
            manual: manual.clone(),
            until,
            number: None,
        }
    }
}

impl Future for Reached {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let shared = self.manual.clone();
        let mut manual = shared.lock();
        if manual.now >= self.until {
            return Poll::Ready(());
        }
        let number = *self.number.get_or_insert_with(|| {
            manual.next_number += 1;
            manual.next_number
        });
        manual.sleepers.retain(|sleeper| sleeper.number != number);
        manual.sleepers.push(Sleeper {
            number,
            until: self.until,
            waker: context.waker().clone(),
        });
        Poll::Pending
    }
}

impl Drop for Reached {
    fn drop(&mut self) {
        let mut manual = self.manual.lock();
        manual.sleepers.retain(|sleeper| Some(sleeper.number) != self.number);
    }
}

#[cfg(feature = "tokio")]
#[expect(clippy::disallowed_methods, reason = "the one place that asks the machine")]
fn system_now() -> Instant {
    tokio::time::Instant::now().into_std()
}

#[cfg(not(feature = "tokio"))]
#[expect(clippy::disallowed_methods, reason = "the one place that asks the machine")]
fn system_now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
