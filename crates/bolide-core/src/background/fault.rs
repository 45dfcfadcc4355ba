//! A deliberate crash after a number of durable purges, for tests of crashes.

use std::sync::atomic::{AtomicU64, Ordering};

/// A deliberate crash; see the module.
pub(crate) struct PurgeFault {
    items_left: AtomicU64,
    reached: Option<fn()>,
}

impl PurgeFault {
    const UNSET: u64 = u64::MAX;

    /// Creates a fault that is not set. `reached` is called when a fault that was set is reached.
    pub fn new(reached: Option<fn()>) -> PurgeFault {
        PurgeFault {
            items_left: AtomicU64::new(PurgeFault::UNSET),
            reached,
        }
    }

    /// Sets the fault: it is reached after `items` more durable purges.
    pub fn set(&self, items: u64) {
        self.items_left.store(items, Ordering::SeqCst);
    }

    /// Returns the number of items that may still be purged, if a fault is set.
    pub fn items_left(&self) -> Option<u64> {
        let left = self.items_left.load(Ordering::SeqCst);
        (left != PurgeFault::UNSET).then_some(left)
    }

    /// Counts durable purges, and calls `reached` when the fault is reached.
    pub fn purged(&self, items: u64) {
        if self.items_left().is_none() || items == 0 {
            return;
        }
        let left = self.items_left.fetch_sub(items, Ordering::SeqCst).saturating_sub(items);
        if left == 0 {
            self.items_left.store(PurgeFault::UNSET, Ordering::SeqCst);
            if let Some(reached) = self.reached {
                reached();
            }
        }
    }
}
