//! Point reads and durable creates through one, two and three servers over a database of PostgreSQL, beside pgbench storing the same rows by hand.
//!
//! ```text
//!   by hand    pgbench ────────────────────────▶ table by_hand                    ┐
//!   bolide     clients ── HTTP ──▶ 1 server    ▶ table bolide_kv                  │
//!                         HTTP ──▶ 2 servers   ▶ table bolide_kv of database two  ├ one PostgreSQL, one disk
//!                         HTTP ──▶ 3 servers   ▶ table bolide_kv of a third       ┘
//! ```
//!
//! All have the same number of connections of clients, and wait for each answer. What `by_hand` holds is measured in `bolide_kv`: see [`by_hand`]. All six
//! servers run all the time; those that are not measured are sent nothing.

mod by_hand;
mod report;
mod servers;

use std::path::Path;
use std::time::Duration;

use bolide_postgres_server::Database;

use crate::Result;
use crate::figures::micros;
use crate::process::{cpu_time, family_cpu_time};
use by_hand::ByHand;
use servers::Servers;

/// Servers over the database.
const SERVERS: usize = 3;

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Items of 1 KB that are stored before, and read.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    items: u64,
    /// Physical partitions of the container. Commits of one follow each other; those of several go on side by side, as those of pgbench's connections do.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    ranges: u32,
    /// Connections of clients, spread over the servers.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=100))]
    connections: u64,
    /// Rounds; every system is measured once in each.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds per system, operation and round.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
}

/// What clients ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Read,
    Create,
}

impl Operation {
    const ALL: [Operation; 2] = [Operation::Read, Operation::Create];

    fn name(self) -> &'static str {
        match self {
            Operation::Read => "point read",
            Operation::Create => "durable create",
        }
    }

    /// The least part of pgbench's operations per second that is wanted.
    fn target(self) -> f64 {
        match self {
            Operation::Read => 0.6,
            Operation::Create => 0.8,
        }
    }
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum System {
    ByHand,
    /// So many servers.
    Bolide(usize),
}

impl System {
    fn all() -> impl Iterator<Item = System> {
        std::iter::once(System::ByHand).chain((1..=SERVERS).map(System::Bolide))
    }

    fn name(self) -> String {
        match self {
            System::ByHand => "pgbench, by hand".to_owned(),
            System::Bolide(1) => "Bolide, 1 server".to_owned(),
            System::Bolide(servers) => format!("Bolide, {servers} servers"),
        }
    }
}

/// CPU time of each layer.
#[derive(Debug, Clone, Copy, Default)]
struct Cpu {
    client: Duration,
    servers: Duration,
    postgres: Duration,
}

impl Cpu {
    fn since(self, before: Cpu) -> Cpu {
        Cpu {
            client: self.client.saturating_sub(before.client),
            servers: self.servers.saturating_sub(before.servers),
            postgres: self.postgres.saturating_sub(before.postgres),
        }
    }
}

/// The processes of a measurement.
struct Processes {
    client: u32,
    servers: Vec<u32>,
    /// Connections are its children.
    postgres: u32,
}

impl Processes {
    /// What they have used so far.
    fn cpu(&self) -> Result<Cpu> {
        Ok(Cpu {
            client: cpu_time(self.client)?,
            servers: self.servers.iter().map(|pid| cpu_time(*pid)).sum::<Result<_>>()?,
            postgres: family_cpu_time(self.postgres)?,
        })
    }
}

/// The figures of a system in a round.
#[derive(Debug, Clone, Copy)]
struct Sample {
    per_second: f64,
    /// p50 and p99 in milliseconds; pgbench tells neither.
    latencies: Option<[f64; 2]>,
    /// CPU time of an operation, in microseconds.
    client: f64,
    servers: f64,
    postgres: f64,
}

impl Sample {
    /// `cpu` was used while so many operations ended.
    fn of(per_second: f64, operations: f64, cpu: Cpu) -> Sample {
        let of_one = |time: Duration| micros(time) / operations.max(1.0);
        Sample {
            per_second,
            latencies: None,
            client: of_one(cpu.client),
            servers: of_one(cpu.servers),
            postgres: of_one(cpu.postgres),
        }
    }
}

/// The samples of the rounds, for each operation and system in their order.
type Results = Vec<(Operation, System, Vec<Sample>)>;

/// Runs the benchmark.
pub fn run(bolide: &Path, options: &Options) -> Result<String> {
    // One thread: a light client leaves the processors to the servers.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let database = Database::create_durable(&[])?;
    let connections = usize::try_from(options.connections)?;
    let others = (1..SERVERS).map(|_| database.create_another());
    let others = others.collect::<std::result::Result<Vec<_>, _>>()?;
    let mut servers = Vec::with_capacity(SERVERS);
    for (database, count) in std::iter::once(&database).chain(&others).zip(1..) {
        let started = Servers::start(bolide, database, count, options.ranges, options.items, connections);
        servers.push(runtime.block_on(started)?);
    }
    // As by hand: otherwise the server would do it on its own while one of them is measured.
    for database in &others {
        database.run("vacuum analyze")?;
    }
    let by_hand = ByHand::set_up(&database, options.items, connections)?;
    let time = Duration::from_secs_f64(options.seconds);
    let mut results = Results::new();
    for operation in Operation::ALL {
        results.extend(System::all().map(|system| (operation, system, Vec::new())));
    }
    for _ in 0..options.rounds {
        for (operation, system, samples) in &mut results {
            samples.push(match *system {
                System::ByHand => by_hand.measure(*operation, time)?,
                System::Bolide(count) => runtime.block_on(servers[count - 1].measure(*operation, time))?,
            });
        }
    }
    report::render(options, by_hand.rows(), &results)
}

#[cfg(test)]
mod tests;
