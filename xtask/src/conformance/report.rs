//! What became of scenarios and cases, and the text that says so.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::Result;

/// Scenarios and cases that are judged at a time.
pub const PARALLEL: usize = 4;

/// How a scenario or case ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    /// Passed in every way that can be tried; why not in others.
    PassedBut(String),
    Failed(String),
    Skipped(String),
}

/// The verdicts of one suite on one engine, by name.
pub struct Report {
    /// What ran where, as `ttl scenarios on memory`.
    pub title: String,
    pub verdicts: Vec<(String, Verdict)>,
}

/// A listed gap must fail; that it does is no news.
pub fn with_known_gap(outcome: Result<()>, is_known_gap: bool) -> Verdict {
    match (outcome, is_known_gap) {
        (Ok(()), false) => Verdict::Passed,
        (Ok(()), true) => Verdict::Failed("it passes now; take it out of known_gaps.json".to_owned()),
        (Err(_), true) => Verdict::Skipped("known gap".to_owned()),
        (Err(error), false) => Verdict::Failed(error.to_string()),
    }
}

/// Judges on [`PARALLEL`] threads; verdicts come in the order of what is judged.
pub fn judge_all<T: Sync>(all: &[T], judge: impl Fn(&T) -> Verdict + Sync) -> Vec<Verdict> {
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(Vec::with_capacity(all.len()));
    std::thread::scope(|threads| {
        for _ in 0..PARALLEL {
            threads.spawn(|| {
                while let Some((index, one)) = take(&next, all) {
                    let verdict = judge(one);
                    verdicts
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push((index, verdict));
                }
            });
        }
    });
    let mut verdicts = verdicts.into_inner().unwrap_or_else(PoisonError::into_inner);
    verdicts.sort_by_key(|(index, _)| *index);
    verdicts.into_iter().map(|(_, verdict)| verdict).collect()
}

fn take<'a, T>(next: &AtomicUsize, all: &'a [T]) -> Option<(usize, &'a T)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    all.get(index).map(|one| (index, one))
}

impl Report {
    /// How many failed.
    pub fn failed(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Failed(_)))
    }

    fn count(&self, of: impl Fn(&Verdict) -> bool) -> usize {
        self.verdicts.iter().filter(|(_, verdict)| of(verdict)).count()
    }
}

/// How many verdicts have each reason, in order of first appearance.
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
mod tests {
    use super::*;

    #[test]
    fn a_known_gap_that_closes_is_a_failure_and_one_that_stays_is_none() {
        assert_eq!(with_known_gap(Ok(()), false), Verdict::Passed);
        assert!(matches!(with_known_gap(Ok(()), true), Verdict::Failed(_)));
        assert!(matches!(
            with_known_gap(Err("status".into()), true),
            Verdict::Skipped(_)
        ));
        assert!(matches!(
            with_known_gap(Err("status".into()), false),
            Verdict::Failed(_)
        ));
    }

    #[test]
    fn verdicts_keep_the_order_of_what_was_judged() {
        let numbers: Vec<usize> = (0..50).collect();
        let verdicts = judge_all(&numbers, |number| Verdict::Skipped(number.to_string()));
        let expected: Vec<Verdict> = numbers
            .iter()
            .map(|number| Verdict::Skipped(number.to_string()))
            .collect();
        assert_eq!(verdicts, expected);
    }

    #[test]
    fn the_report_ends_with_its_three_counts_and_shows_every_reason_to_skip() {
        let verdicts = [
            ("a", Verdict::Passed),
            (
                "b",
                Verdict::Failed("step 3 item.read: status: expected 404, got 200".to_owned()),
            ),
            ("c", Verdict::Skipped("mongo".to_owned())),
            ("d", Verdict::Skipped("mongo".to_owned())),
            ("e", Verdict::PassedBut("not over several ranges".to_owned())),
        ];
        let verdicts = verdicts
            .into_iter()
            .map(|(name, verdict)| (name.to_owned(), verdict))
            .collect();
        let text = Report {
            title: "ttl scenarios on memory".to_owned(),
            verdicts,
        }
        .to_string();
        assert!(
            text.ends_with("\nskipped 2: mongo\n2 passed, 1 failed, 2 skipped"),
            "{text}"
        );
        assert!(
            text.contains("FAILED b: step 3 item.read: status: expected 404, got 200\n"),
            "{text}"
        );
        assert!(text.contains("passed in part 1: not over several ranges\n"), "{text}");
    }
}
