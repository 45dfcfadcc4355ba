//! When a partition has something to do in the background, as far as is known: the scheduler sleeps until then.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use super::Wakeup;
use super::after_commit::AfterCommit;

/// See the module.
pub(crate) struct Schedule {
    /// Nothing falls due before this second.
    next_expiry: AtomicI64,
    /// Nothing that has not been counted falls due before this second.
    next_count: AtomicI64,
    /// Nothing leaves the history before this second.
    next_trim: AtomicI64,
    wakeup: Arc<Wakeup>,
}

impl Schedule {
    /// Of a partition of which nothing is known: it has to be looked at.
    pub fn new(wakeup: Arc<Wakeup>) -> Schedule {
        Schedule {
            next_expiry: AtomicI64::new(i64::MIN),
            next_count: AtomicI64::new(i64::MIN),
            next_trim: AtomicI64::new(i64::MIN),
            wakeup,
        }
    }

    pub fn next_expiry(&self) -> i64 {
        self.next_expiry.load(Ordering::SeqCst)
    }

    pub fn next_count(&self) -> i64 {
        self.next_count.load(Ordering::SeqCst)
    }

    pub fn next_trim(&self) -> i64 {
        self.next_trim.load(Ordering::SeqCst)
    }

    /// Something falls due at a second; wakes the scheduler if it would sleep longer.
    pub fn expect_expiry(&self, second: i64) {
        self.next_expiry.fetch_min(second, Ordering::SeqCst);
        self.expect_count(second);
    }

    /// As [`Schedule::expect_expiry`], of what has to be counted.
    pub fn expect_count(&self, second: i64) {
        self.next_count.fetch_min(second, Ordering::SeqCst);
        self.wakeup.expect(second);
    }

    /// As [`Schedule::expect_expiry`], of what leaves the history.
    pub fn expect_trim(&self, second: i64) {
        self.next_trim.fetch_min(second, Ordering::SeqCst);
        self.wakeup.expect(second);
    }

    /// Takes note of a commit.
    pub fn committed(&self, after: &AfterCommit) {
        // First what was there, then what came with the batch.
        if let Some(second) = after.expiry_rests_until {
            self.next_expiry.store(second, Ordering::SeqCst);
        }
        if let Some(second) = after.count_rests_until {
            self.next_count.store(second, Ordering::SeqCst);
        }
        if let Some(second) = after.trim_rests_until {
            self.next_trim.store(second, Ordering::SeqCst);
        }
        self.perhaps_committed(after);
    }

    /// Takes note of a commit whose outcome is unknown: to look too early does no harm, too late would.
    pub fn perhaps_committed(&self, after: &AfterCommit) {
        if let Some(second) = after.expiry_due {
            self.expect_expiry(second);
        }
        if let Some(second) = after.trim_due {
            self.expect_trim(second);
        }
    }
}
