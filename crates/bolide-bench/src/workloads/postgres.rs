//! PostgreSQL: documents as `jsonb`, with their key, time and deadline in columns; prepared statements; its default durability.
//!
//! It has no TTL, so a row has a deadline, with an index to delete by, and every read leaves out what has expired.

use tokio_postgres::{Client as Connection, Statement};

use super::document::{at, document, id, partition};
use super::plan::{Operation, Workload};
use super::system::{Client, System};
use crate::Result;
use crate::query::postgres::Postgres;

const TABLE: &str = "
    CREATE TABLE items (pk text, id text, at bigint NOT NULL, expires timestamptz, doc jsonb NOT NULL, PRIMARY KEY (pk, id))";
const TIME_INDEX: &str = "CREATE INDEX ON items (pk, at)";
const DEADLINE_INDEX: &str = "CREATE INDEX ON items (expires)";

const READ: &str = "SELECT doc::text FROM items WHERE pk = $1 AND id = $2 AND (expires IS NULL OR expires > now())";
const INSERT: &str = "
    INSERT INTO items VALUES ($1, $2, $3, now() + $4::bigint * interval '1 second', $5::text::jsonb)";
const UPDATE: &str = "
    UPDATE items SET at = $3, expires = now() + $4::bigint * interval '1 second', doc = $5::text::jsonb
    WHERE pk = $1 AND id = $2 AND (expires IS NULL OR expires > now())";
const UPSERT: &str = "
    INSERT INTO items VALUES ($1, $2, $3, now() + $4::bigint * interval '1 second', $5::text::jsonb)
    ON CONFLICT (pk, id) DO UPDATE SET at = excluded.at, expires = excluded.expires, doc = excluded.doc";
const SCAN: &str = "
    SELECT doc::text FROM items WHERE pk = $1 AND id >= $2 AND (expires IS NULL OR expires > now()) ORDER BY id LIMIT $3";
const RANGE: &str = "
    SELECT doc::text FROM items WHERE pk = $1 AND at >= $2 AND at < $3 AND (expires IS NULL OR expires > now())";

impl System for Postgres {
    type Client = PostgresClient;

    async fn set_up(&self, workload: &Workload) -> Result<()> {
        let connection = self.connect().await?;
        connection.batch_execute(TABLE).await?;
        if workload.reads_ranges() {
            connection.batch_execute(TIME_INDEX).await?;
        }
        if workload.ttl.is_some() {
            connection.batch_execute(DEADLINE_INDEX).await?;
        }
        Ok(())
    }

    async fn connect(&self, workload: &Workload) -> Result<PostgresClient> {
        let connection = Postgres::connect(self).await?;
        Ok(PostgresClient {
            read: connection.prepare(READ).await?,
            insert: connection.prepare(INSERT).await?,
            update: connection.prepare(UPDATE).await?,
            upsert: connection.prepare(UPSERT).await?,
            scan: connection.prepare(SCAN).await?,
            range: connection.prepare(RANGE).await?,
            ttl: workload.ttl,
            connection,
        })
    }

    fn pid(&self) -> u32 {
        Postgres::pid(self)
    }
}

/// A connection with its prepared statements.
pub struct PostgresClient {
    connection: Connection,
    read: Statement,
    insert: Statement,
    update: Statement,
    upsert: Statement,
    scan: Statement,
    range: Statement,
    ttl: Option<i32>,
}

impl PostgresClient {
    async fn read(&self, key: u64) -> Result<u64> {
        let rows = self.connection.query(&self.read, &[&partition(key), &id(key)]).await?;
        Ok(rows.len() as u64)
    }

    async fn write(&self, statement: &Statement, key: u64, version: u64) -> Result<u64> {
        let (at, ttl) = (at(key).cast_signed(), self.ttl.map(i64::from));
        let document = document(key, version, self.ttl);
        let written = self
            .connection
            .execute(statement, &[&partition(key), &id(key), &at, &ttl, &document])
            .await?;
        match written {
            1 => Ok(0),
            rows => Err(format!("{rows} rows were written").into()),
        }
    }
}

impl Client for PostgresClient {
    async fn perform(&mut self, operation: &Operation) -> Result<u64> {
        match *operation {
            Operation::Read { key } => self.read(key).await,
            Operation::Insert { key } => self.write(&self.insert, key, 0).await,
            Operation::Update { key, version } => self.write(&self.update, key, version).await,
            Operation::Upsert { key, version } => self.write(&self.upsert, key, version).await,
            Operation::ReadModifyWrite { key, version } => {
                let documents = self.read(key).await?;
                self.write(&self.update, key, version).await?;
                Ok(documents)
            }
            Operation::Scan { from, items } => {
                let parameters = (partition(from), id(from), items.cast_signed());
                let rows = self
                    .connection
                    .query(&self.scan, &[&parameters.0, &parameters.1, &parameters.2])
                    .await?;
                Ok(rows.len() as u64)
            }
            Operation::Range { from, items } => {
                let (first, end) = (at(from).cast_signed(), at(from + items).cast_signed());
                let rows = self
                    .connection
                    .query(&self.range, &[&partition(from), &first, &end])
                    .await?;
                Ok(rows.len() as u64)
            }
        }
    }
}
