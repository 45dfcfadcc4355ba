//! The figures of a run: what is kept as JSON, and the statistics over its rounds.
//!
//! ```json
//! { "machine": "2 cores …", "date": "2026-01-31", "profile": "release",
//!   "settings": { "items": 10000, "clients": 32, "seconds": 3.0, "rounds": 3 },
//!   "absent": [ { "name": "cosmium", "reason": "…" } ],
//!   "workloads": [ { "name": "ycsb-a", "description": "…", "rate": 500,
//!     "sides": [ { "system": "bolide", "memory_mib": 71.2, "failure": null,
//!       "rounds": [ { "operations_per_second": 12345.6, "wrong": 0,
//!         "latency": { "operations": 1500, "unfinished": 0, "p50": 210.0, "p95": 400.0, "p99": 812.0, "p999": 2210.0, "max": 3000.0 } } ] } ] } ],
//!   "sections": [ { "name": "mass-deadline", "arguments": "purge …", "markdown": "…" } ] }
//! ```
//!
//! Latencies are in microseconds, from the intended start of an operation. The rounds of all sides of a workload have the same order, which is
//! that of time: the n-th rounds were measured one after another. `failure` says why a side has no rounds, or fewer.

use serde::{Deserialize, Serialize};

use crate::figures::{median, median_ratio, micros};
use crate::load::Paced;

/// The side that all others are compared with.
pub const REFERENCE: &str = "bolide";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub machine: String,
    pub date: String,
    pub profile: String,
    pub settings: Settings,
    pub absent: Vec<Absent>,
    pub workloads: Vec<Measured>,
    pub sections: Vec<Section>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Items that are loaded before a workload.
    pub items: u64,
    pub clients: usize,
    /// Of each measurement.
    pub seconds: f64,
    pub rounds: usize,
}

/// What was not measured at all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Absent {
    pub name: String,
    pub reason: String,
}

impl Absent {
    pub fn new(name: &str, reason: &str) -> Absent {
        Absent {
            name: name.to_owned(),
            reason: reason.to_owned(),
        }
    }
}

/// A workload on all sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub name: String,
    pub description: String,
    /// Operations per second while latencies were measured.
    pub rate: u32,
    pub sides: Vec<Side>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    pub system: String,
    /// After the items were loaded; of the process and its children.
    pub memory_mib: Option<f64>,
    pub failure: Option<String>,
    pub rounds: Vec<Round>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// As fast as responses come.
    pub operations_per_second: f64,
    /// Operations, of both measurements, that got other documents than are stored.
    pub wrong: u64,
    pub latency: Percentiles,
}

/// Latencies at a fixed rate, in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    pub operations: usize,
    /// Operations that had no result when the measurement ended.
    pub unfinished: usize,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// The output of another measurement of this program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Section {
    pub name: String,
    pub arguments: String,
    pub markdown: String,
}

impl From<&Paced> for Percentiles {
    fn from(paced: &Paced) -> Percentiles {
        let at = |percent| micros(paced.latencies.percentile(percent));
        Percentiles {
            operations: paced.latencies.count(),
            unfinished: paced.unfinished,
            p50: at(50.0),
            p95: at(95.0),
            p99: at(99.0),
            p999: at(99.9),
            max: at(100.0),
        }
    }
}

/// A figure over rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Summary {
    /// `None` without rounds.
    pub fn of(rounds: &[Round], figure: impl Fn(&Round) -> f64) -> Option<Summary> {
        let figures: Vec<f64> = rounds.iter().map(figure).collect();
        if figures.is_empty() {
            return None;
        }
        Some(Summary {
            median: median(figures.iter().copied()),
            least: figures.iter().copied().fold(f64::INFINITY, f64::min),
            most: figures.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

impl Measured {
    /// The median of the ratios of a side to the reference, round by round; `None` if one of them has no rounds.
    pub fn ratio(&self, side: &Side, figure: impl Fn(&Round) -> f64) -> Option<f64> {
        let reference = self.sides.iter().find(|side| side.system == REFERENCE)?;
        let pairs: Vec<(f64, f64)> = side
            .rounds
            .iter()
            .zip(&reference.rounds)
            .map(|(side, reference)| (figure(side), figure(reference)))
            .collect();
        (!pairs.is_empty()).then(|| median_ratio(pairs))
    }
}

#[cfg(test)]
pub mod tests;
