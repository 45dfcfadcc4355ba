//! Queries over 1 KB items, compared with SQLite (JSON1) and DuckDB, which have the same JSON texts in tables.
//!
//! ```text
//!   bolide    `Account::query` in this process: plan, pages, continuations, the embedded engine below
//!   memory    the same on the engine in memory (with `--memory`)
//!   duckdb    a table of one JSON column in a database file                       } one Python process that
//!   sqlite    a table of one TEXT column in a database file, on one thread        } measures around the query
//! ```
//!
//! Bolide and DuckDB use all processors. Every side reads all items: none has an index for the queries ([`growth`] measures those). Each returns its whole result, and
//! the results must be equal. Stores are kept in a directory and filled only once, so that a run only measures.

pub mod data;
pub mod growth;
pub mod indexed;
mod memory;
mod peers;
pub mod postgres;
mod questions;
pub mod store;
pub mod vectors;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Result;
use crate::figures::median;
use crate::table::Table;
use memory::Baseline;
use peers::Peers;
use questions::{QUESTIONS, Question};
use store::{OverHttp, Store};

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Items in every store.
    #[arg(long, default_value_t = 1_000_000)]
    items: u64,
    /// Rounds; every side runs every query once in each.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// The directory of the stores. Filled if empty.
    #[arg(long, value_name = "DIR")]
    store: PathBuf,
    /// A Python 3 with the package `duckdb`; by default one in a virtual environment made in the directory.
    #[arg(long, value_name = "PATH")]
    peers: Option<PathBuf>,
    /// Leaves the peers out.
    #[arg(long)]
    alone: bool,
    /// Fills the stores, and measures nothing.
    #[arg(long)]
    fill: bool,
    /// Also measures the memory engine. It is filled again by every run.
    #[arg(long)]
    memory: bool,
    /// Only the queries whose names contain this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// The times of one side for a query, round by round, and its peak memory.
#[derive(Default)]
struct Taken {
    seconds: Vec<f64>,
    memory_kib: u64,
}

impl Taken {
    fn median(&self) -> f64 {
        median(self.seconds.iter().copied())
    }

    fn add(&mut self, time: Duration, memory_kib: u64) {
        self.seconds.push(time.as_secs_f64());
        self.memory_kib = self.memory_kib.max(memory_kib);
    }
}

/// All sides of one query.
#[derive(Default)]
struct Sides {
    embedded: Taken,
    memory: Taken,
    duckdb: Taken,
    sqlite: Taken,
}

/// Runs the benchmark. `bolide`: the server, for the query over HTTP.
pub fn run(bolide: &dyn Fn() -> Result<PathBuf>, options: &Options) -> Result<String> {
    std::fs::create_dir_all(&options.store)?;
    let dir = options.store.join(format!("{}-items", options.items));
    store::fill_embedded(&dir, options.items)?;
    let mut peers = match options.alone {
        true => None,
        false => Some(Peers::start(
            &options.store,
            &dir,
            options.peers.clone(),
            options.items,
        )?),
    };
    if options.fill {
        return Ok("The stores are filled.".to_owned());
    }
    let questions: Vec<&Question> = QUESTIONS
        .iter()
        .filter(|question| options.only.as_ref().is_none_or(|text| question.name.contains(text)))
        .collect();
    let sides = measure_all(&questions, &dir, &mut peers, options)?;
    let over_http = match options.only {
        Some(_) => String::new(),
        None => over_http(&bolide()?, &dir, options)?,
    };
    let versions = peers.map(|peers| peers.versions).unwrap_or_default();
    Ok(format!(
        "## Queries\n\n{} items of 1 KB, {} rounds. {versions}\n\n{}\n{over_http}",
        options.items,
        options.rounds,
        table(&questions, &sides, options)
    ))
}

