//! Queries through indexes, over the sockets of Bolide and of PostgreSQL with the same documents and the fitting indexes.
//!
//! Each client asks one query after another, each with other values as parameters. PostgreSQL's are prepared; Bolide's have a signature, which clients make once for all.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bolide_core::{Account, AccountOptions};
use bolide_model::container::ContainerProperties;
use bolide_model::time::Clock;
use bolide_storage_lsm::{Durability, LsmEngine, LsmOptions};
use memchr::memmem;
use serde_json::{Value, json};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};

use super::data::FIRST_CREATED;
use super::growth::{document, warm_ups};
use super::postgres::Postgres;
use super::store::runtime;
use crate::connection::Connection;
use crate::cosmos::{Queries, Requests};
use crate::figures::{median, median_ratio, micros};
use crate::load::{Measured, Worker, closed_loop};
use crate::server::Server;
use crate::table::Table;
use crate::{Result, item};

const PATHS: [&str; 5] = [
    "/number/?",
    "/created/?",
    "/customer/name/?",
    "/words/[]/?",
    "/status/?",
];

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Items.
    #[arg(long, default_value_t = 1_000_000)]
    items: u64,
    /// Rounds; each side answers each query in each of them.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Connections.
    #[arg(long, default_value_t = 8)]
    connections: usize,
    /// Only the queries whose names contain this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// One query in both languages.
struct Question {
    name: &'static str,
    sql: &'static str,
    postgres: &'static str,
    parameters: Parameters,
}

/// The parameters of a query.
#[derive(Clone, Copy)]
enum Parameters {
    None,
    /// The number of an item.
    Number,
    /// Its time.
    From,
    /// Its time, and that of 100 items later.
    FromTo,
    /// The beginning of a name; for PostgreSQL also the end of all names that begin with it.
    Prefix,
    Word,
}

/// The values that a query may get.
struct Values {
    number: i64,
    from: i64,
    until: i64,
    prefix: String,
    prefix_end: String,
    word: String,
}

impl Values {
    /// Those of an item.
    fn of(number: u64) -> Values {
        let number = number.cast_signed();
        let from = FIRST_CREATED.cast_signed() + number;
        Values {
            number,
            from,
            until: from + 100,
            prefix: format!("Customer {number} "),
            prefix_end: format!("Customer {number}!"),
            word: format!("word {number}"),
        }
    }

    fn of_bolide(&self, parameters: Parameters) -> Value {
        let parameter = |name: &str, value: Value| json!({"name": name, "value": value});
        match parameters {
            Parameters::None => json!([]),
            Parameters::Number => json!([parameter("@n", self.number.into())]),
            Parameters::From => json!([parameter("@from", self.from.into())]),
            Parameters::FromTo => json!([
                parameter("@from", self.from.into()),
                parameter("@to", self.until.into())
            ]),
            Parameters::Prefix => json!([parameter("@prefix", self.prefix.as_str().into())]),
            Parameters::Word => json!([parameter("@word", self.word.as_str().into())]),
        }
    }

    fn of_postgres(&self, parameters: Parameters) -> Vec<&(dyn ToSql + Sync)> {
        match parameters {
            Parameters::None => vec![],
            Parameters::Number => vec![&self.number],
            Parameters::From => vec![&self.from],
            Parameters::FromTo => vec![&self.from, &self.until],
            Parameters::Prefix => vec![&self.prefix, &self.prefix_end],
            Parameters::Word => vec![&self.word],
        }
    }
}

