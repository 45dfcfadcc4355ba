//! An engine with the retries of the core: how a caller handles outcomes that are not final.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bolide_model::time::{Clock, Span};
use bolide_model::{Lsn, UnixMillis};
use bytes::Bytes;

use super::EngineFixture;
use crate::{
    Batch, CommitToken, Edition, Engine, EngineError, Head, HeldSnapshot, HoldError, HomeId, JointOutcome, Key,
    Outcome, Page, PartitionId, Put, ReadRequest, ReadResponse, Resolved, Scan, Space, Ticket, WriteLock,
};

/// Tries before a claim gives up on an engine that is unavailable.
const TRIES: usize = 1000;

/// The partition that most claims use.
pub(super) const PARTITION: PartitionId = PartitionId(7);

/// Start time of the clocks.
pub(super) const START: UnixMillis = UnixMillis(1_700_000_000_000);

/// An engine, its clock, and a source of tokens.
pub struct TestEngine {
    /// The engine under test.
    pub engine: Arc<dyn Engine>,
    /// The virtual clock it runs on.
    pub clock: Arc<Clock>,
    tokens: AtomicU64,
}

impl TestEngine {
    /// A new engine without partitions.
    pub fn new(fixture: &dyn EngineFixture) -> TestEngine {
        TestEngine::at(fixture, START)
    }

    /// An engine whose clock shows `now`.
    pub fn at(fixture: &dyn EngineFixture, now: UnixMillis) -> TestEngine {
        let clock = Arc::new(Clock::virtual_at(now));
        TestEngine {
            engine: fixture.open(clock.clone()),
            clock,
            tokens: AtomicU64::new(1),
        }
    }

    /// A new engine with the partition that most claims use.
    pub async fn with_partition(fixture: &dyn EngineFixture) -> TestEngine {
        let engine = TestEngine::new(fixture);
        engine.create(PARTITION).await;
        engine
    }

    /// Closes the engine and opens it again, with the clock at `now`.
    pub async fn restart(self, fixture: &dyn EngineFixture, now: UnixMillis) -> TestEngine {
        self.engine.close().await.expect("an engine at rest can be closed");
        drop(self);
        TestEngine::at(fixture, now)
    }

    /// Creates an empty partition at head 0.
    pub async fn create(&self, partition: PartitionId) {
        self.create_at(partition, Head::first(UnixMillis(0))).await;
    }

    /// Creates a partition.
    pub async fn create_at(&self, partition: PartitionId, head: Head) {
        for _ in 0..TRIES {
            if !is_unavailable(&self.engine.create(partition, head).await.map(drop)) {
                return;
            }
        }
        panic!("the engine stays unavailable. doing=create");
    }

    /// Removes a partition.
    pub async fn remove(&self, partition: PartitionId) {
        for _ in 0..TRIES {
            if !is_unavailable(&self.engine.remove(partition).await.map(drop)) {
                return;
            }
        }
        panic!("the engine stays unavailable. doing=remove");
    }

    /// Reads; the error tells if the partition does not exist.
    pub async fn try_read(&self, partition: PartitionId, request: ReadRequest) -> Result<ReadResponse, EngineError> {
        for _ in 0..TRIES {
            let read = self.engine.read(partition, request.clone()).await;
            if !is_unavailable(&read) {
                return read;
            }
        }
        panic!("the engine stays unavailable. doing=read");
    }

    /// Reads from a partition that exists.
    pub async fn read(&self, partition: PartitionId, request: ReadRequest) -> ReadResponse {
        self.try_read(partition, request).await.expect("the partition is there")
    }

    /// Reads keys and locks the partition, as often as it takes.
    pub async fn read_and_lock(&self, partition: PartitionId, keys: Vec<Key>) -> (ReadResponse, Option<WriteLock>) {
        for _ in 0..TRIES {
            let locked = self.engine.read_and_lock(partition, keys.clone()).await;
            if !is_unavailable(&locked) {
                return locked.expect("the partition is there");
            }
        }
        panic!("the engine stays unavailable. doing=lock");
    }

    /// The head of a partition.
    pub async fn head(&self, partition: PartitionId) -> Head {
        self.read(partition, ReadRequest::default()).await.head
    }

    /// The value of one key.
    pub async fn get(&self, partition: PartitionId, key: Key) -> Option<Bytes> {
        self.read(partition, ReadRequest::of_keys(vec![key]))
            .await
            .gets
            .remove(0)
    }

    /// The page of one scan.
    pub async fn scan(&self, partition: PartitionId, scan: Scan) -> Page {
        self.read(
            partition,
            ReadRequest {
                scans: vec![scan],
                ..ReadRequest::default()
            },
        )
        .await
        .pages
        .remove(0)
    }

    /// Every key of a space.
    pub async fn keys(&self, partition: PartitionId, space: Space) -> Vec<Bytes> {
        self.scan(partition, Scan::whole(space))
            .await
            .rows
            .into_iter()
            .map(|(key, _)| key)
            .collect()
    }

