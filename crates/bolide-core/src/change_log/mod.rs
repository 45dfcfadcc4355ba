//! The history of a container: every version and every delete, in commit order, kept for the time that the change feed policy sets.
//!
//! The all-versions mode of the change feed reads it (cosmos-rest §8.4). A container without the policy has no history. In a container with it, each
//! write adds its entry in its own commit, purges of ghosts included, so history and items always agree (TTL-250, TTL-274). An entry has the new
//! version and the previous one: a delete is reported with the id and partition key of the removed item.
//!
//! ```text
//!   Log  'FE' ‖ lsn(8) ‖ seq(4) → format(1) ‖ kind(1) ‖ crts(8) ‖ time(8) ‖ ms(8) ‖ version before(12) ‖ length(2) ‖ item key
//!                                 ‖ length(4) ‖ new record ‖ length(4) ‖ old record ‖ length(4) ‖ note
//! ```
//!
//! The history of a MongoDB collection has the old record only if the collection keeps images; its notes say what an update changed, and what the `_id`
//! of a deleted document was.
//!
//! The history is in the Log space, after the log itself, whose keys begin with an LSN that never becomes that high. The oldest entries are removed
//! once their retention is over ([`trim`]); until then readers hide them.

pub(crate) mod endings;
mod entry;
pub(crate) mod trim;

use std::sync::Arc;

use bolide_model::container::ContainerProperties;
use bolide_model::time::CommitTime;
use bolide_model::{UnixMillis, UnixSeconds};
use bolide_mql::bson::raw::cstr;
use bolide_mql::bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use bytes::Bytes;

pub use entry::ChangeKind;
pub(crate) use entry::HistoryEntry;

use crate::content::ShardKey;
use crate::format::keys::{self, LogPosition};
use crate::format::record::{Content, Record};
use crate::partition::write_batch::WriteBatch;

/// Retention in minutes where a client has started the all-versions feed without a policy: that of the shorter of the service's two continuous backup
/// tiers. History does not begin with the container, because it would make every write more expensive.
const DEFAULT_RETENTION_MINUTES: u32 = 7 * 24 * 60;

/// Retention of the history of MongoDB collections, in seconds: a change stream can be resumed for a day.
pub(crate) const COLLECTION_RETENTION: i64 = 24 * 60 * 60;

/// Returns the retention of a container's history in seconds; `None` if it has no history. `is_begun`: a client has started the feed.
pub(crate) fn retention(properties: &ContainerProperties, is_begun: bool) -> Option<i64> {
    let minutes = match properties.change_feed_policy {
        Some(policy) => policy.retention_minutes,
        None if is_begun => DEFAULT_RETENTION_MINUTES,
        None => 0,
    };
    (minutes > 0).then(|| i64::from(minutes) * 60)
}

/// Tells whether an entry of `crts` has left the history at `now`: it is kept for exactly the retention.
pub(crate) fn has_left(crts: UnixSeconds, retention: Option<i64>, now: UnixSeconds) -> bool {
    retention.is_none_or(|seconds| crts.0.saturating_add(seconds) <= now.0)
}

/// How a container keeps its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keeping {
    /// For how long entries are kept, in seconds.
    pub retention: i64,
    /// Whether entries have the version before the change.
    pub has_previous: bool,
    /// The shard key of a sharded collection, which the keys of deleted documents have.
    pub shard_key: Option<Arc<ShardKey>>,
}

/// Adds a change of an item to the history, if the container has one. `version` is the log position of the write.
pub(crate) fn log(batch: &mut WriteBatch<'_>, keeping: Option<Keeping>, version: LogPosition, change: Change<'_>) {
    let at = (batch.time, batch.now);
    log_at(batch, keeping, version, change, at);
}

/// Like [`log`], for a change that has happened at a time, in the order of commits and by the clock, which is not after the commit.
fn log_at(
    batch: &mut WriteBatch<'_>,
    keeping: Option<Keeping>,
    version: LogPosition,
    change: Change<'_>,
    (time, happened): (CommitTime, UnixMillis),
) {
    let Some(keeping) = keeping else { return };
    let crts = batch.seconds();
    let note = match (change.kind, change.previous) {
        (ChangeKind::Delete | ChangeKind::Expire, Some(previous)) => key_of(previous, keeping.shard_key.as_deref()),
        _ => change.description,
    };
    let entry = HistoryEntry {
        kind: change.kind,
        crts,
        time,
        happened,
        item_key: change.item_key.clone(),
        current: change.current.cloned(),
        previous_version: change.previous.map(Record::version),
        previous: change.previous.filter(|_| keeping.has_previous).cloned(),
        note,
    };
    batch.put(keys::history(version), entry.encode());
    batch.state.history_last = time;
    batch.state.history_happened = happened;
    batch.after.expect_trim(crts.0.saturating_add(keeping.retention));
}

/// Returns the key of a document of a collection as a document; nothing for an item of a container.
fn key_of(record: &Record, shard_key: Option<&ShardKey>) -> Bytes {
    if record.content() != Content::Bson {
        return Bytes::new();
    }
    match RawDocument::from_bytes(record.document_bytes()) {
        Ok(document) => document_key(document, shard_key).into_bytes().into(),
        // Drafts are valid BSON, and checksums of the storage engine guard what is stored.
        Err(_) => RawDocumentBuf::new().into_bytes().into(),
    }
}

/// Returns what identifies a document: the value of the shard key, if the collection has one, and `_id`.
pub(crate) fn document_key(document: &RawDocument, shard_key: Option<&ShardKey>) -> RawDocumentBuf {
    let mut key = RawDocumentBuf::new();
    let value = shard_key.and_then(|shard_key| Some((shard_key.name(), shard_key.value_in(document).ok()?)));
    if let Some((name, value)) = value.filter(|(name, _)| *name != cstr!("_id")) {
        key.append(name, value);
    }
    let id = document.get("_id").ok().flatten();
    key.append(cstr!("_id"), id.unwrap_or(RawBsonRef::Null));
    key
}

/// A change of an item.
pub(crate) struct Change<'a> {
    kind: ChangeKind,
    item_key: &'a Bytes,
    current: Option<&'a Record>,
    previous: Option<&'a Record>,
    description: Bytes,
}

impl<'a> Change<'a> {
    /// Returns the change of a written item that replaces `previous`, if there was one.
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
            description: Bytes::new(),
        }
    }

    /// Adds what an update changed.
    #[must_use]
    pub fn described(self, description: Bytes) -> Change<'a> {
        Change { description, ..self }
    }

    /// Returns the change of an item that a client deleted.
    pub fn deleted(item_key: &'a Bytes, previous: &'a Record) -> Change<'a> {
        Change {
            kind: ChangeKind::Delete,
            item_key,
            current: None,
            previous: Some(previous),
            description: Bytes::new(),
        }
    }

    /// Returns the change of an item that has expired.
    pub fn ended(item_key: &'a Bytes, previous: &'a Record) -> Change<'a> {
        Change {
            kind: ChangeKind::Expire,
            ..Change::deleted(item_key, previous)
        }
    }
}
