//! The `Engine` trait and the plain data it speaks.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bolide_model::{Lsn, UnixMillis, time::Span};
use bytes::Bytes;

use crate::{Held, HomeId, JointOutcome, PartitionId};

/// What engine methods return: boxed, so that the core is compiled once for every engine.
pub type EngineFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The ordered key spaces of a partition. Keys of different spaces never meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Items: effective partition key, then resource id.
    Item,
    /// The latest version of every item in the order of commit; also the purge queue of items under the default ttl.
    Log,
    /// The purge queue of items with a ttl of their own.
    Expiry,
    /// Ids, unique keys, and whatever the planner builds.
    Index,
    /// Counters, and the rows of the catalog.
    Meta,
}

impl Space {
    /// Every space, for checks and for removing a partition.
    pub const ALL: [Space; 5] = [Space::Item, Space::Log, Space::Expiry, Space::Index, Space::Meta];
}

/// A key inside a partition: its space, then bytes that order the space.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The space the key lives in.
    pub space: Space,
    /// At most [`bolide_model::limits::KEY_BYTES`] bytes.
    pub bytes: Bytes,
}

impl Key {
    /// A key from its parts.
    pub fn new(space: Space, bytes: impl Into<Bytes>) -> Key {
        Key {
            space,
            bytes: bytes.into(),
        }
    }
}

/// A key and the value it shall have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// Where.
    pub key: Key,
    /// What; replaces any earlier value.
    pub value: Bytes,
}

/// Counts changes of what a reader must know besides rows: settings, the set of indexes, deletions by partition key.
///
/// Engines store it with each commit and do not interpret it: it may stay, rise or fall. Every read returns it, so a caller that holds
/// another edition knows that it must load again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Edition(pub u64);

impl Edition {
    /// The edition of a new partition, and of those stored before there were editions.
    pub const FIRST: Edition = Edition(0);
}

/// The newest commit of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Head {
    /// Log sequence number of the newest commit; 0 for a partition that was only created.
    pub lsn: Lsn,
    /// Server time of the newest commit. Never decreases along the log (TTL-208).
    pub stamp: UnixMillis,
    /// [`Batch::edition`] of the newest commit.
    pub edition: Edition,
}

impl Head {
    /// The head of a partition that is to be created at `stamp`, before any commit.
    pub fn first(stamp: UnixMillis) -> Head {
        Head {
            lsn: Lsn(0),
            stamp,
            edition: Edition::FIRST,
        }
    }
}

/// A bounded range scan inside one space.
#[derive(Debug, Clone)]
pub struct Scan {
    /// The space to scan.
    pub space: Space,
    /// First key, inclusive.
    pub from: Bytes,
    /// End of the range, exclusive; `None` is the end of the space.
    pub to: Option<Bytes>,
    /// Newest key first when set: rows come from `to` down to `from`.
    pub reverse: bool,
    /// At most this many rows. At least one row is returned where there is one.
    pub max_rows: usize,
    /// Stop after the row that reaches this many bytes of keys and values.
    pub max_bytes: usize,
    /// Leave values out; they come back empty.
    pub keys_only: bool,
}

/// What to read from a partition, all at one snapshot.
#[derive(Debug, Clone)]
pub struct ReadRequest {
    /// Keys to look up.
    pub gets: Vec<Key>,
    /// Ranges to scan.
    pub scans: Vec<Scan>,
    /// When the answer has so many bytes of keys and values, the rest is left out: [`ReadResponse::gets`] ends there, and the pages of scans that
    /// are not made are empty, with `more`.
    pub max_bytes: usize,
}

impl Default for ReadRequest {
    /// Nothing, without a limit.
    fn default() -> ReadRequest {
        ReadRequest {
            gets: Vec::new(),
            scans: Vec::new(),
            max_bytes: usize::MAX,
        }
    }
}

/// The rows of one scan.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// Key and value, in the order of the scan.
    pub rows: Vec<(Bytes, Bytes)>,
    /// More rows follow the last one inside the range. Resume behind the last key; where there are no rows, the scan was not made
    /// ([`ReadRequest::max_bytes`]).
    pub more: bool,
}

/// The answer to a [`ReadRequest`].
#[derive(Debug, Clone)]
pub struct ReadResponse {
    /// The head of the partition in the snapshot everything below was read from.
    pub head: Head,
    /// One entry per key of `ReadRequest::gets`, in its order; at least one, and fewer than keys where [`ReadRequest::max_bytes`] was reached.
    pub gets: Vec<Option<Bytes>>,
    /// One page per scan of `ReadRequest::scans`, in its order.
    pub pages: Vec<Page>,
}

/// A random mark by which a commit of unknown outcome is recognised later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommitToken(pub u128);

/// A commit: all of it or nothing, if the partition's head is still at `base`.
///
/// Keys are unique within `puts` and `deletes` together.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The head the batch was decided on.
    pub base: Lsn,
    /// The head after the commit; above `base`. One engine commit may carry several log sequence numbers.
    pub next: Lsn,
    /// Server time of the commit; not below the stamp of the head it was decided on.
    pub stamp: UnixMillis,
    /// The partition's edition after the commit.
    pub edition: Edition,
    /// See [`CommitToken`].
    pub token: CommitToken,
    /// Keys to write.
    pub puts: Vec<Put>,
    /// Keys to remove; absent ones are no error.
    pub deletes: Vec<Key>,
    /// Nobody else waits for who commits: the engine may hold the calling thread until the commit is done, if that is sooner than handing it
    /// to another one. Of no effect in a joint commit.
    pub may_block: bool,
}

