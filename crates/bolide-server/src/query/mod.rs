//! `bolide query`: runs a query and prints its results.
//!
//!   text, parameters ─▶ a running server, by its admin API ─┐
//!                    └▶ a data directory, by the core ──────┴─ pages of rows ─▶ lines of JSON, or a table
//!
//! Results of several ranges are already merged, in both cases.

mod local;
mod remote;
mod table;

use std::io::{self, BufWriter, Write};

use bolide_model::partition_key::PartitionKey;
use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::server::Failure;
use crate::target::TargetOptions;

/// The options of `query`.
#[derive(Debug, Clone, Args)]
pub struct QueryOptions {
    /// The query, such as `SELECT * FROM c WHERE c.n > @least`.
    #[arg(value_name = "SQL")]
    pub text: String,
    #[command(flatten)]
    pub target: TargetOptions,
    /// A parameter of the query, such as `@least=5` or `@name="ada"`; may be given several times.
    #[arg(long = "param", value_name = "@NAME=JSON", value_parser = parameter)]
    pub parameters: Vec<(String, Value)>,
    /// Only items of this partition key: a JSON array, such as `["ada"]`, or a plain value, which is taken as a string.
    #[arg(long, value_name = "KEY", value_parser = partition_key)]
    pub partition_key: Option<Value>,
    /// How to print results.
    #[arg(long, value_enum, default_value_t = Format::Lines)]
    pub format: Format,
    /// Print what the query would do instead of its results.
    #[arg(long)]
    pub explain: bool,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A line of JSON for each.
    Lines,
    /// A table with a column for each member of the results.
    Table,
}

/// A page of results.
pub struct Page {
    rows: Vec<Value>,
    continuation: Option<String>,
}

/// Runs the query.
trait Source {
    /// One page: the first, or the one after a continuation.
    fn page(&mut self, options: &QueryOptions, continuation: Option<String>) -> Result<Page, Failure>;

    /// Describes what the query would do.
    fn explain(&mut self, options: &QueryOptions) -> Result<String, Failure>;

    /// Closes what was opened.
    fn close(&mut self) -> Result<(), Failure>;
}

/// Runs the query and prints its results.
///
/// # Errors
/// Why the query cannot run, in one line; rows of earlier pages may have been printed.
pub fn run(options: &QueryOptions) -> Result<(), Failure> {
    let mut source: Box<dyn Source> = match &options.target.data_dir {
        Some(directory) => Box::new(local::Local::open(directory)?),
        None => Box::new(remote::Remote::new(options)?),
    };
    let outcome = print_all(source.as_mut(), options);
    let closed = source.close();
    outcome.and(closed)
}

fn print_all(source: &mut dyn Source, options: &QueryOptions) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    if options.explain {
        return written(
            out.write_all(source.explain(options)?.as_bytes())
                .and_then(|()| out.flush()),
        );
    }
    let mut all = Vec::new();
    let mut continuation = None;
    loop {
        let page = source.page(options, continuation)?;
        match options.format {
            Format::Table => all.extend(page.rows),
            Format::Lines => written(page.rows.iter().try_for_each(|row| writeln!(out, "{row}")))?,
        }
        continuation = page.continuation;
        if continuation.is_none() {
            break;
        }
    }
    if options.format == Format::Table {
        written(out.write_all(table::text(&all).as_bytes()))?;
    }
    written(out.flush())
}

/// A reader that closes the pipe early, as `head` does, is not an error.
fn written(outcome: io::Result<()>) -> Result<(), Failure> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| Failure::new(format!("cannot write the results: {error}"))),
    }
}

fn parameter(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| name.len() > 1 && name.starts_with('@'))
        .ok_or("expected a name that begins with @, =, and a JSON value")?;
    let value = serde_json::from_str(value).map_err(|error| format!("the value is not JSON: {error}"))?;
    Ok((name.to_owned(), value))
}

fn partition_key(text: &str) -> Result<Value, String> {
    let key = PartitionKey::from_text(text).map_err(|error| error.to_string())?;
    serde_json::from_str(&key.to_header_json()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
