//! The `Engine` trait, and the requests and responses it uses.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bolide_model::{Lsn, UnixMillis, time::Span};
use bytes::Bytes;

use crate::{HeldSnapshot, HomeId, JointOutcome, PartitionId};

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
    /// Ids, unique keys, and entries of indexes.
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

/// A key and the value to store for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// The key.
    pub key: Key,
    /// The value; replaces any earlier one.
    pub value: Bytes,
}

/// A counter that changes with everything a reader must know besides rows: settings, the set of indexes, deletions by partition key.
///
/// Engines store it with each commit and do not interpret it: it may stay, rise or fall. Every read returns it. A caller that knows another edition
/// must load that state again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Edition(pub u64);

impl Edition {
    /// The edition of a new partition, and of partitions stored by versions that had no editions.
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
    /// The head of a partition that is created at `stamp`, before any commit.
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
    /// At most this many rows, but at least one if the range has any.
    pub max_rows: usize,
    /// Stop after the row that reaches this many bytes of keys and values.
    pub max_bytes: usize,
    /// Return keys only; values are empty.
    pub keys_only: bool,
}

/// What to read from a partition, all at one snapshot.
#[derive(Debug, Clone)]
pub struct ReadRequest {
    /// Keys to look up.
    pub gets: Vec<Key>,
    /// Ranges to scan.
    pub scans: Vec<Scan>,
    /// Limit on the bytes of keys and values in the response. Once it is reached, the rest is left out: [`ReadResponse::gets`] ends there, and scans
    /// not yet made give empty pages with `more` set.
    pub max_bytes: usize,
}

impl ReadRequest {
    /// Looks up keys, without a limit.
    pub fn of_keys(keys: Vec<Key>) -> ReadRequest {
        ReadRequest {
            gets: keys,
            ..ReadRequest::default()
        }
    }
}

impl Default for ReadRequest {
    /// No keys, no scans, no limit.
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
    /// The range has more rows after the last one. Continue after the last key. If `rows` is empty, the scan was not made ([`ReadRequest::max_bytes`]).
    pub more: bool,
}

/// The answer to a [`ReadRequest`].
#[derive(Debug, Clone)]
pub struct ReadResponse {
    /// The head of the partition in the snapshot from which everything below was read.
    pub head: Head,
    /// One entry per key of `ReadRequest::gets`, in the same order. There is at least one; there are fewer than keys if [`ReadRequest::max_bytes`] was reached.
    pub gets: Vec<Option<Bytes>>,
    /// One page per scan of `ReadRequest::scans`, in its order.
    pub pages: Vec<Page>,
}

/// A random number by which a commit of unknown outcome is recognised later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommitToken(pub u128);

/// A commit: applied completely or not at all, and only if the partition's head is still at `base`.
///
/// A key appears at most once in `puts` and `deletes` together.
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
    /// Keys of `puts` that are new, which an engine may insert for less than what may be there: if one of them is there, the outcome is
    /// [`Outcome::Exists`]. A batch with one that it does not put is refused. Empty unless [`Engine::checks_new_keys`], and in a joint commit.
    pub new_keys: Vec<Key>,
    /// The engine may block the calling thread until the commit is done, if that is faster than handing it to another thread. Set it only if no other
    /// task needs the thread. Ignored in a joint commit.
    pub may_block: bool,
}

/// How a commit ended. Conflicts and unknown outcomes are ordinary results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Visible to every later read, and as durable as the engine's durability mode promises.
    Done(Head),
    /// The head was not at `base`; nothing changed. Read again and decide again.
    Stale,
    /// The head was at `base`, and one of [`Batch::new_keys`] was there; nothing changed.
    Exists,
    /// The engine cannot tell. [`Engine::resolve`] can.
    Unknown(Ticket),
    /// Nothing changed and a retry will not help: the disk is full, or the store has failed. The text is for the user.
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

/// The resolved outcome of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolved {
    /// It is durable.
    Done(Head),
    /// It did not happen, and it never will.
    NotDone,
}

/// The engine cannot be reached or cannot serve the request. Nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// Temporary; a retry may succeed.
    #[error("the storage engine is unavailable: {0}")]
    Unavailable(String),
    /// The partition does not exist: it was never created, or it was removed.
    #[error("no such partition. partition={0}")]
    NoPartition(PartitionId),
    /// Stored bytes differ from what was written.
    #[error("stored data is corrupt: {0}")]
    Corrupt(String),
}

/// A lock of a partition; it ends when dropped. See [`Engine::read_and_lock`].
pub struct WriteLock(#[expect(dead_code, reason = "what it does when it is dropped is all of it")] Box<dyn Any + Send>);

impl WriteLock {
    /// A lock that ends when `held` is dropped.
    pub fn new(held: impl Any + Send) -> WriteLock {
        WriteLock(Box::new(held))
    }
}

impl std::fmt::Debug for WriteLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WriteLock")
    }
}

