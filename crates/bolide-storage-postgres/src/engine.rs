//! The engine as its callers use it.

use std::future::Future;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bolide_model::UnixMillis;
use bolide_model::time::{Clock, Monotonic, Span};
use bolide_storage::{
    Batch, Engine, EngineError, EngineFuture, Head, HeldSnapshot, Holds, HomeId, JointOutcome, Key, Outcome,
    PartitionId, ReadRequest, ReadResponse, Resolved, Ticket, WriteLock,
};
use tokio::sync::{Semaphore, watch};

use crate::connection::{Connection, Parameters, Pooled, Target};
use crate::error::{Failure, OpenError, judge, text, unavailable};
use crate::holds::{Transaction, Transactions};
use crate::options::PostgresOptions;
use crate::partitions::{Known, Partitions};
use crate::reads::{Found, ReadError};
use crate::routes::Routes;
use crate::row_cache::RowCache;
use crate::rows::{self, CommitRecord};
use crate::schema;
use crate::statements::Query;
use crate::time::ServerTime;
use crate::{lookups, reads, removals};

/// Time between questions for the server's time.
const ASK_INTERVAL: Duration = Duration::from_secs(1);
/// Time is made durable for less than this in advance. More means that the server's clock was set back.
const LONGEST_LEAD: Duration = Duration::from_secs(2);
/// Connections that neither locks nor commits have.
const READERS: usize = 2;
/// The name of the row with the time that is durable.
const TIME: &str = "time";

/// Keeps partitions in a table of PostgreSQL or Citus.
pub struct PostgresEngine(Arc<Inner>);

pub(crate) struct Inner {
    /// For what goes on in the background.
    pub(crate) this: Weak<Inner>,
    pub(crate) target: Target,
    pub(crate) routes: Routes,
    pub(crate) partitions: Partitions,
    pub(crate) row_cache: RowCache,
    pub(crate) transactions: Transactions,
    pub(crate) holds: Holds<Arc<Transaction>>,
    /// One permit for each partition that may be locked at the same time.
    pub(crate) locks: Arc<Semaphore>,
    /// One for each commit without a lock, which may wait for another server's lock. Some connections are left for those who read, among them the holders
    /// of locks.
    pub(crate) unlocked_commits: Semaphore,
    pub(crate) lock_numbers: AtomicU64,
    pub(crate) time: ServerTime,
    pub(crate) monotonic: Monotonic,
    timeout: Duration,
    /// The server did not answer in time, and has not answered since: nothing waits for it then. Set only where the server is asked for its time.
    is_away: watch::Sender<bool>,
    /// One write of the time at once; those that wait find it written.
    raising: tokio::sync::Mutex<()>,
}

impl PostgresEngine {
    /// Opens the store that [`crate::init`] made, and goes on with the removals that an earlier process did not finish.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub async fn open(options: &PostgresOptions, clock: Arc<Clock>) -> Result<PostgresEngine, OpenError> {
        let mut connection = schema::connect(options).await?;
        schema::check(&mut connection).await?;
        let floor = connection
            .rows(Query::Record, rows::STORE, &[&rows::store_key(TIME)])
            .await?;
        let floor = floor.first().map(|row| row.try_get::<_, &[u8]>(2)).transpose()?;
        let floor = floor.and_then(rows::time_of).unwrap_or(UnixMillis(i64::MIN));
        let monotonic = Monotonic::system();
        let time = ServerTime::new(clock, monotonic.clone(), floor);
        if time.is_asked() {
            time.ask(&mut connection).await?;
            // Others have made more durable than has come. A process that began with that would call gone what is live on them.
            let lead = time.lead();
            if lead <= LONGEST_LEAD {
                monotonic.sleep(lead).await;
            }
        }
        let limits = (options.connections, options.timeout);
        let routes = Routes::new(&options.target, limits, connection.is_on_citus(), monotonic.clone())?;
        let locks = (options.connections / 4).max(1);
        let inner = Arc::new_cyclic(|this| Inner {
            this: this.clone(),
            target: options.target.clone(),
            routes,
            partitions: Partitions::default(),
            row_cache: RowCache::new(options.cache_bytes),
            transactions: Transactions::default(),
            holds: Holds::default(),
            locks: Arc::new(Semaphore::new(locks)),
            unlocked_commits: Semaphore::new(options.connections.saturating_sub(locks + READERS).max(1)),
            lock_numbers: AtomicU64::new(0),
            time,
            monotonic,
            timeout: options.timeout,
            is_away: watch::Sender::new(false),
            raising: tokio::sync::Mutex::default(),
        });
        removals::go_on(&inner, &mut connection).await?;
        if inner.time.is_asked() {
            tokio::spawn(keep_time(Arc::downgrade(&inner), connection));
        }
        Ok(PostgresEngine(inner))
    }
}

