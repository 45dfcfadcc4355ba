//! Deletes tables that were merged, outside of the store's locks.
//!
//! Every version of a key space is a list of tables. The store deletes the file of a table together with the last version that has it, and the file of a
//! version itself with the version; meanwhile it holds a lock that every read and write of the key space takes. Where the file system discards the blocks of
//! deleted files at once, each takes 10 ms, and a merge leaves dozens: all requests waited for a third of a second. So each version has one more reference
//! here, and its file is open. Then the store only removes the names of versions' files, and a thread that nobody waits for deletes the tables and frees the
//! blocks:
//!
//! ```text
//!   current ──a newer one is current, and nobody reads this one──▶ forgotten by the store ──one look later──▶ dropped here, with its tables
//! ```
//!
//! The look in between is for reads that had begun: the last of them would delete the tables.
//!
//! Source: lsm-tree 3.1.10 (`version/super_version.rs`, `table/inner.rs`); the version is pinned.

use std::any::Any;
use std::collections::VecDeque;
use std::fs::File;
use std::thread::JoinHandle;

use bolide_storage::Space;
use fjall::{AbstractTree as _, Keyspace, SeqNo};
use parking_lot::Mutex;

use crate::priority;

/// The versions of all key spaces that are not deleted yet. They are when it is dropped: drop it before another store is opened in the same place.
#[derive(Default)]
pub(crate) struct Versions(Mutex<State>);

#[derive(Default)]
struct State {
    /// In the order of [`Space::ALL`].
    spaces: [OfSpace; Space::ALL.len()],
    deleting: Option<JoinHandle<()>>,
}

/// The versions of one key space, the newest last.
#[derive(Default)]
struct OfSpace(VecDeque<Kept>);

struct Kept {
    id: u64,
    reference: Reference,
    /// Whether the store had forgotten the version at the last look.
    is_forgotten: bool,
}

/// A version and its file, of which nothing but their end matters here.
type Reference = Box<dyn Any + Send>;

/// Maximum number of versions of a key space whose files are open. Of others, which are there as long as a reader keeps them, the store frees the file.
const OPEN_FILES: usize = 4;
/// Descriptors of all key spaces.
pub(crate) const DESCRIPTORS: usize = OPEN_FILES * Space::ALL.len();

impl Versions {
    /// Lets the store forget versions that no reader at `oldest` or later can read, and deletes what nobody needs any more. Returns whether something is left:
    /// then look again.
    pub(crate) fn release(&self, spaces: &[Keyspace], oldest: SeqNo) -> bool {
        let mut state = self.0.lock();
        let is_deleting = state.deleting.as_ref().is_some_and(|thread| !thread.is_finished());
        let mut unused = Vec::new();
        let mut is_left = is_deleting;
        for (kept, space) in state.spaces.iter_mut().zip(spaces) {
            kept.note_current(space);
            forget(space, oldest);
            if !is_deleting {
                unused.extend(kept.take_forgotten());
            }
            kept.note_forgotten(first_of(space));
            is_left |= kept.0.len() > 1 || space.tree.version_free_list_len() > 0;
        }
        if !unused.is_empty() {
            // Without a thread they are dropped here.
            state.deleting = priority::spawn("bolide-deleting", move || drop(unused)).ok();
            is_left |= state.deleting.is_some();
        }
        is_left
    }

    /// Keeps the current version of a key space until it is released: call it when a merge has ended, because the next one may end before the next look.
    pub(crate) fn note_current(&self, number: Space, space: &Keyspace) {
        self.0.lock().spaces[number as usize].note_current(space);
    }

    /// Waits until everything is deleted that was found before.
    pub(crate) fn wait(&self) {
        let deleting = self.0.lock().deleting.take();
        if let Some(thread) = deleting {
            // If it has panicked, the rest is deleted at the next start.
            let _ = thread.join();
        }
    }
}

impl Drop for Versions {
    fn drop(&mut self) {
        self.wait();
    }
}

impl OfSpace {
    /// Keeps the current version.
    fn note_current(&mut self, space: &Keyspace) {
        let version = space.tree.current_version();
        let id = version.id();
        if self.0.back().is_none_or(|newest| newest.id != id) {
            let path = space.path().join(format!("v{id}"));
            let file = (self.0.len() < OPEN_FILES).then(|| File::open(path).ok());
            self.0.push_back(Kept {
                id,
                reference: Box::new((version, file)),
                is_forgotten: false,
            });
        }
    }

    /// The versions that had been forgotten at the last look.
    fn take_forgotten(&mut self) -> impl Iterator<Item = Reference> {
        let forgotten = self.0.iter().take_while(|version| version.is_forgotten).count();
        self.0.drain(..forgotten).map(|version| version.reference)
    }

    /// `first` is the oldest version that the store still has.
    fn note_forgotten(&mut self, first: u64) {
        let forgotten = self.0.iter_mut().take_while(|version| version.id < first);
        forgotten.for_each(|version| version.is_forgotten = true);
    }
}

fn forget(space: &Keyspace, oldest: SeqNo) {
    if space.tree.version_free_list_len() == 0 {
        return;
    }
    let forgotten = space.tree.get_version_history_lock().maintenance(space.path(), oldest);
    if let Err(error) = forgotten {
        tracing::warn!(%error, "tables that were merged are still there");
    }
}

/// The oldest version that the store still has: their numbers follow each other. If versions come and go meanwhile, it is a lower one.
fn first_of(space: &Keyspace) -> u64 {
    let newest = space.tree.current_version().id();
    newest.saturating_sub(space.tree.version_free_list_len() as u64)
}

#[cfg(test)]
mod tests;
