//! Reasons for refused requests, as data.

use std::fmt;
use std::time::Duration;

use super::ErrorKind;

/// The reason for a refused request, for cases in which protocols have their own texts. `Display` is for logs and for people at a console; the text
/// for clients is written by each front end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Nothing of this kind has this name or resource id.
    #[error("there is no such {resource}. name=`{name}`")]
    ResourceMissing {
        /// What kind.
        resource: Resource,
        /// A name, or a resource id.
        name: String,
    },
    /// A container that was found was deleted meanwhile.
    #[error("the container was deleted")]
    ContainerDeleted,
    /// A document that a transaction wrote was changed by others since the transaction began, or has ended.
    #[error("a document of the transaction was changed by others, or has ended")]
    WriteConflict,
    /// A transaction names collections of several databases.
    #[error("a transaction is limited to the unsharded collections of one database")]
    OtherDatabase,
    /// The container is a collection of documents, for which the operation of items is not available.
    #[error("the container holds documents, for which this is not available: {refused:?}. name=`{container}`")]
    NotForCollections {
        /// The name of the container.
        container: String,
        /// What was refused.
        refused: ItemOperation,
    },
    /// The snapshot that a transaction reads has ended.
    #[error("the snapshot of the transaction has ended")]
    SnapshotEnded,
    /// A read asks for the data of a time that nobody has kept.
    #[error("the data of this time is not stored any more")]
    SnapshotTooOld,
    /// A read asks for the data of a time, and the definition of the container is another one since.
    #[error("the definition of a container has changed since the time of the snapshot")]
    SnapshotUnavailable,
    /// Another server has changed the settings of the container, and this one does not know them yet. Nothing was changed; a request that is made again
    /// uses the new ones.
    #[error("the settings of the container were changed through another server meanwhile")]
    SettingsChanged,
    /// The last rows of the store are being copied elsewhere: nothing is written for a moment. Nothing was changed; a later request may succeed.
    #[error("writes are refused for a moment, while the last changes of the store are copied; try again")]
    WritesSealed,
    /// The store was copied elsewhere, and is written there.
    #[error("the store has moved: it can still be read here, and is written where it was copied to")]
    StoreMoved,
    /// The store is the target of a copy that was not finished.
    #[error("the store is an unfinished copy: copy again, into an empty place")]
    UnfinishedCopy,
    /// Another resource of this kind has the name.
    #[error("there is a {resource} of this name already. name=`{name}`")]
    NameTaken {
        /// What kind.
        resource: Resource,
        /// The name.
        name: String,
    },
    /// The user has another permission for the same resource.
    #[error("the user has a permission for this resource already. name=`{name}`")]
    PermissionTaken {
        /// The name of the other permission.
        name: String,
    },
    /// The item is absent or expired.
    #[error("there is no such item")]
    ItemMissing,
    /// A live item of the logical partition has the id.
    #[error("there is an item of this id already")]
    ItemExists,
    /// A live item of the logical partition has the same unique key.
    #[error("there is an item with the same unique key already")]
    UniqueKeyTaken,
    /// The item has another version than the condition of the request names.
    #[error("the version is another than the caller names")]
    VersionDiffers,
    /// The condition of a patch is false.
    #[error("the condition of the patch does not hold")]
    PatchConditionFalse,
    /// The partition key given is not the item's, or has the wrong number of components.
    #[error("the partition key does not fit the container or the document")]
    PartitionKeyMismatch,
    /// The operation needs a partition key, and none is given.
    #[error("the operation needs a partition key")]
    PartitionKeyRequired,
    /// An item is larger than the limit.
    #[error("the item is too large. bytes={bytes} limit={limit}")]
    ItemTooLarge {
        /// Its size.
        bytes: usize,
        /// The largest size.
        limit: usize,
    },
    /// The changes of a transaction exceed its limit.
    #[error("the transaction is too large")]
    TransactionTooLarge,
    /// The throughput provisioned for the container is used up.
    #[error("the throughput of the container is used up. retry_after={retry_after:?}")]
    ThroughputUsedUp {
        /// The time until throughput is available again.
        retry_after: Duration,
    },
    /// An amount of manual throughput that cannot be provisioned.
    #[error("no such manual throughput can be provisioned. ru={ru}")]
    ManualThroughput {
        /// Request units per second.
        ru: i64,
    },
    /// A maximum of autoscale throughput below the smallest one.
    #[error("autoscale throughput is at least 1000. max_ru={max_ru}")]
    AutoscaleThroughput {
        /// Request units per second.
        max_ru: i64,
    },
    /// A maximum of autoscale throughput that is not a multiple of the increment.
    #[error("autoscale throughput is provisioned in steps of 1000. max_ru={max_ru}")]
    AutoscaleStep {
        /// Request units per second.
        max_ru: i64,
    },
    /// The partition key range was split, or never existed.
    #[error("the partition key range is gone. range={range}")]
    RangeGone {
        /// Its id.
        range: u32,
    },
    /// A continuation that cannot be used.
    #[error("the continuation cannot be used: {0}")]
    BadContinuation(BadContinuation),
    /// The continuation of a page is longer than the caller accepts.
    #[error("the continuation is longer than the caller takes. bytes={bytes} limit={limit_kb} KB")]
    ContinuationTooLong {
        /// Its size.
        bytes: usize,
        /// The limit of the caller, in kilobytes.
        limit_kb: u32,
    },
    /// The query reads several logical partitions, which the caller has not allowed.
    #[error("the query reads several partition keys, which the caller has not allowed")]
    CrossPartitionDisabled,
    /// The client must merge the results of the query from several ranges.
    #[error("the query needs a merge by the client")]
    ClientMergeNeeded {
        /// The query plan as JSON text.
        plan: String,
    },
    /// The container keeps no history of versions and deletes.
    #[error("the container keeps no history")]
    HistoryOff,
    /// The history does not have the position anymore from which a reader would continue.
    #[error("the history does not reach back so far")]
    HistoryLeft,
    /// The history can be read only from now or from a continuation.
    #[error("the history cannot be read from this start. start={start:?}")]
    HistoryStart {
        /// The requested start.
        start: HistoryStart,
    },
    /// A script is blocked for some time, because earlier runs had to be ended.
    #[error(
        "the script is blocked: several runs of it were ended for their time or memory. id=`{id}` seconds={seconds}"
    )]
    ScriptBlocked {
        /// The script's id.
        id: String,
        /// How long it stays blocked.
        seconds: i64,
    },
    /// A container has the maximum number of scripts of a kind.
    #[error("the container has as many scripts of the kind as it may. kind={resource} limit={limit}")]
    TooManyScripts {
        /// Which kind of script.
        resource: Resource,
        /// The largest number.
        limit: usize,
    },
    /// The scripts of a container would exceed the limit for their total size.
    #[error("the scripts of a container take at most {limit} bytes together. others={others} bytes={bytes}")]
    ScriptsTooLarge {
        /// Size of the others.
        others: usize,
        /// Size of this one.
        bytes: usize,
        /// The largest total size.
        limit: usize,
    },
    /// The definitions of an account would exceed the limit for their memory.
    #[error("definitions take more memory than they may. used={used} more={more} limit={limit} bytes")]
    DefinitionsTooLarge {
        /// The bytes in use.
        used: usize,
        /// The additional bytes that the definition needs.
        more: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The id of a client encryption key cannot change.
    #[error("a client encryption key keeps its id. id=`{id}` new=`{new}`")]
    EncryptionKeyRenamed {
        /// Its id.
        id: String,
        /// The id in the request.
        new: String,
    },
    /// A client encryption policy names a key that the database does not have.
    #[error("the database does not have the client encryption key that the policy names. id=`{id}`")]
    EncryptionKeyUnknown {
        /// The id that the policy names.
        id: String,
    },
}

