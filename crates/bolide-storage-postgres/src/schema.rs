//! The one table, and what must be right before it is used.

use std::time::Duration;

use bolide_model::time::Monotonic;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::connection::Connection;
use crate::error::OpenError;
use crate::options::PostgresOptions;

/// The oldest PostgreSQL, as its own number.
const OLDEST: i32 = 150_000;
/// The comment by which a table is known as a store of this format.
const FORMAT: &str = "Bolide store, format 1";
/// Shards of a new table on Citus.
const SHARDS: i32 = 64;

/// A comment in the table's description tells its format. On Citus the table is distributed by the home.
pub(crate) const CREATE: &str = "
    create table bolide_kv (part bigint not null, k bytea not null, v bytea not null, primary key (part, k))
        with (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
    alter table bolide_kv alter v set storage external;";

/// Whether a store is there: the format of the table, if it has one.
const DESCRIBED: &str = "select obj_description(to_regclass('bolide_kv'), 'pg_class')";
const EXISTS: &str = "select to_regclass('bolide_kv') is not null";
/// One process makes the table, others wait for it. The number is only for this.
const LOCK: &str = "select pg_advisory_xact_lock(7306583)";
/// How long a server that recovers is waited for.
const RECOVERY: Duration = Duration::from_secs(30);
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
const RIGHTS: [&str; 4] = ["select", "insert", "update", "delete"];

/// What [`init`] found or did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Init {
    /// There was a store.
    Present,
    /// The store was made; on Citus it is spread over its nodes.
    Created {
        /// Whether Citus is there.
        on_citus: bool,
    },
}

/// Makes a store in a database that has none. May be repeated, and called by several processes at once.
///
/// # Errors
/// As [`crate::PostgresEngine::open`], and if the user may not create a table.
pub async fn init(options: &PostgresOptions) -> Result<Init, OpenError> {
    let connection = connect(options).await?;
    let client = connection.client();
    check_server(&connection).await?;
    client.batch_execute("begin").await?;
    client.execute(LOCK, &[]).await?;
    if client.query_one(EXISTS, &[]).await?.try_get(0)? {
        client.batch_execute("commit").await?;
        check_format(&connection).await?;
        return Ok(Init::Present);
    }
    client.batch_execute(CREATE).await?;
    let on_citus = connection.is_on_citus();
    if on_citus {
        let distribute = format!("select create_distributed_table('bolide_kv', 'part', shard_count => {SHARDS})");
        client.batch_execute(&distribute).await?;
    }
    client
        .batch_execute(&format!("comment on table bolide_kv is '{FORMAT}'"))
        .await?;
    client.batch_execute("commit").await?;
    Ok(Init::Created { on_citus })
}

/// Connects for the first time.
pub(crate) async fn connect(options: &PostgresOptions) -> Result<Connection, OpenError> {
    let monotonic = Monotonic::system();
    let deadline = monotonic.now() + options.timeout.max(RECOVERY);
    loop {
        let until = (monotonic.now() + options.timeout).min(deadline);
        match monotonic.timeout_at(until, Connection::open(&options.target)).await {
            Some(Ok(connection)) => return Ok(connection),
            // It recovers after a crash.
            Some(Err(error)) if error.code() == Some(&SqlState::CANNOT_CONNECT_NOW) && monotonic.now() < deadline => {
                monotonic.sleep(RETRY_INTERVAL).await;
            }
            Some(Err(error)) => return Err(OpenError::Connect(error)),
            None => return Err(OpenError::Timeout),
        }
    }
}

/// Checks the server, the table and the rights.
pub(crate) async fn check(connection: &mut Connection) -> Result<(), OpenError> {
    check_server(connection).await?;
    let exists: bool = connection.client().query_one(EXISTS, &[]).await?.try_get(0)?;
    if !exists {
        return Err(OpenError::NoStore);
    }
    check_format(connection).await?;
    for right in RIGHTS {
        let has = connection
            .client()
            .query_one("select has_table_privilege('bolide_kv', $1)", &[&right])
            .await?;
        if !has.try_get::<_, bool>(0)? {
            return Err(OpenError::Rights(right));
        }
    }
    Ok(())
}

async fn check_server(connection: &Connection) -> Result<(), OpenError> {
    let row = connection
        .client()
        .query_one(
            "select current_setting('server_version_num')::int, current_setting('server_version'), pg_is_in_recovery()",
            &[],
        )
        .await?;
    let (number, found, is_standby): (i32, String, bool) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    if number < OLDEST {
        return Err(OpenError::Version {
            found,
            needed: OLDEST.unsigned_abs() / 10_000,
        });
    }
    if is_standby {
        return Err(OpenError::Standby);
    }
    Ok(())
}

async fn check_format(connection: &Connection) -> Result<(), OpenError> {
    let described = described(connection).await?;
    match described.as_deref() {
        Some(FORMAT) => Ok(()),
        Some(other) => Err(OpenError::Foreign(format!("its comment is `{other}`, not `{FORMAT}`"))),
        None => Err(OpenError::Foreign(format!("it has no comment `{FORMAT}`"))),
    }
}

async fn described(connection: &Connection) -> Result<Option<String>, Error> {
    connection.client().query_one(DESCRIBED, &[]).await?.try_get(0)
}
