//! Locks of partitions: of writers who would make each other's commits stale, each waits until it is its turn.
//!
//! ```text
//!   A   lock ──────────▶ newest record ── decide ──▶ commit, in the transaction that has the lock
//!   B      lock ── waits ───────────────────────────────────▶ newest record: that of A ── decide ──▶ …
//! ```
//!
//! The lock is that of the newest commit record's row, in a transaction of its own connection. Commits that were decided without it wait for it, too, and
//! are stale then.

use std::sync::Arc;

use bolide_storage::{EngineError, Key, PartitionId, ReadRequest, ReadResponse, WriteLock};
use futures_util::future;
use tokio::sync::OwnedSemaphorePermit;

use crate::connection::{Connection, Pooled};
use crate::engine::Inner;
use crate::error::is_lock_timeout;
use crate::partitions::{Known, PartitionState};
use crate::reads::{self, ReadError, newest_of};
use crate::rows::{self, CommitRecord};
use crate::statements::Query;

/// Tries to lock the newest record, if others commit meanwhile.
const TRIES: usize = 8;

/// A holder that has not committed after this time has lost its lock. The connection's end is noticed by its next statement.
const BEGIN: &str = "begin; set local idle_in_transaction_session_timeout = '2s'";

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
            Ok(Some(found)) => found,
            Err(ReadError::Statement(error)) if !is_lock_timeout(&error) => {
                return Err(ReadError::Statement(error).of(partition));
            }
            Err(error @ (ReadError::NoPartition | ReadError::Corrupt(_))) => return Err(error.of(partition)),
            // Others are always faster, or one of them hangs.
            Ok(None) | Err(ReadError::Statement(_)) => {
                drop(connection);
                return Ok((self.read_now(partition, &request).await?, None));
            }
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

/// Begins a transaction that has the lock, and reads in it. `None` if others commit all the time.
async fn lock(
    connection: &mut Connection,
    partition: PartitionId,
    request: &ReadRequest,
) -> Result<Option<reads::Found>, ReadError> {
    let (from, to) = rows::commits(partition);
    let lock = connection.prepared(Query::Lock, partition.home()).await?;
    connection.begin();
    let client = connection.client();
    // In one flight. What is locked first is the newest record when this is asked for; when the lock is given, it is that no longer if others were waited
    // for, and the second lock is that of the newest.
    let (begun, first, second) = future::join3(
        client.batch_execute(BEGIN),
        client.query(&lock, &[&from, &to]),
        client.query(&lock, &[&from, &to]),
    )
    .await;
    begun?;
    first?;
    let mut locked = newest_of(&second?)?;
    for _ in 0..TRIES {
        let found = reads::read_in_snapshot(connection, partition, request).await?;
        if locked == Some(found.record) {
            return Ok(Some(found));
        }
        locked = newest_of(&connection.client().query(&lock, &[&from, &to]).await?)?;
    }
    Ok(None)
}