impl Reason {
    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Reason::ResourceMissing { .. } | Reason::ContainerDeleted | Reason::ItemMissing => ErrorKind::NotFound,
            Reason::NameTaken { .. } | Reason::PermissionTaken { .. } | Reason::ItemExists | Reason::WriteConflict => {
                ErrorKind::Conflict
            }
            Reason::SnapshotEnded
            | Reason::SnapshotTooOld
            | Reason::SnapshotUnavailable
            | Reason::SettingsChanged
            | Reason::WritesSealed
            | Reason::UnfinishedCopy => ErrorKind::Unavailable,
            Reason::UniqueKeyTaken => ErrorKind::UniqueKeyConflict,
            Reason::VersionDiffers => ErrorKind::PreconditionFailed,
            Reason::PatchConditionFalse => ErrorKind::PatchConditionFailed,
            Reason::PartitionKeyMismatch => ErrorKind::PartitionKeyMismatch,
            Reason::ItemTooLarge { .. } | Reason::TransactionTooLarge | Reason::ScriptsTooLarge { .. } => {
                ErrorKind::TooLarge
            }
            Reason::ThroughputUsedUp { retry_after } => ErrorKind::Throttled {
                retry_after: *retry_after,
            },
            Reason::RangeGone { .. } => ErrorKind::RangeGone,
            Reason::ClientMergeNeeded { .. } => ErrorKind::CrossPartitionQuery,
            Reason::ScriptBlocked { .. } | Reason::TooManyScripts { .. } | Reason::StoreMoved => ErrorKind::Forbidden,
            Reason::DefinitionsTooLarge { .. } => ErrorKind::QuotaExceeded,
            Reason::PartitionKeyRequired
            | Reason::ManualThroughput { .. }
            | Reason::AutoscaleThroughput { .. }
            | Reason::AutoscaleStep { .. }
            | Reason::BadContinuation(_)
            | Reason::ContinuationTooLong { .. }
            | Reason::CrossPartitionDisabled
            | Reason::OtherDatabase
            | Reason::NotForCollections { .. }
            | Reason::HistoryOff
            | Reason::HistoryLeft
            | Reason::HistoryStart { .. }
            | Reason::EncryptionKeyRenamed { .. }
            | Reason::EncryptionKeyUnknown { .. } => ErrorKind::BadRequest,
        }
    }
}

