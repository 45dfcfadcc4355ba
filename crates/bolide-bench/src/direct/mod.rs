//! Point reads and durable creates of 1 KB items over RNTBD, the binary frames of direct mode, beside the same requests over REST.
//!
//! ```text
//!   REST               HTTP/1.1, one request at a time on each connection     ┐ one server, one port, one configuration of TLS; signed;
//!   RNTBD              frames, one request at a time on each channel          ┤ the tokens that the .NET SDK sends, and in REST the headers
//!   RNTBD, 16 at once  frames, sixteen requests under way on each channel     ┘ that say the same
//! ```
//!
//! Each is compared with REST that has as many requests under way: for a channel with sixteen, on sixteen connections.
//!
//! Reads are those of items in memory. Creates are durable, each measurement on a new store. Each request is one write, as in the SDKs.

pub mod channel;
pub mod endpoint;
pub mod frames;
mod report;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::connection::Connection;
use crate::cosmos::Requests;
use crate::figures::{Latencies, micros};
use crate::load::{Client, watched_loop, watched_tasks};
use crate::process::cpu_time;
use crate::reads::in_turn;
use crate::server::{Server, Store};
use crate::{Result, item};
use channel::{Asker, Channel};
use endpoint::Endpoint;
use frames::{Frame, Frames, Known};

/// Items that are read in turn.
const ITEMS: u64 = 1_000;
/// Requests under way on a channel of [`Side::Multiplexed`].
const AT_ONCE: usize = 16;
/// The smallest difference of two times of CPU, which nothing is divided by less than.
const TICK_SECONDS: f64 = 0.01;

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Rounds; everything is measured once in each.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds per operation, protocol, number of connections and round.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Numbers of channels. REST is measured with as many connections, and with as many as requests are under way on these.
    #[arg(long, value_delimiter = ',', default_values_t = CHANNELS)]
    channels: Vec<usize>,
}

const CHANNELS: [usize; 3] = [1, 8, 32];

impl Default for Options {
    fn default() -> Options {
        Options {
            rounds: 5,
            seconds: 2.0,
            channels: CHANNELS.to_vec(),
        }
    }
}

/// How they ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Rest,
    Direct,
    Multiplexed,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Side::Rest => "REST",
            Side::Direct => "RNTBD",
            Side::Multiplexed => "RNTBD, 16 at once",
        }
    }

    /// Requests under way on each connection.
    fn at_once(self) -> usize {
        match self {
            Side::Rest | Side::Direct => 1,
            Side::Multiplexed => AT_ONCE,
        }
    }
}

/// The figures of a side in a round.
#[derive(Debug, Clone, Copy)]
struct Sample {
    per_second: f64,
    /// Requests for each second of the server's CPU time.
    per_cpu_second: f64,
    p50_micros: f64,
    p99_micros: f64,
    /// CPU time of the client for a request, in microseconds.
    client_micros: f64,
}

impl Sample {
    /// `cpu` is that of the server and of the client in the measured time.
    fn of(latencies: &Latencies, time: Duration, cpu: [Duration; 2]) -> Sample {
        let count = latencies.count() as f64;
        let [server, client] = cpu;
        Sample {
            per_second: count / time.as_secs_f64(),
            per_cpu_second: count / server.as_secs_f64().max(TICK_SECONDS),
            p50_micros: micros(latencies.percentile(50.0)),
            p99_micros: micros(latencies.percentile(99.0)),
            client_micros: micros(client) / count.max(1.0),
        }
    }
}

/// The samples of all rounds.
struct Row {
    connections: usize,
    side: Side,
    samples: Vec<Sample>,
}

impl Row {
    fn empty(side: Side, connections: usize) -> Row {
        Row {
            connections,
            side,
            samples: Vec::new(),
        }
    }

    /// Requests under way on all connections.
    fn under_way(&self) -> usize {
        self.connections * self.side.at_once()
    }
}

/// All rows, each of REST before those that are compared with it.
fn empty_rows(channels: &[usize]) -> Vec<Row> {
    let direct = channels
        .iter()
        .flat_map(|channels| [Side::Direct, Side::Multiplexed].map(|side| Row::empty(side, *channels)));
    let mut rows: Vec<Row> = direct.collect();
    let mut under_way: Vec<usize> = rows.iter().map(Row::under_way).collect();
    under_way.sort_unstable();
    under_way.dedup();
    rows.extend(
        under_way
            .into_iter()
            .map(|connections| Row::empty(Side::Rest, connections)),
    );
    rows.sort_by_key(|row| (row.under_way(), row.side != Side::Rest));
    rows
}

/// Runs the benchmark.
pub fn run(bolide: &Path, options: &Options) -> Result<String> {
    if options.channels.contains(&0) {
        return Err("--channels: expected numbers from 1".into());
    }
    // One thread: a light client leaves the processors to the servers.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let reader = Target::start(bolide, Store::Memory, ITEMS).await?;
        let reads = compare(options, async |side, connections, time| {
            reader.reads(side, connections, time).await
        });
        let reads = reads.await?;
        let creates = compare(options, async |side, connections, time| {
            let creator = Target::start(bolide, Store::Embedded, 0).await?;
            creator.creates(side, connections, time).await
        });
        let creates = creates.await?;
        Ok(report::render(
            options,
            &reader.endpoint.cipher().await?,
            &reads,
            &creates,
        ))
    })
}

