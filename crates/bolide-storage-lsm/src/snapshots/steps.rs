//! Injected crashes, for tests.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the steps of snapshots and replacements, and calls a function after one of them, for tests of crashes. The default counts nothing.
#[derive(Clone, Default)]
pub struct Steps(Option<Arc<Armed>>);

struct Armed {
    /// Steps until the function is called; 0 if it is not to be called.
    left: AtomicU64,
    act: fn(),
}

impl Steps {
    /// Calls `act` once [`Steps::set`] has set after how many steps.
    pub fn calling(act: fn()) -> Steps {
        let left = AtomicU64::new(0);
        Steps(Some(Arc::new(Armed { left, act })))
    }

    /// Sets the number of steps until the function is called; 0: never.
    pub fn set(&self, steps: u64) {
        if let Some(armed) = &self.0 {
            armed.left.store(steps, Ordering::SeqCst);
        }
    }

    /// A step is done.
    pub(crate) fn done(&self) {
        let Some(armed) = &self.0 else { return };
        let before = armed
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if before == Ok(1) {
            (armed.act)();
        }
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Steps").field(&self.0.is_some()).finish()
    }
}
