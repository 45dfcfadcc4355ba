//! Time slices: a few tasks use a processor, the others wait where they check for interrupts.
//!
//! A task that has run for a slice lets the next one run, in the middle of whatever it does. Tasks that have not had a slice yet nearly always
//! go first: so a small query waits for one or two slices, however many large queries there are, and few threads compete with those that serve
//! connections and partitions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_model::time::Monotonic;
use parking_lot::{Condvar, Mutex};

use super::watch::Signal;

/// How long a task runs before it lets other tasks run.
pub(super) const SLICE: Duration = Duration::from_millis(10);

/// One of this many slices goes to a task that has had one before, if such a task waits; so new tasks cannot starve it.
const TURN_OF_OLD: u32 = 4;

/// The time slices of all tasks, and the tasks that wait for one.
pub(super) struct TimeSlices {
    clock: Monotonic,
    state: Mutex<State>,
}

struct State {
    /// Number of slices that no task holds.
    free: usize,
    /// Waiting tasks in order of arrival: those without a slice so far in `fresh`, the others in `old`.
    fresh: VecDeque<Arc<Waiter>>,
    old: VecDeque<Arc<Waiter>>,
    given: u32,
    /// All tasks run without a slice, so that they find out that they must end.
    is_open: bool,
}

/// A waiting task. A task that must end is called out of the queue, and continues without a slice to find out.
#[derive(Default)]
pub(super) struct Waiter {
    state: Mutex<Wait>,
    changed: Condvar,
}

#[derive(Default)]
struct Wait {
    has_slice: bool,
    is_called: bool,
}

impl TimeSlices {
    pub fn new(count: usize, clock: Monotonic) -> TimeSlices {
        TimeSlices {
            clock,
            state: Mutex::new(State {
                free: count,
                fresh: VecDeque::new(),
                old: VecDeque::new(),
                given: 0,
                is_open: false,
            }),
        }
    }

    /// Lets all tasks run without a slice.
    pub fn open(&self) {
        let mut state = self.state.lock();
        state.is_open = true;
        while let Some(waiter) = state.next() {
            waiter.give();
        }
    }

    /// Waits for a slice. Returns whether the task has one: not if the task must end, nor when all tasks run without.
    fn take(&self, is_fresh: bool, signal: &Signal) -> bool {
        let waiter = {
            let mut state = self.state.lock();
            if state.is_open {
                return false;
            }
            if state.free > 0 {
                state.free -= 1;
                return true;
            }
            let waiter = Arc::<Waiter>::default();
            let line = if is_fresh { &mut state.fresh } else { &mut state.old };
            line.push_back(waiter.clone());
            waiter
        };
        signal.waits(Some(waiter.clone()));
        let has_slice = waiter.wait();
        signal.waits(None);
        has_slice || self.leave(&waiter)
    }

    /// Leaves the queue. Returns whether a slice was given to the task meanwhile.
    fn leave(&self, waiter: &Arc<Waiter>) -> bool {
        let mut state = self.state.lock();
        state.fresh.retain(|other| !Arc::ptr_eq(other, waiter));
        state.old.retain(|other| !Arc::ptr_eq(other, waiter));
        waiter.state.lock().has_slice
    }

    /// Gives a slice to the next waiting task, or back if none waits.
    fn give_back(&self) {
        let mut state = self.state.lock();
        match state.next() {
            Some(next) => next.give(),
            None => state.free += 1,
        }
    }

    fn is_waited_for(&self) -> bool {
        self.waiting() > 0
    }

    /// Returns the number of tasks that wait for a slice.
    pub fn waiting(&self) -> usize {
        let state = self.state.lock();
        state.fresh.len() + state.old.len()
    }
}

impl State {
    fn next(&mut self) -> Option<Arc<Waiter>> {
        self.given = self.given.wrapping_add(1);
        if self.given.is_multiple_of(TURN_OF_OLD) {
            self.old.pop_front().or_else(|| self.fresh.pop_front())
        } else {
            self.fresh.pop_front().or_else(|| self.old.pop_front())
        }
    }
}

impl Waiter {
    /// Waits until the task has a slice or is called out of the queue. Returns whether it has a slice.
    fn wait(&self) -> bool {
        let mut state = self.state.lock();
        while !state.has_slice && !state.is_called {
            self.changed.wait(&mut state);
        }
        state.has_slice
    }

    fn give(&self) {
        self.state.lock().has_slice = true;
        self.changed.notify_one();
    }

    /// Calls the task out of the queue.
    pub fn call(&self) {
        self.state.lock().is_called = true;
        self.changed.notify_one();
    }
}

/// The time slice of one task, taken and given back on its thread.
pub(super) struct TimeSlice {
    time_slices: Arc<TimeSlices>,
    signal: Arc<Signal>,
    /// When the slice was taken; `None` while it is given away.
    since: Mutex<Option<Instant>>,
}

impl TimeSlice {
    /// Waits for the first slice of a task.
    pub fn begin(time_slices: &Arc<TimeSlices>, signal: Arc<Signal>) -> TimeSlice {
        TimeSlice::begin_as(time_slices, signal, true)
    }

    pub(super) fn begin_as(time_slices: &Arc<TimeSlices>, signal: Arc<Signal>, is_fresh: bool) -> TimeSlice {
        let has_slice = time_slices.take(is_fresh, &signal);
        signal.runs();
        TimeSlice {
            time_slices: time_slices.clone(),
            signal,
            since: Mutex::new(has_slice.then(|| time_slices.clock.now())),
        }
    }

    /// No slice: for a task on the thread of its caller.
    pub fn none(time_slices: &Arc<TimeSlices>, signal: Arc<Signal>) -> TimeSlice {
        TimeSlice {
            time_slices: time_slices.clone(),
            signal,
            since: Mutex::new(None),
        }
    }

    /// Lets other tasks run, if any wait and this one has used its slice.
    pub fn share(&self) {
        let clock = &self.time_slices.clock;
        let has_run = |since: Instant| clock.since(since) >= SLICE;
        if self.since.lock().is_some_and(has_run) {
            if self.time_slices.is_waited_for() {
                self.give_away();
                self.take_again();
            } else {
                *self.since.lock() = Some(clock.now());
            }
        }
    }

    /// Lets other tasks run while this one waits for something other than a processor.
    pub fn give_away(&self) {
        if self.since.lock().take().is_some() {
            self.time_slices.give_back();
        }
    }

    /// Waits for a slice after the last one was given away.
    pub fn take_again(&self) {
        let has_slice = self.time_slices.take(false, &self.signal);
        *self.since.lock() = has_slice.then(|| self.time_slices.clock.now());
    }
}

impl Drop for TimeSlice {
    fn drop(&mut self) {
        self.give_away();
    }
}
