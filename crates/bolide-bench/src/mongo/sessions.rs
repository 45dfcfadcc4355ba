//! A session store: the latency of inserts, touches and reads at a fixed rate, before and while 100,000 sessions expire.
//!
//! One collection on the embedded engine with a TTL index on `expireAt`, and every write durable before its response:
//!
//!   1. Sessions that all end at one instant are inserted, and some that end much later, to be read and touched.
//!   2. A quarter of the requests inserts sessions, a quarter touches one (sets its end), half read one by its `_id`. Latencies count from the
//!      intended start of a request.
//!   3. At the instant, the sessions of step 1 end. The purge is finished when the server has counted all of them as deleted.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bolide_model::time::wall_clock;
use bson::{DateTime, RawDocument, RawDocumentBuf, rawdoc};

use super::DATABASE;
use super::connection::{MongoConnection, OK, message};
use crate::Result;
use crate::figures::{Latencies, median, median_ratio, micros};
use crate::load::{OpenLoop, Planned, Sample};
use crate::server::Server;
use crate::table::Table;

const COLLECTION: &str = "sessions";
/// Connections that requests may use at the same time.
const CONNECTIONS: usize = 64;
/// Sessions that are read and touched in turn.
const LIVE: i64 = 1_000;
const FILLED_TOGETHER: i64 = 1_000;
/// Time from the fill to the begin of the load.
const REST: Duration = Duration::from_secs(3);
const WARM_UP: Duration = Duration::from_secs(1);
/// Time for the fill: sessions that end at the instant are inserted before it.
const FILL: Duration = Duration::from_secs(30);
/// Timeout of the purge.
const TIMEOUT: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(250);
/// How long other sessions live.
const LATER: Duration = Duration::from_secs(86_400);

// Ids begin at different numbers, so that none is used twice.
const LIVE_IDS: i64 = 1 << 33;
const INSERTED_IDS: i64 = 1 << 34;

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Rounds, each on a new store.
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Sessions that end at one instant.
    #[arg(long, default_value_t = 100_000)]
    sessions: i64,
    /// Requests per second.
    #[arg(long, default_value_t = 500)]
    rate: u32,
    /// Seconds measured before the sessions end: long enough that the store writes tables to the disk in this period too.
    #[arg(long, default_value_t = 200.0)]
    seconds: f64,
    /// A file for the latency of each request of the last round: seconds from the instant, operation and microseconds, separated by commas.
    #[arg(long)]
    samples: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Insert,
    Touch,
    Read,
}

const KINDS: [(Kind, &str); 3] = [(Kind::Insert, "insert"), (Kind::Touch, "touch"), (Kind::Read, "read")];

/// The result of a round.
struct Round {
    samples: Vec<Sample<Kind>>,
    counted_from: Instant,
    end_at: Instant,
    purged_at: Instant,
}

impl Round {
    fn before(&self, kind: Option<Kind>) -> Latencies {
        self.between(kind, self.counted_from, self.end_at)
    }

    fn during(&self, kind: Option<Kind>) -> Latencies {
        self.between(kind, self.end_at, self.purged_at)
    }

    /// The latencies of one kind, or of all requests.
    fn between(&self, kind: Option<Kind>, from: Instant, to: Instant) -> Latencies {
        let inside = self
            .samples
            .iter()
            .filter(|sample| kind.is_none_or(|kind| sample.kind == kind) && (from..to).contains(&sample.intended));
        inside.map(|sample| sample.latency).collect()
    }
}

