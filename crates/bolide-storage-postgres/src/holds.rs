//! Held snapshots: transactions that keep their snapshot, each on a connection of its own.
//!
//! Connections are few and snapshots may be many. So those of a home that would show the same share one: the heads of its partitions tell. While the most
//! transactions are open that there may be, the oldest ends, and the snapshots that it holds end before their time.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bolide_model::UnixMillis;
use bolide_storage::{
    EngineError, EngineFuture, HeldSnapshot, Hold, HoldError, HomeId, PartitionId, ReadRequest, ReadResponse,
};
use parking_lot::Mutex;

use crate::connection::Connection;
use crate::engine::Inner;
use crate::error::{text, unavailable};
use crate::reads::{self, BEGIN_SNAPSHOT, ReadError, records};
use crate::rows::{self, CommitRecord};
use crate::statements::Query;

/// A transaction is shared while it is younger than this: with the longest time of a snapshot, it is less than the server lets it be idle.
const SHARED_FOR: Duration = Duration::from_secs(4);
/// How long the server lets a transaction be idle: longer than a snapshot lives.
const KEEP: &str = "set idle_in_transaction_session_timeout = '65s'";
/// Transactions that hold snapshots at the same time, each with a connection.
pub(crate) const TRANSACTIONS: usize = 8;

/// The open transactions, the oldest first.
#[derive(Default)]
pub(crate) struct Transactions(Mutex<Vec<Weak<Transaction>>>);

/// A transaction that keeps its snapshot.
pub(crate) struct Transaction {
    home: HomeId,
    heads: Vec<CommitRecord>,
    begun: Instant,
    /// `None` once it has ended.
    connection: tokio::sync::Mutex<Option<Connection>>,
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction")
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

impl Transactions {
    /// One that shows a home with these heads, and was begun after `since`.
    fn showing(&self, home: HomeId, heads: &[CommitRecord], since: Instant) -> Option<Arc<Transaction>> {
        let open = self.0.lock();
        let mut open = open.iter().rev().filter_map(Weak::upgrade);
        open.find(|transaction| {
            transaction.home == home
                && transaction.heads == heads
                && transaction.begun >= since
                && !transaction.has_ended()
        })
    }

    /// Adds one; returns the oldest if there are too many now.
    fn add(&self, transaction: &Arc<Transaction>) -> Option<Arc<Transaction>> {
        let mut open = self.0.lock();
        open.retain(|transaction| transaction.strong_count() > 0);
        open.push(Arc::downgrade(transaction));
        let is_one_too_many = open.len() > TRANSACTIONS;
        is_one_too_many.then(|| open.remove(0).upgrade()).flatten()
    }
}

impl Transaction {
    fn has_ended(&self) -> bool {
        // Whoever has locked it is reading.
        self.connection.try_lock().is_ok_and(|connection| connection.is_none())
    }

    /// Ends it, as soon as nobody reads.
    async fn end(&self) {
        drop(self.connection.lock().await.take());
    }
}

impl Inner {
    /// See [`bolide_storage::Engine::hold`].
    pub(crate) async fn hold(&self, home: HomeId, until: UnixMillis) -> Result<Snapshot, EngineError> {
        let mut pooled = self.connection(home).await?;
        let heads = self.in_time(heads(&mut pooled, home)).await?.map_err(of_home)?;
        drop(pooled);
        let now = self.monotonic.now();
        let since = now.checked_sub(SHARED_FOR).unwrap_or(now);
        let transaction = match self.transactions.showing(home, &heads, since) {
            Some(transaction) => transaction,
            None => {
                let begun = self.in_time(self.begin(home)).await?.map_err(of_home)?;
                if let Some(oldest) = self.transactions.add(&begun) {
                    oldest.end().await;
                }
                begun
            }
        };
        Ok(Snapshot {
            hold: self.holds.add(transaction, until, self.time.now().hi)?,
            inner: self.this.clone(),
        })
    }

    /// A connection of its own.
    async fn open(&self, home: HomeId) -> Result<Connection, ReadError> {
        if let Some(owner) = self.routes.target(home)
            && let Ok(connection) = Connection::open(&owner).await
        {
            return Ok(connection);
        }
        Ok(Connection::open(&self.target).await?)
    }

    /// A new transaction, whose snapshot is taken now.
    async fn begin(&self, home: HomeId) -> Result<Arc<Transaction>, ReadError> {
        let mut connection = self.open(home).await?;
        connection.client().batch_execute(KEEP).await?;
        connection.client().batch_execute(BEGIN_SNAPSHOT).await?;
        let heads = heads(&mut connection, home).await?;
        Ok(Arc::new(Transaction {
            home,
            heads,
            begun: self.monotonic.now(),
            connection: tokio::sync::Mutex::new(Some(connection)),
        }))
    }
}

/// The newest commits of all partitions of a home; takes the snapshot of a new transaction.
async fn heads(connection: &mut Connection, home: HomeId) -> Result<Vec<CommitRecord>, ReadError> {
    let (from, to) = rows::partition_list();
    let found = connection.rows(Query::Heads, home, &[&from, &to]).await?;
    records(&found)
}

fn of_home(error: ReadError) -> EngineError {
    match error {
        ReadError::Statement(error) => unavailable(&error),
        ReadError::NoPartition => EngineError::Unavailable("a home has no partition".to_owned()),
        ReadError::Corrupt(what) => EngineError::Corrupt(what.to_owned()),
    }
}

/// A held snapshot, as its reader sees it.
pub(crate) struct Snapshot {
    hold: Arc<Hold<Arc<Transaction>>>,
    inner: Weak<Inner>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("hold", &self.hold)
            .finish_non_exhaustive()
    }
}

impl HeldSnapshot for Snapshot {
    fn read(&self, partition: PartitionId, request: ReadRequest) -> EngineFuture<'_, Result<ReadResponse, HoldError>> {
        Box::pin(async move {
            let inner = self.inner.upgrade().ok_or(HoldError::Expired)?;
            let transaction = self.hold.snapshot(inner.time.now().hi)?;
            if transaction.home != partition.home() {
                return Err(EngineError::NoPartition(partition).into());
            }
            let mut connection = transaction.connection.lock().await;
            let open = connection.as_mut().ok_or(HoldError::Expired)?;
            let read = inner.in_time(reads::read_in_snapshot(open, partition, &request)).await;
            match read {
                Ok(Ok(found)) => Ok(found.into_response()),
                Ok(Err(ReadError::Statement(error))) => {
                    // Nothing can be read any more after an error in a transaction.
                    tracing::debug!(error = text(&error), "a held snapshot has ended");
                    *connection = None;
                    Err(HoldError::Expired)
                }
                Ok(Err(error)) => Err(error.of(partition).into()),
                Err(late) => {
                    *connection = None;
                    Err(late.into())
                }
            }
        })
    }
}
