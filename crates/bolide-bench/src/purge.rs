//! Latencies of point reads and creates at a modest fixed rate, before and while 100,000 expired items are purged.
//!
//! One container on the embedded engine, with every write durable before its response, and without a throughput that would slow down the purge:
//!
//!   1. 100,000 items without their own ttl are created, then one more, the last in the purge queue; and items with `ttl` -1 to be read.
//!   2. Half of the requests read, half create items with `ttl` -1. Latencies count from the intended start of a request.
//!   3. After some seconds the container's default ttl is set to 1 s: all items of step 1 are due at once.
//!   4. The purge is finished when the last item of the queue is not stored any more, live or not.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::Result;
use crate::connection::Connection;
use crate::cosmos::Requests;
use crate::figures::{Latencies, median, median_ratio, micros};
use crate::item;
use crate::load::{OpenLoop, Planned, Sample};
use crate::server::{Server, Store};
use crate::table::Table;

/// Connections that create the items to be purged.
const FILLING: usize = 64;
/// Connections that requests at a fixed rate may use at the same time.
const FOREGROUND: usize = 64;
/// Items that are read in turn.
const READ_ITEMS: u64 = 1_000;
/// Timeout of a purge.
const TIMEOUT: Duration = Duration::from_secs(1200);
/// Pause after filling the store, and for each item: its tables are being merged.
const REST: Duration = Duration::from_secs(3);
const REST_PER_ITEM: Duration = Duration::from_micros(30);
const WARM_UP: Duration = Duration::from_secs(1);
pub const POLL: Duration = Duration::from_millis(50);
/// An item that never expires, whatever the container's default is.
const NEVER: Option<i32> = Some(-1);

/// The indexed path of [`Options::check`].
const CHECKED_PATH: &str = "/id/?";

// Ids begin at different numbers, so that none is used twice.
const READ_IDS: u64 = 1 << 33;
const CREATED_IDS: u64 = 1 << 34;

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Rounds, each on a new store.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Items to purge.
    #[arg(long, default_value_t = 100_000)]
    items: u64,
    /// Requests per second, half of them reads and half of them creates.
    #[arg(long, default_value_t = 500)]
    rate: u32,
    /// Seconds measured before the purge.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Meanwhile ask again and again, through an index on the ids, whether an item that has expired shows. Latencies include those queries then.
    #[arg(long)]
    check: bool,
    /// Write every request of the last round to a file, to look for stalls: kind, milliseconds from the change of the default, microseconds to the response.
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            rounds: 3,
            items: 100_000,
            rate: 500,
            seconds: 10.0,
            check: false,
            samples: None,
        }
    }
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    Create,
}

/// The result of a round: all requests, and when what they are measured beside began and ended.
pub struct Round {
    pub samples: Vec<Sample<Kind>>,
    pub counted_from: Instant,
    pub began: Instant,
    pub ended: Instant,
    /// Number of queries that looked for items that have expired, and found none.
    pub checks: u64,
}

impl Round {
    fn before(&self, kind: Kind) -> Latencies {
        self.between(kind, self.counted_from, self.began)
    }

    fn during(&self, kind: Kind) -> Latencies {
        self.between(kind, self.began, self.ended)
    }

    fn between(&self, kind: Kind, from: Instant, to: Instant) -> Latencies {
        let inside = self
            .samples
            .iter()
            .filter(|sample| sample.kind == kind && (from..to).contains(&sample.intended));
        inside.map(|sample| sample.latency).collect()
    }

    /// The samples as lines of comma-separated values.
    fn to_csv(&self) -> String {
        let mut text = String::from("kind,ms,us\n");
        for Sample {
            kind,
            intended,
            latency,
            ..
        } in &self.samples
        {
            let since = intended.saturating_duration_since(self.began).as_secs_f64();
            let until = self.began.saturating_duration_since(*intended).as_secs_f64();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{kind:?},{:.0},{:.0}", (since - until) * 1e3, micros(*latency));
        }
        text
    }

    fn purge_seconds(&self) -> f64 {
        (self.ended - self.began).as_secs_f64()
    }
}