/// Keeps physical partitions.
///
/// # Contract
/// - **Snapshot**: a [`ReadResponse`] shows one snapshot of its partition, which its `head` names.
/// - **Atomicity**: after a commit, or a crash during one, either all of its puts and deletes are stored or none. For a joint commit this holds
///   across all its partitions.
/// - **Order**: commits of one partition happen one after the other; `Batch::base` must be the head's `lsn`, else [`Outcome::Stale`].
/// - **Read your writes**: everything that starts after `Done` was returned sees the commit.
/// - **Durability**: `Done` survives a crash as the engine's mode promises (default of the embedded engine: always).
/// - **Time**: [`Engine::time`] never decreases while the engine runs. After a restart or a crash it is not below
///   [`Engine::durable_time`] as it was before, nor below the stamp of a durable commit (TTL-202, TTL-203).
/// - Pages are bounded in rows and bytes. Snapshots end with the call, except those of [`Engine::hold`], which are bounded in number and time.
///
/// [`crate::suite`] checks all of it.
pub trait Engine: Send + Sync + 'static {
    /// A short name for health reports: `memory`, `lsm`.
    fn name(&self) -> &'static str;

    /// Whether other processes or other users of this engine may commit to the same partitions. Callers that cache what they read must then check
    /// that it is still current.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whether a commit can check [`Batch::new_keys`] for less than a read of them costs. An engine that cannot refuses a batch that has some.
    fn checks_new_keys(&self) -> bool {
        false
    }

    /// Reads keys and ranges of one partition at one snapshot.
    fn read(&self, partition: PartitionId, request: ReadRequest)
    -> EngineFuture<'_, Result<ReadResponse, EngineError>>;

    /// Reads keys like [`Engine::read`], and locks the partition if the engine is shared and can: until the lock is dropped, or its holder has committed to
    /// the partition, others who ask for the lock wait, in the order in which they asked, and see the partition as it is when it is their turn. For writers
    /// who would otherwise make each other's commits stale again and again.
    ///
    /// A lock is advice. It may be refused (`None`) or end before its time, others may commit without one, and a commit is checked as ever. One holder asks
    /// for one lock of a partition at a time.
    fn read_and_lock(
        &self,
        partition: PartitionId,
        keys: Vec<Key>,
    ) -> EngineFuture<'_, Result<(ReadResponse, Option<WriteLock>), EngineError>> {
        Box::pin(async move {
            let request = ReadRequest::of_keys(keys);
            Ok((self.read(partition, request).await?, None))
        })
    }

    /// Commits a batch.
    fn commit(&self, partition: PartitionId, batch: Batch) -> EngineFuture<'_, Result<Outcome, EngineError>>;

    /// Commits batches of several partitions of one home: all of them or none. Each is checked as in [`Engine::commit`]; if one fails, all fail in
    /// the same way. Batches of different homes, and two batches of one partition, are refused; an empty list succeeds.
    ///
    /// After [`JointOutcome::Unknown`], resolve any one of the tickets, with its partition; the result holds for every batch.
    fn commit_together(
        &self,
        batches: Vec<(PartitionId, Batch)>,
    ) -> EngineFuture<'_, Result<JointOutcome, EngineError>>;

    /// Takes a snapshot of all partitions of a home and holds it while server time is below `until`, for [`MAX_HOLD_MS`](crate::MAX_HOLD_MS) at most.
    /// It shows every commit that was done before the call, and each joint commit completely or not at all.
    ///
    /// Rows that are overwritten or deleted meanwhile, and partitions that are removed, keep their space until the snapshot ends. The engine may end
    /// it earlier. Returns [`EngineError::Unavailable`] while [`MAX_HOLDS`](crate::MAX_HOLDS) snapshots are held.
    fn hold(&self, home: HomeId, until: UnixMillis) -> EngineFuture<'_, Result<Arc<dyn HeldSnapshot>, EngineError>>;

    /// Finds the outcome of a commit whose outcome was unknown. After `NotDone` the commit can never take effect. Returns
    /// [`EngineError::Unavailable`], on every retry too, if more than [`RESOLVABLE_COMMITS`](crate::RESOLVABLE_COMMITS) commits were made since its
    /// `base`.
    fn resolve(&self, partition: PartitionId, ticket: Ticket) -> EngineFuture<'_, Result<Resolved, EngineError>>;

    /// Creates a partition with `head` as its first head. Does nothing if it exists already.
    fn create(&self, partition: PartitionId, head: Head) -> EngineFuture<'_, Result<(), EngineError>>;

    /// Removes a partition with all its keys, in the background if it is large. Does nothing if it does not exist.
    fn remove(&self, partition: PartitionId) -> EngineFuture<'_, Result<(), EngineError>>;

    /// Server time now, as an interval that contains it. On one machine the interval is a point.
    fn time(&self) -> Span;

    /// A time below which server time will not fall, even after a crash or restart: the stamp of a durable commit, or what
    /// [`Engine::make_time_durable`] stored. Called for every request, so it must be cheap.
    fn durable_time(&self) -> UnixMillis;

    /// Raises [`Engine::durable_time`] to at least `until`, which may be ahead of [`Engine::time`]. Concurrent callers share one write. It works on a
    /// full disk too.
    fn make_time_durable(&self, until: UnixMillis) -> EngineFuture<'_, Result<(), EngineError>>;

    /// Makes everything acknowledged durable, whatever the durability mode, before the process ends.
    fn close(&self) -> EngineFuture<'_, Result<(), EngineError>>;
}
