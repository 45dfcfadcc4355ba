//! Decides which stored versions are visible to requests. This is the only place that combines the expiry rule (`bolide_model::ttl`) and the
//! tombstones of deleted partition keys.
//!
//! A stored version that is not visible is a ghost: it has expired, or was deleted with its partition key, and is not removed yet.

use std::time::Duration;

use bolide_model::UnixMillis;
use bolide_model::ttl::{Horizon, Settings, Stamp};
use bolide_storage::Key;

use super::tombstones::{PartitionKeyTombstones, TombstoneView};
use crate::format::record::Record;

/// The horizon and the tombstones that decide for all rows of one snapshot.
#[derive(Debug, Clone)]
pub(crate) struct Visibility {
    horizon: Horizon,
    tombstones: TombstoneView,
}

impl Visibility {
    pub fn new(horizon: Horizon, tombstones: TombstoneView) -> Visibility {
        Visibility { horizon, tombstones }
    }

    pub fn horizon(&self) -> &Horizon {
        &self.horizon
    }

    /// Tells whether a stored version is visible (TTL-235).
    pub fn shows(&self, item_key: &[u8], record: &Record) -> bool {
        let hides = || self.tombstones.hides(item_key, record.version().lsn, record.stamp());
        exists(record, &self.horizon, hides)
    }

    /// Tells whether a version that was visible before is still live. Only for versions that can have changed in no other way, in containers without
    /// date rules: the stamp does not have the dates of a document.
    pub fn still_shows(&self, stamp: Stamp) -> bool {
        stamp.is_live(&self.horizon)
    }
}

/// Decides visibility: a version is hidden if it has expired, or if `is_hidden` by a tombstone of its partition key.
fn exists(record: &Record, horizon: &Horizon, is_hidden: impl FnOnce() -> bool) -> bool {
    record.is_live(horizon) && !is_hidden()
}

/// A stored version and its key.
#[derive(Debug, Clone)]
pub(crate) struct StoredVersion {
    pub key: Key,
    pub record: Record,
}

/// What is stored under an item's key.
#[derive(Debug)]
pub(crate) enum Slot {
    /// Nothing is stored under the key.
    Free,
    /// A ghost is stored under the key. The key can be used again once the ghost is removed.
    Ghost(StoredVersion),
    Live(StoredVersion),
}

impl Slot {
    /// What a stored version is beside the tombstones that a decision sees.
    pub fn of(version: StoredVersion, horizon: &Horizon, tombstones: &PartitionKeyTombstones) -> Slot {
        let StoredVersion { key, record } = &version;
        match exists(record, horizon, || tombstones.hides(&key.bytes, record)) {
            true => Slot::Live(version),
            false => Slot::Ghost(version),
        }
    }

    pub fn live(self) -> Option<StoredVersion> {
        match self {
            Slot::Live(version) => Some(version),
            Slot::Free | Slot::Ghost(_) => None,
        }
    }

    pub fn ghost(self) -> Option<StoredVersion> {
        match self {
            Slot::Ghost(version) => Some(version),
            Slot::Free | Slot::Live(_) => None,
        }
    }
}

/// Why a stored version is no longer visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GhostCause {
    Expired,
    /// It was live when its partition key was deleted.
    PartitionKeyDeleted,
}

impl GhostCause {
    /// Returns the cause for a ghost.
    pub fn of(tombstones: &PartitionKeyTombstones, item_key: &[u8], record: &Record) -> GhostCause {
        match tombstones.hides(item_key, record) {
            true => GhostCause::PartitionKeyDeleted,
            false => GhostCause::Expired,
        }
    }
}

/// The last time of a version, in which it is not written on a store that other servers read: a commit takes less, as a rule (extensions §4).
const LAST_MS: u64 = 250;
/// How long a transaction waits in all for versions that are about to end.
pub(super) const LONGEST_WAIT: Duration = Duration::from_millis(LAST_MS);
const STEP_MS: usize = 10;

/// Returns in how long a live version ends, if that is soon.
pub(super) fn ends_in(record: &Record, settings: &Settings, now: UnixMillis) -> Option<Duration> {
    let is_live = |after: u64| record.is_live(&settings.horizon(UnixMillis(now.0.saturating_add_unsigned(after))));
    if !is_live(0) || is_live(LAST_MS) {
        return None;
    }
    let ended = (0..=LAST_MS).step_by(STEP_MS).find(|after| !is_live(*after));
    ended.map(Duration::from_millis)
}