/// Runs the benchmark.
pub fn run(bolide: &Path, options: &Options) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut rounds = Vec::new();
    for _ in 0..options.rounds {
        let server = Server::start(bolide, Store::Embedded)?;
        rounds.push(runtime.block_on(measure(&server, options))?);
    }
    if let (Some(path), Some(round)) = (&options.samples, rounds.last()) {
        std::fs::write(path, round.to_csv())?;
    }
    let table = latencies(&rounds);
    let seconds = median(rounds.iter().map(Round::purge_seconds));
    let checks = match options.check {
        true => format!(
            " {} queries looked for expired items and found none.",
            rounds.iter().map(|round| round.checks).sum::<u64>()
        ),
        false => String::new(),
    };
    Ok(format!(
        "## Latency under the purge\n\n{} rounds, {} requests/s, {} s before each purge. {} items were purged in {seconds:.1} s, \
         {:.0} per second (median).{checks}\n\n{table}",
        options.rounds,
        options.rate,
        options.seconds,
        options.items,
        options.items as f64 / seconds,
    ))
}

/// Returns the latencies before and during, for each operation.
pub fn latencies(rounds: &[Round]) -> Table {
    let mut table = Table::new([
        "operation",
        "p50 before µs",
        "p50 during µs",
        "p99 before µs",
        "p99 during µs",
        "p99 ratio",
    ]);
    for (name, kind) in [("point read", Kind::Read), ("create", Kind::Create)] {
        let percentile = |percent, latencies: fn(&Round, Kind) -> Latencies| {
            format!(
                "{:.0}",
                median(
                    rounds
                        .iter()
                        .map(|round| micros(latencies(round, kind).percentile(percent)))
                )
            )
        };
        let p99 = |latencies: Latencies| micros(latencies.percentile(99.0));
        let pairs = rounds
            .iter()
            .map(|round| (p99(round.during(kind)), p99(round.before(kind))));
        table.row([
            name.to_owned(),
            percentile(50.0, Round::before),
            percentile(50.0, Round::during),
            percentile(99.0, Round::before),
            percentile(99.0, Round::during),
            format!("{:.2}", median_ratio(pairs)),
        ]);
    }
    table
}

async fn measure(server: &Server, options: &Options) -> Result<Round> {
    let requests = Arc::new(Requests::to(server.address));
    let mut control = Connection::open(server.address).await?;
    // TTL is on, but by default nothing expires.
    requests.set_up(&mut control, NEVER).await?;
    if options.check {
        control
            .expect(200, &requests.set_ttl_and_index(-1, CHECKED_PATH))
            .await?;
    }
    fill(server, &requests, options.items).await?;
    // No other request is in progress, so this one is last in the log.
    let last = item::id(options.items);
    control.expect(201, &requests.create(&last, None)).await?;
    create_read_items(&mut control, &requests).await?;
    let items = u32::try_from(options.items).unwrap_or(u32::MAX);
    tokio::time::sleep(REST + REST_PER_ITEM * items).await;

    let (load, counted_from) = start_load(server, &requests, (options.rate, options.seconds)).await;
    let began = Instant::now();
    let checker = match options.check {
        true => {
            control
                .expect(200, &requests.set_ttl_and_index(1, CHECKED_PATH))
                .await?;
            Some(Checker::start(server, &requests, &last).await?)
        }
        false => {
            control.expect(200, &requests.set_default_ttl(1)).await?;
            None
        }
    };
    while requests.is_stored(&mut control, &last).await? {
        if began.elapsed() > TIMEOUT {
            return Err("the purge did not end".into());
        }
        tokio::time::sleep(POLL).await;
    }
    let ended = Instant::now();
    Ok(Round {
        samples: load.finish().await?,
        counted_from,
        began,
        ended,
        checks: match checker {
            Some(checker) => checker.finish().await?,
            None => 0,
        },
    })
}

