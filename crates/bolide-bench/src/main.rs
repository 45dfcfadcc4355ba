//! Benchmarks of Bolide, each compared with something that bounds it: a bare HTTP server, the engine alone, itself without load.
//!
//! One run gives one table in Markdown. Everything that is compared is measured in the same run, in alternating rounds (A B C A B C …), so that other
//! load on the machine affects all sides equally; figures are medians of the rounds and ratios are medians of the rounds' ratios. The server is the
//! release binary in its own process, and so is the bare server; both are ended by their process ids.
//!
//! ```text
//!   reads     point reads over HTTP       compared with   hyper returning the same bytes
//!   creates   durable creates over HTTP   compared with   the core without HTTP, the engine without the core
//!   direct    point reads and creates over RNTBD, the frames of direct mode   compared with   REST, both over TLS
//!   cluster   point reads and durable creates through servers over PostgreSQL   compared with   pgbench writing the same rows by hand
//!   import    imports of a file      compared with   creates over HTTP
//!   purge     latencies while 100,000 items are purged   compared with   latencies before
//!   expiry    from the second in which items expire to their delete events, with many that do not   compared with   Redis
//!   expiry-space  disk use and scans after a purge   compared with   a fresh store with the same live items
//!   stalls    the longest time without any response, while a store is loaded and while it is updated
//!   scale     loads many items; time to the first answers after a stop and after a kill, memory, disk; steady writes with expiry
//!   split     the longest wait of a writer while a range with a million items is split   compared with   no split
//!   query     filters, aggregates, sorting, joins   compared with   DuckDB and SQLite over the same JSON
//!   indexed   queries through indexes over the socket   compared with   PostgreSQL with the same documents and the fitting indexes
//!   indexing  creates with indexes, and latencies while one is built   compared with   containers without indexes, and latencies before
//!   vectors   the nearest vectors in a large container   compared with   a small one; what is found with what is really nearest
//!   json      the query language's scanner of stored items   compared with   serde_json
//!   mongo     inserts, reads, updates, aggregations of MongoDB's API   compared with   FerretDB over SQLite
//!   sessions  latencies of a session store while 100,000 sessions expire   compared with   latencies before
//!   hostile   latencies during attacks   compared with   latencies without
//!   instructions  operations in this process, whose instructions callgrind counts   compared with   the figures in `instructions.json`
//!   start     time to the first response, idle memory, size of the binary
//!   workloads YCSB A to F, a session store, telemetry, and most of the above, with a report   compared with   PostgreSQL, Redis, Cosmium, @vercel/cosmosdb-server
//! ```
//!
//! Out of scope: time limits in tests. People judge the figures, here and in `docs/benchmarks.md`.
#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures, and has no clock to be given"
)]
#![expect(clippy::print_stdout, reason = "a command line tool reports on its standard output")]

mod bare;
mod beside;
mod cluster;
mod connection;
mod cosmos;
mod creates;
mod direct;
mod disk;
mod embedded;
mod expiry;
mod expiry_space;
mod figures;
mod hostile;
mod imports;
mod indexing;
mod instructions;
mod item;
mod json;
mod load;
mod machine;
mod mongo;
mod process;
mod purge;
mod query;
mod reads;
mod redis;
mod scale;
mod server;
mod split;
mod stalls;
mod start;
mod steal;
mod table;
mod workloads;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

// As in the server: queries run in this process too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// An error message for the person who runs the benchmark.
type Result<T> = std::result::Result<T, Error>;
type Error = Box<dyn std::error::Error + Send + Sync>;

