//! Deletes tables that were merged, outside of the store's locks.
//!
//! Every version of a key space is a list of tables. The store deletes the file of a table together with the last version that has it, and the file of a
//! version itself with the version; meanwhile it holds a lock that every read and write of the key space takes. Where the file system discards the blocks of
//! deleted files at once, each takes 10 ms, and a merge leaves dozens: all requests waited for a third of a second. So each version has one more reference here,
//! and a thread that nobody waits for does the deleting:
//!
//! ```text
//!   current ──a newer one is current──▶ its file is deleted ──nobody reads it──▶ the store forgets it ──one look later──▶ its tables are deleted
//! ```
//!
//! The look in between is for reads that had begun: the last of them would delete the tables.
//!
//! Source: lsm-tree 3.1.10 (`version/super_version.rs`, `table/inner.rs`); the version is pinned.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use fjall::{AbstractTree as _, Keyspace, SeqNo};
use parking_lot::Mutex;

/// The versions of all key spaces that are not deleted yet. When it is dropped they are, so drop it before another store is opened in the same place.
#[derive(Default)]
pub(crate) struct Versions(Mutex<State>);

#[derive(Default)]
struct State {
    /// In the order of the key spaces.
    spaces: Vec<OfSpace>,
    deleting: Option<JoinHandle<()>>,
}

/// The versions of one key space, the newest last.
#[derive(Default)]
struct OfSpace {
    kept: VecDeque<Kept>,
    /// Whether the store was not told to forget versions at the last look, because their files had to be deleted first.
    has_waited: bool,
}

/// A version, with its reference.
struct Kept {
    id: u64,
    /// Drops the reference.
    delete: Box<dyn FnOnce() + Send>,
    has_file: bool,
    /// Whether the store had forgotten the version at the last look.
    is_forgotten: bool,
}

/// What can be deleted now.
#[derive(Default)]
struct Unused {
    files: Vec<PathBuf>,
    tables: Vec<Box<dyn FnOnce() + Send>>,
}

impl Versions {
    /// Lets the store forget versions that no reader at `oldest` or later can read, and deletes what nobody needs any more. Returns whether something is left:
    /// then look again.
    pub(crate) fn release(&self, spaces: &[Keyspace], oldest: SeqNo) -> bool {
        let mut state = self.0.lock();
        state.spaces.resize_with(spaces.len(), OfSpace::default);
        let all = state.spaces.iter_mut().zip(spaces);
        all.for_each(|(kept, space)| kept.note_current(space));
        if state.deleting.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return true;
        }
        let mut unused = Unused::default();
        let mut is_left = false;
        for (kept, space) in state.spaces.iter_mut().zip(spaces) {
            kept.release(space, oldest, &mut unused);
            is_left |= kept.kept.len() > 1 || space.tree.version_free_list_len() > 0;
        }
        let deletes = !unused.is_empty();
        if deletes {
            state.deleting = unused.delete_elsewhere();
        }
        is_left || deletes
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
    fn note_current(&mut self, space: &Keyspace) {
        let version = space.tree.current_version();
        let id = version.id();
        if self.kept.back().is_none_or(|newest| newest.id != id) {
            self.kept.push_back(Kept {
                id,
                delete: Box::new(move || drop(version)),
                has_file: true,
                is_forgotten: false,
            });
        }
    }

    fn release(&mut self, space: &Keyspace, oldest: SeqNo, unused: &mut Unused) {
        let files = self.take_files(space.path());
        // Under a stream of new versions there are always files: then the store deletes some.
        let waits = !files.is_empty() && !self.has_waited;
        self.has_waited = waits;
        unused.files.extend(files);
        if !waits && space.tree.version_free_list_len() > 0 {
            let forgotten = space.tree.get_version_history_lock().maintenance(space.path(), oldest);
            if let Err(error) = forgotten {
                tracing::warn!(%error, "tables that were merged are still there");
            }
        }
        if self.kept.len() > 1 {
            unused.tables.extend(self.take_forgotten(first_of(space)));
        }
    }

    /// The files of versions that another one has replaced: only the current one is read, when the store is opened.
    fn take_files(&mut self, folder: &Path) -> Vec<PathBuf> {
        let replaced = self.kept.len().saturating_sub(1);
        let with_file = self.kept.iter_mut().take(replaced).filter(|version| version.has_file);
        let taken = with_file.map(|version| {
            version.has_file = false;
            folder.join(format!("v{}", version.id))
        });
        taken.collect()
    }

    /// The versions that had been forgotten at the last look. `first` is the oldest that the store still has.
    fn take_forgotten(&mut self, first: u64) -> Vec<Box<dyn FnOnce() + Send>> {
        let taken = self.kept.iter().take_while(|version| version.is_forgotten).count();
        let taken = self.kept.drain(..taken).map(|version| version.delete).collect();
        let forgotten = self.kept.iter_mut().take_while(|version| version.id < first);
        forgotten.for_each(|version| version.is_forgotten = true);
        taken
    }
}

/// The oldest version that the store still has: their numbers follow each other. If versions come and go meanwhile, it is a lower one.
fn first_of(space: &Keyspace) -> u64 {
    let newest = space.tree.current_version().id();
    newest.saturating_sub(space.tree.version_free_list_len() as u64)
}

impl Unused {
    fn is_empty(&self) -> bool {
        self.files.is_empty() && self.tables.is_empty()
    }

    /// Deletes everything on a thread of its own; `None` if it was deleted here, because there are no threads.
    fn delete_elsewhere(self) -> Option<JoinHandle<()>> {
        let delete = move || {
            crate::priority::lower();
            for file in self.files {
                // The store deletes what is left, and reports errors.
                let _ = fs::remove_file(file);
            }
            self.tables.into_iter().for_each(|delete| delete());
        };
        std::thread::Builder::new()
            .name("bolide-deleting".into())
            .spawn(delete)
            .ok()
    }
}

#[cfg(test)]
mod tests;
