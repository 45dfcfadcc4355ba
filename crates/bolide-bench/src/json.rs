//! The two JSON readers on the same texts of 1 KB: the reason why there are two.
//!
//! ```text
//!   scanner      used by queries: finds the value at a path, and skips everything else
//!   serde_json   used for documents from clients: reads and checks everything, and makes a tree
//! ```
//!
//! A query that read items into trees would parse the whole item to see one value; the scanner, however, requires texts that were checked when they
//! were stored.

use std::time::Instant;

use bolide_query::{Environment, PageLimit, Parameters, Query, Schema};
use serde_json::Value;

use crate::Result;
use crate::figures::{median, median_ratio};
use crate::query::data;
use crate::table::Table;

/// Paths near the beginning of a document, in its middle and at its end.
const PATHS: [(&str, &str); 3] = [
    ("c.kind", "/kind"),
    ("c.lines[1].price", "/lines/1/price"),
    ("c.weight", "/weight"),
];

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Documents read in a round.
    #[arg(long, default_value_t = 20_000)]
    items: u64,
    /// Rounds; both readers run once in each.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// Runs the benchmark.
pub fn run(options: &Options) -> Result<String> {
    let documents: Vec<String> = (0..options.items).map(data::document).collect();
    let mut table = Table::new(["value", "scanner µs/item", "serde_json µs/item", "serde_json / scanner"]);
    for (path, pointer) in PATHS {
        let mut rounds = Vec::new();
        // The first round warms the caches and is not counted.
        for round in 0..=options.rounds {
            let (scanned, scanner) = timed(|| with_scanner(&documents, path))?;
            let (parsed, serde) = timed(|| with_serde_json(&documents, pointer))?;
            if scanned != parsed {
                return Err(format!("{path}: the readers disagree").into());
            }
            if round > 0 {
                rounds.push((scanner, serde));
            }
        }
        let micros = |seconds: f64| format!("{:.2}", seconds * 1e6 / options.items as f64);
        table.row([
            path.to_owned(),
            micros(median(rounds.iter().map(|(scanner, _)| *scanner))),
            micros(median(rounds.iter().map(|(_, serde)| *serde))),
            format!(
                "{:.1}",
                median_ratio(rounds.iter().map(|(scanner, serde)| (*serde, *scanner)))
            ),
        ]);
    }
    Ok(format!(
        "## Readers of JSON\n\n{} documents of {} bytes, {} rounds.\n\n{table}",
        options.items,
        data::BYTES,
        options.rounds
    ))
}

/// A result, and the time in seconds.
fn timed(read: impl FnOnce() -> Result<Vec<Value>>) -> Result<(Vec<Value>, f64)> {
    let started = Instant::now();
    let values = read()?;
    Ok((values, started.elapsed().as_secs_f64()))
}

/// As a query reads them: with planning, rows and their bytes.
fn with_scanner(documents: &[String], path: &str) -> Result<Vec<Value>> {
    let text = format!("SELECT VALUE {path} FROM c");
    let query = Query::compile(&text, &Parameters::none(), &Schema::metadata())?;
    let mut page = query.execution(Environment::default(), PageLimit::NONE, None)?;
    for (rid, document) in documents.iter().enumerate() {
        page.push(document.as_bytes(), rid as u64)?;
    }
    let finished = page.finish(true)?;
    Ok(serde_json::from_slice(&[b"[", finished.rows.joined(), b"]"].concat())?)
}

fn with_serde_json(documents: &[String], pointer: &str) -> Result<Vec<Value>> {
    let value = |document: &String| -> Result<Value> {
        let tree: Value = serde_json::from_str(document)?;
        Ok(tree.pointer(pointer).cloned().unwrap_or_default())
    };
    documents.iter().map(value).collect()
}

#[cfg(test)]
mod tests;
