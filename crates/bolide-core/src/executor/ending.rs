//! What ends the long work of a container's readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Tells the long work of a container's readers to end, because a change of its state waits for them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ending {
    waiting: Arc<AtomicUsize>,
}

impl Ending {
    /// Until the result is dropped, work is to end.
    pub fn begin(&self) -> EndingGuard {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        EndingGuard(self.waiting.clone())
    }

    /// Whether work is to end.
    pub fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

pub(crate) struct EndingGuard(Arc<AtomicUsize>);

impl Drop for EndingGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