const QUESTIONS: [Question; 10] = [
    Question {
        name: "equality, one match",
        sql: "SELECT * FROM c WHERE c.number = @n",
        postgres: "SELECT doc::text FROM items WHERE (doc->>'number')::bigint = $1",
        parameters: Parameters::Number,
    },
    Question {
        name: "range of 100",
        sql: "SELECT VALUE c.id FROM c WHERE c.created >= @from AND c.created < @to",
        postgres: "SELECT doc->>'id' FROM items WHERE (doc->>'created')::bigint >= $1 AND (doc->>'created')::bigint < $2",
        parameters: Parameters::FromTo,
    },
    Question {
        name: "ORDER BY, TOP 20",
        sql: "SELECT TOP 20 c.id, c.created FROM c WHERE c.created >= @from ORDER BY c.created",
        postgres: "SELECT doc->>'id', doc->>'created' FROM items WHERE (doc->>'created')::bigint >= $1 \
                   ORDER BY (doc->>'created')::bigint LIMIT 20",
        parameters: Parameters::From,
    },
    Question {
        name: "STARTSWITH, one match",
        sql: "SELECT VALUE c.id FROM c WHERE STARTSWITH(c.customer.name, @prefix)",
        postgres: "SELECT doc->>'id' FROM items WHERE doc->'customer'->>'name' ~>=~ $1 AND doc->'customer'->>'name' ~<~ $2",
        parameters: Parameters::Prefix,
    },
    Question {
        name: "ARRAY_CONTAINS, one match",
        sql: "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.words, @word)",
        postgres: "SELECT doc->>'id' FROM items WHERE doc->'words' @> jsonb_build_array($1::text)",
        parameters: Parameters::Word,
    },
    Question {
        name: "COUNT of a range of 100",
        sql: "SELECT VALUE COUNT(1) FROM c WHERE c.created >= @from AND c.created < @to",
        postgres: "SELECT count(*) FROM items WHERE (doc->>'created')::bigint >= $1 AND (doc->>'created')::bigint < $2",
        parameters: Parameters::FromTo,
    },
    Question {
        name: "COUNT of a sixth",
        sql: "SELECT VALUE COUNT(1) FROM c WHERE c.status = 'paid'",
        postgres: "SELECT count(*) FROM items WHERE doc->>'status' = 'paid'",
        parameters: Parameters::None,
    },
    Question {
        name: "COUNT of all",
        sql: "SELECT VALUE COUNT(1) FROM c",
        postgres: "SELECT count(*) FROM items",
        parameters: Parameters::None,
    },
    Question {
        name: "GROUP BY, six groups",
        sql: "SELECT c.status, COUNT(1) AS n FROM c GROUP BY c.status",
        postgres: "SELECT doc->>'status', count(*) FROM items GROUP BY 1",
        parameters: Parameters::None,
    },
    Question {
        name: "OFFSET 10,000 LIMIT 10",
        sql: "SELECT c.id FROM c ORDER BY c.created OFFSET 10000 LIMIT 10",
        postgres: "SELECT doc->>'id' FROM items ORDER BY (doc->>'created')::bigint OFFSET 10000 LIMIT 10",
        parameters: Parameters::None,
    },
];

/// Runs the benchmark.
pub fn run(bolide: &Path, options: &Options) -> Result<String> {
    let dir = tempfile::tempdir()?;
    // On a runtime of its own, which ends the store's tasks.
    runtime()?.block_on(fill(dir.path(), options.items, &PATHS))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let server = Server::start_on(bolide, dir.path())?;
        let postgres = match Postgres::is_installed() {
            true => {
                let postgres = Postgres::start()?;
                postgres.fill(options.items, document).await?;
                Some(postgres)
            }
            false => None,
        };
        measure_all(&server, postgres.as_ref(), options).await
    })
}

async fn measure_all(server: &Server, postgres: Option<&Postgres>, options: &Options) -> Result<String> {
    let mut table = Table::new([
        "query",
        "Bolide /s",
        "p99 µs",
        "PostgreSQL /s",
        "p99 µs",
        "Bolide of PostgreSQL",
    ]);
    let only = options.only.as_deref().unwrap_or_default();
    let (queries, mut connection) = (
        Requests::to(server.address).queries(),
        Connection::open(server.address).await?,
    );
    for query in warm_ups(options.items) {
        connection
            .expect(200, &queries.request(&json!({ "query": query })))
            .await?;
    }
    drop(connection);
    for question in QUESTIONS.iter().filter(|question| question.name.contains(only)) {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            ours.push(measure_bolide(server, question, options).await?);
            if let Some(postgres) = postgres {
                theirs.push(measure_postgres(postgres, question, options).await?);
            }
        }
        let per_second = |rounds: &[Measured]| median(rounds.iter().map(Measured::per_second));
        let p99 = |rounds: &[Measured]| median(rounds.iter().map(|round| micros(round.latencies.percentile(99.0))));
        let pairs = ours.iter().zip(&theirs);
        let ratio = median_ratio(pairs.map(|(ours, theirs)| (ours.per_second(), theirs.per_second())));
        table.row([
            question.name.to_owned(),
            format!("{:.0}", per_second(&ours)),
            format!("{:.0}", p99(&ours)),
            format!("{:.0}", per_second(&theirs)),
            format!("{:.0}", p99(&theirs)),
            format!("{ratio:.2}"),
        ]);
    }
    Ok(format!(
        "## Queries through indexes, beside PostgreSQL\n\n{} documents of 1 KB, {} connections, {} rounds of {} s each.\n\n{table}",
        options.items, options.connections, options.rounds, options.seconds
    ))
}

