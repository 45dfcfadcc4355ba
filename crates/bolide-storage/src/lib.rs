//! Storage: the byte-level contract between the database and its engines.
//!
//! A container is cut into *physical partitions*. Each is an independent, ordered key space with its own log sequence
//! number and time stamp (its [`Head`]). An [`Engine`] keeps partitions; everything above keys and bytes (documents, expiry,
//! indexes, feeds, uniqueness) is decided once, in the partition worker of `bolide-core`, on top of it.
//!
//!   worker ──read(ReadRequest)──▶ engine ──ReadResponse at one snapshot──▶ worker decides ──commit(Batch)──▶ Done | Stale | Unknown | Refused
//!
//! [`memory`] is the engine for tests and `--memory`. [`faults`] wraps any engine and injects faults. [`suite`] is the contract suite that every engine runs.
//!
//! Partitions of one *home* ([`HomeId`]) can be committed together, and read at one snapshot that is held for a limited time ([`HeldSnapshot`]).
//!
//! Out of scope, on purpose: TTL, filters, range deletes, watches, and iterators or transactions that outlive a call.
mod batch;
mod engine;
pub mod faults;
mod hold;
mod joint;
pub mod memory;
mod page;
mod partition;
#[cfg(feature = "suite")]
pub mod suite;

pub use batch::{RESOLVABLE_COMMITS, RecentCommits};
pub use engine::{
    Batch, CommitToken, Edition, Engine, EngineError, EngineFuture, Head, Key, Outcome, Page, Put, ReadRequest,
    ReadResponse, Resolved, Scan, Space, Ticket, WriteLock,
};
pub use hold::{HeldSnapshot, Hold, HoldError, Holds, MAX_HOLD_MS, MAX_HOLDS};
pub use joint::{JointOutcome, rejection};
pub use partition::{HomeId, PartitionId};
