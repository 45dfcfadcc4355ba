//! The table at the end of `cargo xtask test`.

use std::fmt;
use std::time::{Duration, Instant};

use crate::{Result, parallel};

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
    /// Prints the names of checks, runs them side by side and keeps their results; a failure does not stop the following checks.
    ///
    /// The first has the usual priority, the others take what it leaves.
    pub fn run<T: Sync>(
        &mut self,
        checks: &[(&'static str, T)],
        run: impl Fn(&(&'static str, T)) -> Result<Outcome> + Sync,
    ) {
        let names: Vec<&str> = checks.iter().map(|(name, _)| *name).collect();
        println!("\n── {} ──", names.join(", "));
        let timed = |number: usize, check: &(&'static str, T)| {
            if number > 0 {
                parallel::lower_priority();
            }
            let start = Instant::now();
            let result = run(check).map_err(|error| error.to_string());
            if let Err(error) = &result {
                println!("{}: {error}", check.0);
            }
            Row {
                name: check.0,
                result,
                time: start.elapsed(),
            }
        };
        let rows = std::thread::scope(|scope| {
            let threads: Vec<_> = checks
                .iter()
                .enumerate()
                .map(|(number, check)| scope.spawn(move || timed(number, check)))
                .collect();
            threads.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
        });
        for row in rows {
            self.rows
                .push(row.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
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
