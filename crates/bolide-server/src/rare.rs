//! Something that hardly ever happens, for a task that is polled often.
//!
//! The task of a connection is polled for every request. Beside requests it waits for the end of the server, for the next check of its timeouts, and
//! for an order to end; polling these every time took two locks, one of which connections share. A [`Rare`] polls its source only after the source
//! has woken it.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// See the module. `F` polls the source.
pub struct Rare<F> {
    source: F,
    signal: Arc<Signal>,
    waker: Waker,
    /// The waker of the task, as the signal has it.
    task: Option<Waker>,
}

/// Whether the source has to be polled, and the task to wake for that.
struct Signal {
    is_given: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_given.store(true, Ordering::SeqCst);
        self.task.wake();
    }
}

impl<T, F: FnMut(&mut Context<'_>) -> Poll<T>> Rare<F> {
    /// Polls `source` the first time, and then whenever it has woken its task or has happened.
    pub fn new(source: F) -> Rare<F> {
        let signal = Arc::new(Signal {
            is_given: AtomicBool::new(true),
            task: AtomicWaker::new(),
        });
        Rare {
            source,
            waker: Waker::from(signal.clone()),
            signal,
            task: None,
        }
    }

    /// Resolves when it happens.
    pub async fn happens(&mut self) -> T {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        if !self.task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
            self.signal.task.register(cx.waker());
            self.task = Some(cx.waker().clone());
        }
        if !self.signal.is_given.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        // In this order: a signal that is given meanwhile is followed by the poll below, or wakes the task once more.
        self.signal.is_given.store(false, Ordering::SeqCst);
        // Waking has taken the waker.
        self.signal.task.register(cx.waker());
        let poll = (self.source)(&mut Context::from_waker(&self.waker));
        if poll.is_ready() {
            // It may happen again, and has no waker now.
            self.signal.is_given.store(true, Ordering::Relaxed);
        }
        poll
    }
}

#[cfg(test)]
mod tests;
