//! The results of scenarios and cases, as text.

use std::fmt;

use crate::{Result, parallel};

/// Number of scenarios and cases that run at the same time.
pub const PARALLEL: usize = 4;

/// The result of a scenario or case.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    /// Passed in every mode that can be tested; the text says why not in others.
    PassedBut(String),
    Failed(String),
    Skipped(String),
}

/// The results of one suite on one engine, by name.
pub struct Report {
    /// The suite and engine, such as `ttl scenarios on memory`.
    pub title: String,
    pub verdicts: Vec<(String, Verdict)>,
}

/// The verdict of a scenario or case, which must fail if it is a known gap.
pub fn with_known_gap(outcome: Result<()>, is_known_gap: bool) -> Verdict {
    match (outcome, is_known_gap) {
        (Ok(()), false) => Verdict::Passed,
        (Ok(()), true) => Verdict::Failed("it passes now; take it out of known_gaps.json".to_owned()),
        (Err(_), true) => Verdict::Skipped("known gap".to_owned()),
        (Err(error), false) => Verdict::Failed(error.to_string()),
    }
}

/// Runs `verdict_of` on [`PARALLEL`] threads; verdicts are in the order of `all`.
pub fn run_all<T: Sync>(all: &[T], verdict_of: impl Fn(&T) -> Verdict + Sync) -> Vec<Verdict> {
    parallel::map(all, PARALLEL, verdict_of)
}

impl Report {
    /// Number of failures.
    pub fn failed(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Failed(_)))
    }

    fn count(&self, of: impl Fn(&Verdict) -> bool) -> usize {
        self.verdicts.iter().filter(|(_, verdict)| of(verdict)).count()
    }
}

/// Number of verdicts for each reason, in order of first appearance.
fn by_reason<'a>(reasons: impl Iterator<Item = &'a str>) -> Vec<(&'a str, usize)> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for reason in reasons {
        match counts.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => counts.push((reason, 1)),
        }
    }
    counts
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.title)?;
        for (name, verdict) in &self.verdicts {
            if let Verdict::Failed(why) = verdict {
                writeln!(formatter, "FAILED {name}: {why}")?;
            }
        }
        let verdicts = || self.verdicts.iter().map(|(_, verdict)| verdict);
        let in_part = verdicts().filter_map(|verdict| match verdict {
            Verdict::PassedBut(reason) => Some(reason.as_str()),
            _ => None,
        });
        for (reason, count) in by_reason(in_part) {
            writeln!(formatter, "passed in part {count}: {reason}")?;
        }
        let skipped = verdicts().filter_map(|verdict| match verdict {
            Verdict::Skipped(reason) => Some(reason.as_str()),
            _ => None,
        });
        for (reason, count) in by_reason(skipped) {
            writeln!(formatter, "skipped {count}: {reason}")?;
        }
        let passed = self.count(|verdict| matches!(verdict, Verdict::Passed | Verdict::PassedBut(_)));
        let failed = self.failed();
        write!(
            formatter,
            "{passed} passed, {failed} failed, {} skipped",
            self.verdicts.len() - passed - failed
        )
    }
}

#[cfg(test)]
mod tests;
