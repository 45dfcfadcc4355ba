//! Records the keys that commits change while a partition is copied (`crate::admin::split`).
//!
//! The copy reads one page after another, each at a different head, and rows that are written after their page was read have to be read again. The
//! log has entries for writes, but none for removed rows, so the worker records the keys of each commit: after the commit is visible and before the
//! partition's LSN shows it. So whoever takes a recorded key and then reads it sees that commit or a newer one.
//!
//! A copy of the whole store records keys at the same time, in its own way ([`CopiedKeys`]).

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bolide_model::{Error, ErrorKind, Result};
use bolide_storage::{Key, Space};
use parking_lot::Mutex;

use super::copied::CopiedKeys;
use super::write_batch::Changes;
use crate::format::{entries, keys};

/// Maximum size in bytes of the recorded keys that the copy has not taken yet, so that memory stays bounded.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Memory of a recorded key besides its bytes, in bytes.
pub(super) const KEY_BYTES: usize = 96;

/// The keys changed since they were last taken, while they are recorded.
#[derive(Debug, Default)]
pub(crate) struct DirtyKeys {
    is_recording: AtomicBool,
    recorded: Mutex<Recorded>,
    /// The same for a copy of the store.
    pub copied: CopiedKeys,
}

#[derive(Debug, Default)]
struct Recorded {
    keys: HashSet<Key>,
    bytes: usize,
    /// The reason why not all changed keys were recorded.
    incomplete: Option<&'static str>,
}

impl DirtyKeys {
    /// Returns the keys that a commit will change, if they are recorded.
    pub fn keys_of(&self, changes: &Changes) -> Vec<Key> {
        let (is_splitting, is_copying) = (self.is_recording.load(Ordering::SeqCst), self.copied.is_recording());
        if !is_splitting && !is_copying {
            return Vec::new();
        }
        let puts = changes.puts.iter().map(|put| &put.key);
        let keys = puts.chain(&changes.deletes);
        keys.filter(|key| is_copying || is_split(key)).cloned().collect()
    }

    /// Records the keys that a commit has changed.
    pub fn record(&self, keys: Vec<Key>) {
        self.copied.record(&keys);
        if keys.is_empty() || !self.is_recording.load(Ordering::SeqCst) {
            return;
        }
        let mut recorded = self.recorded.lock();
        for key in keys.into_iter().filter(is_split) {
            let bytes = key.bytes.len() + KEY_BYTES;
            if recorded.keys.insert(key) {
                recorded.bytes += bytes;
            }
        }
        if recorded.bytes > MAX_BYTES {
            recorded.give_up("more is written than can be copied");
        }
    }

    /// Records that the partition was changed in an unknown way.
    pub fn lose_track(&self) {
        self.copied.lose_track();
        if self.is_recording.load(Ordering::SeqCst) {
            self.recorded.lock().give_up("others write the partition");
        }
    }
}

/// Tells whether a split needs a key. It makes entries of items from the items; and Meta rows except those of sessions belong to the partition and not to
/// its items.
fn is_split(key: &Key) -> bool {
    (key.space != Space::Meta || keys::is_of_sessions(key)) && !entries::is_entry(key)
}

impl Recorded {
    fn give_up(&mut self, why: &'static str) {
        (self.keys, self.bytes) = (HashSet::new(), 0);
        self.incomplete = Some(why);
    }
}

/// Access to the dirty keys of a partition. Only one exists at a time; keys are recorded until it is dropped.
pub(crate) struct Recording(Arc<DirtyKeys>);

impl Recording {
    /// Starts recording. A commit that is running at this moment may not be recorded: the caller must wait until the worker has finished it.
    pub(super) fn start(keys: &Arc<DirtyKeys>) -> Recording {
        *keys.recorded.lock() = Recorded::default();
        keys.is_recording.store(true, Ordering::SeqCst);
        Recording(keys.clone())
    }

    /// Returns the keys changed since the last call, each once.
    ///
    /// # Errors
    /// `Unavailable` if not all changed keys are known: too many were changed, or others than the partition's worker changed the partition.
    pub fn take(&self) -> Result<Vec<Key>> {
        let mut recorded = self.0.recorded.lock();
        if let Some(why) = recorded.incomplete {
            return Err(Error::new(
                ErrorKind::Unavailable,
                format!("the range could not be copied; nothing has changed: {why}"),
            ));
        }
        recorded.bytes = 0;
        Ok(recorded.keys.drain().collect())
    }

    /// Tells whether no key was changed since keys were last taken.
    pub fn is_empty(&self) -> bool {
        let recorded = self.0.recorded.lock();
        recorded.keys.is_empty() && recorded.incomplete.is_none()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.0.is_recording.store(false, Ordering::SeqCst);
        *self.0.recorded.lock() = Recorded::default();
    }
}

#[cfg(test)]
mod tests;