/// Asks for the server's time as long as the engine is there.
async fn keep_time(inner: Weak<Inner>, mut connection: Connection) {
    loop {
        let Some(monotonic) = inner.upgrade().map(|inner| inner.monotonic.clone()) else {
            return;
        };
        monotonic.sleep(ASK_INTERVAL).await;
        let Some(inner) = inner.upgrade() else { return };
        if let Ok(Ok(())) = inner.in_time(inner.time.ask(&mut connection)).await {
            inner.is_away.send_replace(false);
        } else if let Ok(Ok(opened)) = inner.in_time(Connection::open(&inner.target)).await {
            connection = opened;
        }
    }
}

impl Inner {
    /// A connection for the statements of a home, on which nothing was begun.
    pub(crate) async fn connection(&self, home: HomeId) -> Result<Pooled, EngineError> {
        let away = || EngineError::Unavailable("the store does not answer".to_owned());
        if *self.is_away.borrow() {
            return Err(away());
        }
        let deadline = self.monotonic.now() + self.timeout;
        let mut is_away = self.is_away.subscribe();
        tokio::select! {
            biased;
            connection = self.monotonic.timeout_at(deadline, self.routes.get(home)) => {
                let late = || EngineError::Unavailable("no connection to the store in time".to_owned());
                connection.ok_or_else(late)?
            }
            // Those that have the connections get no answer, so who waits for one does not wait as long once more.
            _ = is_away.wait_for(|is_away| *is_away) => Err(away()),
        }
    }

    /// Waits for the server, no longer than a request may take. If it does not answer, nothing waits for it until it does.
    pub(crate) async fn in_time<T>(&self, work: impl Future<Output = T>) -> Result<T, EngineError> {
        let done = self.wait(work).await;
        if done.is_err() && self.time.is_asked() {
            self.is_away.send_replace(true);
        }
        done
    }

    /// Waits as long for what may have to wait for others here: that it does not end says nothing of the server.
    pub(crate) async fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, EngineError> {
        let deadline = self.monotonic.now() + self.timeout;
        let done = self.monotonic.timeout_at(deadline, work).await;
        done.ok_or_else(|| EngineError::Unavailable("the store did not answer in time".to_owned()))
    }

    /// Reads with statements of its own.
    pub(crate) async fn read_now(
        &self,
        partition: PartitionId,
        request: &ReadRequest,
    ) -> Result<ReadResponse, EngineError> {
        Ok(self.find_now(partition, request).await?.into_response())
    }

    /// The same, with the newest commit record.
    pub(crate) async fn find_now(&self, partition: PartitionId, request: &ReadRequest) -> Result<Found, EngineError> {
        let mut read = self.read_once(partition, request).await?;
        if matches!(&read, Err(error) if error.was_closed()) {
            read = self.read_once(partition, request).await?;
        }
        let found = read.map_err(|error| error.of(partition))?;
        self.partitions.learn(partition, Known::Newest(found.record));
        // Another node may be ahead.
        self.time.observe(found.record.head.stamp);
        Ok(found)
    }

    async fn read_once(
        &self,
        partition: PartitionId,
        request: &ReadRequest,
    ) -> Result<Result<Found, ReadError>, EngineError> {
        let mut connection = self.connection(partition.home()).await?;
        self.in_time(reads::read(&mut connection, partition, request)).await
    }

    /// The partition does not exist any more, or not yet.
    pub(crate) fn forget(&self, partition: PartitionId) {
        self.partitions.forget(partition);
        self.row_cache.forget(partition);
    }

