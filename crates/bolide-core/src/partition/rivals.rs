//! Whether other servers write a partition at the same time. Then its writes are better committed by one of them: its owner.

use std::sync::atomic::{AtomicU32, Ordering};

/// Number of writes that are sent to the owner after another server's commit was met, before one is committed here to see whether there still are others.
const FORWARDED: u32 = 4_000;

/// See the module.
#[derive(Default)]
pub(crate) struct Rivals {
    left: AtomicU32,
}

impl Rivals {
    /// Another server has committed in between.
    pub fn found(&self) {
        self.left.store(FORWARDED, Ordering::Relaxed);
    }

    /// Whether the next write is better committed by the owner. Counts it.
    pub fn take_forward(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_forwarded_for_a_while_after_another_server_was_met() {
        let rivals = Rivals::default();
        assert!(!rivals.take_forward(), "nobody was met");
        rivals.found();
        assert_eq!((0..10_000).filter(|_| rivals.take_forward()).count(), 4_000);
        assert!(!rivals.take_forward());
        rivals.found();
        assert!(rivals.take_forward());
    }
}
