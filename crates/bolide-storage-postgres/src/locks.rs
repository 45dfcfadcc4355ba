//! Locks of partitions: of writers who would make each other's commits stale, each waits until it is its turn.
//!
//! ```text
//!   A   lock ──────────▶ newest record ── decide ──▶ commit, in the transaction that has the lock
//!   B      lock ── waits ───────────────────────────────────▶ newest record: that of A ── decide ──▶ …
//! ```
//!
//! A lock is a transaction on a connection of its own that has locked two rows: the record with which the partition was created, where those who ask for the
//! lock wait, and the newest commit record. Commits that were decided without the lock wait for that, and are stale then. The server ends the transaction of a holder that
//! hangs (`idle_in_transaction_session_timeout`).

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use bolide_storage::{EngineError, HomeId, Key, PartitionId, ReadRequest, ReadResponse, WriteLock};
use futures_util::future;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, SemaphorePermit};

use crate::connection::{Connection, Pooled};
use crate::engine::Inner;
use crate::partitions::{Known, PartitionState};
use crate::reads::{Found, ReadError};
use crate::rows::{self, CommitRecord};
use crate::statements::Query;

/// A locked partition. The lock ends with the transaction of its connection, at the latest when this is dropped.
pub(crate) struct Locked {
    connection: Pooled,
    permit: OwnedSemaphorePermit,
    /// The newest record, which stays it.
    pub record: CommitRecord,
    /// Tells it from another lock of the same record.
    number: u64,
}

/// A connection for a flight, with the permit for it.
pub(crate) struct Carrier<'i> {
    pub connection: Pooled,
    /// If its transaction has the lock of the partition.
    pub lock: Option<OwnedSemaphorePermit>,
    _unlocked: Option<SemaphorePermit<'i>>,
}

/// Ends the lock, unless a commit has.
struct Release {
    inner: Weak<Inner>,
    state: Arc<PartitionState>,
    number: u64,
}

impl Drop for Release {
    fn drop(&mut self) {
        let Some(mut locked) = self.state.take_locked(|locked| locked.number == self.number) else {
            return;
        };
        let (Some(inner), Ok(runtime)) = (self.inner.upgrade(), Handle::try_current()) else {
            return;
        };
        runtime.spawn(async move {
            let rolled_back = inner.wait(locked.connection.client().batch_execute("rollback")).await;
            if matches!(rolled_back, Ok(Ok(()))) {
                locked.connection.end();
            }
        });
    }
}

impl Inner {
    /// The connection for a flight: the one that has the lock, or any. `None`: the one that has the lock has ended.
    pub(crate) async fn carrier(
        &self,
        home: HomeId,
        locked: Option<Locked>,
    ) -> Result<Option<Carrier<'_>>, EngineError> {
        if let Some(locked) = locked {
            let carrier = Carrier {
                connection: locked.connection,
                lock: Some(locked.permit),
                _unlocked: None,
            };
            return Ok((!carrier.connection.client().is_closed()).then_some(carrier));
        }
        let permit = self.wait(self.unlocked_commits.acquire()).await;
        let late = || EngineError::Unavailable("others commit all the time".to_owned());
        let permit = permit.ok().and_then(Result::ok).ok_or_else(late)?;
        Ok(Some(Carrier {
            connection: self.connection(home).await?,
            lock: None,
            _unlocked: Some(permit),
        }))
    }

    /// See [`bolide_storage::Engine::read_and_lock`].
    pub(crate) async fn read_and_lock(
        &self,
        partition: PartitionId,
        keys: Vec<Key>,
    ) -> Result<(ReadResponse, Option<WriteLock>), EngineError> {
        let request = ReadRequest::of_keys(keys);
        // Not all connections: the holder reads with others.
        let Ok(permit) = self.locks.clone().try_acquire_owned() else {
            return Ok((self.read_now(partition, &request).await?, None));
        };
        let mut connection = self.connection(partition.home()).await?;
        let found = match self.wait(lock(&mut connection, partition, &request)).await? {
            Ok(found) => found,
            // A holder hangs.
            Err(error) if error.is_lock_timeout() => {
                drop(connection);
                return Ok((self.read_now(partition, &request).await?, None));
            }
            Err(error) => return Err(error.of(partition)),
        };
        self.partitions.learn(partition, Known::Newest(found.record));
        self.time.observe(found.record.head.stamp);
        let locked = Locked {
            connection,
            permit,
            record: found.record,
            number: self.lock_numbers.fetch_add(1, Ordering::Relaxed),
        };
        let release = Release {
            inner: self.this.clone(),
            state: self.partitions.get(partition),
            number: locked.number,
        };
        release.state.set_locked(locked);
        Ok((found.into_response(), Some(WriteLock::new(release))))
    }
}

/// Begins a transaction that has the lock, and reads in it.
async fn lock(connection: &mut Connection, partition: PartitionId, request: &ReadRequest) -> Result<Found, ReadError> {
    let keys: Vec<Vec<u8>> = request.gets.iter().map(|key| rows::key(partition, key)).collect();
    let (from, to) = rows::commits(partition);
    let first = rows::first_record(partition);
    let home = partition.home();
    connection.begin();
    let lock = connection.prepared(Query::Lock, home).await?;
    let lock_newest = connection.prepared(Query::LockNewest, home).await?;
    let lock_and_get = connection.prepared(Query::LockAndGet, home).await?;
    let client = connection.client();
    // In one flight: each is sent when it is polled first, in this order.
    let begun = async {
        client.batch_execute("begin").await?;
        Ok(0)
    };
    let (begun, locked, waited, found) = future::join4(
        begun,
        client.execute(&lock, &[&first]),
        client.execute(&lock_newest, &[&from, &to]),
        client.query(&lock_and_get, &[&keys, &from, &to]),
    )
    .await;
    begun.and(locked).and(waited)?;
    Found::of_rows(partition, request, &found?)
}
