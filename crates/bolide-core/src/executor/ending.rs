//! Ends long tasks of a container's readers when a change of the container waits for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Tells the long tasks of a container's readers to end, because a change of the container's state waits for them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ending {
    waiting: Arc<AtomicUsize>,
}

impl Ending {
    /// Tells tasks to end until the returned guard is dropped.
    pub fn begin(&self) -> EndingGuard {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        EndingGuard(self.waiting.clone())
    }

    /// Returns whether tasks must end.
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