    pub(crate) async fn make_time_durable(&self, until: UnixMillis) -> Result<(), EngineError> {
        let _turn = self.raising.lock().await;
        if until <= self.time.durable() {
            return Ok(());
        }
        let mut connection = self.connection(rows::STORE).await?;
        let (key, value) = (rows::store_key(TIME), rows::time_bytes(until));
        let parameters: Parameters<'_> = &[&key, &&value[..]];
        let raised = connection.execute(Query::Raise, rows::STORE, parameters);
        self.in_time(raised).await?.map_err(|error| unavailable(&error))?;
        self.time.made_durable(until);
        Ok(())
    }

    async fn create(&self, partition: PartitionId, head: Head) -> Result<(), EngineError> {
        if !rows::is_storable(partition) {
            return Err(EngineError::Unavailable(format!(
                "a partition has the highest number. partition={partition}"
            )));
        }
        let record = CommitRecord::first(head);
        let keys = vec![record.key(partition), rows::listed(partition)];
        let value = record.value();
        let values: Vec<&[u8]> = vec![&value, &[]];
        let parameters: Parameters<'_> = &[&keys, &values];
        let mut connection = self.connection(partition.home()).await?;
        let created = connection.execute(Query::Create, partition.home(), parameters);
        match self.in_time(created).await? {
            Ok(_) => {
                self.time.observe(head.stamp);
                Ok(())
            }
            // It may be created more than once.
            Err(error) => Err(match judge(&error) {
                Failure::Refused(why) | Failure::NotDone(why) | Failure::Unknown(why) => EngineError::Unavailable(why),
                Failure::Conflict => EngineError::Unavailable(text(&error)),
            }),
        }
    }
}

impl Engine for PostgresEngine {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn checks_new_keys(&self) -> bool {
        true
    }

    fn read(
        &self,
        partition: PartitionId,
        request: ReadRequest,
    ) -> EngineFuture<'_, Result<ReadResponse, EngineError>> {
        if lookups::can_share(&request) {
            return Box::pin(self.0.look_up(partition, request));
        }
        Box::pin(async move { self.0.read_now(partition, &request).await })
    }

    fn read_and_lock(
        &self,
        partition: PartitionId,
        keys: Vec<Key>,
    ) -> EngineFuture<'_, Result<(ReadResponse, Option<WriteLock>), EngineError>> {
        Box::pin(async move { self.0.read_and_lock(partition, keys).await })
    }

    fn commit(&self, partition: PartitionId, batch: Batch) -> EngineFuture<'_, Result<Outcome, EngineError>> {
        Box::pin(async move { self.0.commit(partition, batch).await })
    }

    fn commit_together(
        &self,
        batches: Vec<(PartitionId, Batch)>,
    ) -> EngineFuture<'_, Result<JointOutcome, EngineError>> {
        Box::pin(async move { self.0.commit_together(batches).await })
    }

    fn hold(&self, home: HomeId, until: UnixMillis) -> EngineFuture<'_, Result<Arc<dyn HeldSnapshot>, EngineError>> {
        Box::pin(async move { Ok(Arc::new(self.0.hold(home, until).await?) as Arc<dyn HeldSnapshot>) })
    }

    fn resolve(&self, partition: PartitionId, ticket: Ticket) -> EngineFuture<'_, Result<Resolved, EngineError>> {
        Box::pin(async move { self.0.resolve(partition, &ticket).await })
    }

    fn create(&self, partition: PartitionId, head: Head) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move { self.0.create(partition, head).await })
    }

    fn remove(&self, partition: PartitionId) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move { removals::remove(&self.0, partition).await })
    }

    fn time(&self) -> Span {
        self.0.time.now()
    }

    fn durable_time(&self) -> UnixMillis {
        self.0.time.durable()
    }

    fn make_time_durable(&self, until: UnixMillis) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move { self.0.make_time_durable(until).await })
    }

    fn close(&self) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            // What is acknowledged is durable already.
            self.0.holds.release_all();
            self.0.routes.close();
            Ok(())
        })
    }
}

impl Drop for PostgresEngine {
    fn drop(&mut self) {
        self.0.holds.release_all();
        self.0.routes.close();
    }
}
