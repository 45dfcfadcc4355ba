//! Clears the front of the expiry queue.
//!
//! A queue is emptied at its front, and a deleted row stays in the store as a tombstone until tables are compacted. Scans from the start
//! of a queue walk over all of them: 150 ms after 125,000 deletes, 0.05 ms after a compaction. So after a number of deletes the
//! expiry space, which is small, is written out and compacted on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use fjall::Keyspace;

/// Deletes between two compactions.
const DELETES: usize = 100_000;
/// How often to look whether a memtable has become a table.
const POLL: Duration = Duration::from_millis(10);

/// Counts deletes, and compacts.
#[derive(Default)]
pub(super) struct Compactor {
    deletes: usize,
    running: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Compactor {
    /// Counts deletes of a space, and starts a compaction when it is time.
    pub(super) fn note_deletes(&mut self, deletes: usize, space: &Keyspace) {
        self.deletes += deletes;
        let is_running = self.running.as_ref().is_some_and(|thread| !thread.is_finished());
        if self.deletes < DELETES || is_running {
            return;
        }
        self.deletes = 0;
        let (space, stop) = (space.clone(), self.stop.clone());
        let thread = std::thread::Builder::new()
            .name("bolide-compactor".into())
            .spawn(move || compact(&space, &stop));
        match thread {
            Ok(thread) => self.running = Some(thread),
            Err(error) => tracing::warn!(%error, "the expiry queue was not compacted"),
        }
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

fn compact(space: &Keyspace, stop: &AtomicBool) {
    let compacted = space.rotate_memtable().and_then(|_| {
        while space.sealed_memtable_count() > 0 {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
        space.major_compact()
    });
    if let Err(error) = compacted {
        tracing::warn!(%error, "the expiry queue was not compacted");
    }
}
