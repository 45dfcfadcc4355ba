//! What wakes the purge's scheduler when something will be due earlier than it sleeps.

use std::sync::atomic::{AtomicI64, Ordering};

use tokio::sync::Notify;

/// Rung by whoever writes something with an early end. One for the whole account.
///
/// The scheduler says that it is awake, looks for the earliest end, and only then says how long it sleeps: an end that is announced in
/// between rings, and none is slept through.
pub(crate) struct Wakeup {
    sleeps_until: AtomicI64,
    bell: Notify,
}

impl Default for Wakeup {
    /// Of a scheduler that is awake.
    fn default() -> Wakeup {
        Wakeup {
            sleeps_until: AtomicI64::new(i64::MAX),
            bell: Notify::new(),
        }
    }
}

impl Wakeup {
    /// Something is due at a second.
    pub fn expect(&self, second: i64) {
        if second < self.sleeps_until.load(Ordering::SeqCst) {
            self.bell.notify_one();
        }
    }

    /// From now on everything that is expected rings.
    pub fn stay_awake(&self) {
        self.sleeps_until.store(i64::MAX, Ordering::SeqCst);
    }

    /// From now on only what is due before a second rings.
    pub fn sleep_until(&self, second: i64) {
        self.sleeps_until.store(second, Ordering::SeqCst);
    }

    /// Waits until it rings, or has rung since the last call.
    pub async fn rung(&self) {
        self.bell.notified().await;
    }
}

#[cfg(test)]
mod tests;
