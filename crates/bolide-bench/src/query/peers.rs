//! SQLite and DuckDB, driven by `peers.py` in a Python process.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::data;
use super::questions::Rows;
use crate::Result;
use crate::process::OwnedChild;

const SCRIPT: &str = include_str!("peers.py");

/// The Python process.
pub struct Peers {
    /// A sentence with the versions of the peers.
    pub versions: String,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    _child: OwnedChild,
}

impl Peers {
    /// Starts the process; it fills its tables in `dir` if they do not exist. `shared`: a directory for a virtual environment.
    pub fn start(shared: &Path, dir: &Path, python: Option<PathBuf>, items: u64) -> Result<Peers> {
        let python = match python {
            Some(python) => python,
            None => environment(shared)?,
        };
        let texts = dir.join("items.ndjson");
        if !texts.exists() {
            write_texts(&texts, items)?;
        }
        let mut child = Command::new(python)
            .args(["-c", SCRIPT])
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let questions = child.stdin.take().ok_or("no pipe to the peers")?;
        let answers = BufReader::new(child.stdout.take().ok_or("no pipe from the peers")?);
        let mut peers = Peers {
            versions: String::new(),
            questions,
            answers,
            _child: OwnedChild(child),
        };
        peers.versions = peers.line()?["versions"].as_str().unwrap_or_default().to_owned();
        Ok(peers)
    }

    /// Runs a query; returns the time until its last row.
    pub fn ask(&mut self, peer: &str, sql: &str) -> Result<(Duration, Rows)> {
        writeln!(self.questions, "{}", json!({"peer": peer, "sql": sql}))?;
        let answer = self.line()?;
        let seconds = answer["seconds"].as_f64().ok_or("an answer without its time")?;
        Ok((
            Duration::from_secs_f64(seconds),
            serde_json::from_value(answer["rows"].clone())?,
        ))
    }

    fn line(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let line: Value = serde_json::from_str(&line).map_err(|_| "the peers have ended; see above")?;
        Ok(line)
    }
}

/// A virtual environment with the package `duckdb`.
fn environment(shared: &Path) -> Result<PathBuf> {
    let home = shared.join("venv");
    let python = home.join("bin").join("python");
    if !python.exists() {
        succeed(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
        succeed(Command::new(&python).args(["-m", "pip", "install", "--quiet", "duckdb"]))?;
    }
    Ok(python)
}

fn succeed(command: &mut Command) -> Result<()> {
    match command.status()?.success() {
        true => Ok(()),
        false => Err(format!("failed: {command:?}").into()),
    }
}

/// Writes one document per line.
fn write_texts(path: &Path, items: u64) -> Result<()> {
    let unfinished = path.with_extension("unfinished");
    let mut file = BufWriter::new(File::create(&unfinished)?);
    for number in 0..items {
        writeln!(file, "{}", data::document(number))?;
    }
    file.flush()?;
    Ok(std::fs::rename(unfinished, path)?)
}
