//! Tells a task that it must end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bolide_model::Result;
use bolide_model::time::Monotonic;
use bolide_query::{Interrupt, Interrupts, QueryError};
use parking_lot::Mutex;

use super::Ending;
use super::priority;
use super::time_slices::{TimeSlice, Waiter};
use crate::sql::query_error;

/// Maximum processor time for one item, or for compiling the text of a query: `bolide_query` limits work too, but not exactly by time.
const ITEM: Duration = Duration::from_millis(500);

/// When the time of a task is over.
pub(super) struct Deadline {
    clock: Monotonic,
    at: Instant,
}

impl Deadline {
    pub fn after(limit: Duration, clock: &Monotonic) -> Deadline {
        let at = clock.now() + limit;
        let clock = clock.clone();
        Deadline { clock, at }
    }

    fn is_over(&self) -> bool {
        self.clock.now() >= self.at
    }
}

/// Signals from others to a task.
pub(super) struct Signal {
    is_cancelled: AtomicBool,
    /// For all tasks: the account closes.
    is_closing: Arc<AtomicBool>,
    /// For the tasks inside one container: a change of the container waits for them.
    ending: Ending,
    deadline: Deadline,
    /// The task was ended to make room for others: there were too many, and it was the oldest that had run.
    is_evicted: AtomicBool,
    /// The task has had a time slice.
    has_run: AtomicBool,
    /// The task runs on the thread of its caller, and has given up because it takes too long for that; `None`: it has a thread of its own.
    has_given_up: Option<AtomicBool>,
    /// Set while the task waits for a time slice.
    waiter: Mutex<Option<Arc<Waiter>>>,
}

impl Signal {
    pub fn new(is_closing: Arc<AtomicBool>, ending: Ending, deadline: Deadline) -> Signal {
        Signal {
            is_cancelled: AtomicBool::new(false),
            is_closing,
            ending,
            deadline,
            is_evicted: AtomicBool::new(false),
            has_run: AtomicBool::new(false),
            has_given_up: None,
            waiter: Mutex::default(),
        }
    }

    /// The signals of a task that runs on the thread of its caller, for a short time.
    pub fn brief(is_closing: Arc<AtomicBool>, ending: Ending, deadline: Deadline) -> Signal {
        Signal {
            has_given_up: Some(AtomicBool::new(false)),
            ..Signal::new(is_closing, ending, deadline)
        }
    }

    /// Returns whether the task has to run again, on a thread of its own.
    pub fn has_given_up(&self) -> bool {
        let given_up = self.has_given_up.as_ref();
        given_up.is_some_and(|given_up| given_up.load(Ordering::Relaxed))
    }

    fn give_up(&self) -> Interrupt {
        if let Some(given_up) = &self.has_given_up {
            given_up.store(true, Ordering::Relaxed);
        }
        Interrupt::DeadlineExceeded
    }

    /// Ends the task.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
        self.call();
    }

    /// Ends the task to make room for others. Returns whether this is the first call.
    pub fn evict(&self) -> bool {
        let is_first = !self.is_evicted.swap(true, Ordering::SeqCst);
        self.call();
        is_first
    }

    /// Records that the first time slice of the task has begun.
    pub fn runs(&self) {
        self.has_run.store(true, Ordering::Relaxed);
    }

    /// Returns whether the task has had a time slice.
    pub fn has_run(&self) -> bool {
        self.has_run.load(Ordering::Relaxed)
    }

    /// Returns whether the task was ended to make room for others.
    pub fn is_evicted(&self) -> bool {
        self.is_evicted.load(Ordering::SeqCst)
    }

    /// Records that the task waits in the queue for time slices; `None`: it waits no more.
    pub fn waits(&self, waiter: Option<Arc<Waiter>>) {
        *self.waiter.lock() = waiter;
        if self.is_cancelled.load(Ordering::SeqCst) || self.is_evicted() {
            self.call();
        }
    }

    fn call(&self) {
        if let Some(waiter) = &*self.waiter.lock() {
            waiter.call();
        }
    }

    fn pending(&self) -> Option<Interrupt> {
        if self.is_cancelled.load(Ordering::Relaxed)
            || self.is_evicted.load(Ordering::Relaxed)
            || self.is_closing.load(Ordering::Relaxed)
            || self.ending.is_wanted()
        {
            Some(Interrupt::Cancelled)
        } else if self.deadline.is_over() {
            Some(self.give_up())
        } else {
            None
        }
    }
}

/// Watches one task.
pub(crate) struct Watch {
    signal: Arc<Signal>,
    slice: TimeSlice,
}

impl Watch {
    pub(super) fn new(signal: Arc<Signal>, slice: TimeSlice) -> Watch {
        Watch { signal, slice }
    }

    /// Returns the clock that measures the deadline of the task.
    pub fn clock(&self) -> &Monotonic {
        &self.signal.deadline.clock
    }

    /// Returns why the task must end, if it must. Waits while other tasks have the time slices.
    pub fn pending(&self) -> Option<Interrupt> {
        self.slice.share();
        self.signal.pending()
    }

    /// Checks between two steps of a task whether it must end. Waits while other tasks have the time slices.
    ///
    /// # Errors
    /// `Unavailable` if no request waits for the task any more, or a change of the container does; `BadRequest` if its time is over.
    pub fn check(&self) -> Result<()> {
        match self.pending() {
            None => Ok(()),
            Some(interrupt) => Err(query_error(QueryError::Interrupted(interrupt))),
        }
    }

    /// Returns whether the task runs on the thread of its caller: it must do nothing that takes long between two checks.
    pub fn is_brief(&self) -> bool {
        self.signal.has_given_up.is_some()
    }

    /// Ends a brief task that would take too long: the error ends the task, which runs again on a thread of its own. Does nothing in other tasks.
    ///
    /// # Errors
    /// In a brief task.
    pub fn give_up_if_brief(&self) -> Result<()> {
        match self.is_brief() {
            true => Err(query_error(QueryError::Interrupted(self.signal.give_up()))),
            false => Ok(()),
        }
    }

    /// Runs code that waits for something other than a processor; other tasks run meanwhile.
    pub fn aside<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.slice.give_away();
        let done = wait();
        self.slice.take_again();
        done
    }

    /// Returns the interrupts that an execution or a compilation on this thread checks.
    pub fn interrupts(self: &Arc<Self>) -> Arc<dyn Interrupts> {
        Arc::new(ItemWatch {
            watch: self.clone(),
            item: Mutex::new(None),
        })
    }
}

/// Limits the processor time for each item of one execution.
struct ItemWatch {
    watch: Arc<Watch>,
    /// The last item that was checked, and the thread's processor time at its first check.
    item: Mutex<Option<(u64, Duration)>>,
}

impl Interrupts for ItemWatch {
    fn pending(&self, item: u64) -> Option<Interrupt> {
        let now = priority::thread_time();
        let mut known = self.item.lock();
        let (_, since) = *known.filter(|(checked, _)| *checked == item).get_or_insert((item, now));
        *known = Some((item, since));
        let is_long = now.saturating_sub(since) > ITEM;
        let pending = self.watch.pending();
        pending.or(is_long.then_some(Interrupt::TooMuchWork))
    }
}
