//! The table at the end of `cargo xtask test`.

use std::fmt;
use std::time::{Duration, Instant};

use crate::Result;

/// How a check ended when it did not fail.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of it ran and held.
    Passed,
    /// What could run here held; the text says what did not run.
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

/// What ran so far, in order.
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
    /// Announces a check, runs it and keeps how it ended; a failure does not stop the checks after it.
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
mod tests {
    use super::*;

    #[test]
    fn one_failure_fails_the_whole_and_is_named_but_the_rest_still_runs() {
        let mut summary = Summary::default();
        summary.run("first", || Err("broken".into()));
        summary.run("second", || Ok(Outcome::Passed));
        let error = summary.finish().expect_err("first failed").to_string();
        assert_eq!(error, "failed: first");
        assert!(summary.to_string().contains("FAILED: broken"));
    }

    #[test]
    fn what_did_not_run_is_visible_and_not_a_failure() {
        let mut summary = Summary::default();
        summary.run("conformance", || Ok(Outcome::PassedBut("not run: 5 cases".to_owned())));
        assert!(summary.finish().is_ok());
        assert!(summary.to_string().contains("passed, but not run: 5 cases"));
    }

    #[test]
    fn a_skipped_check_is_visible_and_not_a_failure() {
        let mut summary = Summary::default();
        summary.run("deny", || Ok(Outcome::Skipped("not installed".to_owned())));
        assert!(summary.finish().is_ok());
        assert!(summary.to_string().contains("skipped: not installed"));
    }
}