/// Starts the requests at a rate, and waits for so many seconds; returns when these began.
pub async fn start_load(
    server: &Server,
    requests: &Arc<Requests>,
    (rate, seconds): (u32, f64),
) -> (OpenLoop<Kind>, Instant) {
    let plan_requests = requests.clone();
    let load = OpenLoop::start(server.address, rate, FOREGROUND, move |number| {
        plan(&plan_requests, number)
    });
    tokio::time::sleep(WARM_UP).await;
    let counted_from = Instant::now();
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    (load, counted_from)
}

/// Asks again and again whether an item that has expired shows.
struct Checker {
    is_over: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<Result<u64>>,
}

impl Checker {
    async fn start(server: &Server, requests: &Requests, last: &str) -> Result<Checker> {
        let is_over = Arc::new(AtomicBool::new(false));
        let connection = Connection::open(server.address).await?;
        // The ids of items that never expire are greater than all others.
        let first_live = item::id(READ_IDS);
        let questions = [
            (
                format!("SELECT VALUE c.id FROM c WHERE c.id <= '{last}'"),
                "[]".to_owned(),
            ),
            (
                format!("SELECT VALUE COUNT(1) FROM c WHERE c.id <= '{last}'"),
                "[0]".to_owned(),
            ),
            (
                "SELECT TOP 1 VALUE c.id FROM c ORDER BY c.id".to_owned(),
                format!("[\"{first_live}\"]"),
            ),
            (
                "SELECT VALUE MIN(c.id) FROM c".to_owned(),
                format!("[\"{first_live}\"]"),
            ),
        ];
        let questions =
            questions.map(|(text, expected)| (requests.query(&text), format!("\"Documents\":{expected}"), text));
        let task = tokio::spawn(check(connection, questions.to_vec(), is_over.clone()));
        Ok(Checker { is_over, task })
    }

    /// Returns the number of queries.
    async fn finish(self) -> Result<u64> {
        self.is_over.store(true, Ordering::Relaxed);
        self.task.await?
    }
}

async fn check(
    mut connection: Connection,
    questions: Vec<(Vec<u8>, String, String)>,
    is_over: Arc<AtomicBool>,
) -> Result<u64> {
    let mut checks = 0;
    while !is_over.load(Ordering::Relaxed) {
        for (request, expected, text) in &questions {
            let response = connection.expect(200, request).await?;
            let body = String::from_utf8_lossy(response.body);
            // A page that took long ends early, with a continuation.
            if !body.contains(expected) && !body.contains("\"_count\":0") {
                return Err(format!("{text}: {}", body.chars().take(300).collect::<String>()).into());
            }
            checks += 1;
        }
    }
    Ok(checks)
}

/// Creates the items that [`plan`] reads.
pub async fn create_read_items(control: &mut Connection, requests: &Requests) -> Result<()> {
    for number in 0..READ_ITEMS {
        let create = requests.create(&item::id(READ_IDS + number), NEVER);
        control.expect(201, &create).await?;
    }
    Ok(())
}

/// Creates items that expire by the container's default.
async fn fill(server: &Server, requests: &Arc<Requests>, items: u64) -> Result<()> {
    let numbers = Arc::new(AtomicU64::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..FILLING {
        let mut connection = Connection::open(server.address).await?;
        let (requests, numbers) = (requests.clone(), numbers.clone());
        tasks.spawn(async move {
            loop {
                let number = numbers.fetch_add(1, Ordering::Relaxed);
                if number >= items {
                    return Result::Ok(());
                }
                connection
                    .expect(201, &requests.create(&item::id(number), None))
                    .await?;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

/// The `number`-th request: reads and creates in turn.
fn plan(requests: &Requests, number: u64) -> Planned<Kind> {
    if number.is_multiple_of(2) {
        let id = item::id(READ_IDS + number / 2 * 31 % READ_ITEMS);
        return Planned {
            kind: Kind::Read,
            request: requests.read(&id),
            expected: 200,
        };
    }
    let id = item::id(CREATED_IDS + number);
    Planned {
        kind: Kind::Create,
        request: requests.create(&id, NEVER),
        expected: 201,
    }
}
