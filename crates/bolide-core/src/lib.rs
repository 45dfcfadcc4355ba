//! The database as plain-data operations, the same for every protocol and every engine.
//!
//! [`Account`] is the way in. A front end begins a request ([`Account::begin`]), calls one operation, and turns its [`Response`] or
//! [`Refusal`] into its wire's words.
//!
//! ```text
//!   api         Account: what front ends call, thin            catalog     databases, containers, offers, users: from rows
//!   admin       full checks, loading, splits, figures           background  removing what has ended
//!   query       queries over live items                         scripts     stored procedures, triggers, functions
//!   feeds       read feed, change feeds                         items       create … delete, point reads, batches
//!   scan        going through live items                        container   an open container: settings, layout, gate
//!   change_log  the history of versions and deletes             partition   the worker that writes, and the doors to read by
//!   throughput  budgets and meters                              format      keys, records, entries
//! ```
//!
//! A module uses only what stands below it; `ARCHITECTURE.md` has the whole order, and `cargo xtask tidy` checks it.

mod admin;
mod api;
mod background;
mod catalog;
mod change_log;
mod clock;
mod container;
mod content;
mod continuation;
mod executor;
mod feeds;
#[cfg(test)]
mod fixture;
mod format;
mod items;
mod memory;
mod partition;
mod query;
mod response;
mod runtime;
mod scan;
mod scripts;
mod sql;
mod throughput;

pub use api::Account;
pub use background::PurgeMode;
pub use catalog::{
    DatabaseInfo, DefinitionUsage, EncryptionKeyInfo, Offer, OfferResource, PermissionInfo, PermissionMode,
    PermissionProperties, UserInfo,
};
pub use change_log::ChangeKind;
pub use container::{
    Container, ContainerInfo, Range, Ranges, Script, ScriptDraft, ScriptKind, ScriptName, TriggerFires,
    TriggerOperation, TriggerTime,
};
pub use content::StoredItem;
pub use feeds::{ChangePage, FeedPage, FeedStart, ItemChange, ReadChanges, ReadFeed, VersionPage};
pub use format::etag::Etag;
pub use items::{
    Batch, BatchOperation, BatchResponse, CreateItem, DeleteItem, ItemRead, ItemTarget, ItemWritten, OperationDone,
    OperationResult, PatchItem, ReadItem, ReplaceItem, UpsertItem,
};
pub use memory::{MemoryBudget, MemoryShare};
pub use query::{QueryItems, QueryMetrics, QueryPage};
pub use response::{ChargedResult, Cost, RangePosition, Refusal, Response};
pub use runtime::{AccountOptions, RequestContext};
pub use scan::ScanScope;
pub use scripts::{
    ExecuteProcedure, Executed, ItemWrite, ScriptFigures, ScriptHosting, TriggeredWrite, TriggeredWritten,
    serve_scripts,
};

pub use admin::{
    ContainerFigures, ForecastSlice, SplitReport, TtlPreview, TtlReport, TtlRule, TtlState, TtlWhy, Usage, VerifyReport,
};
pub use throughput::{OfferType, Pacing, PacingSettings, Throughput};
