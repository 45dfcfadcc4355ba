//! Durable creates of 1 KB items, layer by layer: over HTTP, through the core without HTTP, on the engine without the core.
//!
//! In each layer 32 clients, and then a single one, create one item at a time, and the next when it is durable. All three store the same keys and
//! values for an item, on a new store in each round, with one fsync for everything that waits at the same time:
//!
//! ```text
//!   http     keep-alive connections to the server; signed, one container of one range
//!   core     tasks call `Account::create_item` with the document's text; one container of one range
//!   engine   tasks commit single items to `LsmEngine`, each to its own partition, so that none waits for another's head and
//!            only the engine's group commit decides which commits share an fsync
//! ```

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bolide_core::{Account, AccountOptions, Container};
use bolide_model::Lsn;
use bolide_model::container::ContainerProperties;
use bolide_model::time::Clock;
use bolide_storage::{Batch, CommitToken, Engine, Head, Key, Outcome, PartitionId, Put, Space};
use bolide_storage_lsm::{LsmEngine, LsmOptions};
use bytes::{BufMut as _, Bytes, BytesMut};
use serde_json::json;

use crate::connection::Connection;
use crate::cosmos::Requests;
use crate::figures::{Latencies, median, median_ratio, micros, percent};
use crate::load::{Client, Measured, Worker, closed_loop};
use crate::server::{Server, Store};
use crate::table::Table;
use crate::{Result, item};

/// Clients in every layer: many, who share fsyncs, and one, who waits for every fsync.
const CLIENTS: [usize; 2] = [32, 1];

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Rounds; every layer runs once in each.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds a layer is measured per round.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            rounds: 5,
            seconds: 3.0,
        }
    }
}

/// Runs the benchmark.
pub fn run(bolide: &Path, options: &Options) -> Result<String> {
    let time = Duration::from_secs_f64(options.seconds);
    let mut table = Table::new([
        "layer",
        "clients",
        "creates/s",
        "of engine",
        "p50 µs",
        "p99 µs",
        "CPU µs/create",
    ]);
    for clients in CLIENTS {
        let (mut http, mut core, mut engine) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            http.push(over_http(bolide, clients, time)?);
            core.push(through_core(clients, time)?);
            engine.push(on_engine(clients, time)?);
        }
        for (name, rounds) in [("engine", &engine), ("core", &core), ("http", &http)] {
            add_row(&mut table, name, clients, rounds, &engine);
        }
    }
    Ok(format!(
        "## Durable creates\n\n{} rounds of {} s each. An fsync of 32 items appended to a file takes {:.0} µs here \
         (median).\n\n{table}",
        options.rounds,
        options.seconds,
        fsync_micros()?
    ))
}

fn add_row(table: &mut Table, name: &str, clients: usize, rounds: &[Measured], engine: &[Measured]) {
    let pairs = rounds
        .iter()
        .zip(engine)
        .map(|(round, engine)| (round.per_second(), engine.per_second()));
    let of_rounds = |figure: &dyn Fn(&Measured) -> f64| median(rounds.iter().map(figure));
    table.row([
        name.to_owned(),
        clients.to_string(),
        format!("{:.0}", of_rounds(&Measured::per_second)),
        percent(median_ratio(pairs)),
        format!("{:.0}", of_rounds(&|round| micros(round.latencies.percentile(50.0)))),
        format!("{:.0}", of_rounds(&|round| micros(round.latencies.percentile(99.0)))),
        format!("{:.1}", of_rounds(&Measured::cpu_micros)),
    ]);
}

/// The disk's time for one group.
pub fn fsync_micros() -> Result<f64> {
    let dir = tempfile::tempdir()?;
    let mut file = File::create(dir.path().join("appended"))?;
    let group = vec![0x5A; 32 * item::BYTES];
    let mut latencies = Vec::new();
    for _ in 0..200 {
        let started = Instant::now();
        file.write_all(&group)?;
        file.sync_data()?;
        latencies.push(started.elapsed());
    }
    Ok(micros(latencies.into_iter().collect::<Latencies>().percentile(50.0)))
}

/// Lets clients create items over HTTP, one at a time each, in a new store.
pub fn over_http(bolide: &Path, clients: usize, time: Duration) -> Result<Measured> {
    let server = Server::start(bolide, Store::Embedded)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let requests = Arc::new(Requests::to(server.address));
        requests
            .set_up(&mut Connection::open(server.address).await?, None)
            .await?;
        let numbers = Arc::new(AtomicU64::new(0));
        let clients = Client::connect(server.address, clients, 201, |_| {
            let (requests, numbers) = (requests.clone(), numbers.clone());
            move || requests.create(&item::id(numbers.fetch_add(1, Ordering::Relaxed)), None)
        });
        closed_loop(clients.await?, time, server.pid()).await
    })
}

/// As many threads as the server's runtime has.
fn like_the_server() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

