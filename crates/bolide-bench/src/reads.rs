//! Point reads of 1 KB items over HTTP, compared with hyper returning the same bytes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::Result;
use crate::bare::BareServer;
use crate::connection::Connection;
use crate::cosmos::Requests;
use crate::figures::{median, median_ratio, micros, percent};
use crate::item;
use crate::load::{Client, Measured, closed_loop};
use crate::server::{Server, Store};
use crate::table::Table;

/// Items that are read in turn.
const ITEMS: u64 = 1_000;
const CONNECTIONS: [usize; 3] = [1, 8, 32];

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Rounds; every server is measured once in each.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds per server, round and number of connections.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            rounds: 5,
            seconds: 2.0,
        }
    }
}

/// A measured server.
struct Side {
    name: &'static str,
    address: SocketAddr,
    pid: u32,
    requests: Arc<Vec<Vec<u8>>>,
}

/// Runs the benchmark.
pub fn run(bolide: &Path, options: &Options) -> Result<String> {
    // One thread: a light client leaves the processors to the servers.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(compare(bolide, options))
}

async fn compare(bolide: &Path, options: &Options) -> Result<String> {
    let memory = Server::start(bolide, Store::Memory)?;
    let embedded = Server::start(bolide, Store::Embedded)?;
    let memory_requests = fill(memory.address).await?;
    let embedded_requests = fill(embedded.address).await?;
    let mut connection = Connection::open(memory.address).await?;
    let bare = BareServer::start(&connection.expect(200, &memory_requests[0]).await?)?;
    drop(connection);
    let sides = [
        Side {
            name: "bare hyper",
            address: bare.address,
            pid: bare.pid(),
            requests: memory_requests.clone(),
        },
        Side {
            name: "Bolide, in memory",
            address: memory.address,
            pid: memory.pid(),
            requests: memory_requests,
        },
        Side {
            name: "Bolide, embedded engine",
            address: embedded.address,
            pid: embedded.pid(),
            requests: embedded_requests,
        },
    ];
    let mut results: BTreeMap<(usize, usize), Vec<Measured>> = BTreeMap::new();
    for _ in 0..options.rounds {
        for connections in CONNECTIONS {
            for (number, side) in sides.iter().enumerate() {
                let measured = side
                    .measure(connections, Duration::from_secs_f64(options.seconds))
                    .await?;
                results.entry((connections, number)).or_default().push(measured);
            }
        }
    }
    Ok(render(&sides, &results, options))
}

/// Creates the items; returns the requests that read them.
async fn fill(address: SocketAddr) -> Result<Arc<Vec<Vec<u8>>>> {
    let requests = Requests::to(address);
    let mut connection = Connection::open(address).await?;
    requests.set_up(&mut connection, None).await?;
    let ids: Vec<String> = (0..ITEMS).map(item::id).collect();
    for id in &ids {
        connection.expect(201, &requests.create(id, None)).await?;
    }
    Ok(Arc::new(ids.iter().map(|id| requests.read(id)).collect()))
}

impl Side {
    async fn measure(&self, connections: usize, time: Duration) -> Result<Measured> {
        let clients = Client::connect(self.address, connections, 200, |number| in_turn(&self.requests, number));
        closed_loop(clients.await?, time, self.pid).await
    }
}

/// The requests of the `number`-th connection: all of them in turn. Connections begin at different ones.
pub fn in_turn<T: Send + Sync + 'static>(
    requests: &Arc<Vec<T>>,
    number: usize,
) -> impl FnMut() -> Shared<T> + Send + use<T> {
    let mut at = number * 31;
    let requests = requests.clone();
    move || {
        at += 1;
        Shared {
            requests: requests.clone(),
            at: at % requests.len(),
        }
    }
}

/// One of the shared requests, without a copy.
pub struct Shared<T> {
    requests: Arc<Vec<T>>,
    at: usize,
}

impl<T: AsRef<U>, U: ?Sized> AsRef<U> for Shared<T> {
    fn as_ref(&self) -> &U {
        self.requests[self.at].as_ref()
    }
}

fn render(sides: &[Side], results: &BTreeMap<(usize, usize), Vec<Measured>>, options: &Options) -> String {
    let mut table = Table::new([
        "server",
        "connections",
        "requests/s",
        "of bare",
        "p50 µs",
        "p99 µs",
        "server CPU µs/request",
    ]);
    for ((connections, number), rounds) in results {
        let bare = &results[&(*connections, 0)];
        let pairs = rounds
            .iter()
            .zip(bare)
            .map(|(round, bare)| (round.per_second(), bare.per_second()));
        let of_rounds = |figure: &dyn Fn(&Measured) -> f64| median(rounds.iter().map(figure));
        table.row([
            sides[*number].name.to_owned(),
            connections.to_string(),
            format!("{:.0}", of_rounds(&Measured::per_second)),
            percent(median_ratio(pairs)),
            format!("{:.0}", of_rounds(&|round| micros(round.latencies.percentile(50.0)))),
            format!("{:.0}", of_rounds(&|round| micros(round.latencies.percentile(99.0)))),
            format!("{:.1}", of_rounds(&Measured::cpu_micros)),
        ]);
    }
    format!(
        "## Point reads\n\n{} rounds of {} s each.\n\n{table}",
        options.rounds, options.seconds
    )
}
