//! Locks of partitions: of writers who would make each other's commits stale, each waits until it is its turn.
//!
//! ```text
//!   A   lock ──────────▶ newest record ── decide ──▶ commit, in the transaction that has the lock
//!   B      lock ── waits ───────────────────────────────────▶ newest record: that of A ── decide ──▶ …
//! ```
//!
//! A lock is a transaction on a connection of its own that has locked two rows: the record with which the partition was created, where those who ask for the
//! lock wait, and the newest commit record. Commits that were decided without the lock wait for that, and are stale then. The server ends the transaction of a holder that hangs (`idle_in_transaction_session_timeout`).

use std::sync::Arc;

use bolide_storage::{EngineError, Key, PartitionId, ReadRequest, ReadResponse, WriteLock};
use futures_util::future;
use tokio::sync::OwnedSemaphorePermit;

use crate::connection::{Connection, Pooled};
use crate::engine::Inner;
use crate::error::is_lock_timeout;
use crate::partitions::{Known, PartitionState};
use crate::reads::{Found, ReadError};
use crate::rows::{self, CommitRecord};
use crate::statements::Query;

/// A locked partition.
pub(crate) struct Locked {
    /// Its transaction has the lock.
    pub connection: Pooled,
    /// The newest record, which stays it.
    pub record: CommitRecord,
    _permit: OwnedSemaphorePermit,
}

/// Ends the lock, unless a commit has.
struct Release {
    state: Arc<PartitionState>,
    record: CommitRecord,
}

impl Drop for Release {
    fn drop(&mut self) {
        let Some(mut locked) = self.state.take_locked(|locked| locked.record == self.record) else {
            return;
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            // The connection ends, and the transaction with it.
            return;
        };
        runtime.spawn(async move {
            if locked.connection.client().batch_execute("rollback").await.is_ok() {
                locked.connection.end();
            }
        });
    }
}

impl Inner {
    /// See [`bolide_storage::Engine::read_and_lock`].
    pub(crate) async fn read_and_lock(
        &self,
        partition: PartitionId,
        keys: Vec<Key>,
    ) -> Result<(ReadResponse, Option<WriteLock>), EngineError> {
        let request = ReadRequest {
            gets: keys,
            ..ReadRequest::default()
        };
        // Not all connections: the holder reads with others.
        let Ok(permit) = self.locks.clone().try_acquire_owned() else {
            return Ok((self.read_now(partition, &request).await?, None));
        };
        let mut connection = self.connection().await?;
        let found = match self.in_time(lock(&mut connection, partition, &request)).await? {
            Ok(found) => found,
            // A holder hangs.
            Err(ReadError::Statement(error)) if is_lock_timeout(&error) => {
                drop(connection);
                return Ok((self.read_now(partition, &request).await?, None));
            }
            Err(error) => return Err(error.of(partition)),
        };
        let record = found.record;
        self.partitions.learn(partition, Known::Newest(record));
        self.time.observe(record.head.stamp);
        let state = self.partitions.get(partition);
        state.set_locked(Locked {
            connection,
            record,
            _permit: permit,
        });
        let lock = WriteLock::new(Release { state, record });
        Ok((found.into_response(), Some(lock)))
    }
}

/// Begins a transaction that has the lock, and reads in it.
async fn lock(connection: &mut Connection, partition: PartitionId, request: &ReadRequest) -> Result<Found, ReadError> {
    let keys: Vec<Vec<u8>> = request.gets.iter().map(|key| rows::key(partition, key)).collect();
    let (from, to) = rows::commits(partition);
    let first = rows::first_record(partition);
    let home = partition.home();
    let lock = connection.prepared(Query::Lock, home).await?;
    let lock_newest = connection.prepared(Query::LockNewest, home).await?;
    let lock_and_get = connection.prepared(Query::LockAndGet, home).await?;
    connection.begin();
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