fn through_core(clients: usize, time: Duration) -> Result<Measured> {
    let dir = tempfile::tempdir()?;
    let engine = Arc::new(LsmEngine::open(
        dir.path(),
        Arc::new(Clock::System),
        LsmOptions::default(),
    )?);
    like_the_server()?.block_on(async {
        let account = Account::open(engine, AccountOptions::default())
            .await
            .map_err(|error| error.to_string())?;
        let creators = CoreCreator::all(&account, clients)
            .await
            .map_err(|error| error.to_string())?;
        let measured = closed_loop(creators, time, std::process::id()).await;
        account.close().await.map_err(|error| error.to_string())?;
        measured
    })
}

/// A client of the core.
struct CoreCreator {
    account: Arc<Account>,
    container: Arc<Container>,
    numbers: Arc<AtomicU64>,
}

impl CoreCreator {
    async fn all(account: &Arc<Account>, clients: usize) -> bolide_model::Result<Vec<CoreCreator>> {
        let ctx = account.begin().await?;
        let database = account.create_database(&ctx, "bench", None).await?;
        let definition = json!({"id": "items", "partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2}});
        let properties = ContainerProperties::from_json(&definition)?;
        let container = account.create_container(&ctx, database.rid, properties, None).await?;
        let numbers = Arc::new(AtomicU64::new(0));
        let creator = || CoreCreator {
            account: account.clone(),
            container: container.clone(),
            numbers: numbers.clone(),
        };
        Ok(std::iter::repeat_with(creator).take(clients).collect())
    }
}

impl Worker for CoreCreator {
    async fn step(&mut self) -> Result<()> {
        let text = item::document(&item::id(self.numbers.fetch_add(1, Ordering::Relaxed)), None);
        item::create(&self.account, &self.container, &text).await
    }
}

fn on_engine(clients: usize, time: Duration) -> Result<Measured> {
    let dir = tempfile::tempdir()?;
    let engine = Arc::new(LsmEngine::open(
        dir.path(),
        Arc::new(Clock::System),
        LsmOptions::default(),
    )?);
    like_the_server()?.block_on(async {
        let mut committers = Vec::new();
        for number in 0..clients as u64 {
            let partition = PartitionId(1 + number);
            let head = Head::first(engine.time().lo);
            engine.create(partition, head).await?;
            committers.push(Committer {
                engine: engine.clone(),
                partition,
                head,
                is_alone: clients == 1,
            });
        }
        closed_loop(committers, time, std::process::id()).await
    })
}

/// A client of the engine, and the only writer of its partition.
struct Committer {
    engine: Arc<LsmEngine>,
    partition: PartitionId,
    head: Head,
    is_alone: bool,
}

impl Worker for Committer {
    async fn step(&mut self) -> Result<()> {
        let next = self.head.lsn.next();
        let batch = Batch {
            base: self.head.lsn,
            next,
            stamp: self.engine.time().lo.max(self.head.stamp),
            edition: self.head.edition,
            token: CommitToken(u128::from(next.0)),
            puts: puts_of_item(self.partition, next),
            deletes: Vec::new(),
            new_keys: Vec::new(),
            may_block: self.is_alone,
        };
        match self.engine.commit(self.partition, batch).await? {
            Outcome::Done(head) => {
                self.head = head;
                Ok(())
            }
            other => Err(format!("the commit was not done: {other:?}").into()),
        }
    }
}

/// The rows that the core puts for a new item: the record, its id, its change log entry, the partition's counters.
///
/// Agrees with: `keys.rs`, `record.rs` and `partition/state.rs` in bolide-core, in number and length of keys and values.
fn puts_of_item(partition: PartitionId, lsn: Lsn) -> Vec<Put> {
    const RECORD_HEADER: usize = 58;
    const COUNTERS: usize = 81;
    let id = item::id(partition.0 << 32 | lsn.0);
    // Spread over the key space like hashes.
    let epk = (u128::from(lsn.0) * u128::from(partition.0))
        .wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)
        .to_be_bytes();
    let number = lsn.0.to_be_bytes();
    let item_key = [&epk[..], &number].concat();
    let record = [&[1; RECORD_HEADER], id.as_bytes(), item::document(&id, None).as_bytes()].concat();
    let mut log_entry = BytesMut::from(&[0; 13][..]);
    log_entry.put_slice(&item_key);
    vec![
        put(
            Space::Index,
            [b"I", &epk[..], id.as_bytes()].concat(),
            Bytes::copy_from_slice(&number),
        ),
        put(Space::Log, [&number[..], &[0; 4]].concat(), log_entry.freeze()),
        put(Space::Item, item_key, record.into()),
        put(Space::Meta, b"S".to_vec(), vec![1; COUNTERS].into()),
    ]
}

fn put(space: Space, key: Vec<u8>, value: Bytes) -> Put {
    Put {
        key: Key::new(space, key),
        value,
    }
}