/// Runs the benchmark.
pub fn run(bolide: &Path, options: &Options) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut rounds = Vec::new();
    for _ in 0..options.rounds {
        let server = Server::start_with_mongo(bolide)?;
        let address = server.mongo.ok_or("the server has no port for MongoDB")?;
        rounds.push(runtime.block_on(measure(address, options))?);
    }
    if let (Some(path), Some(round)) = (&options.samples, rounds.last()) {
        std::fs::write(path, lines(round))?;
    }
    let mut table = Table::new([
        "operation",
        "p50 before µs",
        "p50 during µs",
        "p99 before µs",
        "p99 during µs",
        "p99 ratio",
    ]);
    let kinds = KINDS.map(|(kind, name)| (Some(kind), name));
    for (kind, name) in kinds.into_iter().chain([(None, "all")]) {
        let percentile = |percent, latencies: fn(&Round, Option<Kind>) -> Latencies| {
            let each = rounds
                .iter()
                .map(|round| micros(latencies(round, kind).percentile(percent)));
            format!("{:.0}", median(each))
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
    let seconds = median(
        rounds
            .iter()
            .map(|round| (round.purged_at - round.end_at).as_secs_f64()),
    );
    Ok(format!(
        "## A session store while sessions expire\n\n{} rounds, {} requests/s, {} s before {} sessions end at one instant; they were purged in \
         {seconds:.1} s (median).\n\n{table}",
        options.rounds, options.rate, options.seconds, options.sessions,
    ))
}

/// The samples of a round as lines of text.
fn lines(round: &Round) -> String {
    let mut text = String::from("seconds,operation,microseconds\n");
    for sample in &round.samples {
        let before = round.end_at.saturating_duration_since(sample.intended).as_secs_f64();
        let since = sample.intended.saturating_duration_since(round.end_at).as_secs_f64();
        let name = KINDS
            .iter()
            .find(|(kind, _)| *kind == sample.kind)
            .map_or("", |(_, name)| name);
        // A string takes all writes.
        let _ = writeln!(text, "{:.3},{name},{:.0}", since - before, micros(sample.latency));
    }
    text
}

async fn measure(address: SocketAddr, options: &Options) -> Result<Round> {
    let mut control = MongoConnection::open(address).await?;
    let index = rawdoc! {"key": {"expireAt": 1}, "name": "expireAt_1", "expireAfterSeconds": 0};
    let create = rawdoc! {"createIndexes": COLLECTION, "indexes": [index], "$db": DATABASE};
    control.run(create).await?;
    let lead = FILL + REST + WARM_UP + Duration::from_secs_f64(options.seconds);
    let end_at = Instant::now() + lead;
    fill(&mut control, 0, options.sessions, after(lead)).await?;
    fill(&mut control, LIVE_IDS, LIVE, after(LATER)).await?;
    let load_at = end_at - WARM_UP - Duration::from_secs_f64(options.seconds);
    if Instant::now() > load_at {
        return Err("the sessions were not inserted in time".into());
    }
    tokio::time::sleep_until(load_at.into()).await;
    let load = OpenLoop::over::<MongoConnection>(address, options.rate, CONNECTIONS, plan);
    // The status is read before the instant too, so that both periods have the same requests.
    while deleted(&mut control).await? < options.sessions {
        if Instant::now() > end_at + TIMEOUT {
            return Err("the purge did not end".into());
        }
        tokio::time::sleep(POLL).await;
    }
    let purged_at = Instant::now();
    Ok(Round {
        samples: load.finish().await?,
        counted_from: load_at + WARM_UP,
        end_at,
        purged_at,
    })
}

async fn fill(control: &mut MongoConnection, first: i64, count: i64, end: DateTime) -> Result<()> {
    for begin in (first..first + count).step_by(FILLED_TOGETHER as usize) {
        let ids = begin..(first + count).min(begin + FILLED_TOGETHER);
        control.run(insert(ids, end)).await?;
    }
    Ok(())
}

/// Number of documents that the server has purged: `serverStatus`, `metrics.ttl`.
async fn deleted(control: &mut MongoConnection) -> Result<i64> {
    let status = control.run(rawdoc! {"serverStatus": 1, "$db": "admin"}).await?;
    let ttl = status.get_document("metrics")?.get_document("ttl")?;
    number(ttl, "deletedDocuments")
}

fn number(document: &RawDocument, name: &str) -> Result<i64> {
    let value = document.get(name)?;
    let number = value.and_then(|value| value.as_i64().or(value.as_i32().map(i64::from)));
    number.ok_or_else(|| format!("`{name}` is no number").into())
}

fn after(time: Duration) -> DateTime {
    DateTime::from_millis(wall_clock().0 + i64::try_from(time.as_millis()).unwrap_or(i64::MAX))
}

fn insert(ids: std::ops::Range<i64>, end: DateTime) -> RawDocumentBuf {
    let documents: bson::RawArrayBuf = ids
        .map(|id| rawdoc! {"_id": id, "expireAt": end, "user": "ada", "cart": ["tea", "milk"], "visits": 17})
        .collect();
    rawdoc! {"insert": COLLECTION, "documents": documents, "$db": DATABASE}
}

fn plan(number: u64) -> Planned<Kind> {
    let number = i64::try_from(number).unwrap_or_default();
    let live = LIVE_IDS + number / 4 * 31 % LIVE;
    let (kind, command) = match number % 4 {
        0 => (
            Kind::Insert,
            insert(INSERTED_IDS + number..INSERTED_IDS + number + 1, after(LATER)),
        ),
        1 => {
            let touch = rawdoc! {"q": {"_id": live}, "u": {"$set": {"expireAt": after(LATER)}}};
            (
                Kind::Touch,
                rawdoc! {"update": COLLECTION, "updates": [touch], "$db": DATABASE},
            )
        }
        _ => (
            Kind::Read,
            rawdoc! {"find": COLLECTION, "filter": {"_id": live}, "limit": 1, "singleBatch": true, "$db": DATABASE},
        ),
    };
    Planned {
        kind,
        request: message(&command),
        expected: OK,
    }
}