/// Runs every query on every side, round by round.
fn measure_all(
    questions: &[&Question],
    dir: &Path,
    peers: &mut Option<Peers>,
    options: &Options,
) -> Result<Vec<Sides>> {
    let runtime = store::runtime()?;
    let embedded = runtime.block_on(Store::embedded(dir))?;
    let memory = match options.memory {
        true => Some(runtime.block_on(Store::memory(options.items))?),
        false => None,
    };
    let baseline = Baseline::now()?;
    let mut all: Vec<Sides> = questions.iter().map(|_| Sides::default()).collect();
    // The first round warms the caches of every side and is not counted.
    for round in 0..=options.rounds {
        for (question, sides) in questions.iter().zip(&mut all) {
            let counts = round > 0;
            let taken = counts.then_some(&mut sides.embedded);
            let answer = runtime.block_on(measure(&embedded, question, baseline, taken))?;
            if let Some(memory) = &memory {
                let taken = counts.then_some(&mut sides.memory);
                let other = runtime.block_on(measure(memory, question, baseline, taken))?;
                questions::check_same(question, "the engine in memory", &answer, &other)?;
            }
            if let Some(peers) = peers {
                measure_peers(peers, question, &answer, counts.then_some(sides))?;
            }
        }
    }
    runtime.block_on(embedded.close())?;
    Ok(all)
}

/// Runs a query on the peers, whose results must equal ours.
fn measure_peers(
    peers: &mut Peers,
    question: &Question,
    answer: &questions::Rows,
    sides: Option<&mut Sides>,
) -> Result<()> {
    let (duckdb_time, other) = peers.ask("duckdb", question.duckdb)?;
    questions::check_same(question, "duckdb", answer, &other)?;
    let (sqlite_time, other) = peers.ask("sqlite", question.sqlite)?;
    questions::check_same(question, "sqlite", answer, &other)?;
    if let Some(sides) = sides {
        sides.duckdb.add(duckdb_time, 0);
        sides.sqlite.add(sqlite_time, 0);
    }
    Ok(())
}

async fn measure(
    store: &Store,
    question: &Question,
    baseline: Baseline,
    taken: Option<&mut Taken>,
) -> Result<questions::Rows> {
    baseline.watch()?;
    let (time, rows) = store.ask(question.bolide).await?;
    if let Some(taken) = taken {
        taken.add(time, baseline.grown_kib()?);
    }
    Ok(rows)
}

fn table(questions: &[&Question], sides: &[Sides], options: &Options) -> String {
    let mut table = Table::new([
        "query",
        "bolide s",
        "GB/s",
        "in memory s",
        "DuckDB s",
        "SQLite s",
        "of the faster peer",
        "memory MB",
    ]);
    let seconds = |taken: &Taken| match taken.seconds.is_empty() {
        true => "–".to_owned(),
        false => format!("{:.3}", taken.median()),
    };
    for (question, sides) in questions.iter().zip(sides) {
        let own = sides.embedded.median();
        let peer = sides.duckdb.median().min(sides.sqlite.median());
        table.row([
            question.name.to_owned(),
            seconds(&sides.embedded),
            format!("{:.2}", (options.items * data::BYTES as u64) as f64 / own / 1e9),
            seconds(&sides.memory),
            seconds(&sides.duckdb),
            seconds(&sides.sqlite),
            match options.alone {
                true => "–".to_owned(),
                false => format!("{:.2}", own / peer),
            },
            format!("{:.1}", sides.embedded.memory_kib as f64 / 1024.0),
        ]);
    }
    table.to_string()
}

/// One query over HTTP, on the same directory.
fn over_http(bolide: &Path, dir: &Path, options: &Options) -> Result<String> {
    let question = &QUESTIONS[1];
    store::runtime()?.block_on(async {
        let mut http = OverHttp::start(bolide, dir).await?;
        let mut times = Vec::new();
        for round in 0..=options.rounds {
            let time = http.ask(question.bolide).await?;
            if round > 0 {
                times.push(time.as_secs_f64());
            }
        }
        Ok(format!(
            "Over HTTP, `{}` on the release server: {:.3} s.",
            question.name,
            median(times)
        ))
    })
}
