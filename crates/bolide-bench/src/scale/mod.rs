//! Many items on the embedded engine: loading them, opening the store again, and steady writes while as many items expire.
//!
//!   1. `--items` items are loaded by bulk requests; the rate, the server's memory and the disk space are reported as they grow.
//!   2. The server is stopped and started again, and killed while items are replaced and started again. Each time counts from the start of the process:
//!      to the first answered request, to the first point read, and to the first query through an index.
//!   3. With `--balance`, on another store: items that expire are created at a fixed rate. If the purge and the merges of tables keep up, disk space and
//!      memory level off.

mod balance;
mod filling;
mod opening;
mod running;

use std::path::{Path, PathBuf};

use crate::Result;

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Items to load.
    #[arg(long, default_value_t = 10_000_000)]
    items: u64,
    /// Bytes of an item's document, at least 100.
    #[arg(long, default_value_t = 300)]
    bytes: usize,
    /// Starts after each kind of end.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Items that are replaced before each kill.
    #[arg(long, default_value_t = 500_000)]
    replaced: u64,
    /// The server's cache of blocks, in MiB. With the default of the server the cache itself would be most of the memory.
    #[arg(long, default_value_t = 256)]
    cache_mb: u64,
    /// Keep the loaded store here, and use the one that is there.
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Empty the system's cache of files before each start; needs root.
    #[arg(long)]
    cold: bool,
    /// Minutes of steady writes of items that expire; without it, there are none.
    #[arg(long, value_name = "MINUTES")]
    balance: Option<u32>,
    /// Only the steady writes.
    #[arg(long, requires = "balance")]
    only_balance: bool,
    /// Writes per second of the balance.
    #[arg(long, default_value_t = 500)]
    rate: u32,
    /// Seconds that the items of the balance live.
    #[arg(long, default_value_t = 180)]
    ttl: i32,
}

/// Runs the benchmark.
pub fn run(bolide: &Path, options: &Options) -> Result<String> {
    let mut sections = Vec::new();
    if !options.only_balance {
        let temporary = tempfile::tempdir()?;
        let dir = options.store.clone().unwrap_or_else(|| temporary.path().join("data"));
        if !dir.exists() {
            sections.push(filling::run(bolide, &dir, options)?);
        }
        sections.push(opening::run(bolide, &dir, options)?);
    }
    if let Some(minutes) = options.balance {
        sections.push(balance::run(bolide, minutes, options)?);
    }
    Ok(sections.join("\n\n"))
}

/// A document; its partition key is its id, and `number` is indexed.
fn document(id: &str, number: u64, bytes: usize, ttl: Option<i32>) -> String {
    let ttl = ttl.map(|seconds| format!("\"ttl\":{seconds},")).unwrap_or_default();
    let mut text = format!("{{\"id\":\"{id}\",\"number\":{number},{ttl}\"kind\":\"session\",\"notes\":\"");
    const END: &str = "\"}";
    let filler = std::iter::repeat_n("lorem ipsum ", bytes / 12 + 1).flat_map(str::chars);
    text.extend(filler.take(bytes.saturating_sub(text.len() + END.len())));
    text.push_str(END);
    text
}

/// Shows a row as soon as it is known: a run takes long.
fn progress(cells: &[String]) {
    eprintln!("{}", cells.join("  "));
}

#[cfg(test)]
mod tests;
