//! What happens to MongoDB collections as a whole, for change streams: they are created, changed, renamed and dropped.
//!
//! ```text
//!   Log  'FE' ‖ lsn(8) ‖ seq(4) → JSON, in the Log space of partition 0
//! ```
//!
//! An event is written in the commit that it reports, and has the time of that commit, so it is in order with the changes of documents. The events of the
//! last [`KEPT`] commits are kept.

use std::sync::Arc;

use bolide_model::rid::ContainerRid;
use bolide_model::time::CommitTime;
use bolide_model::{Lsn, Result, UnixMillis};
use bolide_storage::PartitionId;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::rows::damaged;
use crate::content::ShardKey;
use crate::format::keys::{self, LogPosition};

/// Number of commits whose events are kept.
pub(super) const KEPT: u64 = 65_536;

/// Maximum number of events of one commit.
pub(super) const OF_COMMIT: u32 = 4;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CatalogEventKind {
    /// A collection was created.
    Create,
    /// A collection was dropped.
    Drop,
    /// A collection got another name.
    Rename,
    /// All collections of a database were dropped.
    DropDatabase,
    /// Indexes of a collection were created.
    CreateIndexes,
    /// Indexes of a collection were dropped.
    DropIndexes,
    /// Options of a collection or of an index were changed.
    Modify,
}

/// An event of a collection or database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogEvent {
    /// What happened.
    pub kind: CatalogEventKind,
    #[serde(rename = "time")]
    pub(super) stored_time: u64,
    #[serde(rename = "ms")]
    pub(super) stored_millis: i64,
    /// The name of the database.
    pub database: String,
    /// The name of the collection before the event; empty for a database.
    #[serde(default)]
    pub collection: String,
    #[serde(default)]
    pub(super) container: Option<[u8; 8]>,
    /// The identity of the collection.
    #[serde(default)]
    pub uuid: Option<Uuid>,
    /// The new name of a collection.
    #[serde(default)]
    pub to: Option<String>,
    /// The identity of the collection that a rename has replaced.
    #[serde(default)]
    pub replaced: Option<Uuid>,
    /// The partitions of a dropped collection whose history is kept for a while.
    #[serde(default)]
    pub(super) retired: Vec<u64>,
    /// The shard key of a dropped collection whose history is kept for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) shard_key: Option<String>,
    /// Whether another event tells it: a collection that a rename replaces is dropped.
    #[serde(default)]
    pub is_silent: bool,
    /// What the front end adds, as it has written it.
    #[serde(default)]
    pub description: Vec<u8>,
}

impl CatalogEvent {
    /// An event of a database.
    pub(super) fn of_database(kind: CatalogEventKind, database: &str) -> CatalogEvent {
        CatalogEvent {
            kind,
            stored_time: 0,
            stored_millis: 0,
            database: database.to_owned(),
            collection: String::new(),
            container: None,
            uuid: None,
            to: None,
            replaced: None,
            retired: Vec::new(),
            shard_key: None,
            is_silent: false,
            description: Vec::new(),
        }
    }

    /// An event of a collection.
    pub(super) fn of_collection(
        kind: CatalogEventKind,
        (database, collection): (&str, &str),
        rid: ContainerRid,
        uuid: Option<Uuid>,
    ) -> CatalogEvent {
        CatalogEvent {
            collection: collection.to_owned(),
            container: Some(rid.bytes()),
            uuid,
            ..CatalogEvent::of_database(kind, database)
        }
    }

    /// Adds the partitions of a dropped collection, which are kept for a while.
    pub(super) fn retiring(self, partitions: &[PartitionId]) -> CatalogEvent {
        CatalogEvent {
            retired: partitions.iter().map(|partition| partition.0).collect(),
            ..self
        }
    }

    /// Returns when it happened, in the order of commits.
    pub fn time(&self) -> CommitTime {
        CommitTime(self.stored_time)
    }

    /// Returns when it happened, by the clock.
    pub fn happened(&self) -> UnixMillis {
        UnixMillis(self.stored_millis)
    }

    pub(crate) fn rid(&self) -> Option<ContainerRid> {
        self.container.and_then(ContainerRid::from_bytes)
    }

    pub(crate) fn retired(&self) -> impl Iterator<Item = PartitionId> {
        self.retired.iter().copied().map(PartitionId)
    }

    /// Returns the shard key of a dropped collection.
    pub(crate) fn shard_key(&self) -> Option<Arc<ShardKey>> {
        let path = self.shard_key.as_deref()?;
        ShardKey::parse(path).ok().map(Arc::new)
    }

    pub(super) fn encode(&self, time: CommitTime, happened: UnixMillis) -> Bytes {
        let event = CatalogEvent {
            stored_time: time.0,
            stored_millis: happened.0,
            ..self.clone()
        };
        serde_json::to_vec(&event)
            .expect("events have names, numbers and bytes")
            .into()
    }

    /// Decodes a row of the Log space of partition 0.
    ///
    /// # Errors
    /// `Corrupt` if it is damaged.
    pub(crate) fn decode(key: &[u8], value: &[u8]) -> Result<(LogPosition, CatalogEvent)> {
        let position = keys::history_position(key).ok_or_else(|| damaged("an event has no place"))?;
        let event = serde_json::from_slice(value).map_err(|_| damaged("an event cannot be read"))?;
        Ok((position, event))
    }
}

/// Returns the positions of the events that no longer are kept once there is a commit.
pub(super) fn forgotten(lsn: Lsn) -> impl Iterator<Item = LogPosition> {
    let old = lsn.0.checked_sub(KEPT).map(Lsn);
    old.into_iter()
        .flat_map(|lsn| (0..OF_COMMIT).map(move |seq| LogPosition { lsn, seq }))
}
