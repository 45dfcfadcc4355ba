//! The database as operations on plain data, the same for every protocol and every engine.
//!
//! [`Account`] is the entry point. A front end begins a request ([`Account::begin`]), calls one operation, and encodes its [`Response`] or
//! [`Refusal`] for its wire protocol.
//!
//! ```text
//!   api         Account: what front ends call, thin            catalog     databases, containers, offers, users: from rows
//!   admin       full checks, loading, splits, statistics        background  removing what has expired or is no longer kept
//!   query       queries over live items                         scripts     stored procedures, triggers, functions
//!   feeds       read feed, change feeds                         items       create … delete, point reads, batches
//!   scan        scans of live items                             container   an open container: settings, layout, gates
//!   change_log  the history of versions and deletes             partition   the worker that writes, and snapshots for reading
//!   throughput  budgets and meters                              format      keys, records, entries
//! ```
//!
//! A module uses only modules that stand below it; `ARCHITECTURE.md` has the whole order, and `cargo xtask tidy` checks it.

mod admin;
mod api;
mod background;
mod catalog;
mod change_log;
mod change_streams;
mod clock;
mod cluster;
mod container;
mod content;
mod continuation;
mod documents;
mod executor;
mod feeds;
#[cfg(test)]
mod fixture;
mod format;
mod index;
mod items;
mod memory;
mod partition;
mod query;
mod recent_requests;
mod response;
mod runtime;
mod scan;
mod scripts;
mod sql;
mod throughput;

pub use api::{Account, Task};
pub use background::{BuildFailure, PurgeMode};
pub use bolide_mql::index::TtlMode;
pub use catalog::{
    CatalogEvent, CatalogEventKind, CollectionChange, DatabaseInfo, DefinitionUsage, EncryptionKeyInfo, NextNumbers,
    Offer, OfferResource, PermissionInfo, PermissionMode, PermissionProperties, UserInfo,
};
pub use change_log::ChangeKind;
pub use change_streams::{
    ChangeStream, DocumentChange, IsHidden, StreamBatch, StreamContent, StreamEvent, StreamPosition, StreamScope,
};
pub use cluster::{Endpoint, Node, NodeId};
pub use container::{
    CollectionDefinition, CollectionIndex, Container, ContainerInfo, Range, Ranges, Script, ScriptDraft, ScriptKind,
    ScriptName, TriggerFires, TriggerOperation, TriggerTime,
};
pub use content::StoredItem;
pub use documents::{
    Consumed, DocumentBatch, DocumentDraft, DocumentId, DocumentPage, DocumentScan, DocumentTransaction, DraftOptions,
    Duplicate, IndexPart, Lifetime, OpenTransaction, OrderedWalk, ReadScope, ScanDirection, ScanPlan, Selection,
    SessionRecord, ShardKey, StoredDocument, Undecided, Walked,
};
pub use feeds::{ChangePage, FeedPage, FeedStart, ItemChange, ReadChanges, ReadFeed, VersionPage};
pub use format::etag::Etag;
pub use items::{
    Batch, BatchOperation, BatchResponse, CreateItem, DeleteItem, ItemRead, ItemTarget, ItemWritten, OperationDone,
    OperationResult, PatchItem, ReadItem, ReplaceItem, UpsertItem,
};
pub use memory::{MemoryBudget, MemoryShare};
pub use query::{QueryItems, QueryMetrics, QueryPage, QueryUsage};
pub use recent_requests::{AnsweredRequest, Protocol, RecentRequests};
pub use response::{ChargedResult, Cost, RangePosition, Refusal, Response};
pub use runtime::{AccountOptions, IndexUse, RequestContext, ScriptErrors};
pub use scan::ScanScope;
pub use scripts::{
    ExecuteProcedure, Executed, ItemWrite, OperationError, ScriptFigures, ScriptHosting, TriggeredWrite,
    TriggeredWritten, serve_scripts,
};

pub use admin::{
    COPIED_SPACES, ContainerFigures, CopyBegun, CopyPage, ExportPage, ExportPosition, ForecastSlice, IndexFigures,
    IndexReport, PagePosition, SealInfo, SealedPartition, SplitReport, TtlPreview, TtlReport, TtlRule, TtlState,
    TtlWhy, Usage, VerifyReport, unfinished_copy,
};
pub use bolide_storage::PartitionId;
pub use partition::write_seal::CopyId;
pub use throughput::{OfferType, Pacing, PacingSettings, Throughput};