/// Measures all sides with all numbers of connections, in alternating rounds.
async fn compare(
    options: &Options,
    measure: impl AsyncFn(Side, usize, Duration) -> Result<Sample>,
) -> Result<Vec<Row>> {
    let time = Duration::from_secs_f64(options.seconds);
    let mut rows = empty_rows(&options.channels);
    for _ in 0..options.rounds {
        for row in &mut rows {
            row.samples.push(measure(row.side, row.connections, time).await?);
        }
    }
    Ok(rows)
}

/// A server in direct mode, with a container.
struct Target {
    server: Server,
    endpoint: Endpoint,
    known: Known,
}

impl Target {
    /// Starts it, and creates so many items.
    async fn start(bolide: &Path, store: Store, items: u64) -> Result<Target> {
        let server = Server::start(bolide, store)?;
        let requests = Requests::to(server.address);
        let mut connection = Connection::open(server.address).await?;
        requests.set_up(&mut connection, None).await?;
        let mut known = Known::of(&mut connection, &requests).await?;
        for number in 0..items {
            let created = requests.create(&item::id(number), None);
            known.note(&connection.expect(201, &created).await?);
        }
        Ok(Target {
            endpoint: Endpoint::of(server.address, &mut connection).await?,
            server,
            known,
        })
    }

    /// Lets clients read the items in turn.
    async fn reads(&self, side: Side, connections: usize, time: Duration) -> Result<Sample> {
        let frames = self.frames()?;
        let ids = (0..ITEMS).map(item::id);
        if side == Side::Rest {
            let requests = Arc::new(ids.map(|id| frames.rest_read(&id)).collect::<Vec<_>>());
            return self
                .over_rest(connections, 200, time, |at| in_turn(&requests, at))
                .await;
        }
        let requests = Arc::new(ids.map(|id| frames.read(&id)).collect::<Vec<_>>());
        self.over_frames(side, connections, 200, time, |at| in_turn(&requests, at))
            .await
    }

    /// Lets clients create items.
    async fn creates(&self, side: Side, connections: usize, time: Duration) -> Result<Sample> {
        let frames = Arc::new(self.frames()?);
        let next = Arc::new(AtomicU64::new(0));
        let parts = || (frames.clone(), next.clone());
        let next_id = |next: &AtomicU64| item::id(next.fetch_add(1, Ordering::Relaxed));
        if side == Side::Rest {
            let make = |_| {
                let (frames, next) = parts();
                move || frames.rest_create(&next_id(&next))
            };
            return self.over_rest(connections, 201, time, make).await;
        }
        let make = |_| {
            let (frames, next) = parts();
            move || frames.create(&next_id(&next))
        };
        self.over_frames(side, connections, 201, time, make).await
    }

    /// Requests dated now.
    fn frames(&self) -> Result<Frames> {
        Frames::new(Requests::to(self.server.address), self.known.clone())
    }

    async fn over_rest<R, F>(
        &self,
        connections: usize,
        expected: u16,
        time: Duration,
        make: impl Fn(usize) -> F,
    ) -> Result<Sample>
    where
        R: AsRef<[u8]> + Send,
        F: FnMut() -> R + Send + 'static,
    {
        let mut clients = Vec::with_capacity(connections);
        for number in 0..connections {
            let connection = Connection::over(self.endpoint.connect().await?);
            clients.push(Client::over(connection, expected, make(number)));
        }
        let (latencies, looks) = watched_loop(clients, time, || self.look()).await?;
        Ok(Sample::of(&latencies, time, between(looks)))
    }

    async fn over_frames<R, F>(
        &self,
        side: Side,
        channels: usize,
        expected: u32,
        time: Duration,
        make: impl Fn(usize) -> F,
    ) -> Result<Sample>
    where
        R: AsRef<Frame> + Send + 'static,
        F: FnMut() -> R + Send + 'static,
    {
        let mut askers = Vec::with_capacity(channels);
        for number in 0..channels {
            askers.push(Asker {
                channel: Channel::open(&self.endpoint).await?,
                at_once: side.at_once(),
                expected,
                next: make(number),
            });
        }
        let tasks = |period| askers.into_iter().map(move |asker| asker.repeat(period));
        let (latencies, looks) = watched_tasks(tasks, time, || self.look()).await?;
        Ok(Sample::of(&latencies, time, between(looks)))
    }

    /// The CPU time of the server and of this process so far.
    fn look(&self) -> Result<[Duration; 2]> {
        Ok([cpu_time(self.server.pid())?, cpu_time(std::process::id())?])
    }
}

fn between([before, after]: [[Duration; 2]; 2]) -> [Duration; 2] {
    [0, 1].map(|at| after[at].saturating_sub(before[at]))
}
