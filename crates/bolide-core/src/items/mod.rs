//! Items: create, upsert, replace, patch, delete, read.
//!
//! A write is a transaction of the partition's worker: its input is checked ([`prepare`]), the write is decided on the stored rows
//! ([`logical_partition`]), and its effects are added to a write batch ([`effects`]). A read goes directly to the engine ([`read`]). Both use the
//! container's settings and server time, and for both a ghost does not exist (TTL-235…242).

mod ahead;
mod batch;
mod condition;
mod delete_all;
mod effects;
mod logical_partition;
mod patch;
mod prepare;
mod read;
mod write;

use bolide_model::document::{Document, Patch};
use bolide_model::partition_key::PartitionKey;

pub use batch::{Batch, BatchOperation, BatchResponse, OperationDone, OperationResult};
pub(crate) use condition::Judged;
pub(crate) use effects::{add, number_in_range, remove, remove_deleted, remove_ghost};
pub(crate) use logical_partition::LogicalPartition;
pub(crate) use prepare::{PreparedItem, epk_of_key, own_key, unique_keys};
pub(crate) use read::{Admission, IdLookup};
pub(crate) use write::{Kind, Written};

use crate::content::StoredItem;
use crate::format::etag::Etag;

/// Identifies an item within its logical partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemTarget {
    /// By its id.
    Id(String),
    /// By its resource number.
    Rid(u64),
}

/// Creates an item.
#[derive(Debug, Clone)]
pub struct CreateItem {
    /// The whole item; system properties were dropped when it was parsed.
    pub document: Document,
    /// The partition key that the caller gave. It must be the item's own.
    pub partition_key: Option<PartitionKey>,
}

/// Creates an item, or replaces the one with its id.
#[derive(Debug, Clone)]
pub struct UpsertItem {
    /// The whole item.
    pub document: Document,
    /// See [`CreateItem::partition_key`].
    pub partition_key: Option<PartitionKey>,
    /// Replace only this version. An item that does not exist is created all the same.
    pub if_match: Option<String>,
}

/// Replaces an item. A document with another id renames it.
#[derive(Debug, Clone)]
pub struct ReplaceItem {
    /// The item to replace.
    pub target: ItemTarget,
    /// Its partition key. It must also be the document's own.
    pub partition_key: PartitionKey,
    /// The whole new item.
    pub document: Document,
    /// Replace only this version.
    pub if_match: Option<String>,
}

/// Changes parts of an item.
#[derive(Debug, Clone)]
pub struct PatchItem {
    /// The item to change.
    pub target: ItemTarget,
    /// Its partition key.
    pub partition_key: PartitionKey,
    /// The operations, and optionally a condition.
    pub patch: Patch,
    /// Change only this version.
    pub if_match: Option<String>,
}

/// Deletes an item.
#[derive(Debug, Clone)]
pub struct DeleteItem {
    /// The item to delete.
    pub target: ItemTarget,
    /// Its partition key.
    pub partition_key: PartitionKey,
    /// Delete only this version.
    pub if_match: Option<String>,
}

/// Reads an item.
#[derive(Debug, Clone)]
pub struct ReadItem {
    /// The item to read.
    pub target: ItemTarget,
    /// Its partition key.
    pub partition_key: PartitionKey,
    /// Return no body if the item still is this version.
    pub if_none_match: Option<String>,
}

/// A written item.
#[derive(Debug, Clone)]
pub struct ItemWritten {
    /// The item as it is now stored.
    pub item: StoredItem,
    /// Whether the item did not exist before.
    pub created: bool,
}

/// A read item.
#[derive(Debug, Clone)]
pub enum ItemRead {
    /// The item.
    Found(StoredItem),
    /// The item still is the version the caller knows.
    NotModified {
        /// That version.
        etag: Etag,
    },
}
