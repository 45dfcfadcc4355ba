//! PostgreSQL for comparison: a server of our own over a new directory, with the same documents as `jsonb` and the indexes that fit the queries.

use bolide_postgres_server::{Database, program};
use futures_util::SinkExt as _;
use tokio_postgres::{Client, NoTls};

use crate::Result;

/// Memory for the data.
const SETTINGS: [&str; 3] = [
    "shared_buffers=2GB",
    "max_parallel_workers_per_gather=0",
    "max_wal_size=8GB",
];
/// Documents of one message while it is filled.
const DOCUMENTS_AT_ONCE: u64 = 200;

const SCHEMA: &str = "
    CREATE TABLE items (doc jsonb NOT NULL);
    SET maintenance_work_mem = '512MB';";
/// The fitting index for each kind of condition.
const INDEXES: &str = "
    CREATE INDEX ON items (((doc->>'number')::bigint));
    CREATE INDEX ON items (((doc->>'created')::bigint));
    CREATE INDEX ON items ((doc->'customer'->>'name') text_pattern_ops);
    CREATE INDEX ON items USING gin ((doc->'words') jsonb_path_ops);
    CREATE INDEX ON items ((doc->>'status'));
    VACUUM ANALYZE items;";

/// A running PostgreSQL; ends when dropped.
pub struct Postgres(Database);

impl Postgres {
    /// Whether PostgreSQL is installed.
    pub fn is_installed() -> bool {
        program("initdb").is_ok_and(|path| path.is_file())
    }

    /// Starts PostgreSQL on a free port, with its default durability and memory for the data.
    pub fn start() -> Result<Postgres> {
        Ok(Postgres(Database::create_durable(&SETTINGS)?))
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// Connects.
    pub async fn connect(&self) -> Result<Client> {
        let (client, connection) = tokio_postgres::connect(&self.0.address(), NoTls).await?;
        // Ends with the client.
        tokio::spawn(connection);
        Ok(client)
    }

    /// Stores documents and builds the indexes.
    pub async fn fill(&self, items: u64, document: impl Fn(u64) -> String) -> Result<()> {
        let client = self.connect().await?;
        client.batch_execute(SCHEMA).await?;
        let mut sink = Box::pin(client.copy_in("COPY items FROM STDIN").await?);
        for first in (0..items).step_by(DOCUMENTS_AT_ONCE as usize) {
            let mut lines = String::new();
            for number in first..items.min(first + DOCUMENTS_AT_ONCE) {
                lines.push_str(&document(number).replace('\\', "\\\\"));
                lines.push('\n');
            }
            sink.send(bytes::Bytes::from(lines)).await?;
        }
        sink.as_mut().finish().await?;
        for statement in INDEXES
            .split_inclusive(';')
            .filter(|statement| !statement.trim().is_empty())
        {
            client.batch_execute(statement).await?;
        }
        Ok(())
    }
}
