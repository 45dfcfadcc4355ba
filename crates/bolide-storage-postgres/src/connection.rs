//! Connections, and the pool of them.

use std::num::NonZeroUsize;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use bolide_storage::{EngineError, HomeId};
use deadpool::Runtime;
use deadpool::managed::{
    Manager, Metrics, Object, Pool, PoolError, RecycleError, RecycleResult, TimeoutType, Timeouts,
};
use futures_util::future;
use lru::LruCache;
use rustls::ClientConfig;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Error, NoTls, Row, SimpleQueryMessage, Socket, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{OpenError, text, was_closed};
use crate::statements::Query;

/// Prepared statements of a connection; those of homes that were not used for longest are dropped first.
const STATEMENTS: NonZeroUsize = NonZeroUsize::new(256).expect("it is not zero");

/// What each connection begins with. A rival whose commit hangs half-sent is not waited for, and nothing that hangs half-sent stays.
///
/// A statement is planned once per connection. Left to itself the server plans reads again for each execution, which takes longer than they do: it expects
/// more rows of parameters that it does not know. Plans that were made when the table was small are kept when it has grown, so the settings leave only those that use
/// the primary key, and statements are such that no plan uses half of it (`sql/get_all.sql`). Citus keeps the plan for a shard itself, and cannot make one for
/// parameters that it does not know.
pub(crate) const SETTINGS: &str = "
    set default_transaction_isolation = 'read committed';
    set lock_timeout = '2s';
    set enable_seqscan = off;
    set enable_hashjoin = off;
    set enable_mergejoin = off;
    set idle_in_transaction_session_timeout = '2s';
    set client_min_messages = 'error';
    select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off';";

/// Whether the database is one of a Citus cluster.
const HAS_CITUS: &str = "select from pg_extension where extname = 'citus'";
pub(crate) const PLAN_ONCE: &str = "set plan_cache_mode = 'force_generic_plan'";

/// Parameters of a statement.
pub(crate) type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A connection with its prepared statements.
pub(crate) struct Connection {
    client: Client,
    statements: LruCache<(Query, HomeId), Statement>,
    is_on_citus: bool,
    /// Something was begun and its end was not seen: nobody else can use the connection.
    is_dirty: bool,
}

impl Connection {
    /// Connects.
    pub(crate) async fn open(target: &Target) -> Result<Connection, Error> {
        // Large and rare: whoever asks for a connection would carry it.
        let client = match &target.tls {
            Some(tls) => Box::pin(connect(&target.config, MakeRustlsConnect::new(tls.as_ref().clone()))).await?,
            None => Box::pin(connect(&target.config, NoTls)).await?,
        };
        let has_citus = async {
            let found = client.simple_query(HAS_CITUS).await?;
            Ok(found
                .iter()
                .any(|message| matches!(message, SimpleQueryMessage::Row(_))))
        };
        let ((), is_on_citus) = future::try_join(client.batch_execute(SETTINGS), has_citus).await?;
        if !is_on_citus {
            client.batch_execute(PLAN_ONCE).await?;
        }
        Ok(Connection {
            client,
            statements: LruCache::new(STATEMENTS),
            is_on_citus,
            is_dirty: false,
        })
    }

    /// Whether the database is one of a Citus cluster.
    pub(crate) fn is_on_citus(&self) -> bool {
        self.is_on_citus
    }

    /// Sends what needs no preparation.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The connection is not used again unless [`Connection::end`] is called.
    pub(crate) fn begin(&mut self) {
        self.is_dirty = true;
    }

    /// All that was begun has ended.
    pub(crate) fn end(&mut self) {
        self.is_dirty = false;
    }

    /// A prepared statement for a home.
    pub(crate) async fn prepared(&mut self, query: Query, home: HomeId) -> Result<Statement, Error> {
        if let Some(statement) = self.statements.get(&(query, home)) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(&query.text(home)).await?;
        self.statements.put((query, home), statement.clone());
        Ok(statement)
    }

