//! Latencies of well-behaved clients during attacks, and the server's resource use meanwhile.
//!
//! A server on the embedded engine starts with a limit of 1,024 open files, as in most shells. A reader and a writer send requests at a fixed rate;
//! latencies count from the intended start of a request. Each attack runs for the given time, on its own server; the first line is without an attack.

mod attacks;
mod descriptors;
mod watch;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::Result;
use crate::connection::Connection;
use crate::cosmos::{Requests, read_only_key};
use crate::figures::Latencies;
use crate::item;
use crate::load::{OpenLoop, Planned, Sample};
use crate::server::Server;
use crate::table::Table;
use attacks::{Attack, Attackers, Target};
use watch::Watch;

/// Connections that the reader, and the writer, may use at the same time.
const FOREGROUND: usize = 32;
/// Items that are read in turn.
const READ_ITEMS: u64 = 100;
const CREATED_IDS: u64 = 1 << 34;
/// The server's limit at its start; it may raise it.
const OPEN_FILES: u32 = 1024;
/// Files that this process needs besides the connections of an attack: those of the well-behaved clients, and others.
const OWN_FILES: usize = 2 * FOREGROUND + 64;
/// Timeout of a response after the attack is over.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Time before counting begins, to let the attack start.
const WARM_UP: Duration = Duration::from_secs(2);

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Seconds per attack.
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
    /// Connections of each attack, unless it has its own number.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Well-behaved requests per second, half of them reads and half of them creates.
    #[arg(long, default_value_t = 200)]
    rate: u32,
    /// Only this attack.
    #[arg(long)]
    only: Option<Attack>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Create,
}

/// Runs the benchmark.
pub fn run(bolide: &Path, options: &Options) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let mut table = Table::new([
        "attack",
        "read p50 ms",
        "read p99 ms",
        "read worst ms",
        "create p99 ms",
        "create worst ms",
        "failed",
        "memory MB",
        "descriptors",
        "threads",
        "responses to the attack",
    ]);
    for attack in Attack::ALL
        .into_iter()
        .filter(|attack| options.only.is_none_or(|only| only == *attack))
    {
        descriptors::suffice_for(attack.connections(options.connections) + OWN_FILES)?;
        let arguments = ["--readonly-key".to_owned(), read_only_key()];
        let server = Server::start_limited(bolide, OPEN_FILES, &arguments)?;
        let row = runtime.block_on(measure(&server, attack, options));
        table.row(row.map_err(|error| format!("{}: {error}", attack.name()))?);
    }
    Ok(format!(
        "## Hostile clients\n\n{} s of each attack beside {} requests/s, half reads and half creates.\n\n{table}",
        options.seconds, options.rate,
    ))
}

async fn measure(server: &Server, attack: Attack, options: &Options) -> Result<[String; 11]> {
    let requests = Arc::new(Requests::to(server.address));
    let mut control = Connection::open(server.address).await?;
    requests.set_up(&mut control, None).await?;
    for number in 0..READ_ITEMS {
        control.expect(201, &requests.create(&item::id(number), None)).await?;
    }
    let target = Target::prepare(server.address, &mut control, &requests).await?;

    let watch = Watch::start(server.pid());
    let attackers = Attackers::start(attack, options.connections, &target)?;
    tokio::time::sleep(WARM_UP).await;
    // Separate clients, so that reads do not wait for connections that creates use.
    let foreground = [Kind::Read, Kind::Create].map(|kind| {
        let requests = requests.clone();
        OpenLoop::start(server.address, options.rate / 2, FOREGROUND, move |number| {
            plan(&requests, kind, number)
        })
    });
    tokio::time::sleep(Duration::from_secs_f64(options.seconds)).await;
    let mut samples = Vec::new();
    for requests in foreground {
        samples.append(&mut requests.finish_with_failures().await?);
    }
    let responses = attackers.stop().await;
    let peak = watch.stop();
    let is_alive = async {
        let mut connection = Connection::open(server.address).await?;
        connection.expect(200, &requests.list_databases()).await.map(drop)
    };
    let is_alive = matches!(tokio::time::timeout(TIMEOUT, is_alive).await, Ok(Ok(())));
    Ok([
        attack.name().to_owned(),
        millis(&samples, Kind::Read, 50.0),
        millis(&samples, Kind::Read, 99.0),
        millis(&samples, Kind::Read, 100.0),
        millis(&samples, Kind::Create, 99.0),
        millis(&samples, Kind::Create, 100.0),
        samples.iter().filter(|sample| !sample.is_expected).count().to_string(),
        format!("{:.0}", peak.memory_kib as f64 / 1024.0),
        peak.descriptors.to_string(),
        peak.threads.to_string(),
        if is_alive {
            responses
        } else {
            format!("{responses}; afterwards the server does not respond")
        },
    ])
}

fn millis(samples: &[Sample<Kind>], kind: Kind, percent: f64) -> String {
    let latencies: Latencies = samples
        .iter()
        .filter(|sample| sample.kind == kind)
        .map(|sample| sample.latency)
        .collect();
    format!("{:.1}", latencies.percentile(percent).as_secs_f64() * 1e3)
}

fn plan(requests: &Requests, kind: Kind, number: u64) -> Planned<Kind> {
    let (request, expected) = match kind {
        Kind::Read => (requests.read(&item::id(number * 31 % READ_ITEMS)), 200),
        Kind::Create => (requests.create(&item::id(CREATED_IDS + number), None), 201),
    };
    Planned {
        kind,
        request,
        expected,
    }
}
