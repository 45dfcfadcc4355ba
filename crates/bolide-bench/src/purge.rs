//! Latencies of point reads and creates at a modest fixed rate, while 100,000 expired items are purged and without that.
//!
//! One container on the embedded engine, with every write durable before its response, and without a throughput that would slow down the purge:
//!
//!   1. 100,000 items without their own ttl are created, then one more, the last in the purge queue; and items with `ttl` -1 to be read.
//!   2. Requests begin ([`crate::beside`]); what they create has `ttl` -1.
//!   3. After some seconds the container's default ttl is set to 1 s: all items of step 1 are due at once.
//!   4. The purge is finished when the last item of the queue is not stored any more, live or not.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::beside::{self, Foreground, NEVER, Round};
use crate::connection::Connection;
use crate::cosmos::Requests;
use crate::figures::median;
use crate::server::{Server, Store};
use crate::{Result, item};

/// Connections that create the items to be purged.
const FILLING: usize = 64;
/// Timeout of a purge.
const TIMEOUT: Duration = Duration::from_secs(1200);
/// Pause after filling the store, and for each item: its tables are being merged.
const REST: Duration = Duration::from_secs(3);
const REST_PER_ITEM: Duration = Duration::from_micros(30);
pub const POLL: Duration = Duration::from_millis(50);

/// The indexed path of [`Options::check`].
const CHECKED_PATH: &str = "/id/?";

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
    /// Seconds measured before the purge, and as many after it.
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

/// Runs the benchmark.
pub fn run(bolide: &Path, options: &Options) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut rounds, mut checks) = (Vec::new(), 0);
    for _ in 0..options.rounds {
        let server = Server::start(bolide, Store::Embedded)?;
        let (round, checked) = runtime.block_on(measure(&server, options))?;
        rounds.push(round);
        checks += checked;
    }
    if let (Some(path), Some(round)) = (&options.samples, rounds.last()) {
        std::fs::write(path, round.to_csv())?;
    }
    let tables = beside::latencies(&rounds);
    let seconds = median(rounds.iter().map(Round::seconds));
    let checks = match options.check {
        true => format!(" {checks} queries looked for expired items and found none."),
        false => String::new(),
    };
    Ok(format!(
        "## Latency under the purge\n\n{} rounds, {} requests/s, {} s before and after each purge. {} items were purged in {seconds:.1} s, \
         {:.0} per second (median).{checks}\n\n{tables}",
        options.rounds,
        options.rate,
        options.seconds,
        options.items,
        options.items as f64 / seconds,
    ))
}

/// Returns the requests, and the number of queries that looked for items that have expired, and found none.
async fn measure(server: &Server, options: &Options) -> Result<(Round, u64)> {
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
    beside::create_read_items(&mut control, &requests).await?;
    let items = u32::try_from(options.items).unwrap_or(u32::MAX);
    tokio::time::sleep(REST + REST_PER_ITEM * items).await;

    let foreground = Foreground::start(server, &requests, (options.rate, options.seconds)).await;
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
    let checks = match checker {
        Some(checker) => checker.finish().await?,
        None => 0,
    };
    Ok((foreground.finish(began..ended).await?, checks))
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
        let first_live = item::id(beside::READ_IDS);
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