    /// The rows of a statement.
    pub(crate) async fn rows(
        &mut self,
        query: Query,
        home: HomeId,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, Error> {
        let was_dirty = std::mem::replace(&mut self.is_dirty, true);
        let statement = self.prepared(query, home).await?;
        let rows = self.client.query(&statement, parameters).await;
        self.is_dirty = was_dirty || rows.as_ref().is_err_and(was_closed);
        rows
    }

    /// The number of rows that a statement changed.
    pub(crate) async fn execute(
        &mut self,
        query: Query,
        home: HomeId,
        parameters: Parameters<'_>,
    ) -> Result<u64, Error> {
        let was_dirty = std::mem::replace(&mut self.is_dirty, true);
        let statement = self.prepared(query, home).await?;
        let changed = self.client.execute(&statement, parameters).await;
        self.is_dirty = was_dirty || changed.as_ref().is_err_and(was_closed);
        changed
    }
}

/// Where a store is, and how its server is trusted.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub config: Config,
    /// `None`: connections are not encrypted.
    pub tls: Option<Arc<ClientConfig>>,
}

async fn connect<T>(config: &Config, tls: T) -> Result<Client, Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let (client, connection) = config.connect(tls).await?;
    // Ends with the client.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = text(&error), "a connection to the store has ended");
        }
    });
    Ok(client)
}

/// Makes the connections of a pool.
pub(crate) struct Connector(pub Target);

impl Manager for Connector {
    type Type = Connection;
    type Error = Error;

    async fn create(&self) -> Result<Connection, Error> {
        Connection::open(&self.0).await
    }

    async fn recycle(&self, connection: &mut Connection, _: &Metrics) -> RecycleResult<Error> {
        if connection.client.is_closed() || connection.is_dirty {
            return Err(RecycleError::message("it was closed, or something was begun on it"));
        }
        Ok(())
    }
}

/// A connection of a pool, given back when dropped. One on which something was begun ends instead: in the pool, its transaction with all that it has locked
/// would go on until somebody takes it out.
pub(crate) struct Pooled(Option<Object<Connector>>);

impl Pooled {
    /// Ends the connection.
    pub(crate) fn close(mut self) {
        self.take();
    }

    fn take(&mut self) {
        drop(self.0.take().map(Object::take));
    }
}

impl Deref for Pooled {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut Connection {
        self.0.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        if self.0.as_ref().is_some_and(|connection| connection.is_dirty) {
            self.take();
        }
    }
}

/// The connections for all but held snapshots.
pub(crate) struct Connections(Pool<Connector>);

impl Connections {
    /// At most `size` connections, each waited for and opened within `timeout`.
    pub(crate) fn new(target: &Target, size: usize, timeout: Duration) -> Result<Connections, OpenError> {
        let limits = Timeouts {
            wait: Some(timeout),
            create: Some(timeout),
            recycle: None,
        };
        let pool = Pool::builder(Connector(target.clone()))
            .max_size(size)
            .timeouts(limits)
            .runtime(Runtime::Tokio1)
            .build();
        // It fails only without a runtime for the timeouts.
        pool.map(Connections).map_err(|_| OpenError::Timeout)
    }

    /// A connection on which nothing was begun.
    pub(crate) async fn get(&self) -> Result<Pooled, EngineError> {
        self.take().await.map_err(refused)
    }

    /// The same, with the reason why there is none.
    pub(crate) async fn take(&self) -> Result<Pooled, PoolError<Error>> {
        self.0.get().await.map(|connection| Pooled(Some(connection)))
    }

    /// Ends all connections that are not in use, and the others when they are given back.
    pub(crate) fn close(&self) {
        self.0.close();
    }
}

/// What callers are told if there is no connection.
pub(crate) fn refused(error: PoolError<Error>) -> EngineError {
    EngineError::Unavailable(match error {
        PoolError::Backend(error) => text(&error),
        PoolError::Timeout(_) => "no connection to the store was free, or could be opened, in time".to_owned(),
        other => other.to_string(),
    })
}

/// Whether a new connection was needed and could not be opened.
pub(crate) fn was_not_opened(error: &PoolError<Error>) -> bool {
    matches!(error, PoolError::Backend(_) | PoolError::Timeout(TimeoutType::Create))
}
