//! Which items are done: up to which position of the file all of them are.

use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex};

use crate::failure::Failure;
use crate::input::Position;

/// All items before a position are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Acknowledged {
    /// The number of items before it.
    pub count: u64,
    pub position: Position,
}

impl Acknowledged {
    /// Nothing is done.
    pub fn none() -> Acknowledged {
        Acknowledged {
            count: 0,
            position: Position::start(),
        }
    }
}

/// What has become of the items of one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub created: u64,
    pub replaced: u64,
    pub skipped: u64,
    /// They were there with the same content, from an earlier run that was killed, or from a request whose answer was lost.
    pub own: u64,
}

/// The result of one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    Created,
    Replaced,
    Skipped,
    Own,
}

/// The items in progress of all lanes.
pub(super) struct Ledger {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    done: Acknowledged,
    /// Of each item after those: where the file goes on after it, and whether it is done.
    pending: VecDeque<(Position, bool)>,
    sent_items: usize,
    sent_bytes: usize,
    counts: Counts,
    failure: Option<Failure>,
}

impl Ledger {
    pub fn new(done: Acknowledged) -> Ledger {
        Ledger {
            state: Mutex::new(State {
                done,
                pending: VecDeque::new(),
                sent_items: 0,
                sent_bytes: 0,
                counts: Counts::default(),
                failure: None,
            }),
            changed: Condvar::new(),
        }
    }

    pub fn acknowledged(&self) -> Acknowledged {
        self.state.lock().done
    }

    /// The next item was read.
    pub fn begin(&self, end: Position) {
        self.state.lock().pending.push_back((end, false));
    }

    /// Items were given to a lane.
    pub fn sent(&self, items: usize, bytes: usize) {
        let mut state = self.state.lock();
        state.sent_items += items;
        state.sent_bytes += bytes;
    }

    /// Items of a lane are done; each has its number.
    pub fn done(&self, results: impl IntoIterator<Item = (u64, usize, Done)>) {
        let mut state = self.state.lock();
        for (number, bytes, done) in results {
            state.sent_items = state.sent_items.saturating_sub(1);
            state.sent_bytes = state.sent_bytes.saturating_sub(bytes);
            *match done {
                Done::Created => &mut state.counts.created,
                Done::Replaced => &mut state.counts.replaced,
                Done::Skipped => &mut state.counts.skipped,
                Done::Own => &mut state.counts.own,
            } += 1;
            let index = usize::try_from(number - state.done.count).unwrap_or(usize::MAX);
            if let Some(pending) = state.pending.get_mut(index) {
                pending.1 = true;
            }
        }
        while let Some((position, true)) = state.pending.front().copied() {
            state.pending.pop_front();
            state.done.count += 1;
            state.done.position = position;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// A write has failed. The first failure counts.
    pub fn fail(&self, failure: Failure) {
        self.state.lock().failure.get_or_insert(failure);
        self.changed.notify_all();
    }

    pub fn has_failed(&self) -> bool {
        self.state.lock().failure.is_some()
    }

    /// Waits while lanes have too much to do; `false` if a write has failed.
    pub fn wait_for_room(&self, items: usize, bytes: usize) -> bool {
        self.wait(|state| state.sent_items < items && state.sent_bytes < bytes)
    }

    /// Waits until all items before `count` are done; `false` if a write has failed.
    pub fn wait_until_done(&self, count: u64) -> bool {
        self.wait(|state| state.done.count >= count)
    }

    fn wait(&self, is_over: impl Fn(&State) -> bool) -> bool {
        let mut state = self.state.lock();
        while state.failure.is_none() && !is_over(&state) {
            self.changed.wait(&mut state);
        }
        state.failure.is_none()
    }

    pub fn close(self) -> (Acknowledged, Counts, Option<Failure>) {
        let state = self.state.into_inner();
        (state.done, state.counts, state.failure)
    }
}

#[cfg(test)]
mod tests;
