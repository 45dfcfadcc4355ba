//! MongoDB's API: inserts, reads, updates and aggregations, compared with FerretDB over SQLite.
//!
//! Both servers make every write durable before they respond, and neither asks for authentication. The documents have 1 KB.
//!
//! ```text
//!   insert      100 documents in one command
//!   find        one document by its _id
//!   update      one field of one document, found by its _id
//!   aggregate   all documents of a large collection, grouped, with a count and a sum
//! ```
//!
//! The session store is measured in [`sessions`].

mod connection;
mod ferretdb;
pub mod sessions;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use bson::{RawDocumentBuf, rawdoc};
use tokio::task::JoinSet;

use self::connection::{MongoClient, MongoConnection, message};
use self::ferretdb::FerretDb;
use crate::Result;
use crate::figures::{median, median_ratio};
use crate::load::{Worker as _, closed_loop};
use crate::server::Server;
use crate::table::Table;

const CONNECTIONS: [usize; 3] = [1, 8, 32];
/// Documents of an insert that is measured.
const INSERTED_TOGETHER: i64 = 100;
/// Documents of an insert that fills a collection.
const FILLED_TOGETHER: i64 = 1_000;
/// Documents that are read and updated.
const ITEMS: i64 = 10_000;
/// Groups of the aggregation.
const GROUPS: i64 = 100;
/// Bytes of a document's padding, so that it has 1 KB.
const PADDING: usize = 965;
/// Collections: of the documents that are read and updated, of those that are aggregated, of those that are inserted.
const READ: &str = "items";
const AGGREGATED: &str = "rows";
const INSERTED: &str = "inserts";
const DATABASE: &str = "bench";

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Rounds; both servers are measured once in each.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds per server, round, operation and number of connections.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Documents that are aggregated.
    #[arg(long, default_value_t = 200_000)]
    documents: i64,
    /// FerretDB's executable; by default it is built with Go.
    #[arg(long, value_name = "PATH")]
    ferretdb: Option<PathBuf>,
    /// A directory for what is built.
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    shared: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Operation {
    Insert,
    Find,
    Update,
    Aggregate,
}

const OPERATIONS: [(Operation, &str); 4] = [
    (Operation::Insert, "insert_many, 100 documents"),
    (Operation::Find, "find by `_id`"),
    (Operation::Update, "update one"),
    (Operation::Aggregate, "aggregate"),
];

/// A measured server.
#[derive(Clone, Copy)]
struct Side {
    address: SocketAddr,
    pid: u32,
}

/// Operations per second of Bolide and of FerretDB, in each round; `None` if FerretDB ended because it needed more memory than it may use.
type Figures = BTreeMap<(Operation, usize), Vec<(f64, Option<f64>)>>;

/// Runs the benchmark.
pub fn run(bolide: &Path, options: &Options) -> Result<String> {
    let executable = ferretdb::find(options.ferretdb.clone(), &options.shared)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(compare(bolide, &executable, options))
}

async fn compare(bolide: &Path, ferretdb: &Path, options: &Options) -> Result<String> {
    let server = Server::start_with_mongo(bolide)?;
    let ours = Side {
        address: server.mongo.ok_or("the server has no port for MongoDB")?,
        pid: server.pid(),
    };
    ours.prepare(options.documents).await?;
    let mut peer = prepared_peer(ferretdb, options.documents).await?;
    // From here on, inserted documents need new ids.
    let mut next_id = 0;
    let mut figures = Figures::new();
    for _ in 0..options.rounds {
        for (operation, _) in OPERATIONS {
            for connections in CONNECTIONS {
                next_id += 2;
                let first_ids = [next_id << 32, (next_id + 1) << 32];
                let own = ours.measure(operation, connections, first_ids[0], options).await?;
                let measured = Side::of(&peer).measure(operation, connections, first_ids[1], options);
                let other = match measured.await {
                    Ok(per_second) => Some(per_second),
                    // It keeps all documents of an aggregation in memory, once for each connection.
                    Err(_) if peer.has_ended() => None,
                    Err(error) => return Err(error),
                };
                if other.is_none() {
                    peer = prepared_peer(ferretdb, options.documents).await?;
                }
                figures.entry((operation, connections)).or_default().push((own, other));
            }
        }
    }
    Ok(render(&figures, options))
}

async fn prepared_peer(executable: &Path, documents: i64) -> Result<FerretDb> {
    let peer = FerretDb::start(executable)?;
    Side::of(&peer).prepare(documents).await?;
    Ok(peer)
}

impl Side {
    fn of(peer: &FerretDb) -> Side {
        Side {
            address: peer.address,
            pid: peer.pid(),
        }
    }

    /// Fills its collections.
    async fn prepare(self, documents: i64) -> Result<()> {
        self.fill(READ, ITEMS).await?;
        self.fill(AGGREGATED, documents).await?;
        self.check(documents).await
    }

    async fn fill(self, collection: &str, documents: i64) -> Result<()> {
        let mut connection = MongoConnection::open(self.address).await?;
        for first in (0..documents).step_by(FILLED_TOGETHER as usize) {
            let ids = first..documents.min(first + FILLED_TOGETHER);
            connection.run(insert(collection, ids)).await?;
        }
        Ok(())
    }

