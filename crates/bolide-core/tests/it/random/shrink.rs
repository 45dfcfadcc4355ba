//! Reduces a program that fails to the smallest one found that still fails.

use super::program::Program;
use super::runner::Failure;

/// Maximum number of runs for reducing a program.
const RUNS: usize = 400;

/// Checks a claim on a program. If it fails, panics with a reduced program that fails too.
pub fn check(seed: u64, program: &Program, claim: impl Fn(&Program) -> Result<(), Failure>) {
    let Err(failure) = claim(program) else { return };
    let (small, failure) = shrink(program, failure, claim);
    let mut text = format!("seed {seed}: {}\n\n{:?}\n", failure.what, small.setup);
    for (at, op) in small.ops.iter().enumerate() {
        let mark = if at == failure.step { ">" } else { " " };
        text.push_str(&format!("{mark} {at:2} {op:?}\n"));
    }
    panic!("{text}");
}

/// Compares the answers of two runs of a program.
pub fn same_answers(program: &Program, one: &[String], other: &[String]) -> Result<(), Failure> {
    let different = (0..program.ops.len()).find(|step| one.get(*step) != other.get(*step));
    match different {
        None => Ok(()),
        Some(step) => Err(Failure {
            step,
            what: format!("the answers differ:\n  {:?}\n  {:?}", one.get(step), other.get(step)),
        }),
    }
}

/// Removes ever smaller parts as long as the claim still fails.
fn shrink(program: &Program, failure: Failure, claim: impl Fn(&Program) -> Result<(), Failure>) -> (Program, Failure) {
    let mut best = program.clone();
    best.ops.truncate(failure.step + 1);
    let (mut best_failure, mut runs) = (failure, 0);
    let mut piece = best.ops.len().div_ceil(2);
    while piece > 0 {
        let mut at = 0;
        while at < best.ops.len() && runs < RUNS {
            let mut smaller = best.clone();
            smaller.ops.drain(at..(at + piece).min(best.ops.len()));
            runs += 1;
            match claim(&smaller) {
                Err(failure) => {
                    smaller.ops.truncate(failure.step + 1);
                    (best, best_failure) = (smaller, failure);
                }
                Ok(()) => at += piece,
            }
        }
        piece /= 2;
    }
    (best, best_failure)
}