    /// A batch from `base` to the next number, at the engine's time, with a unique edition. Every other batch allows the engine to block the calling thread.
    pub fn batch(&self, base: Lsn, puts: Vec<Put>, deletes: Vec<Key>) -> Batch {
        let number = self.tokens.fetch_add(1, Ordering::Relaxed);
        Batch {
            base,
            next: base.next(),
            stamp: self.engine.time().hi,
            edition: Edition(u64::MAX - number),
            token: CommitToken(u128::from(number)),
            puts,
            deletes,
            new_keys: Vec::new(),
            may_block: base.0.is_multiple_of(2),
        }
    }

    /// Commits until the outcome is final: `Done`, `Refused`, or `Stale` because the head has moved.
    pub async fn commit(&self, partition: PartitionId, batch: Batch) -> Result<Outcome, EngineError> {
        for _ in 0..TRIES {
            let outcome = match self.engine.commit(partition, batch.clone()).await {
                Ok(Outcome::Unknown(ticket)) => match self.resolve(partition, ticket).await? {
                    Resolved::Done(head) => Ok(Outcome::Done(head)),
                    Resolved::NotDone => continue,
                },
                outcome => outcome,
            };
            let is_spurious = outcome == Ok(Outcome::Stale)
                && self.try_read(partition, ReadRequest::default()).await?.head.lsn == batch.base;
            if !is_spurious && !is_unavailable(&outcome) {
                return outcome;
            }
        }
        panic!("the engine stays unavailable. doing=commit");
    }

    /// Commits on the newest head, while no other writer moves it.
    pub async fn commit_next(&self, partition: PartitionId, puts: Vec<Put>, deletes: Vec<Key>) -> Head {
        let base = self.head(partition).await.lsn;
        let batch = self.batch(base, puts, deletes);
        let head = batch.head();
        assert_eq!(
            self.commit(partition, batch).await,
            Ok(Outcome::Done(head)),
            "a commit on the newest head is done"
        );
        head
    }

    /// Commits batches together until the outcome is final. The result of one ticket counts for all; each attempt resolves another one.
    pub async fn commit_together(&self, batches: Vec<(PartitionId, Batch)>) -> Result<JointOutcome, EngineError> {
        for attempt in 0..TRIES {
            let outcome = match self.engine.commit_together(batches.clone()).await {
                Ok(JointOutcome::Unknown(tickets)) => {
                    let at = attempt % tickets.len();
                    match self.resolve(batches[at].0, tickets[at].clone()).await? {
                        Resolved::Done(_) => Ok(JointOutcome::done(&batches)),
                        Resolved::NotDone => continue,
                    }
                }
                outcome => outcome,
            };
            let is_spurious = outcome == Ok(JointOutcome::Stale) && self.is_at(&batches).await?;
            if !is_spurious && !is_unavailable(&outcome) {
                return outcome;
            }
        }
        panic!("the engine stays unavailable. doing=commit_together");
    }

    /// Whether the head of every partition is at its batch's base.
    async fn is_at(&self, batches: &[(PartitionId, Batch)]) -> Result<bool, EngineError> {
        for (partition, batch) in batches {
            if self.try_read(*partition, ReadRequest::default()).await?.head.lsn != batch.base {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Holds a home for the longest time allowed.
    pub async fn hold(&self, home: HomeId) -> Arc<dyn HeldSnapshot> {
        self.hold_until(home, UnixMillis(i64::MAX)).await
    }

    /// Holds a home.
    pub async fn hold_until(&self, home: HomeId, until: UnixMillis) -> Arc<dyn HeldSnapshot> {
        for _ in 0..TRIES {
            if let Ok(held) = self.engine.hold(home, until).await {
                return held;
            }
        }
        panic!("the engine stays unavailable. doing=hold");
    }

    /// Reads from a held snapshot.
    pub async fn read_held(
        &self,
        held: &dyn HeldSnapshot,
        partition: PartitionId,
        request: ReadRequest,
    ) -> Result<ReadResponse, HoldError> {
        for _ in 0..TRIES {
            let read = held.read(partition, request.clone()).await;
            if !matches!(read, Err(HoldError::Engine(EngineError::Unavailable(_)))) {
                return read;
            }
        }
        panic!("the engine stays unavailable. doing=read_held");
    }

    /// Resolves a ticket.
    pub async fn resolve(&self, partition: PartitionId, ticket: Ticket) -> Result<Resolved, EngineError> {
        for _ in 0..TRIES {
            let resolved = self.engine.resolve(partition, ticket.clone()).await;
            if !is_unavailable(&resolved) {
                return resolved;
            }
        }
        panic!("the engine stays unavailable. doing=resolve");
    }

    /// Server time.
    pub fn time(&self) -> Span {
        self.engine.time()
    }

    pub(super) fn durable_time(&self) -> UnixMillis {
        self.engine.durable_time()
    }

    pub(super) async fn make_time_durable(&self, until: UnixMillis) {
        while self.engine.make_time_durable(until).await.is_err() {}
    }
}

fn is_unavailable<T>(answer: &Result<T, EngineError>) -> bool {
    matches!(answer, Err(EngineError::Unavailable(_)))
}

/// A key of a space.
pub(super) fn key(space: Space, bytes: &[u8]) -> Key {
    Key::new(space, Bytes::copy_from_slice(bytes))
}

/// A put of a key and a value.
pub(super) fn put(space: Space, bytes: &[u8], value: impl AsRef<[u8]>) -> Put {
    Put {
        key: key(space, bytes),
        value: Bytes::copy_from_slice(value.as_ref()),
    }
}
