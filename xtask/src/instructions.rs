//! `cargo xtask instructions`: counts the instructions of a few operations, and compares them with those of an earlier commit.
//!
//! Times differ between runs and machines; instructions hardly do. callgrind counts those of a process that runs an operation a few times, and of one that runs it
//! many times. The difference belongs to the operation: what else a process does is the same in both. Figures are comparable only if the same compiler made
//! the program and the processor offers the same instructions to libraries that choose by them, so both are kept with the figures.
//!
//!   bolide-bench, profile `instructions` ──callgrind──▶ instructions per operation ──▶ compared with `crates/bolide-bench/instructions.json`
//!
//! Out of scope: waits, caches and the disk, which instructions do not show. The benchmarks do.

mod callgrind;
mod figures;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;

use self::figures::{Figures, Machine, Verdict};
use crate::project::Project;
use crate::summary::Outcome;
use crate::tools::Tools;
use crate::{Result, parallel};

/// The expected figures.
const FILE: &str = "crates/bolide-bench/instructions.json";

/// An operation of `bolide-bench instructions`, and how often it runs in the two processes. Its first runs differ (caches are empty, tables grow), so
/// these are in both.
struct Operation {
    name: &'static str,
    few: u64,
    many: u64,
}

const OPERATIONS: &[Operation] = &[
    operation("query-filter", 10, 40),
    operation("index-probe", 100, 600),
    operation("index-order", 100, 600),
    operation("purge-step", 10, 100),
    operation("point-write-lsm", 1_000, 4_000),
    operation("point-write", 1_000, 4_000),
    operation("point-read", 1_000, 6_000),
    operation("http-read", 500, 2_500),
    operation("http-create", 200, 1_000),
    operation("frame-read", 500, 2_500),
];

const fn operation(name: &'static str, few: u64, many: u64) -> Operation {
    Operation { name, few, many }
}

/// What to count.
#[derive(Args, Default)]
pub struct Options {
    /// Write the figures as the expected ones, instead of comparing.
    #[arg(long)]
    update: bool,
    /// Count only the operations whose name contains this.
    #[arg(long, value_name = "TEXT", conflicts_with = "update")]
    filter: Option<String>,
    /// Count this many times, and show how much the figures differ.
    #[arg(long, value_name = "NUMBER")]
    repeat: Option<u32>,
    /// Install valgrind if it is missing.
    #[arg(long)]
    install: bool,
}

/// Counts, and compares or writes the figures.
///
/// # Errors
/// If an operation takes more instructions than expected, or cannot be counted.
pub fn run(project: &Project, options: &Options) -> Result<Outcome> {
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::PassedBut(
            "not checked: valgrind counts on Linux only".to_owned(),
        ));
    }
    let tools = Tools::new(project, options.install);
    let valgrind = match tools.debian("valgrind", "valgrind") {
        Ok(path) => path,
        Err(missing) => return Ok(Outcome::PassedBut(format!("not checked: {missing}"))),
    };
    let machine = Machine::of(project)?;
    let file = project.root().join(FILE);
    let expected = figures::read(&file)?;
    if let (Some(other), false) = (
        expected.differs_from(&machine),
        options.update || options.repeat.is_some(),
    ) {
        return Ok(Outcome::PassedBut(format!(
            "not compared: {other}; `--update` writes figures of this one"
        )));
    }
    let counter = Counter {
        valgrind,
        program: project.build_benchmarks()?,
        directory: project.target_directory()?.join("instructions"),
    };
    std::fs::create_dir_all(&counter.directory)?;
    let wanted = |name: &str| options.filter.as_ref().is_none_or(|text| name.contains(text));
    let operations: Vec<&Operation> = OPERATIONS.iter().filter(|operation| wanted(operation.name)).collect();
    let runs: Vec<BTreeMap<String, u64>> = (0..options.repeat.unwrap_or(1).max(1))
        .map(|_| counter.count_all(&operations))
        .collect::<Result<_>>()?;
    if runs.len() > 1 {
        print!("{}", figures::spread(&runs));
    }
    let measured = runs.into_iter().next_back().unwrap_or_default();
    if options.update {
        figures::write(&file, &Figures::new(&machine, measured))?;
        println!("wrote {FILE}");
        return Ok(Outcome::Passed);
    }
    if expected.differs_from(&machine).is_some() {
        return Ok(Outcome::PassedBut("not compared".to_owned()));
    }
    compare(&expected, &measured, &wanted, &counter.directory)
}

/// Prints a line for each operation.
///
/// # Errors
/// If one takes too many instructions, or has no expected figure.
fn compare(
    expected: &Figures,
    measured: &BTreeMap<String, u64>,
    wanted: &dyn Fn(&str) -> bool,
    directory: &Path,
) -> Result<Outcome> {
    let (mut failed, mut cheaper) = (Vec::new(), Vec::new());
    for comparison in expected.compare(measured, wanted) {
        println!("instructions: {comparison}");
        match comparison.verdict {
            Verdict::Within => {}
            Verdict::Below => cheaper.push(comparison.name),
            Verdict::Above | Verdict::NotExpected | Verdict::NotMeasured => failed.push(comparison.name),
        }
    }
    if !failed.is_empty() {
        return Err(format!(
            "too many instructions, or no figure: {}. `callgrind_annotate {}/OPERATION.many` says where they are spent; if that is intended, \
             `cargo xtask instructions --update` writes the figures",
            failed.join(", "),
            directory.display()
        )
        .into());
    }
    Ok(match cheaper.is_empty() {
        true => Outcome::Passed,
        false => Outcome::PassedBut(format!(
            "with fewer instructions than expected: {}; `cargo xtask instructions --update` writes that",
            cheaper.join(", ")
        )),
    })
}

/// Runs operations under callgrind.
struct Counter {
    valgrind: PathBuf,
    program: PathBuf,
    /// Where callgrind's files go.
    directory: PathBuf,
}

impl Counter {
    /// The instructions of one run of each operation.
    fn count_all(&self, operations: &[&Operation]) -> Result<BTreeMap<String, u64>> {
        let processes: Vec<(&Operation, bool)> = [true, false]
            .into_iter()
            .flat_map(|is_many| operations.iter().map(move |operation| (*operation, is_many)))
            .collect();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let counts = parallel::map(&processes, processors, |(operation, is_many)| {
            self.count(operation, *is_many)
        });
        let counts: Vec<u64> = counts.into_iter().collect::<Result<_>>()?;
        let (many, few) = counts.split_at(operations.len());
        let figures = operations.iter().zip(many.iter().zip(few));
        Ok(figures
            .map(|(operation, (many, few))| {
                let figure = callgrind::per_run((*few, operation.few), (*many, operation.many));
                (operation.name.to_owned(), figure)
            })
            .collect())
    }

    /// The instructions of a process.
    fn count(&self, operation: &Operation, is_many: bool) -> Result<u64> {
        let (which, times) = if is_many {
            ("many", operation.many)
        } else {
            ("few", operation.few)
        };
        let out = self.directory.join(format!("{}.{which}", operation.name));
        let times = times.to_string();
        let arguments = ["instructions", "--operation", operation.name, "--times", &times];
        callgrind::count(&self.valgrind, &out, &self.program, &arguments)
            .map_err(|error| format!("{}: {error}", operation.name).into())
    }
}
