//! Frees memtables outside of the store's locks.
//!
//! The store drops a memtable that was flushed together with the last version that had it, and holds a lock meanwhile that every read and write of the key
//! space takes. A memtable of a hundred thousand rows takes 50 ms to free, row by row. So each memtable has one more reference here until nobody else has
//! one, and is then freed by a thread that nobody waits for.

use std::any::Any;
use std::sync::Arc;

use fjall::{AbstractTree as _, Keyspace};
use parking_lot::Mutex;

use crate::priority;

/// A memtable, of which nothing but its end matters here.
type Memtable = Arc<dyn Any + Send + Sync>;

/// The memtables that have not been freed yet.
#[derive(Default)]
pub(crate) struct Memtables(Mutex<Vec<Memtable>>);

impl Memtables {
    /// Takes a reference to the memtables that are written to now. One that is never seen here is freed by the store.
    pub(crate) fn note_active(&self, spaces: &[Keyspace]) {
        let mut known = self.0.lock();
        for space in spaces {
            let active: Memtable = space.tree.active_memtable();
            if !known.iter().any(|memtable| Arc::ptr_eq(memtable, &active)) {
                known.push(active);
            }
        }
    }

    /// Returns the memtables that nobody else has a reference to any more.
    fn take_unused(&self) -> Vec<Memtable> {
        let mut known = self.0.lock();
        known
            .extract_if(.., |memtable| Arc::strong_count(memtable) == 1)
            .collect()
    }

    /// Frees the memtables that are no longer used.
    pub(crate) fn free_unused(&self) {
        let unused = self.take_unused();
        if unused.is_empty() {
            return;
        }
        // Without a thread they are freed here.
        let _ = priority::spawn("bolide-freeing", move || drop(unused));
    }
}

#[cfg(test)]
mod tests;
