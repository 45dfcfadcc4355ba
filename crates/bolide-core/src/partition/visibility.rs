//! Which stored versions exist for requests: the one place where the rule of expiry (`bolide_model::ttl`) and the tombstones of deleted
//! partition keys come together.
//!
//! What is stored and does not exist is a ghost: it has expired, or was deleted with its partition key, and waits for its removal.

use bolide_model::Lsn;
use bolide_model::ttl::{Horizon, Stamp};
use bolide_storage::Key;

use super::tombstones::{PartitionKeyTombstones, TombstoneView};
use crate::format::record::Record;

/// What all rows of one snapshot are judged by.
#[derive(Debug, Clone)]
pub(crate) struct Visibility {
    horizon: Horizon,
    tombstones: TombstoneView,
}

impl Visibility {
    pub fn new(horizon: Horizon, tombstones: TombstoneView) -> Visibility {
        Visibility { horizon, tombstones }
    }

    pub fn horizon(&self) -> Horizon {
        self.horizon
    }

    /// Whether a stored version exists (TTL-235).
    pub fn shows(&self, item_key: &[u8], record: &Record) -> bool {
        self.shows_version(item_key, record.version().lsn, record.stamp())
    }

    /// Whether a version that was visible a moment ago has not expired since, where nothing else can have happened to it.
    pub fn still_shows(&self, stamp: Stamp) -> bool {
        stamp.is_live(self.horizon)
    }

    /// As [`Visibility::shows`], of a version that is known by its entry in a queue only.
    pub fn shows_version(&self, item_key: &[u8], lsn: Lsn, stamp: Stamp) -> bool {
        exists(stamp, self.horizon, || self.tombstones.hides(item_key, lsn, stamp))
    }
}

/// The rule. `is_hidden`: by a tombstone of its partition key.
fn exists(stamp: Stamp, horizon: Horizon, is_hidden: impl FnOnce() -> bool) -> bool {
    stamp.is_live(horizon) && !is_hidden()
}

/// A stored version and where it is.
#[derive(Debug, Clone)]
pub(crate) struct StoredVersion {
    pub key: Key,
    pub record: Record,
}

/// What a decision finds under an item's key.
#[derive(Debug)]
pub(crate) enum Slot {
    /// Nothing is stored there.
    Free,
    /// It is free, once the ghost is removed.
    Ghost(StoredVersion),
    Live(StoredVersion),
}

impl Slot {
    /// What a stored version is beside the tombstones that a decision sees.
    pub fn of(version: StoredVersion, horizon: Horizon, tombstones: &PartitionKeyTombstones) -> Slot {
        let StoredVersion { key, record } = &version;
        match exists(record.stamp(), horizon, || tombstones.hides(&key.bytes, record)) {
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

/// Why a stored version does not exist any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GhostCause {
    Expired,
    /// It was live when its partition key was deleted.
    PartitionKeyDeleted,
}

impl GhostCause {
    /// Of a ghost.
    pub fn of(tombstones: &PartitionKeyTombstones, item_key: &[u8], record: &Record) -> GhostCause {
        match tombstones.hides(item_key, record) {
            true => GhostCause::PartitionKeyDeleted,
            false => GhostCause::Expired,
        }
    }
}
