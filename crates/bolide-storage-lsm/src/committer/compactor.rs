//! Clears the front of the expiry queue.
//!
//! A queue is emptied at its front, and a deleted row stays in the store as a tombstone until tables are compacted. Scans from the start
//! of a queue walk over all of them: 150 ms after 125,000 deletes, 0.05 ms after a compaction. So after a number of deletes the
//! expiry space, which is small, is written out and compacted on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bolide_storage::Space;

use crate::store::Store;

/// Deletes between two compactions.
const DELETES: usize = 100_000;
/// How often to look whether the store has come to rest.
const POLL: Duration = Duration::from_millis(10);
/// Looks in a row that must find it at rest.
const QUIET_POLLS: usize = 3;

/// Counts deletes, and compacts.
#[derive(Default)]
pub(super) struct Compactor {
    deletes: usize,
    running: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Compactor {
    /// Counts deletes of a space, and starts a compaction when it is time.
    pub(super) fn note_deletes(&mut self, deletes: usize, store: &Arc<Store>) {
        self.deletes += deletes;
        if self.deletes < DELETES || self.is_running() {
            return;
        }
        self.deletes = 0;
        let (store, stop) = (store.clone(), self.stop.clone());
        let thread = std::thread::Builder::new()
            .name("bolide-compactor".into())
            .spawn(move || compact(&store, &stop));
        match thread {
            Ok(thread) => self.running = Some(thread),
            Err(error) => tracing::warn!(%error, "the expiry queue was not compacted"),
        }
    }

    /// Whether a compaction is under way.
    pub(super) fn is_running(&self) -> bool {
        self.running.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Waits for a compaction under way; one that has not begun is called off. It must not outlive the store.
    pub(super) fn finish(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.running.take() {
            // A panic was reported by the thread; a compaction that did not happen costs time only.
            let _ = thread.join();
        }
        self.stop.store(false, Ordering::Relaxed);
    }
}

fn compact(store: &Store, stop: &AtomicBool) {
    let space = store.space(Space::Expiry);
    let compacted = space.rotate_memtable().and_then(|_| {
        // The store skips a compaction of tables that it is compacting already, as it does right after it wrote a memtable out.
        let mut quiet_polls = 0;
        while quiet_polls < QUIET_POLLS {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            std::thread::sleep(POLL);
            quiet_polls = if store.is_busy() || space.sealed_memtable_count() > 0 {
                0
            } else {
                quiet_polls + 1
            };
        }
        space.major_compact()
    });
    if let Err(error) = compacted {
        tracing::warn!(%error, "the expiry queue was not compacted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LsmOptions;

    #[test]
    fn tombstones_are_gone_after_enough_deletes() {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(&dir.path().join("store"), &LsmOptions::default()).unwrap());
        let space = store.space(Space::Expiry);
        (0..100u8).for_each(|n| space.insert([n], []).unwrap());
        (0..90u8).for_each(|n| space.remove([n]).unwrap());
        // The store keeps what a snapshot may see, and the last write.
        space.insert([200], []).unwrap();

        let mut compactor = Compactor::default();
        compactor.note_deletes(DELETES - 1, &store);
        assert!(!compactor.is_running());
        compactor.note_deletes(1, &store);
        while compactor.is_running() {
            std::thread::sleep(POLL);
        }
        assert_eq!(space.approximate_len(), 11);
    }
}
