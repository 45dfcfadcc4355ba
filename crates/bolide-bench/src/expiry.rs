//! The lag of expiry events: from the second in which an item expires to the arrival of its delete event.
//!
//! 1,000 probe items expire in the same second, together with 0, 10,000, 100,000 and 1,000,000 items that expire much later. The server makes every
//! write durable before it responds, and a client reads the all-versions change feed over HTTP, page after page, with a pause of a millisecond if
//! there is nothing new. The lag of an event is the time from the start of that second to the arrival of the page with the event.
//!
//! For comparison: Redis with the same keys and keyspace notifications, if it is installed.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_model::UnixMillis;
use bolide_model::time::wall_clock;
use memchr::memmem;
use serde_json::Value;

use crate::connection::{Connection, HttpResponse};
use crate::cosmos::Requests;
use crate::figures::Latencies;
use crate::redis::Redis;
use crate::server::{Server, Store};
use crate::table::Table;
use crate::{Result, item};

/// Connections that write the probes.
const WRITERS: usize = 32;
/// Seconds from the first probe's write to the expiry of all of them.
const LEAD_SECONDS: i64 = 4;
/// Seconds until the other items expire.
const LATER_TTL_SECONDS: i32 = 1_000_000;
/// How long to wait for missing events.
pub const TIMEOUT: Duration = Duration::from_secs(15);
/// Pause after filling the store.
const REST: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(1);
/// First id of the probes.
const PROBES: u64 = 1 << 35;

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Items that expire in one second.
    #[arg(long, default_value_t = 1_000)]
    probes: u64,
    /// Numbers of items that do not expire: one measurement for each.
    #[arg(long, value_delimiter = ',', default_values_t = SIZES)]
    beside: Vec<u64>,
}

const SIZES: [u64; 4] = [0, 10_000, 100_000, 1_000_000];

impl Default for Options {
    fn default() -> Options {
        Options {
            probes: 1_000,
            beside: SIZES.to_vec(),
        }
    }
}

/// When events arrived, and how many were expected.
pub struct Arrivals {
    pub lags: Latencies,
    pub expected: u64,
}

impl Arrivals {
    /// A percentile of all expected events, in milliseconds: a missing event counts as later than all others.
    fn percentile(&self, percent: f64) -> String {
        let share = self.lags.count() as f64 * 100.0 / self.expected as f64;
        if percent > share {
            return format!("> {}", TIMEOUT.as_millis());
        }
        let lag = self.lags.percentile((percent * 100.0 / share).min(100.0));
        format!("{:.0}", lag.as_secs_f64() * 1e3)
    }

    fn cells(&self) -> [String; 3] {
        [
            self.percentile(50.0),
            self.percentile(99.0),
            format!("{} of {}", self.lags.count(), self.expected),
        ]
    }
}

/// Runs the benchmark.
pub fn run(bolide: &Path, options: &Options) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let is_redis_there = Redis::is_installed();
    let mut table = Table::new([
        "items beside",
        "Bolide p50 ms",
        "Bolide p99 ms",
        "events",
        "Redis p50 ms",
        "Redis p99 ms",
        "events",
    ]);
    for beside in &options.beside {
        let server = Server::start(bolide, Store::Embedded)?;
        let ours = runtime.block_on(of_bolide(&server, options.probes, *beside))?.cells();
        drop(server);
        let theirs = if is_redis_there {
            let redis = Redis::start()?;
            runtime.block_on(redis.expiry(options.probes, *beside))?.cells()
        } else {
            ["not installed", "–", "–"].map(str::to_owned)
        };
        let ([p50, p99, events], [their_p50, their_p99, their_events]) = (ours, theirs);
        table.row([beside.to_string(), p50, p99, events, their_p50, their_p99, their_events]);
    }
    let note = if is_redis_there {
        "Redis appends every write to its file and syncs it, as Bolide does."
    } else {
        "**Redis was not measured: there is no `redis-server` on the path.**"
    };
    Ok(format!(
        "## Lag of expiry\n\n{} items end in one second; from its start to the arrival of their delete events, {} s at most. {note}\n\n{table}",
        options.probes,
        TIMEOUT.as_secs(),
    ))
}

