//! What tells a piece of work that it must end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bolide_model::Result;
use bolide_model::time::Monotonic;
use bolide_query::{Interrupt, Interrupts, QueryError};
use parking_lot::Mutex;

use super::Ending;
use super::priority;
use super::turns::{TimeSlice, Waiter};
use crate::sql::query_error;

/// How much processor time one item may take, or compiling the text of a query: `bolide_query` counts work too, but not exactly.
const ITEM: Duration = Duration::from_millis(500);

/// When the time of a piece of work is over.
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

/// What others tell a piece of work.
pub(super) struct Signal {
    is_cancelled: AtomicBool,
    /// Of all work: the account closes.
    is_closing: Arc<AtomicBool>,
    /// Of the work inside one container: a change waits for it.
    ending: Ending,
    deadline: Deadline,
    /// Too much work is there, and this has had most of the time.
    is_evicted: AtomicBool,
    /// It has had a turn.
    has_run: AtomicBool,
    /// While it waits for its turn.
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
            waiter: Mutex::default(),
        }
    }

    /// Ends the work.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
        self.call();
    }

    /// Ends the work for the sake of other work. Tells whether it had not been ended so before.
    pub fn evict(&self) -> bool {
        let is_first = !self.is_evicted.swap(true, Ordering::SeqCst);
        self.call();
        is_first
    }

    /// Its first turn has come.
    pub fn runs(&self) {
        self.has_run.store(true, Ordering::Relaxed);
    }

    /// Whether it has had a turn.
    pub fn has_run(&self) -> bool {
        self.has_run.load(Ordering::Relaxed)
    }

    /// Whether it was ended for the sake of other work.
    pub fn is_evicted(&self) -> bool {
        self.is_evicted.load(Ordering::SeqCst)
    }

    /// The work waits in line; `None`: no more.
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
            Some(Interrupt::DeadlineExceeded)
        } else {
            None
        }
    }
}

/// Watches one piece of work.
pub(crate) struct Watch {
    signal: Arc<Signal>,
    turn: TimeSlice,
}

impl Watch {
    pub(super) fn new(signal: Arc<Signal>, turn: TimeSlice) -> Watch {
        Watch { signal, turn }
    }

    /// The clock by which the work has its time.
    pub fn clock(&self) -> &Monotonic {
        &self.signal.deadline.clock
    }

    /// Why the work must end, if it must. Waits while it is others' turn.
    pub fn pending(&self) -> Option<Interrupt> {
        self.turn.share();
        self.signal.pending()
    }

    /// Ends work that must end, between two of its steps. Waits while it is others' turn.
    ///
    /// # Errors
    /// `Unavailable` if nobody waits for it any more, or a change does; `BadRequest` if its time is over.
    pub fn check(&self) -> Result<()> {
        match self.pending() {
            None => Ok(()),
            Some(interrupt) => Err(query_error(QueryError::Interrupted(interrupt))),
        }
    }

    /// Runs what waits for something else than a processor: others go on meanwhile.
    pub fn aside<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.turn.give_away();
        let done = wait();
        self.turn.take_again();
        done
    }

    /// What an execution, or a compilation, on this thread asks.
    pub fn interrupts(self: &Arc<Self>) -> Arc<dyn Interrupts> {
        Arc::new(ItemWatch {
            watch: self.clone(),
            item: Mutex::new((0, priority::thread_time())),
        })
    }
}

/// Watches the items of one execution.
struct ItemWatch {
    watch: Arc<Watch>,
    /// The item that was asked about last, and the thread's time when it was first asked about.
    item: Mutex<(u64, Duration)>,
}

impl Interrupts for ItemWatch {
    fn pending(&self, item: u64) -> Option<Interrupt> {
        let now = priority::thread_time();
        let mut known = self.item.lock();
        if known.0 != item {
            *known = (item, now);
        }
        let is_long = now.saturating_sub(known.1) > ITEM;
        let pending = self.watch.pending();
        pending.or(is_long.then_some(Interrupt::TooMuchWork))
    }
}
