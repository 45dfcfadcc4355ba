//! Removing partitions: gone at once, and their rows later, a few at a time.
//!
//! ```text
//!   entry among the removals (home 0) ──▶ commit records and entry in the home's list deleted: gone ──▶ rows ──▶ entry deleted
//! ```
//!
//! A process that ends in between leaves the entry; the next one that opens the store goes on.

use std::sync::Arc;

use bolide_storage::{EngineError, PartitionId};
use tokio_postgres::Error;

use crate::connection::Connection;
use crate::engine::Inner;
use crate::error::{OpenError, text, unavailable};
use crate::rows::{self, Range};
use crate::statements::Query;

/// Rows of one statement.
const ROWS: i64 = 1_000;

/// See [`bolide_storage::Engine::remove`].
pub(crate) async fn remove(inner: &Arc<Inner>, partition: PartitionId) -> Result<(), EngineError> {
    if inner.look(partition).await?.is_none() {
        return Ok(());
    }
    // A stamp of the partition must not be forgotten with it (TTL-203). Its commits have seen to that, unless it has none.
    let mut connection = inner.connection(partition.home()).await?;
    let gone = inner.in_time(end(&mut connection, partition)).await?;
    gone.map_err(|error| unavailable(&error))?;
    drop(connection);
    inner.forget(partition);
    tokio::spawn(finish(inner.clone(), partition));
    Ok(())
}

/// Finishes what other processes have begun.
pub(crate) async fn go_on(inner: &Arc<Inner>, connection: &mut Connection) -> Result<(), OpenError> {
    let (from, to) = rows::removals();
    let begun = connection.rows(Query::List, rows::STORE, &[&from, &to]).await?;
    for row in begun {
        let Some(partition) = rows::removed(row.try_get(1)?) else {
            continue;
        };
        end(connection, partition).await?;
        tokio::spawn(finish(inner.clone(), partition));
    }
    Ok(())
}

/// Deletes all commit records of a partition, so that it does not exist.
async fn end(connection: &mut Connection, partition: PartitionId) -> Result<(), Error> {
    let entry = rows::removal(partition);
    connection
        .execute(Query::Put, rows::STORE, &[&entry, &&b""[..]])
        .await?;
    let (commits, listed) = (rows::commits(partition), rows::listed(partition));
    let entry_of_list = (listed.clone(), [&listed[..], &[0]].concat());
    connection.begin();
    connection.client().batch_execute("begin").await?;
    // A commit that was on its way has written one more record, which a statement that waited for it does not see.
    while delete(connection, partition, &commits).await? > 0 {}
    delete(connection, partition, &entry_of_list).await?;
    connection.client().batch_execute("commit").await?;
    connection.end();
    Ok(())
}

async fn delete(connection: &mut Connection, partition: PartitionId, (from, to): &Range) -> Result<u64, Error> {
    connection
        .execute(Query::DeleteRange, partition.home(), &[from, to, &ROWS])
        .await
}

/// Deletes the rows, and then the entry. If it fails, the next process that opens the store goes on.
async fn finish(inner: Arc<Inner>, partition: PartitionId) {
    let rows_of_spaces = rows::spaces(partition);
    loop {
        let Ok(mut connection) = inner.connection(partition.home()).await else {
            return;
        };
        match delete(&mut connection, partition, &rows_of_spaces).await {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%partition, error = text(&error), "a removed partition still has rows");
                return;
            }
        }
    }
    let entry = rows::removal(partition);
    let end = [&entry[..], &[0]].concat();
    if let Ok(mut connection) = inner.connection(rows::STORE).await {
        let ended = connection
            .execute(Query::DeleteRange, rows::STORE, &[&entry, &end, &ROWS])
            .await;
        if let Err(error) = ended {
            tracing::debug!(%partition, error = text(&error), "a removal is done and not crossed off");
        }
    }
}