async fn measure_bolide(server: &Server, question: &'static Question, options: &Options) -> Result<Measured> {
    let queries = Arc::new(Requests::to(server.address).queries());
    let mut workers = Vec::new();
    for number in 0..options.connections {
        workers.push(Asker {
            connection: Connection::open(server.address).await?,
            queries: queries.clone(),
            question,
            random: fastrand::Rng::with_seed(number as u64),
            items: options.items,
        });
    }
    closed_loop(workers, Duration::from_secs_f64(options.seconds), server.pid()).await
}

async fn measure_postgres(postgres: &Postgres, question: &'static Question, options: &Options) -> Result<Measured> {
    let mut workers = Vec::new();
    for number in 0..options.connections {
        let client = postgres.connect().await?;
        workers.push(PostgresAsker {
            statement: client.prepare(question.postgres).await?,
            client,
            parameters: question.parameters,
            random: fastrand::Rng::with_seed(number as u64),
            items: options.items,
        });
    }
    closed_loop(workers, Duration::from_secs_f64(options.seconds), postgres.pid()).await
}

/// A client of Bolide.
struct Asker {
    connection: Connection,
    queries: Arc<Queries>,
    question: &'static Question,
    random: fastrand::Rng,
    items: u64,
}

impl Worker for Asker {
    async fn step(&mut self) -> Result<()> {
        let values = Values::of(self.random.u64(..self.items - 100));
        let query = json!({
            "query": self.question.sql,
            "parameters": values.of_bolide(self.question.parameters),
        });
        let response = self.connection.expect(200, &self.queries.request(&query)).await?;
        match memmem::find(response.body, b"\"_count\":0}") {
            Some(_) => Err(format!("no rows: {query}").into()),
            None => Ok(()),
        }
    }
}

/// A client of PostgreSQL.
struct PostgresAsker {
    client: Client,
    statement: Statement,
    parameters: Parameters,
    random: fastrand::Rng,
    items: u64,
}

impl Worker for PostgresAsker {
    async fn step(&mut self) -> Result<()> {
        let values = Values::of(self.random.u64(..self.items - 100));
        let parameters = values.of_postgres(self.parameters);
        match self.client.query(&self.statement, &parameters).await?.is_empty() {
            true => Err("PostgreSQL has no rows".into()),
            false => Ok(()),
        }
    }
}

/// Stores the documents in a directory, in a container with indexes on the paths.
pub async fn fill(dir: &Path, items: u64, paths: &[&str]) -> Result<()> {
    let options = LsmOptions {
        durability: Durability::Buffered,
        ..LsmOptions::default()
    };
    let engine = Arc::new(LsmEngine::open(dir, Arc::new(Clock::System), options)?);
    let account = Account::open(engine, AccountOptions::default()).await.map_err(text)?;
    let ctx = account.begin().await.map_err(text)?;
    let database = account.create_database(&ctx, "bench", None).await.map_err(text)?;
    let paths: Vec<_> = paths.iter().chain(&["/*"]).map(|path| json!({"path": path})).collect();
    let definition = json!({
        "id": "items", "partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2},
        "indexingPolicy": {"includedPaths": paths},
    });
    let properties = ContainerProperties::from_json(&definition).map_err(text)?;
    let container = account.create_container(&ctx, database.rid, properties, None).await;
    let container = container.map_err(text)?;
    item::create_all(&account, &container, items, document).await?;
    account.close().await.map_err(text)?;
    Ok(())
}

fn text(error: bolide_model::Error) -> String {
    error.to_string()
}
