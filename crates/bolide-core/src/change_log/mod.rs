//! The history of a container: every version and every delete, in the order of commit, for as long as its change feed policy says.
//!
//! It is what the change feed in its all-versions mode shows (cosmos-rest §8.4). A container without the policy keeps none. Where there
//! is one, each write adds its entry in its own commit, purges of ghosts included, so history and items never disagree (TTL-250,
//! TTL-274). An entry has the new version and the one before: deletes are told by the id and partition key of what is gone.
//!
//! ```text
//!   Log  'FE' ‖ lsn(8) ‖ seq(4) → format(1) ‖ kind(1) ‖ crts(8) ‖ length(2) ‖ item key
//!                                 ‖ length(4) ‖ new record ‖ old record
//! ```
//!
//! History lies in the Log space behind the log itself, whose keys begin with an LSN that never gets so high. Entries leave at the
//! front once they are older than the retention ([`trim`]); until then readers hide them.

mod entry;
pub(crate) mod trim;

use bolide_model::UnixSeconds;
use bolide_model::container::ContainerProperties;
use bytes::Bytes;

pub use entry::ChangeKind;
pub(crate) use entry::HistoryEntry;

use crate::format::keys::{self, LogPosition};
use crate::format::record::Record;
use crate::partition::write_batch::WriteBatch;

/// How long history is kept where a client has begun the all-versions feed without a policy, in minutes: as long as the shorter of the
/// service's continuous backups. To be kept for every container from its creation, it would make every write dearer.
const DEFAULT_RETENTION_MINUTES: u32 = 7 * 24 * 60;

/// How long a container of this definition keeps history, in seconds; `None`: it keeps none. `is_begun`: a client has begun the feed.
pub(crate) fn retention(properties: &ContainerProperties, is_begun: bool) -> Option<i64> {
    let minutes = match properties.change_feed_policy {
        Some(policy) => policy.retention_minutes,
        None if is_begun => DEFAULT_RETENTION_MINUTES,
        None => 0,
    };
    (minutes > 0).then(|| i64::from(minutes) * 60)
}

/// Whether an entry of `crts` has left the history at `now`: it is kept for exactly the retention.
pub(crate) fn has_left(crts: UnixSeconds, retention: Option<i64>, now: UnixSeconds) -> bool {
    retention.is_none_or(|seconds| crts.0.saturating_add(seconds) <= now.0)
}

/// Adds what happened to an item, if the container keeps history. `version` is the place of the write that did it.
pub(crate) fn log(batch: &mut WriteBatch<'_>, retention: Option<i64>, version: LogPosition, change: Change<'_>) {
    let Some(retention) = retention else { return };
    let crts = batch.seconds();
    let entry = HistoryEntry {
        kind: change.kind,
        crts,
        item_key: change.item_key.clone(),
        current: change.current.cloned(),
        previous: change.previous.cloned(),
    };
    batch.put(keys::history(version), entry.encode());
    batch.after.expect_trim(crts.0.saturating_add(retention));
}

/// What happened to an item.
pub(crate) struct Change<'a> {
    kind: ChangeKind,
    item_key: &'a Bytes,
    current: Option<&'a Record>,
    previous: Option<&'a Record>,
}

impl<'a> Change<'a> {
    /// It was written, in the place of `previous` if that was there.
    pub fn written(item_key: &'a Bytes, current: &'a Record, previous: Option<&'a Record>) -> Change<'a> {
        let kind = match previous {
            Some(_) => ChangeKind::Replace,
            None => ChangeKind::Create,
        };
        Change {
            kind,
            item_key,
            current: Some(current),
            previous,
        }
    }

    /// A client deleted it.
    pub fn deleted(item_key: &'a Bytes, previous: &'a Record) -> Change<'a> {
        Change {
            kind: ChangeKind::Delete,
            item_key,
            current: None,
            previous: Some(previous),
        }
    }

    /// It had expired, and is physically gone now.
    pub fn purged(item_key: &'a Bytes, previous: &'a Record) -> Change<'a> {
        Change {
            kind: ChangeKind::Expire,
            ..Change::deleted(item_key, previous)
        }
    }
}
