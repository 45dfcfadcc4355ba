//! The database as plain-data operations, the same for every protocol and every engine.
//!
//! [`Account`] is the way in. A front end begins a request ([`Account::begin`]), calls one operation, and turns its [`Answer`] or
//! [`Refusal`] into its wire's words.
//!
//! ```text
//!   account     open, close, begin a request        catalog     databases, containers, offers, users
//!   items       create … delete, point reads        feeds       read feed, change feed
//!   query       queries over live items             purge       removing ghosts, and figures about them
//!   scripts     stored procedures, triggers, user-defined functions
//!   throughput  budgets and meters                  upkeep      verify, import, split
//!   history     all versions and deletes         memory      one budget for what requests hold
//!   executor    threads for queries and conditions, and what ends them
//!   partition   the worker that writes, and what it knows: everything above goes through it or reads beside it
//! ```

mod account;
mod answer;
mod catalog;
mod clock;
mod container;
mod continuation;
mod digest;
mod etag;
mod executor;
mod feeds;
mod history;
mod items;
mod keys;
mod logical;
mod memory;
mod partition;
mod purge;
mod query;
mod record;
mod scripts;
mod throughput;
mod upkeep;

pub use account::{Account, AccountOptions, RequestContext};
pub use answer::{Answer, Answered, RangePosition, Refusal, Work};
pub use catalog::{
    DatabaseInfo, DefinitionUsage, EncryptionKeyInfo, Offer, OfferResource, PermissionInfo, PermissionMode,
    PermissionProperties, UserInfo,
};
pub use container::{Container, ContainerInfo, Range, Ranges};
pub use etag::Etag;
pub use feeds::{ChangePage, FeedPage, FeedStart, ItemChange, ReadChanges, ReadFeed, Scope, VersionPage};
pub use history::ChangeKind;
pub use items::{
    Batch, BatchAnswer, BatchOperation, CreateItem, DeleteItem, ItemRead, ItemTarget, ItemWritten, OperationDone,
    OperationResult, PatchItem, ReadItem, ReplaceItem, StoredItem, UpsertItem,
};
pub use memory::{MemoryBudget, MemoryShare};
pub use purge::{ForecastSlice, PurgeMode, TtlPreview, TtlReport, TtlRule, TtlState, TtlWhy};
pub use query::{QueryItems, QueryMetrics, QueryPage};
pub use scripts::{
    ExecuteProcedure, Executed, ItemWrite, Script, ScriptDraft, ScriptFigures, ScriptHosting, ScriptKind, ScriptName,
    TriggerFires, TriggerOperation, TriggerTime, TriggeredWrite, TriggeredWritten, serve_scripts,
};

pub use throughput::{OfferType, Pacing, PacingSettings, Throughput};
pub use upkeep::{ContainerFigures, SplitReport, Usage, VerifyReport};