/// How a commit ended. Conflict and uncertainty are ordinary outcomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Durable as the engine's durability mode promises, and visible to every later read.
    Done(Head),
    /// The head was not at `base`: nothing happened. Read again, decide again.
    Stale,
    /// The engine cannot tell. [`Engine::resolve`] can.
    Unknown(Ticket),
    /// Nothing happened and a retry will not help: disk full, store poisoned. The text is for the user.
    Refused(String),
}

/// Names a commit of unknown outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    /// The batch's `base`.
    pub base: Lsn,
    /// The batch's `next`.
    pub next: Lsn,
    /// The batch's token.
    pub token: CommitToken,
}

/// What became of a commit of unknown outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolved {
    /// It is durable.
    Done(Head),
    /// It did not happen, and it never will.
    NotDone,
}

/// The engine cannot be reached, or cannot serve. Certainly nothing happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// For now; a retry may succeed.
    #[error("the storage engine is unavailable: {0}")]
    Unavailable(String),
    /// The partition does not exist (never created, or removed).
    #[error("no such partition. partition={0}")]
    NoPartition(PartitionId),
    /// Stored bytes differ from what was written.
    #[error("stored data is corrupt: {0}")]
    Corrupt(String),
}

/// Keeps physical partitions.
///
/// # Contract
/// - **Snapshot**: a [`ReadResponse`] shows one moment of its partition, which its `head` names.
/// - **Atomicity**: after a commit, or a crash in the middle of one, all of its puts and deletes are there or none; those of a joint commit
///   in all of its partitions.
/// - **Order**: commits of one partition happen one after the other; `Batch::base` must be the head's `lsn`, else [`Outcome::Stale`].
/// - **Read your writes**: whatever starts after `Done` was answered sees the commit.
/// - **Durability**: `Done` survives a crash as the engine's mode promises (the embedded engine's default: always).
/// - **Time**: [`Engine::time`] never decreases while the engine runs. After a restart or a crash it is not below
///   [`Engine::durable_time`] as it was before, nor below the stamp of a durable commit (TTL-202, TTL-203).
/// - Pages are bounded in rows and bytes. No snapshot outlives a call but those of [`Engine::hold`], which are bounded in number and time.
///
/// [`crate::suite`] checks all of it.
pub trait Engine: Send + Sync + 'static {
    /// A short name for health reports: `memory`, `lsm`.
    fn name(&self) -> &'static str;

    /// Whether others may commit to the same partitions: other processes, or other users of this engine. Whoever keeps what it has read looks then
    /// whether it still holds.
    fn is_shared(&self) -> bool {
        false
    }

    /// Reads keys and ranges of one partition at one snapshot.
    fn read(&self, partition: PartitionId, request: ReadRequest)
    -> EngineFuture<'_, Result<ReadResponse, EngineError>>;

    /// Commits a batch.
    fn commit(&self, partition: PartitionId, batch: Batch) -> EngineFuture<'_, Result<Outcome, EngineError>>;

    /// Commits batches of several partitions, which lie in one home: all of them or none. Each is judged as [`Engine::commit`] judges it; what one
    /// fails by, all fail by. Batches of different homes, and two of one partition, are refused; none at all are done.
    ///
    /// After [`JointOutcome::Unknown`], resolving one of the tickets, with its partition, resolves all: what it says holds for every batch.
    fn commit_together(
        &self,
        batches: Vec<(PartitionId, Batch)>,
    ) -> EngineFuture<'_, Result<JointOutcome, EngineError>>;

    /// Takes a snapshot of all partitions of a home, and holds it while server time is below `until`, for [`MAX_HOLD_MS`](crate::MAX_HOLD_MS) at
    /// most. It shows whatever was done before the call, and of each joint commit all or nothing.
    ///
    /// What is held is not freed: rows that were overwritten or deleted since, and removed partitions. The engine may let go of it earlier.
    /// [`EngineError::Unavailable`] while [`MAX_HOLDS`](crate::MAX_HOLDS) others are held.
    fn hold(&self, home: HomeId, until: UnixMillis) -> EngineFuture<'_, Result<Arc<dyn Held>, EngineError>>;

    /// Finds out what became of a commit of unknown outcome. After `NotDone` it can never become done. [`EngineError::Unavailable`], and again at
    /// each retry, when more than [`RESOLVABLE_COMMITS`](crate::RESOLVABLE_COMMITS) have been made since its `base`.
    fn resolve(&self, partition: PartitionId, ticket: Ticket) -> EngineFuture<'_, Result<Resolved, EngineError>>;

    /// Creates a partition with `head` as its first head. Does nothing if it is there already.
    fn create(&self, partition: PartitionId, head: Head) -> EngineFuture<'_, Result<(), EngineError>>;

    /// Removes a partition with all its keys, in the background if it is large. Does nothing if it is not there.
    fn remove(&self, partition: PartitionId) -> EngineFuture<'_, Result<(), EngineError>>;

    /// Server time now, as an interval that surely contains it. A point on one machine.
    fn time(&self) -> Span;

    /// What server time will not fall below, whatever becomes of the process: not later than a stamp of a commit or what
    /// [`Engine::make_time_durable`] made durable. Cheap, for every request asks.
    fn durable_time(&self) -> UnixMillis;

    /// Raises [`Engine::durable_time`] to `until` at least; `until` may be ahead of [`Engine::time`]. Those that wait at the same time share
    /// one write, and a full disk does not stand in the way.
    fn make_time_durable(&self, until: UnixMillis) -> EngineFuture<'_, Result<(), EngineError>>;

    /// Makes everything acknowledged durable, whatever the durability mode, before the process ends.
    fn close(&self) -> EngineFuture<'_, Result<(), EngineError>>;
}
