//! What indexes cost: creates with various indexing policies, and requests while an index is built.
//!
//!   1. Clients create items in containers that differ in their indexing policy only, one after the other in each round, every write durable before its response.
//!   2. A server has many items. At a modest fixed rate, half of the requests read and half create; then the indexing policy names a path, and its index is built.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::beside::{self, Foreground, Round};
use crate::connection::Connection;
use crate::cosmos::Requests;
use crate::figures::{median, median_ratio, micros, percent};
use crate::load::{Client, Measured, closed_loop};
use crate::purge::POLL;
use crate::query::growth::document;
use crate::query::indexed::fill;
use crate::query::store::runtime;
use crate::server::{Server, Store};
use crate::table::Table;
use crate::{Result, item};

/// Clients that create items.
const CLIENTS: usize = 32;
/// Time in which the store finishes its tables after it was filled.
const SETTLE: Duration = Duration::from_secs(30);
/// Timeout of the build.
const TIMEOUT: Duration = Duration::from_secs(900);
/// The policies that are compared with the first one; each has the paths of the ones before it, too.
const POLICIES: [(&str, &[&str]); 5] = [
    ("mode `none`", &[]),
    ("default, nothing is queried", &["/*"]),
    ("an index: number", &["/*", "/number/?"]),
    ("two: and a name", &["/*", "/number/?", "/customer/name/?"]),
    (
        "three: and an array of two",
        &["/*", "/number/?", "/customer/name/?", "/words/[]/?"],
    ),
];

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Items that are there when the index is built.
    #[arg(long, default_value_t = 1_000_000)]
    items: u64,
    /// Requests per second beside the build, half of them reads and half of them creates.
    #[arg(long, default_value_t = 500)]
    rate: u32,
    /// Seconds measured before the build, and as many after it.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Rounds of creates with each policy.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of creates with each policy in each round.
    #[arg(long, default_value_t = 3.0)]
    create_seconds: f64,
}

/// Runs the benchmark.
pub fn run(bolide: &Path, options: &Options) -> Result<String> {
    let creates = creates(bolide, options)?;
    let build = build(bolide, options)?;
    Ok(format!("{creates}\n\n{build}"))
}

fn policy(number: usize) -> Value {
    match POLICIES[number].1 {
        [] => json!({"indexingMode": "none", "automatic": false}),
        paths => json!({"includedPaths": paths.iter().map(|path| json!({"path": path})).collect::<Vec<_>>()}),
    }
}

fn creates(bolide: &Path, options: &Options) -> Result<String> {
    let mut rounds: [Vec<Measured>; POLICIES.len()] = Default::default();
    for _ in 0..options.rounds {
        for (number, measured) in rounds.iter_mut().enumerate() {
            measured.push(creates_with(bolide, policy(number), options)?);
        }
    }
    let mut table = Table::new([
        "indexing policy",
        "creates/s",
        "of the first",
        "p99 µs",
        "CPU µs/create",
        "of the first",
    ]);
    for ((name, _), measured) in POLICIES.iter().zip(&rounds) {
        let ratio = |figure: fn(&Measured) -> f64| {
            percent(median_ratio(
                measured
                    .iter()
                    .zip(&rounds[0])
                    .map(|(this, first)| (figure(this), figure(first))),
            ))
        };
        let of_rounds = |figure: &dyn Fn(&Measured) -> f64| median(measured.iter().map(figure));
        table.row([
            (*name).to_owned(),
            format!("{:.0}", of_rounds(&Measured::per_second)),
            ratio(Measured::per_second),
            format!("{:.0}", of_rounds(&|round| micros(round.latencies.percentile(99.0)))),
            format!("{:.1}", of_rounds(&Measured::cpu_micros)),
            ratio(Measured::cpu_micros),
        ]);
    }
    Ok(format!(
        "## Creates with indexes\n\n{CLIENTS} clients, {} rounds of {} s each.\n\n{table}",
        options.rounds, options.create_seconds
    ))
}

fn creates_with(bolide: &Path, policy: Value, options: &Options) -> Result<Measured> {
    let server = Server::start(bolide, Store::Embedded)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let requests = Arc::new(Requests::to(server.address));
        let mut control = Connection::open(server.address).await?;
        requests.set_up(&mut control, None).await?;
        control.expect(200, &requests.set_indexing_policy(&policy)).await?;
        let numbers = Arc::new(AtomicU64::new(0));
        let clients = Client::connect(server.address, CLIENTS, 201, |_| {
            let (requests, numbers) = (requests.clone(), numbers.clone());
            move || {
                let number = numbers.fetch_add(1, Ordering::Relaxed);
                requests.create_document(&item::id(number), &document(number))
            }
        });
        closed_loop(
            clients.await?,
            Duration::from_secs_f64(options.create_seconds),
            server.pid(),
        )
        .await
    })
}

fn build(bolide: &Path, options: &Options) -> Result<String> {
    let dir = tempfile::tempdir()?;
    // On a runtime of its own, which ends the store's tasks.
    runtime()?.block_on(fill(dir.path(), options.items, &[]))?;
    let server = Server::start_on(bolide, dir.path())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let build = runtime.block_on(measure_build(&server, options))?;
    let seconds = build.seconds();
    let tables = beside::latencies(&[build]);
    Ok(format!(
        "## Building an index\n\n{} items of 1 KB, {} requests/s; the build took {:.1} s.\n\n{tables}",
        options.items, options.rate, seconds
    ))
}

async fn measure_build(server: &Server, options: &Options) -> Result<Round> {
    let requests = Arc::new(Requests::to(server.address));
    let mut control = Connection::open(server.address).await?;
    beside::create_read_items(&mut control, &requests).await?;
    tokio::time::sleep(SETTLE).await;
    let foreground = Foreground::start(server, &requests, (options.rate, options.seconds)).await;
    let began = Instant::now();
    control.expect(200, &requests.set_indexing_policy(&policy(2))).await?;
    while !requests.are_indexes_ready(&mut control).await? {
        if began.elapsed() > TIMEOUT {
            return Err("the build did not end".into());
        }
        tokio::time::sleep(POLL).await;
    }
    let ended = Instant::now();
    foreground.finish(began..ended).await
}