/// Operations of items that containers of documents do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemOperation {
    /// Writes of items, alone or in batches, with or without triggers.
    Write,
    /// Replacing the definition of the container.
    Definition,
    /// Stored procedures and triggers.
    Script,
    /// The feed of all versions and deletes.
    AllVersions,
}

/// Kinds of resources that have names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// A database.
    Database,
    /// A container.
    Container,
    /// A user.
    User,
    /// A permission.
    Permission,
    /// The throughput of a container.
    Offer,
    /// A client encryption key.
    EncryptionKey,
    /// A stored procedure.
    StoredProcedure,
    /// A trigger.
    Trigger,
    /// A user-defined function.
    UserDefinedFunction,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Resource::Database => "database",
            Resource::Container => "container",
            Resource::User => "user",
            Resource::Permission => "permission",
            Resource::Offer => "offer",
            Resource::EncryptionKey => "client encryption key",
            Resource::StoredProcedure => "stored procedure",
            Resource::Trigger => "trigger",
            Resource::UserDefinedFunction => "user-defined function",
        })
    }
}

/// Why a continuation cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadContinuation {
    /// It cannot be read.
    #[error("it is malformed")]
    Malformed,
    /// Its checksum is wrong.
    #[error("it is malformed, or belongs to another request")]
    OtherRequest,
    /// It was given for another part of the container.
    #[error("it was given for another part of the container")]
    OtherPart,
    /// It is not a continuation of a change feed.
    #[error("it is none of a change feed. text=`{text}`")]
    NoChangeFeed {
        /// The text of the request.
        text: String,
    },
}

/// Starts from which the history of versions and deletes cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryStart {
    /// The first change of the container.
    Beginning,
    /// A time.
    Time,
}
