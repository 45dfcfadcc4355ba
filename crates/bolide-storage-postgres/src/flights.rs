//! Flights: what a commit sends at once, and what the server's answers say of it.

use std::collections::HashSet;

use bolide_storage::{Batch, HomeId, Key, PartitionId};
use bytes::Bytes;
use futures_util::future;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Statement};

use crate::connection::{Connection, Parameters};
use crate::error::{Failure, judge};
use crate::rows::{self, CommitRecord};
use crate::statements::Query;

/// So many rows or fewer are deleted with a statement each. The plan of one for several keys may read the whole partition, if it was made when that was small;
/// where many rows are deleted, this is done once for all.
const DELETED_ONE_BY_ONE: usize = 8;

/// How a flight ended.
pub(crate) enum Landed {
    Done,
    /// Nothing was written; the newest record is not the one that was known, or the partition is gone.
    Stale,
    Failed(Failure),
}

/// What a flight carries.
#[derive(Default)]
pub(crate) struct Flight {
    /// The rows that may be there: all but the new ones.
    keys: Vec<Vec<u8>>,
    values: Vec<Bytes>,
    /// The newest records as they are known.
    expected: Vec<(Vec<u8>, [u8; 48])>,
    /// The new ones.
    written: Vec<(Vec<u8>, [u8; 48])>,
    deletes: Vec<Vec<u8>>,
    /// The rows that must not be there.
    pub new_keys: Vec<Vec<u8>>,
    new_values: Vec<Bytes>,
}

impl Flight {
    /// The new records come first: a flight that is late does not lock rows.
    pub(crate) fn of<'b>(
        batches: impl Iterator<Item = (PartitionId, &'b Batch, CommitRecord)> + Clone,
        new_keys: &HashSet<Key>,
    ) -> Flight {
        let mut flight = Flight::default();
        for (partition, batch, known) in batches.clone() {
            let record = CommitRecord::of(batch);
            flight.expected.push((known.key(partition), known.value()));
            flight.written.push((record.key(partition), record.value()));
            flight.keys.push(record.key(partition));
            flight.values.push(Bytes::copy_from_slice(&record.value()));
        }
        for (partition, batch, _) in batches {
            for put in &batch.puts {
                let (keys, values) = match new_keys.contains(&put.key) {
                    true => (&mut flight.new_keys, &mut flight.new_values),
                    false => (&mut flight.keys, &mut flight.values),
                };
                keys.push(rows::key(partition, &put.key));
                values.push(put.value.clone());
            }
            flight
                .deletes
                .extend(batch.deletes.iter().map(|key| rows::key(partition, key)));
        }
        flight
    }

