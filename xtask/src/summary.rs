//! The table at the end of `cargo xtask test`.

use std::fmt;
use std::time::{Duration, Instant};

use crate::Result;

/// The result of a check that did not fail.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of it ran and passed.
    Passed,
    /// What could run here passed; the text says what did not run.
    PassedBut(String),
    /// It could not run here; the text says what is missing.
    Skipped(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => formatter.write_str("passed"),
            Self::PassedBut(missing) => write!(formatter, "passed, but {missing}"),
            Self::Skipped(reason) => write!(formatter, "skipped: {reason}"),
        }
    }
}

/// The results so far, in order.
#[derive(Default)]
pub struct Summary {
    rows: Vec<Row>,
}

struct Row {
    name: &'static str,
    result: std::result::Result<Outcome, String>,
    time: Duration,
}

impl Summary {
    /// Prints the name of a check, runs it and keeps its result; a failure does not stop the following checks.
    pub fn run(&mut self, name: &'static str, check: impl FnOnce() -> Result<Outcome>) {
        println!("\n── {name} ──");
        let start = Instant::now();
        let result = check().map_err(|error| error.to_string());
        if let Err(error) = &result {
            println!("{name}: {error}");
        }
        self.rows.push(Row {
            name,
            result,
            time: start.elapsed(),
        });
    }

    /// Prints the table; fails if any check failed, naming all of them.
    pub fn finish(&self) -> Result<()> {
        println!("\n{self}");
        let failed: Vec<&str> = self
            .rows
            .iter()
            .filter(|row| row.result.is_err())
            .map(|row| row.name)
            .collect();
        if failed.is_empty() {
            Ok(())
        } else {
            Err(format!("failed: {}", failed.join(", ")).into())
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{:<14} {:>8}  result", "check", "time")?;
        for Row { name, result, time } in &self.rows {
            let seconds = format!("{:.1} s", time.as_secs_f64());
            match result {
                Ok(outcome) => writeln!(formatter, "{name:<14} {seconds:>8}  {outcome}")?,
                Err(error) => writeln!(formatter, "{name:<14} {seconds:>8}  FAILED: {error}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