async fn of_bolide(server: &Server, probes: u64, beside: u64) -> Result<Arrivals> {
    let requests = Arc::new(Requests::to(server.address));
    let mut control = Connection::open(server.address).await?;
    requests.set_up(&mut control, Some(-1)).await?;
    if beside > 0 {
        control.expect(200, &requests.import(&fillers(beside))).await?;
    }
    control.expect(200, &requests.keep_history()).await?;
    tokio::time::sleep(REST).await;
    let mut from = etag_of(&control.expect(304, &requests.all_versions("*")).await?)?;
    let due = next_second().await + LEAD_SECONDS;
    write_probes(server, &requests, probes, due).await?;
    let mut lags = Vec::new();
    let deadline = Instant::now() + TIMEOUT + until(due);
    while (lags.len() as u64) < probes && Instant::now() < deadline {
        let response = control.ask(&requests.all_versions(&from)).await?;
        let lag = wall_clock().0 - due * 1000;
        from = etag_of(&response)?;
        match response.status {
            304 => tokio::time::sleep(POLL).await,
            200 => {
                let ended = count_of_ends(response.body)?;
                if lag < 0 && ended > 0 {
                    return Err("an item ended before its second".into());
                }
                lags.extend(std::iter::repeat_n(Duration::from_millis(lag.unsigned_abs()), ended));
            }
            status => return Err(format!("the change feed answered {status}").into()),
        }
    }
    Ok(Arrivals {
        lags: lags.into_iter().collect(),
        expected: probes,
    })
}

/// Items in the format of an import.
fn fillers(items: u64) -> String {
    let written = wall_clock().seconds().0;
    let line = |number| {
        let id = item::id(number);
        format!("{{\"id\":\"{id}\",\"kind\":\"session\",\"ttl\":{LATER_TTL_SECONDS},\"_ts\":{written}}}\n")
    };
    (0..items).map(line).collect()
}

async fn write_probes(server: &Server, requests: &Arc<Requests>, probes: u64, due: i64) -> Result<()> {
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..WRITERS as u64 {
        let mut connection = Connection::open(server.address).await?;
        let requests = requests.clone();
        tasks.spawn(async move {
            for number in (writer..probes).step_by(WRITERS) {
                write_probe(&mut connection, &requests, PROBES + number, due).await?;
            }
            Result::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

/// Writes an item that expires at a second. A write that began in one second and ended in the next is repeated.
async fn write_probe(connection: &mut Connection, requests: &Requests, number: u64, due: i64) -> Result<()> {
    loop {
        let ttl = due - wall_clock().seconds().0;
        if ttl < 1 {
            return Err("the probes were not written in time".into());
        }
        let request = requests.upsert(&item::id(number), Some(i32::try_from(ttl)?));
        let response = connection.ask(&request).await?;
        let written: Value = serde_json::from_slice(response.body)?;
        if written["_ts"].as_i64().ok_or("a write was refused")? + ttl == due {
            return Ok(());
        }
    }
}

/// The number of delete events of expired items in a page.
fn count_of_ends(page: &[u8]) -> Result<usize> {
    let page: Value = serde_json::from_slice(page)?;
    let rows = page["Documents"].as_array().ok_or("a page without rows")?;
    let is_end = |row: &&Value| row["metadata"]["timeToLiveExpired"] == true;
    Ok(rows.iter().filter(is_end).count())
}

fn etag_of(response: &HttpResponse<'_>) -> Result<String> {
    const NAME: &[u8] = b"\r\netag: ";
    let at = memmem::find(response.head, NAME).ok_or("a page without a continuation")?;
    let value = response.head[at + NAME.len()..].split(|byte| *byte == b'\r').next();
    Ok(std::str::from_utf8(value.unwrap_or_default())?.to_owned())
}

/// Waits for the next second to begin, and returns it.
pub async fn next_second() -> i64 {
    let second = wall_clock().seconds().0 + 1;
    tokio::time::sleep(until(second)).await;
    second
}

/// The time until a second.
pub fn until(second: i64) -> Duration {
    let UnixMillis(now) = wall_clock();
    Duration::from_millis(u64::try_from(second * 1000 - now).unwrap_or(0))
}

#[cfg(test)]
mod tests;