    /// Sends it. `is_begun`: in the transaction that has the lock of the partition.
    pub(crate) async fn send(
        &self,
        connection: &mut Connection,
        home: HomeId,
        is_begun: bool,
    ) -> Result<Landed, Error> {
        let [(expected_key, expected_value), ..] = self.expected.as_slice() else {
            return Ok(Landed::Done);
        };
        let query = self.query(connection.is_on_citus());
        let are_apart = query == Query::CommitNew;
        let mut keys: Vec<&[u8]> = self.keys.iter().map(|key| &key[..]).collect();
        let mut values: Vec<&[u8]> = self.values.iter().map(|value| &value[..]).collect();
        let new_values: Vec<&[u8]> = self.new_values.iter().map(|value| &value[..]).collect();
        if !are_apart {
            keys.extend(self.new_keys.iter().map(|key| &key[..]));
            values.extend(&new_values);
        }
        let (expected_keys, expected_values): (Vec<&[u8]>, Vec<&[u8]>) =
            self.expected.iter().map(|(key, value)| (&key[..], &value[..])).unzip();
        let written_keys: Vec<&[u8]> = self.written.iter().map(|(key, _)| &key[..]).collect();
        let expected_value = &expected_value[..];
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&keys, &values];
        if query == Query::CommitTogether {
            parameters.extend([&expected_keys as &(dyn ToSql + Sync), &expected_values, &written_keys]);
        } else {
            parameters.extend([
                expected_key as &(dyn ToSql + Sync),
                &expected_value,
                &written_keys[0],
                &self.new_keys,
            ]);
        }
        if are_apart {
            parameters.push(&new_values);
        }
        let commit = connection.prepared(query, home).await?;
        let commit = CommitStatement {
            statement: &commit,
            parameters: &parameters,
            rows: keys.len() as u64,
        };
        if self.deletes.is_empty() && !is_begun {
            connection.begin();
            let written = connection.client().execute(commit.statement, commit.parameters).await;
            connection.end();
            return Ok(landed(written, commit.rows));
        }
        self.send_in_transaction(connection, home, commit, is_begun).await
    }

    fn query(&self, is_on_citus: bool) -> Query {
        match (self.expected.len(), self.new_keys.is_empty()) {
            (1, true) => Query::Commit,
            (1, false) if is_on_citus => Query::Commit,
            (1, false) => Query::CommitNew,
            _ => Query::CommitTogether,
        }
    }

    /// Sends it as several statements, and looks at every answer.
    async fn send_in_transaction(
        &self,
        connection: &mut Connection,
        home: HomeId,
        commit: CommitStatement<'_>,
        is_begun: bool,
    ) -> Result<Landed, Error> {
        let (new_key, new_value) = &self.written[0];
        let delete = match self.deletes.len() {
            0 => None,
            count if count <= DELETED_ONE_BY_ONE => Some(connection.prepared(Query::DeleteOne, home).await?),
            _ => Some(connection.prepared(Query::Delete, home).await?),
        };
        let new_value = &new_value[..];
        connection.begin();
        // In one flight: each is sent when it is polled first, in this order.
        let client = connection.client();
        let (begun, written, deleted, ended) = future::join4(
            async {
                match is_begun {
                    true => Ok(()),
                    false => client.batch_execute("begin").await,
                }
            },
            client.execute(commit.statement, commit.parameters),
            async {
                match &delete {
                    Some(delete) if self.deletes.len() <= DELETED_ONE_BY_ONE => {
                        let deletes = self.deletes.iter().map(|key| async move {
                            let one: [&(dyn ToSql + Sync); 3] = [new_key, &new_value, key];
                            client.execute(delete, &one).await
                        });
                        // All are sent before the first is answered.
                        future::join_all(deletes).await.into_iter().sum()
                    }
                    Some(delete) => {
                        let all: [&(dyn ToSql + Sync); 3] = [new_key, &new_value, &self.deletes];
                        client.execute(delete, &all).await
                    }
                    None => Ok(0),
                }
            },
            client.batch_execute("commit"),
        )
        .await;
        connection.end();
        let landed = match begun {
            Ok(()) => landed(written, commit.rows),
            Err(error) => Landed::Failed(judge(&error)),
        };
        // A transaction that failed says that it was committed, and was not.
        Ok(match (landed, deleted, ended) {
            (Landed::Done, Ok(_), Ok(())) => Landed::Done,
            (Landed::Done, Err(error), _) | (Landed::Done, Ok(_), Err(error)) => Landed::Failed(judge(&error)),
            (landed, ..) => landed,
        })
    }
}

/// The statement of a flight.
struct CommitStatement<'s> {
    statement: &'s Statement,
    parameters: Parameters<'s>,
    /// The number of rows that it says to have written if it has.
    rows: u64,
}

fn landed(written: Result<u64, Error>, expected: u64) -> Landed {
    match written {
        Ok(rows) if rows == expected => Landed::Done,
        Ok(0) => Landed::Stale,
        Ok(rows) => Landed::Failed(Failure::Unknown(format!(
            "a part of a commit was written. rows={rows} expected={expected}"
        ))),
        Err(error) => match judge(&error) {
            Failure::Conflict => Landed::Stale,
            failure => Landed::Failed(failure),
        },
    }
}
