//! The memory of the lists of all partitions, and which list makes room for another one.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::RankedTexts;

/// See the module.
#[derive(Default)]
pub(crate) struct ListMemory {
    bytes: AtomicUsize,
    ticks: AtomicU64,
    partitions: Mutex<Vec<Weak<RankedTexts>>>,
}

impl ListMemory {
    /// Returns a number that grows with each call.
    pub fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn register(&self, lists: &Arc<RankedTexts>) {
        let mut partitions = self.partitions.lock();
        if partitions.len() == partitions.capacity() {
            partitions.retain(|known| known.strong_count() > 0);
        }
        partitions.push(Arc::downgrade(lists));
    }

    pub(super) fn take(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn release(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Drops the lists that were not used for the longest time until one more fits within a limit. Returns `false` if it does not.
    pub(super) fn make_room(&self, bytes: usize, limit: usize) -> bool {
        while self.bytes.load(Ordering::Relaxed) + bytes > limit {
            let partitions: Vec<Arc<RankedTexts>> = self.partitions.lock().iter().filter_map(Weak::upgrade).collect();
            let oldest = partitions.iter().filter_map(|lists| Some((lists.least_used()?, lists)));
            let Some(((_, id), lists)) = oldest.min_by_key(|((used, _), _)| *used) else {
                return false;
            };
            lists.forget(&id);
        }
        true
    }
}

#[cfg(test)]
impl ListMemory {
    pub fn is_unused(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) == 0
    }

    pub fn is_within(&self, limit: usize) -> bool {
        self.bytes.load(Ordering::Relaxed) <= limit
    }
}
