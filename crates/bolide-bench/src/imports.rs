//! `bolide import` of a file with items of 1 KB, compared with creates over HTTP of the same items.
//!
//! ```text
//!   import   the binary reads a file of JSON lines and sends bulk requests
//!   create   32 clients create one item at a time, see `creates`
//! ```
//!
//! Both write to a new store in each round, with every write durable before its response, into one container of one range.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::cosmos::{Requests, account_key};
use crate::figures::{median, median_ratio, percent};
use crate::server::{Server, Store};
use crate::table::Table;
use crate::{Result, creates, item};

/// Clients that create.
const CLIENTS: usize = 32;

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Items of the file.
    #[arg(long, default_value_t = 1_000_000)]
    items: u64,
    /// Rounds; both sides run once in each.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds that creates are measured per round.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
}

/// Runs the benchmark.
pub fn run(bolide: &Path, options: &Options) -> Result<String> {
    let files = tempfile::tempdir()?;
    let file = files.path().join("items.jsonl");
    write_items(&file, options.items)?;
    let time = Duration::from_secs_f64(options.seconds);
    let mut rounds = Vec::new();
    for _ in 0..options.rounds {
        let created = creates::over_http(bolide, CLIENTS, time)?.per_second();
        let imported = options.items as f64 / import(bolide, &file)?.as_secs_f64();
        rounds.push((imported, created));
    }
    let mut table = Table::new(["side", "items/s"]);
    let rate = |rate: f64| format!("{rate:.0}");
    table.row([
        "import".to_owned(),
        rate(median(rounds.iter().map(|(imported, _)| *imported))),
    ]);
    let created = median(rounds.iter().map(|(_, created)| *created));
    table.row([format!("create over HTTP, {CLIENTS} clients"), rate(created)]);
    table.row(["import / create".to_owned(), percent(median_ratio(rounds))]);
    Ok(format!(
        "## Import\n\n{} items of {} bytes, {} rounds.\n\n{table}",
        options.items,
        item::BYTES,
        options.rounds
    ))
}

fn write_items(file: &Path, items: u64) -> Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    for number in 0..items {
        writeln!(out, "{}", item::document(&item::id(number), None))?;
    }
    Ok(out.flush()?)
}

/// Imports a file into a new store; the time from the start of the process to its end.
fn import(bolide: &Path, file: &Path) -> Result<Duration> {
    let server = Server::start(bolide, Store::Embedded)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let requests = Requests::to(server.address);
        requests
            .set_up(&mut Connection::open(server.address).await?, None)
            .await
    })?;
    let mut command = Command::new(bolide);
    command
        .env_clear()
        .env("BOLIDE_KEY", account_key())
        .args(["import", "--database", "bench", "--container", "items", "--endpoint"])
        .arg(format!("http://{}", server.address))
        .arg("--file")
        .arg(file);
    let started = Instant::now();
    let output = command.output()?;
    let time = started.elapsed();
    match output.status.success() {
        true => Ok(time),
        false => Err(format!("the import failed: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}
