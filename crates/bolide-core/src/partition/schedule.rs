//! The time of a partition's next background work, as far as is known. The scheduler sleeps until then.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bolide_model::UnixMillis;

use super::Wakeup;
use super::after_commit::AfterCommit;

/// See the module.
pub(crate) struct Schedule {
    /// No item expires before this second.
    next_expiry: AtomicI64,
    /// No item that is not counted yet must be counted as a ghost before this second.
    next_count: AtomicI64,
    /// The background does not count ghosts before this second.
    counts_rest_until: AtomicI64,
    /// No entry leaves the history before this second.
    next_trim: AtomicI64,
    /// No session is to be forgotten before this second.
    next_forget: AtomicI64,
    /// No end of a document is to be told before this millisecond.
    next_ending: AtomicI64,
    wakeup: Arc<Wakeup>,
}

impl Schedule {
    /// Returns the schedule of a partition whose next times are not known yet, so that the scheduler examines it at once.
    pub fn new(wakeup: Arc<Wakeup>) -> Schedule {
        Schedule {
            next_expiry: AtomicI64::new(i64::MIN),
            next_count: AtomicI64::new(i64::MIN),
            counts_rest_until: AtomicI64::new(i64::MIN),
            next_trim: AtomicI64::new(i64::MIN),
            next_forget: AtomicI64::new(i64::MIN),
            next_ending: AtomicI64::new(i64::MIN),
            wakeup,
        }
    }

    pub fn next_expiry(&self) -> i64 {
        self.next_expiry.load(Ordering::SeqCst)
    }

    pub fn next_count(&self) -> i64 {
        self.next_count.load(Ordering::SeqCst)
    }

    pub fn counts_rest_until(&self) -> i64 {
        self.counts_rest_until.load(Ordering::SeqCst)
    }

    pub fn next_trim(&self) -> i64 {
        self.next_trim.load(Ordering::SeqCst)
    }

    pub fn next_forget(&self) -> i64 {
        self.next_forget.load(Ordering::SeqCst)
    }

    pub fn next_ending(&self) -> UnixMillis {
        UnixMillis(self.next_ending.load(Ordering::SeqCst))
    }

    /// Records that the end of a document is to be told at a time.
    pub fn expect_ending(&self, at: UnixMillis) {
        self.next_ending.fetch_min(at.0, Ordering::SeqCst);
    }

    /// See [`Wakeup::expect_exact_time`].
    pub fn expect_exact_time(&self) {
        self.wakeup.expect_exact_time();
    }

    /// Records that an item expires at a second; wakes the scheduler if it sleeps longer than that.
    pub fn expect_expiry(&self, second: i64) {
        self.next_expiry.fetch_min(second, Ordering::SeqCst);
        self.expect_count(second);
    }

    /// Like [`Schedule::expect_expiry`], for an item that must be counted as a ghost at a second.
    pub fn expect_count(&self, second: i64) {
        self.next_count.fetch_min(second, Ordering::SeqCst);
        self.wakeup.expect(second);
    }

    /// Like [`Schedule::expect_expiry`], for an entry that leaves the history.
    pub fn expect_trim(&self, second: i64) {
        self.next_trim.fetch_min(second, Ordering::SeqCst);
        self.wakeup.expect(second);
    }

    /// Like [`Schedule::expect_expiry`], for a session that is to be forgotten.
    pub fn expect_forget(&self, second: i64) {
        self.next_forget.fetch_min(second, Ordering::SeqCst);
        self.wakeup.expect(second);
    }

    /// Records that others have committed what is not known, by a second. It is looked for in the next one: at once, each look would find that others have
    /// committed again.
    pub fn expect_anything(&self, second: i64) {
        let next = second.saturating_add(1);
        self.counts_rest_until.fetch_max(next, Ordering::SeqCst);
        // Who asks for the number of ghosts has them counted at once.
        self.next_count.store(i64::MIN, Ordering::SeqCst);
        self.expect_expiry(next);
        self.expect_trim(next);
        self.expect_forget(next);
        self.expect_ending(UnixMillis(i64::MIN));
    }

    /// Records the times that a commit sets.
    pub fn committed(&self, after: &AfterCommit) {
        // First the times of older entries, then those of the entries that the write batch adds.
        if let Some(second) = after.expiry_rests_until {
            self.next_expiry.store(second, Ordering::SeqCst);
        }
        if let Some(second) = after.count_rests_until {
            self.next_count.store(second, Ordering::SeqCst);
        }
        if let Some(second) = after.trim_rests_until {
            self.next_trim.store(second, Ordering::SeqCst);
        }
        if let Some(second) = after.forget_rests_until {
            self.next_forget.store(second, Ordering::SeqCst);
        }
        if let Some(at) = after.endings_rest_until {
            self.next_ending.store(at.0, Ordering::SeqCst);
        }
        self.perhaps_committed(after);
    }

    /// Records the times that a commit with an unknown outcome may set. A time that is too early does no harm; one that is too late would.
    pub fn perhaps_committed(&self, after: &AfterCommit) {
        if let Some(second) = after.expiry_due {
            self.expect_expiry(second);
        }
        if let Some(at) = after.ending_due {
            self.expect_ending(at);
        }
        if let Some(second) = after.trim_due {
            self.expect_trim(second);
        }
        if let Some(second) = after.forget_due {
            self.expect_forget(second);
        }
    }
}

#[cfg(test)]
mod tests;
