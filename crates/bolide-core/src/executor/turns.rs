//! Whose turn it is to use a processor: a few threads run, the others wait in their looks.
//!
//! A piece of work that has run for a slice lets the next one go on, in the middle of whatever it does. Work that has not had a slice yet
//! goes first, nearly always: so a small query waits for a slice or two, however many large ones there are, and few threads compete with
//! those that serve.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_model::time::Monotonic;
use parking_lot::{Condvar, Mutex};

use super::watch::Signal;

/// How long work runs before it lets others go on.
pub(super) const SLICE: Duration = Duration::from_millis(10);

/// Of so many turns one is for work that had one before, if such work waits.
const TURN_OF_OLD: u32 = 4;

/// The turns of all work.
pub(super) struct TimeSlices {
    clock: Monotonic,
    state: Mutex<State>,
}

struct State {
    /// TimeSlices that nobody has.
    free: usize,
    /// Waiting, in the order in which they came: without a slice so far, and with.
    fresh: VecDeque<Arc<Waiter>>,
    old: VecDeque<Arc<Waiter>>,
    given: u32,
    /// Everybody goes on, to find out that it must end.
    is_open: bool,
}

/// One that waits. Whoever must end is called out of the line, and goes on without a turn to find out.
#[derive(Default)]
pub(super) struct Waiter {
    state: Mutex<Wait>,
    changed: Condvar,
}

#[derive(Default)]
struct Wait {
    has_turn: bool,
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

    /// Lets everybody go on.
    pub fn open(&self) {
        let mut state = self.state.lock();
        state.is_open = true;
        while let Some(waiter) = state.next() {
            waiter.give();
        }
    }

    /// Waits for a turn. Tells whether there is one: not for work that must end, nor when all go on.
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
        let has_turn = waiter.wait();
        signal.waits(None);
        has_turn || self.leave(&waiter)
    }

    /// Leaves the line. Tells whether a turn was given meanwhile.
    fn leave(&self, waiter: &Arc<Waiter>) -> bool {
        let mut state = self.state.lock();
        state.fresh.retain(|other| !Arc::ptr_eq(other, waiter));
        state.old.retain(|other| !Arc::ptr_eq(other, waiter));
        waiter.state.lock().has_turn
    }

    /// Gives a turn back, or on.
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

    /// How many wait for a turn.
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
    /// Waits until there is a turn, or somebody calls. Tells whether there is a turn.
    fn wait(&self) -> bool {
        let mut state = self.state.lock();
        while !state.has_turn && !state.is_called {
            self.changed.wait(&mut state);
        }
        state.has_turn
    }

    fn give(&self) {
        self.state.lock().has_turn = true;
        self.changed.notify_one();
    }

    /// Calls out of the line.
    pub fn call(&self) {
        self.state.lock().is_called = true;
        self.changed.notify_one();
    }
}

/// The turn of one piece of work, taken and given back on its thread.
pub(super) struct TimeSlice {
    turns: Arc<TimeSlices>,
    signal: Arc<Signal>,
    /// When it was taken; `None` while it is given away.
    since: Mutex<Option<Instant>>,
}

impl TimeSlice {
    /// Waits for the first turn.
    pub fn begin(turns: &Arc<TimeSlices>, signal: Arc<Signal>) -> TimeSlice {
        TimeSlice::begin_as(turns, signal, true)
    }

    pub(super) fn begin_as(turns: &Arc<TimeSlices>, signal: Arc<Signal>, is_fresh: bool) -> TimeSlice {
        let has_turn = turns.take(is_fresh, &signal);
        signal.runs();
        TimeSlice {
            turns: turns.clone(),
            signal,
            since: Mutex::new(has_turn.then(|| turns.clock.now())),
        }
    }

    /// Lets others go on, if there are any and this has run for its slice.
    pub fn share(&self) {
        let clock = &self.turns.clock;
        let has_run = |since: Instant| clock.since(since) >= SLICE;
        if self.since.lock().is_some_and(has_run) {
            if self.turns.is_waited_for() {
                self.give_away();
                self.take_again();
            } else {
                *self.since.lock() = Some(clock.now());
            }
        }
    }

    /// Lets others go on while this waits for something else than a processor.
    pub fn give_away(&self) {
        if self.since.lock().take().is_some() {
            self.turns.give_back();
        }
    }

    /// Waits for the turn after one was given away.
    pub fn take_again(&self) {
        let has_turn = self.turns.take(false, &self.signal);
        *self.since.lock() = has_turn.then(|| self.turns.clock.now());
    }
}

impl Drop for TimeSlice {
    fn drop(&mut self) {
        self.give_away();
    }
}
