//! `bolide query`: runs a query and prints its results.
//!
//!   text, parameters ─▶ a running server, by its admin API ─┐
//!                    └▶ a data directory, by the core ──────┴─ pages of rows ─▶ lines of JSON, or a table
//!
//! Results of several ranges are already merged, in both cases.

mod local;
pub mod remote;
mod table;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use bolide_model::account_key::WELL_KNOWN_KEY;
use bolide_model::partition_key::PartitionKey;
use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::keys;
use crate::server::Failure;

/// The options of `query`.
#[derive(Debug, Clone, Args)]
pub struct QueryOptions {
    /// The query, such as `SELECT * FROM c WHERE c.n > @least`.
    #[arg(value_name = "SQL")]
    pub text: String,
    /// The database.
    #[arg(long, value_name = "ID")]
    pub database: String,
    /// The container.
    #[arg(long, value_name = "ID")]
    pub container: String,
    /// The server to query.
    #[arg(long, default_value = "http://127.0.0.1:8081", value_name = "URL")]
    pub endpoint: String,
    /// For https: a PEM file with the certificates to trust, such as the server's own from http://HOST:PORT/_explorer/emulator.pem.
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// For https: trust any certificate. An attacker in between can then read the key and change the results.
    #[arg(long, conflicts_with = "ca")]
    pub insecure: bool,
    /// Account key of that server, base64; by default the emulator's well-known key.
    #[arg(long, env = "BOLIDE_KEY", hide_env_values = true, value_name = "BASE64")]
    pub key: Option<String>,
    /// File with that key.
    #[arg(long, env = "BOLIDE_KEY_FILE", value_name = "FILE", conflicts_with = "key")]
    pub key_file: Option<PathBuf>,
    /// Query this data directory instead of a server. No server may be using it.
    #[arg(long, value_name = "DIR", conflicts_with = "endpoint")]
    pub data_dir: Option<PathBuf>,
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
    let mut source: Box<dyn Source> = match &options.data_dir {
        Some(directory) => Box::new(local::Local::open(directory)?),
        None => Box::new(remote::Remote::new(
            options,
            keys::given("--key", options.key.as_deref(), options.key_file.as_deref())?
                .as_deref()
                .unwrap_or(WELL_KNOWN_KEY),
        )?),
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

/// The first error of a query, from the document in the service's message: code, message and location.
fn sentence(document: &str) -> Option<String> {
    let document: Value = serde_json::from_str(document).ok()?;
    if let Some(text) = document["Errors"][0].as_str() {
        return Some(text.to_owned());
    }
    let error = &document["errors"][0];
    let code = match &error["code"] {
        Value::String(code) => format!("{code}: "),
        Value::Number(code) => format!("{code}: "),
        _ => String::new(),
    };
    let place = match (&error["location"]["start"], &error["location"]["end"]) {
        (Value::Number(start), Value::Number(end)) => format!(" (characters {start} to {end})"),
        _ => String::new(),
    };
    Some(format!("{code}{}{place}", error["message"].as_str()?))
}

#[cfg(test)]
mod tests;
