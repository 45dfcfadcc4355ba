//! The order of all commits of an account, of whichever partition: each gets its time before it is decided, and readers of changes learn up to which
//! time no commit can arrive any more.
//!
//! ```text
//!   worker ──begin──▶ time t, "in progress" ──decide, commit──▶ visible ──drop──▶ no longer in progress, readers are woken
//!   reader ──settled──▶ the latest time below every time in progress: everything up to it is visible
//! ```
//!
//! A partition's commits have rising times, because its worker begins one after the other. Times never fall below those of earlier processes: a process
//! begins behind the millisecond in which it opens, and behind the times that its partitions have stored.

use std::collections::BTreeSet;
use std::sync::Arc;

use bolide_model::UnixMillis;
use bolide_model::time::CommitTime;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// See the module.
#[derive(Default)]
pub(crate) struct CommitTimes {
    times: Mutex<Times>,
    changed: Arc<Notify>,
}

#[derive(Default)]
struct Times {
    /// The latest time that was given out, or that a reader took for settled.
    last: CommitTime,
    in_progress: BTreeSet<CommitTime>,
    /// The latest time that an earlier process may have given out although its clock had not come to it.
    ahead_before: CommitTime,
}

/// A commit in progress. Drop it when the commit is visible, or when it certainly never will be.
pub(crate) struct InProgress {
    time: CommitTime,
    times: Arc<CommitTimes>,
}

impl CommitTimes {
    /// Begins a commit at server time `now`.
    pub fn begin(self: &Arc<Self>, now: UnixMillis) -> InProgress {
        let mut times = self.times.lock();
        let time = CommitTime::first_of(now).max(times.last).next();
        times.last = time;
        times.in_progress.insert(time);
        InProgress {
            time,
            times: self.clone(),
        }
    }

    /// Returns the latest time up to which every commit is visible, at server time `now`. Later commits have later times.
    pub fn settled(&self, now: UnixMillis) -> CommitTime {
        let mut times = self.times.lock();
        times.last = times.last.max(CommitTime::first_of(now));
        match times.in_progress.first() {
            Some(first) => first.before(),
            None => times.last,
        }
    }

    /// Returns the latest time that a commit may have that is visible now, at server time `now`.
    pub fn latest(&self, now: UnixMillis) -> CommitTime {
        let times = self.times.lock();
        times.last.max(CommitTime::first_of(now))
    }

    /// Returns the latest time that was given out.
    pub fn given(&self) -> CommitTime {
        self.times.lock().last
    }

    /// Begins behind all times of earlier processes: behind those that are stored, which were raised before, by as many as a process may give out while
    /// the clock stands still, and behind the millisecond `now`.
    pub fn begin_process(&self, times_of_process: u64, now: UnixMillis) {
        let mut times = self.times.lock();
        times.ahead_before = CommitTime(times.last.0.saturating_add(times_of_process));
        times.last = times.ahead_before.max(CommitTime::last_of(now));
    }

    /// Returns the latest time that a reader of an earlier process may have taken for settled although the clock had not come to it.
    pub fn ahead_before(&self) -> CommitTime {
        self.times.lock().ahead_before
    }

    /// Lets all later commits have later times than this one, which is stored.
    pub fn raise(&self, stored: CommitTime) {
        let mut times = self.times.lock();
        times.last = times.last.max(stored);
    }

    /// Resolves when a commit ends, or when somebody calls [`CommitTimes::wake`], after the returned future was enabled or first polled.
    pub fn changed(&self) -> OwnedNotified {
        self.changed.clone().notified_owned()
    }

    /// Wakes all who wait for changes.
    pub fn wake(&self) {
        self.changed.notify_waiters();
    }
}

impl InProgress {
    /// The time of the commit.
    pub fn time(&self) -> CommitTime {
        self.time
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.times.times.lock().in_progress.remove(&self.time);
        self.times.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_settled_behind_a_commit_in_progress() {
        let times = Arc::new(CommitTimes::default());
        let (first, second) = (times.begin(UnixMillis(5)), times.begin(UnixMillis(5)));
        assert!(first.time() < second.time());
        drop(second);
        assert!(times.settled(UnixMillis(9)) < first.time());
        drop(first);
        let settled = times.settled(UnixMillis(9));
        assert_eq!(settled, CommitTime::first_of(UnixMillis(9)));
        assert!(times.begin(UnixMillis(9)).time() > settled);
    }

    #[test]
    fn times_rise_although_the_clock_does_not() {
        let times = Arc::new(CommitTimes::default());
        times.raise(CommitTime::last_of(UnixMillis(7)));
        let later = times.begin(UnixMillis(3)).time();
        assert!(later > CommitTime::last_of(UnixMillis(7)));
    }
}
