//! The expected figures, and how others compare with them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::project::Project;
use crate::tools::quiet;

/// Percent by which a figure may differ.
const TOLERANCE: u64 = 10;

/// What figures depend on besides the code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The version of the compiler.
    rustc: String,
    /// The processor: its architecture, and whether it has the instructions by which libraries choose their code.
    processor: String,
}

impl Machine {
    /// This machine, with the compiler of the project.
    ///
    /// # Errors
    /// If the compiler does not tell its version.
    pub fn of(project: &Project) -> Result<Machine> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let version = quiet(Command::new(rustc).current_dir(project.root()).arg("--version"))?;
        let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Ok(Machine {
            rustc: version.trim().to_owned(),
            processor: processor(std::env::consts::ARCH, &flags),
        })
    }
}

/// valgrind offers the instructions of the real processor, up to AVX2.
fn processor(architecture: &str, cpuinfo: &str) -> String {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    match flags.is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "avx2")) {
        true => format!("{architecture} with avx2"),
        false => architecture.to_owned(),
    }
}

/// Instructions by operation, and where they were counted.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    #[serde(flatten)]
    machine: Machine,
    instructions: BTreeMap<String, u64>,
}

/// How a figure compares with the expected one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// About the same.
    Within,
    /// More instructions than the tolerance allows.
    Above,
    /// Fewer.
    Below,
    /// There is no expected figure.
    NotExpected,
    /// There is an expected figure, but no such operation.
    NotMeasured,
}

/// A figure beside the expected one.
#[derive(Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The operation.
    pub name: String,
    expected: Option<u64>,
    measured: Option<u64>,
    /// How they compare.
    pub verdict: Verdict,
}

impl Figures {
    /// Figures that were counted on a machine.
    pub fn new(machine: &Machine, instructions: BTreeMap<String, u64>) -> Figures {
        Figures {
            machine: machine.clone(),
            instructions,
        }
    }

    /// Why figures of this machine cannot be compared with these, if so.
    pub fn differs_from(&self, machine: &Machine) -> Option<String> {
        let Machine { rustc, processor } = machine;
        if self.machine.rustc != *rustc {
            return Some(format!("this is {rustc}, the figures are of {}", self.machine.rustc));
        }
        if self.machine.processor != *processor {
            let other = &self.machine.processor;
            return Some(format!("this processor is {processor}, the figures are of {other}"));
        }
        None
    }

    /// Compares the wanted operations, by name.
    pub fn compare(&self, measured: &BTreeMap<String, u64>, wanted: &dyn Fn(&str) -> bool) -> Vec<Comparison> {
        let names: BTreeSet<&String> = self.instructions.keys().chain(measured.keys()).collect();
        names
            .into_iter()
            .filter(|name| wanted(name))
            .map(|name| {
                let (expected, measured) = (self.instructions.get(name).copied(), measured.get(name).copied());
                Comparison {
                    name: name.clone(),
                    expected,
                    measured,
                    verdict: verdict(expected, measured),
                }
            })
            .collect()
    }
}

/// A figure is within the tolerance if it differs by at most [`TOLERANCE`] percent of the expected one.
fn verdict(expected: Option<u64>, measured: Option<u64>) -> Verdict {
    let (Some(expected), Some(measured)) = (expected, measured) else {
        return if measured.is_some() {
            Verdict::NotExpected
        } else {
            Verdict::NotMeasured
        };
    };
    if measured * 100 > expected * (100 + TOLERANCE) {
        Verdict::Above
    } else if measured * 100 < expected * (100 - TOLERANCE) {
        Verdict::Below
    } else {
        Verdict::Within
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match (self.expected, self.measured) {
            (Some(expected), Some(measured)) => {
                let percent = (measured as f64 / expected as f64 - 1.0) * 100.0;
                let word = match self.verdict {
                    Verdict::Above => ": TOO MANY",
                    Verdict::Below => ": fewer than expected",
                    _ => "",
                };
                write!(
                    formatter,
                    "{name}: {measured}, expected {expected} ({percent:+.1} %){word}"
                )
            }
            (None, Some(measured)) => write!(formatter, "{name}: {measured}, and no figure is expected"),
            (_, None) => write!(
                formatter,
                "{name}: a figure is expected, and there is no such operation"
            ),
        }
    }
}

/// Reads the expected figures.
///
/// # Errors
/// If the file is missing or not as [`write()`] makes it.
pub fn read(file: &Path) -> Result<Figures> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()).into())
}

/// Writes the expected figures.
///
/// # Errors
/// If the file cannot be written.
pub fn write(file: &Path, figures: &Figures) -> Result<()> {
    Ok(std::fs::write(file, serde_json::to_string_pretty(figures)? + "\n")?)
}

/// A line for each operation: the smallest and the largest figure of several runs, and how far apart they are.
pub fn spread(runs: &[BTreeMap<String, u64>]) -> String {
    let names: BTreeSet<&String> = runs.iter().flat_map(BTreeMap::keys).collect();
    let line = |name: &String| {
        let figures: Vec<u64> = runs.iter().filter_map(|run| run.get(name).copied()).collect();
        let (least, most) = (figures.iter().min()?, figures.iter().max()?);
        let percent = (*most as f64 / *least as f64 - 1.0) * 100.0;
        Some(format!(
            "{name}: {least} to {most} in {} runs, {percent:.2} % apart\n",
            figures.len()
        ))
    };
    names.into_iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests;