#[derive(Parser)]
#[command(
    name = "bolide-bench",
    about = "Measures Bolide beside what bounds it",
    disable_help_subcommand = true
)]
struct Cli {
    /// The server to measure; by default the release build beside this executable.
    #[arg(long, global = true, value_name = "PATH")]
    bolide: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Point reads over HTTP, compared with a bare hyper server that returns the same bytes.
    Http(reads::Options),
    /// Durable creates over HTTP, compared with the core and the engine without HTTP.
    Create(creates::Options),
    /// Point reads and durable creates over RNTBD, the binary frames of direct mode, compared with REST.
    Direct(direct::Options),
    /// Point reads and durable creates through one to three servers over PostgreSQL, compared with pgbench and the same rows.
    Cluster(cluster::Options),
    /// Imports of a file, compared with creates over HTTP.
    Import(imports::Options),
    /// Latencies while expired items are purged, compared with latencies before.
    Purge(purge::Options),
    /// From the second in which items expire to the arrival of their delete events, compared with Redis.
    Expiry(expiry::Options),
    /// Disk use and scans after items have expired and were purged, compared with a fresh store with the same live items.
    ExpirySpace(expiry_space::Options),
    /// The longest time without any response, while a store is loaded and while it is updated.
    Stalls(stalls::Options),
    /// The longest wait of a writer while its range is split, compared with writers without a split.
    Split(split::Options),
    /// Many items: the rate of loading, the time to open, memory, disk; with `--balance`, steady writes of items that expire.
    Scale(scale::Options),
    /// Queries over 1 KB items, compared with DuckDB and SQLite over the same JSON texts.
    Query(query::Options),
    /// Queries through property indexes in a small and in a large container.
    Growth(query::growth::Options),
    /// Queries through indexes over the socket, compared with PostgreSQL if it is installed.
    Indexed(query::indexed::Options),
    /// Creates in containers with indexes and without, and latencies while an index is built.
    Indexing(indexing::Options),
    /// The nearest vectors in a small and in a large container, and how many of them an index finds.
    Vectors(query::vectors::Options),
    /// The query language's scanner of stored items, compared with serde_json over the same texts.
    Json(json::Options),
    /// Inserts, reads, updates and aggregations of MongoDB's API, compared with FerretDB.
    Mongo(mongo::Options),
    /// Latencies of a session store of MongoDB's API while sessions expire, compared with latencies before.
    Sessions(mongo::sessions::Options),
    /// Latencies of well-behaved clients, memory, descriptors and threads during attacks.
    Hostile(hostile::Options),
    /// Time to the first response, idle memory, size of the binary.
    Start(start::Options),
    /// Runs an operation in this process, for callgrind, which counts its instructions: see `cargo xtask instructions`.
    Instructions(instructions::Options),
    /// Named workloads on Bolide and on peers, with a report: see `cargo xtask bench`.
    Workloads(workloads::Options),
    /// Everything with default settings, with a description of the machine.
    All,
    /// The bare server: responds to every request with the response in a file.
    #[command(hide = true)]
    Bare { answer: PathBuf },
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<()> {
    match cli.command {
        Command::Instructions(options) => instructions::run(&options),
        Command::Bare { answer } => bare::serve(&answer),
        Command::All => all(&server::find(cli.bolide)?),
        _ => {
            print_section(&section(cli)?);
            Ok(())
        }
    }
}

/// The section of a report that a command makes.
fn section(cli: Cli) -> Result<String> {
    let bolide = || server::find(cli.bolide.clone());
    match cli.command {
        Command::Http(options) => reads::run(&bolide()?, &options),
        Command::Create(options) => creates::run(&bolide()?, &options),
        Command::Direct(options) => direct::run(&bolide()?, &options),
        Command::Cluster(options) => cluster::run(&bolide()?, &options),
        Command::Import(options) => imports::run(&bolide()?, &options),
        Command::Purge(options) => purge::run(&bolide()?, &options),
        Command::Expiry(options) => expiry::run(&bolide()?, &options),
        Command::ExpirySpace(options) => expiry_space::run(&options),
        Command::Stalls(options) => stalls::run(&options),
        Command::Growth(options) => query::growth::run(&options),
        Command::Indexed(options) => query::indexed::run(&bolide()?, &options),
        Command::Indexing(options) => indexing::run(&bolide()?, &options),
        Command::Vectors(options) => query::vectors::run(&options),
        Command::Json(options) => json::run(&options),
        Command::Split(options) => split::run(&options),
        Command::Scale(options) => scale::run(&bolide()?, &options),
        Command::Mongo(options) => mongo::run(&bolide()?, &options),
        Command::Sessions(options) => mongo::sessions::run(&bolide()?, &options),
        Command::Hostile(options) => hostile::run(&bolide()?, &options),
        Command::Start(options) => start::run(&bolide()?, &options),
        Command::Query(options) => Ok(format!("{}\n{}", machine::describe()?, query::run(&bolide, &options)?)),
        Command::Workloads(options) => run_workloads(&bolide()?, &options),
        Command::All | Command::Instructions(_) | Command::Bare { .. } => Err("this command makes no section".into()),
    }
}

fn run_workloads(bolide: &Path, options: &workloads::Options) -> Result<String> {
    let run_command = |arguments: &[&str]| {
        let mut cli = Cli::try_parse_from([&["bolide-bench"], arguments].concat())?;
        cli.bolide = Some(bolide.to_owned());
        section(cli)
    };
    workloads::run(bolide, options, &run_command)
}

/// Prints each section when it is there: all of them take long.
fn all(bolide: &Path) -> Result<()> {
    print_section(&machine::describe()?);
    print_section(&reads::run(bolide, &reads::Options::default())?);
    print_section(&creates::run(bolide, &creates::Options::default())?);
    print_section(&direct::run(bolide, &direct::Options::default())?);
    print_section(&purge::run(bolide, &purge::Options::default())?);
    print_section(&expiry::run(bolide, &expiry::Options::default())?);
    print_section(&expiry_space::run(&expiry_space::Options::default())?);
    print_section(&stalls::run(&stalls::Options::default())?);
    print_section(&split::run(&split::Options::default())?);
    print_section(&start::run(bolide, &start::Options::default())?);
    Ok(())
}

fn print_section(text: &str) {
    println!("{text}");
}
