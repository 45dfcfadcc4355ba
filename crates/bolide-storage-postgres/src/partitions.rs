//! What this process knows of partitions: the newest commit of each, as it was seen last. Others may have committed since.

use std::collections::HashMap;
use std::sync::Arc;

use bolide_storage::PartitionId;
use parking_lot::Mutex;
use tokio::sync::MutexGuard;

use crate::locks::Locked;
use crate::lookups::Lookups;
use crate::rows::CommitRecord;

/// Commit records are kept for this long: by them, an outcome that nobody saw is found. In milliseconds of server time.
const RECORDS_KEPT_MS: i64 = 60_000;
/// And at least so many of them.
const RECORDS_KEPT: u64 = 2 * bolide_storage::RESOLVABLE_COMMITS as u64;

/// The partitions of a store that were used.
#[derive(Default)]
pub(crate) struct Partitions(Mutex<HashMap<PartitionId, Arc<PartitionState>>>);

/// A partition.
#[derive(Default)]
pub(crate) struct PartitionState {
    /// One commit at a time.
    turn: tokio::sync::Mutex<()>,
    newest: Mutex<Option<CommitRecord>>,
    pub(crate) lookups: Arc<Lookups>,
    /// What this process has locked.
    locked: Mutex<Option<Locked>>,
    trimming: Mutex<Trimming>,
}

/// A record, and how it was learned.
pub(crate) enum Known {
    /// It was the newest.
    Newest(CommitRecord),
    /// It was committed here.
    Committed(CommitRecord),
}

/// Two marks at least [`RECORDS_KEPT_MS`] apart: what is before the older one is deleted when the newer one is old enough.
#[derive(Default)]
struct Trimming {
    commits: u64,
    older: Option<CommitRecord>,
    newer: Option<CommitRecord>,
    is_due: bool,
}

impl Partitions {
    /// The state of a partition, whether or not it exists.
    pub(crate) fn get(&self, partition: PartitionId) -> Arc<PartitionState> {
        self.0.lock().entry(partition).or_default().clone()
    }

    /// The newest commit that was seen.
    pub(crate) fn known(&self, partition: PartitionId) -> Option<CommitRecord> {
        *self.0.lock().get(&partition)?.newest.lock()
    }

    /// Notes a commit that was seen. Answers may arrive in another order than they were made.
    pub(crate) fn learn(&self, partition: PartitionId, known: Known) {
        let state = self.get(partition);
        let (Known::Newest(record) | Known::Committed(record)) = known;
        {
            let mut newest = state.newest.lock();
            if newest.as_ref().is_none_or(|newest| newest.age() <= record.age()) {
                *newest = Some(record);
            }
        }
        if matches!(known, Known::Committed(_)) {
            state.trimming.lock().committed(record);
        }
    }

    /// The partition does not exist any more, or not yet.
    pub(crate) fn forget(&self, partition: PartitionId) {
        self.0.lock().remove(&partition);
    }
}

impl PartitionState {
    /// Waits until the commits before have ended.
    pub(crate) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Keeps a lock until a commit takes it, or its holder drops it.
    pub(crate) fn set_locked(&self, locked: Locked) {
        *self.locked.lock() = Some(locked);
    }

    /// Takes the lock, if there is one that is `wanted`.
    pub(crate) fn take_locked(&self, wanted: impl FnOnce(&Locked) -> bool) -> Option<Locked> {
        let mut locked = self.locked.lock();
        locked.take_if(|locked| wanted(locked))
    }

    /// The record before which all can be deleted now, if it is worth it.
    pub(crate) fn trimmable(&self) -> Option<CommitRecord> {
        let mut trimming = self.trimming.lock();
        std::mem::take(&mut trimming.is_due).then_some(trimming.older)?
    }
}

impl Trimming {
    fn committed(&mut self, record: CommitRecord) {
        self.commits += 1;
        let is_old = |mark: &CommitRecord| record.head.stamp.0.saturating_sub(mark.head.stamp.0) >= RECORDS_KEPT_MS;
        if self
            .newer
            .as_ref()
            .is_none_or(|mark| is_old(mark) && self.commits >= RECORDS_KEPT)
        {
            self.is_due = self.newer.is_some();
            self.older = self.newer.replace(record);
            self.commits = 0;
        }
    }
}

#[cfg(test)]
mod tests;
