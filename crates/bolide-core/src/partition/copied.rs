//! Records the keys that commits change while a store is copied (`crate::admin::copies`).
//!
//! The copy reads one page after another, each at a different head, and rows that are written after their page was read have to be read again. All rows are
//! copied, so the keys of all are recorded, other than by the [`DirtyKeys`] of a split. Commits of other servers are not
//! recorded: the worker meets them when its own commit finds another head, and then the copy has to compare the whole partition. A seal is such a commit, so
//! after it nothing is missed.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bolide_model::Result;
use bolide_storage::Key;
use parking_lot::Mutex;

use super::dirty_keys::{DirtyKeys, KEY_BYTES};
use super::{Partition, SettingsNumber};
use crate::format::keys;

/// The memory that all recorded keys of a copy may use together.
#[derive(Debug)]
pub(crate) struct ChangedBudget {
    left: AtomicUsize,
}

impl ChangedBudget {
    pub fn new(bytes: usize) -> Arc<ChangedBudget> {
        let left = AtomicUsize::new(bytes);
        Arc::new(ChangedBudget { left })
    }

    fn take(&self, bytes: usize) -> bool {
        let left = |left: usize| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.left.fetch_add(bytes, Ordering::SeqCst);
    }
}

/// The keys of a partition that were changed since they were last taken, while a copy records them.
#[derive(Debug, Default)]
pub(crate) struct CopiedKeys {
    is_recording: AtomicBool,
    recorded: Mutex<Recorded>,
}

#[derive(Debug, Default)]
struct Recorded {
    keys: HashSet<Key>,
    bytes: usize,
    /// Whether keys are missing.
    is_lost: bool,
    /// Which recording this is: one that has ended must not end the next.
    turn: u64,
    budget: Option<Arc<ChangedBudget>>,
}

/// The changed keys that a copy has taken.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TakenKeys {
    /// Not all changed keys are known: what was copied of the partition has to be compared with it.
    pub is_lost: bool,
    pub keys: Vec<Key>,
    /// Number of further keys.
    pub left: usize,
}

impl CopiedKeys {
    pub fn is_recording(&self) -> bool {
        self.is_recording.load(Ordering::SeqCst)
    }

    /// Records the keys that a commit has changed, except that of the seal, which belongs to this store alone.
    pub fn record(&self, keys: &[Key]) {
        if !self.is_recording() {
            return;
        }
        let mut recorded = self.recorded.lock();
        let seal = keys::write_seal();
        for key in keys.iter().filter(|key| **key != seal) {
            recorded.add(key);
        }
    }

    /// Records that the partition was changed in an unknown way.
    pub fn lose_track(&self) {
        if self.is_recording() {
            self.recorded.lock().lose_track();
        }
    }
}

impl Recorded {
    fn add(&mut self, key: &Key) {
        let bytes = key.bytes.len() + KEY_BYTES;
        if self.is_lost || self.keys.contains(key) {
            return;
        }
        if self.budget.as_ref().is_some_and(|budget| budget.take(bytes)) {
            self.keys.insert(key.clone());
            self.bytes += bytes;
        } else {
            self.lose_track();
        }
    }

    fn lose_track(&mut self) {
        self.clear();
        self.is_lost = true;
    }

    fn clear(&mut self) {
        self.keys = HashSet::new();
        self.give_back(self.bytes);
    }

    fn give_back(&mut self, bytes: usize) {
        self.bytes -= bytes;
        if let Some(budget) = &self.budget {
            budget.give_back(bytes);
        }
    }

    fn take(&mut self, max: usize) -> TakenKeys {
        let keys: Vec<Key> = match self.keys.len() <= max {
            true => self.keys.drain().collect(),
            false => {
                let some: Vec<Key> = self.keys.iter().take(max).cloned().collect();
                for key in &some {
                    self.keys.remove(key);
                }
                some
            }
        };
        self.give_back(keys.iter().map(|key| key.bytes.len() + KEY_BYTES).sum());
        TakenKeys {
            is_lost: std::mem::take(&mut self.is_lost),
            keys,
            left: self.keys.len(),
        }
    }
}

/// The access of a copy to the changed keys of a partition, which are recorded until it is dropped.
#[derive(Debug)]
pub(crate) struct CopyRecording {
    keys: Arc<DirtyKeys>,
    turn: u64,
}

impl CopyRecording {
    fn start(keys: &Arc<DirtyKeys>, budget: Arc<ChangedBudget>) -> CopyRecording {
        let mut recorded = keys.copied.recorded.lock();
        recorded.clear();
        let turn = recorded.turn + 1;
        *recorded = Recorded {
            budget: Some(budget),
            turn,
            ..Recorded::default()
        };
        keys.copied.is_recording.store(true, Ordering::SeqCst);
        let keys = keys.clone();
        CopyRecording { keys, turn }
    }

    /// Tells whether it records the commits of this partition: one that was opened again has another worker.
    pub fn is_of(&self, partition: &Partition) -> bool {
        Arc::ptr_eq(&self.keys, &partition.shared.dirty_keys)
    }

    /// Takes at most `max` changed keys. If keys are missing, whoever takes this finds them by comparing the whole partition from here on.
    pub fn take(&self, max: usize) -> TakenKeys {
        let mut recorded = self.keys.copied.recorded.lock();
        if recorded.turn == self.turn {
            return recorded.take(max);
        }
        TakenKeys {
            is_lost: true,
            ..TakenKeys::default()
        }
    }

    /// Records keys again that could not be copied now.
    pub fn put_back(&self, keys: &[Key]) {
        self.keys.copied.record(keys);
    }

    /// Records that what was taken did not come to where it is copied.
    pub fn lose_track(&self) {
        self.keys.copied.lose_track();
    }
}

impl Drop for CopyRecording {
    fn drop(&mut self) {
        let mut recorded = self.keys.copied.recorded.lock();
        if recorded.turn != self.turn {
            return;
        }
        self.keys.copied.is_recording.store(false, Ordering::SeqCst);
        recorded.clear();
        recorded.budget = None;
    }
}

impl Partition {
    /// Starts to record all keys that commits change, beginning with commits that are not visible yet. A recording that is active ends.
    ///
    /// # Errors
    /// From the engine.
    pub async fn record_for_copy(&self, budget: Arc<ChangedBudget>) -> Result<CopyRecording> {
        let recording = CopyRecording::start(&self.shared.dirty_keys, budget);
        // Every partition has these settings already. A commit that was running when the recording began is finished once the worker has come to it.
        self.raise_settings(SettingsNumber::default()).await?;
        Ok(recording)
    }
}

#[cfg(test)]
mod tests;
