//! Wakes background tasks: the purge's scheduler when an item expires earlier than the scheduler would wake up, and the task that makes server time
//! durable in advance.

use std::sync::atomic::{AtomicI64, Ordering};

use tokio::sync::Notify;

/// Signalled by writes of items that expire early. There is one for the whole account.
///
/// The scheduler first calls `stay_awake`, then finds the earliest expiry, and only then calls `sleep_until`. So an expiry that is announced in
/// between signals it, and no expiry is missed while it sleeps.
pub(crate) struct Wakeup {
    sleeps_until: AtomicI64,
    bell: Notify,
    exact_time: Notify,
}

impl Default for Wakeup {
    /// Returns the wakeup of a scheduler that is awake.
    fn default() -> Wakeup {
        Wakeup {
            sleeps_until: AtomicI64::new(i64::MAX),
            bell: Notify::new(),
            exact_time: Notify::new(),
        }
    }
}

impl Wakeup {
    /// Announces that an item expires at a second.
    pub fn expect(&self, second: i64) {
        if second < self.sleeps_until.load(Ordering::SeqCst) {
            self.bell.notify_one();
        }
    }

    /// Makes every announced expiry signal the scheduler from now on.
    pub fn stay_awake(&self) {
        self.sleeps_until.store(i64::MAX, Ordering::SeqCst);
    }

    /// Makes only expiries before a second signal the scheduler from now on.
    pub fn sleep_until(&self, second: i64) {
        self.sleeps_until.store(second, Ordering::SeqCst);
    }

    /// Waits for a signal. Returns at once if there was one since the last call.
    pub async fn rung(&self) {
        self.bell.notified().await;
    }

    /// Announces requests that are judged by date rules, for which milliseconds must be durable.
    pub fn expect_exact_time(&self) {
        self.exact_time.notify_one();
    }

    /// Waits for such requests. Returns at once if there was one since the last call.
    pub async fn exact_time_expected(&self) {
        self.exact_time.notified().await;
    }
}

#[cfg(test)]
mod tests;
