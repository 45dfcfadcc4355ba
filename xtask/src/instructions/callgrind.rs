//! A process under callgrind, and its number of instructions.

use std::path::Path;
use std::process::Command;

use crate::Result;
use crate::tools::quiet;

/// Runs a program under callgrind; returns its number of instructions, on all threads. `out` gets callgrind's file.
///
/// # Errors
/// If the program fails, or callgrind cannot run it.
pub fn count(valgrind: &Path, out: &Path, program: &Path, arguments: &[&str]) -> Result<u64> {
    let mut out_option = std::ffi::OsString::from("--callgrind-out-file=");
    out_option.push(out);
    let mut command = Command::new(valgrind);
    // Without fair scheduling, a thread that waits may run for long before the one that it waits for.
    command
        .args(["--tool=callgrind", "--quiet", "--fair-sched=yes"])
        .arg(out_option);
    quiet(command.arg(program).args(arguments))?;
    let text = std::fs::read_to_string(out).map_err(|error| format!("{}: {error}", out.display()))?;
    total(&text).ok_or_else(|| format!("{}: no total of instructions", out.display()).into())
}

/// The total in a file of callgrind, whose first event is `Ir`.
///
/// Source: Valgrind's manual, "Callgrind Format Specification": `events:` names the costs, `totals:` has their sums.
fn total(text: &str) -> Option<u64> {
    let value = |name: &str| text.lines().filter_map(|line| line.strip_prefix(name)).next_back();
    let events = value("events:")?;
    if events.split_whitespace().next() != Some("Ir") {
        return None;
    }
    value("totals:")?.split_whitespace().next()?.parse().ok()
}

/// The instructions of one run of an operation: from the instructions and runs of two processes.
pub fn per_run((few, few_runs): (u64, u64), (many, many_runs): (u64, u64)) -> u64 {
    let (instructions, runs) = (many.saturating_sub(few), many_runs.saturating_sub(few_runs).max(1));
    (instructions + runs / 2) / runs
}

#[cfg(test)]
mod tests;