    /// Checks that the aggregation has the same answer on both sides: the one that follows from the documents.
    async fn check(self, documents: i64) -> Result<()> {
        let mut connection = MongoConnection::open(self.address).await?;
        let reply = connection.run(aggregate()).await?;
        let groups = reply.get_document("cursor")?.get_array("firstBatch")?;
        let mut count = 0;
        for group in groups {
            let group = group?.as_document().ok_or("a group that is no document")?;
            count += group
                .get("n")?
                .and_then(|n| n.as_i32())
                .ok_or("a group without a count")?;
        }
        match i64::from(count) == documents {
            true => Ok(()),
            false => Err(format!("{count} of {documents} documents were aggregated").into()),
        }
    }

    /// Returns operations per second.
    async fn measure(self, operation: Operation, connections: usize, first_id: i64, options: &Options) -> Result<f64> {
        let mut clients = Vec::with_capacity(connections);
        for number in 0..connections {
            let mut count = 0;
            let number = i64::try_from(number)?;
            let next = move || {
                count += 1;
                let id = (number * 31 + count) % ITEMS;
                let inserted = first_id + (number << 24) + count * INSERTED_TOGETHER;
                message(&match operation {
                    Operation::Insert => insert(INSERTED, inserted..inserted + INSERTED_TOGETHER),
                    Operation::Find => find(id),
                    Operation::Update => update(id, count),
                    Operation::Aggregate => aggregate(),
                })
            };
            let connection = MongoConnection::open(self.address).await?;
            clients.push(MongoClient { connection, next });
        }
        if operation == Operation::Aggregate {
            return once_each(clients).await;
        }
        let time = Duration::from_secs_f64(options.seconds);
        Ok(closed_loop(clients, time, self.pid).await?.per_second())
    }
}

/// Lets every worker do its operation once, all at the same time. Returns operations per second: these take too long for a closed loop of some seconds.
async fn once_each<F: FnMut() -> Vec<u8> + Send + 'static>(clients: Vec<MongoClient<F>>) -> Result<f64> {
    let count = clients.len() as f64;
    let begin = Instant::now();
    let mut tasks = JoinSet::new();
    for mut client in clients {
        tasks.spawn(async move { client.step().await });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(count / begin.elapsed().as_secs_f64())
}

fn insert(collection: &str, ids: std::ops::Range<i64>) -> RawDocumentBuf {
    let documents: bson::RawArrayBuf = ids.map(document).collect();
    rawdoc! {"insert": collection, "documents": documents, "$db": DATABASE}
}

fn document(id: i64) -> RawDocumentBuf {
    // Made once: the time of the client is no time of the server.
    static PADDED: LazyLock<String> = LazyLock::new(|| "lorem ipsum ".chars().cycle().take(PADDING).collect());
    rawdoc! {"_id": id, "group": id % GROUPS, "visits": 17, "padding": &**PADDED}
}

fn find(id: i64) -> RawDocumentBuf {
    rawdoc! {"find": READ, "filter": {"_id": id}, "limit": 1, "singleBatch": true, "$db": DATABASE}
}

fn update(id: i64, visits: i64) -> RawDocumentBuf {
    let update = rawdoc! {"q": {"_id": id}, "u": {"$set": {"visits": visits}}};
    rawdoc! {"update": READ, "updates": [update], "$db": DATABASE}
}

fn aggregate() -> RawDocumentBuf {
    let group = rawdoc! {"_id": "$group", "n": {"$sum": 1}, "visits": {"$sum": "$visits"}};
    rawdoc! {"aggregate": AGGREGATED, "pipeline": [{"$group": group}], "cursor": {"batchSize": 1_000}, "$db": DATABASE}
}

fn render(figures: &Figures, options: &Options) -> String {
    let mut table = Table::new(["operation", "connections", "Bolide/s", "FerretDB/s", "ratio"]);
    for (operation, name) in OPERATIONS {
        for connections in CONNECTIONS {
            let rounds = &figures[&(operation, connections)];
            let pairs: Vec<(f64, f64)> = rounds
                .iter()
                .filter_map(|(own, other)| other.map(|other| (*own, other)))
                .collect();
            let (other, ratio) = match pairs.is_empty() {
                true => ("out of memory".to_owned(), "–".to_owned()),
                false => (
                    format!("{:.1}", median(pairs.iter().map(|(_, other)| *other))),
                    format!("{:.1}", median_ratio(pairs.iter().copied())),
                ),
            };
            table.row([
                name.to_owned(),
                connections.to_string(),
                format!("{:.1}", median(rounds.iter().map(|(own, _)| *own))),
                other,
                ratio,
            ]);
        }
    }
    format!(
        "## MongoDB's API\n\n{} rounds of {} s each; {} documents are aggregated. FerretDB {} over SQLite.\n\n{table}",
        options.rounds,
        options.seconds,
        options.documents,
        ferretdb::VERSION,
    )
}

#[cfg(test)]
mod tests;
