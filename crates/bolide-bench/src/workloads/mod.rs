//! Named workloads on Bolide and on the systems that people would use otherwise, with a report: see `cargo xtask bench`.
//!
//! ```text
//!   workload   the mix of operations, which items, the rate                       plan
//!   system     Bolide, PostgreSQL, Redis, Cosmium, @vercel/cosmosdb-server        cosmos, postgres, redis
//!   contest    for each workload: start and load all systems, then A B C A B C    contest, measure
//!   report     figures of every round (JSON), medians and ratios (Markdown), plots (SVG)
//! ```
//!
//! Workloads with measurements of their own (queries, mass deadline, event lag, start and memory, hostile neighbours, a cluster, MongoDB's API) are the other
//! commands of this program; their tables become part of the page.

mod contest;
mod cosmos;
mod document;
mod markdown;
mod measure;
mod plan;
mod plots;
mod postgres;
mod redis;
mod report;
mod system;

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use bolide_model::time::wall_clock;

use crate::{Result, machine};
use contest::candidates;
use plan::WORKLOADS;
use report::{Absent, Report, Section, Settings};

/// Runs another command of this program; returns its section.
pub type RunCommand<'a> = &'a dyn Fn(&[&str]) -> Result<String>;

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Tiny sizes, to see whether everything works.
    #[arg(long)]
    quick: bool,
    /// Only workloads whose names contain this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Rounds; each system is measured once in each. By default 3, with `--quick` 1.
    #[arg(long)]
    rounds: Option<usize>,
    /// Items that are loaded before each workload. By default 20,000, with `--quick` 500.
    #[arg(long)]
    items: Option<u64>,
    /// Seconds of each measurement: two for each system, workload and round. By default 3, with `--quick` 0.2.
    #[arg(long)]
    seconds: Option<f64>,
    /// Concurrent clients, each with its own connection. By default 32, with `--quick` 8.
    #[arg(long)]
    clients: Option<usize>,
    /// The directory of the report.
    #[arg(long, value_name = "DIR", default_value = "docs/benchmarks")]
    out: PathBuf,
    /// Cosmium's executable.
    #[arg(long, value_name = "PATH")]
    cosmium: Option<PathBuf>,
    /// A directory in which `@vercel/cosmosdb-server` is installed.
    #[arg(long, value_name = "DIR")]
    vercel: Option<PathBuf>,
    /// Why a system cannot be measured, for the report.
    #[arg(long, value_name = "NAME=REASON")]
    absent: Vec<String>,
    /// How the measured server was built, for the report.
    #[arg(long, value_name = "NAME", default_value = "release")]
    built: String,
}

/// A workload that another command measures.
struct Delegated {
    name: &'static str,
    arguments: &'static str,
    /// With `--quick`, if it is quick enough.
    quick: Option<&'static str>,
}

const DELEGATED: [Delegated; 7] = [
    Delegated {
        name: "queries",
        arguments: "indexed --items 200000",
        quick: Some("indexed --items 2000 --rounds 1 --seconds 0.1 --only equality"),
    },
    Delegated {
        name: "mass-deadline",
        arguments: "purge",
        quick: Some("purge --rounds 1 --items 500 --seconds 1"),
    },
    Delegated {
        name: "event-lag",
        arguments: "expiry --beside 0,10000,100000",
        quick: Some("expiry --probes 50 --beside 0"),
    },
    Delegated {
        name: "start-memory",
        arguments: "start",
        quick: Some("start --rounds 2"),
    },
    Delegated {
        name: "hostile",
        arguments: "hostile --seconds 20",
        quick: Some("hostile --seconds 1 --only queries"),
    },
    Delegated {
        name: "cluster",
        arguments: "cluster",
        quick: Some("cluster --rounds 1 --items 200 --seconds 0.2"),
    },
    Delegated {
        name: "mongodb",
        arguments: "mongo",
        quick: None,
    },
];

/// Runs the workloads, writes the report, and returns the page.
pub fn run(bolide: &Path, options: &Options, run_command: RunCommand<'_>) -> Result<String> {
    let is_wanted = |name: &str| options.only.as_ref().is_none_or(|text| name.contains(text));
    let workloads: Vec<_> = WORKLOADS.iter().filter(|workload| is_wanted(workload.name)).collect();
    let delegated: Vec<_> = DELEGATED.iter().filter(|other| is_wanted(other.name)).collect();
    if workloads.is_empty() && delegated.is_empty() {
        return Err(format!("no such workload; there are {}", names().join(", ")).into());
    }
    let settings = options.settings()?;
    let (candidates, absent) = candidates(
        bolide.to_owned(),
        options.cosmium.clone(),
        options.vercel.clone(),
        options.absent()?,
    );
    let mut report = Report {
        machine: machine::sentence()?,
        date: date(),
        profile: options.built.clone(),
        settings,
        absent,
        workloads: Vec::new(),
        sections: Vec::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for workload in workloads {
        eprintln!("measuring {}", workload.name);
        let measured = runtime.block_on(contest::run(&candidates, workload, &report.settings));
        report.workloads.push(measured);
    }
    for other in delegated {
        eprintln!("measuring {}", other.name);
        delegate(other, options.quick, run_command, &mut report);
    }
    write(&report, &options.out)
}

/// Adds the section of another command to a report, or the reason why there is none.
fn delegate(other: &Delegated, is_quick: bool, run_command: RunCommand<'_>, report: &mut Report) {
    let arguments = if is_quick { other.quick } else { Some(other.arguments) };
    let Some(arguments) = arguments else {
        report.absent.push(Absent::new(other.name, "--quick leaves it out"));
        return;
    };
    let words: Vec<&str> = arguments.split(' ').collect();
    match run_command(&words) {
        Ok(markdown) => report.sections.push(Section {
            name: other.name.to_owned(),
            arguments: arguments.to_owned(),
            markdown,
        }),
        Err(error) => report.absent.push(Absent::new(other.name, &error.to_string())),
    }
}

/// Writes the figures, the plots and the page into a directory; returns the page.
fn write(report: &Report, out: &Path) -> Result<String> {
    std::fs::create_dir_all(out)?;
    let figures = serde_json::to_string_pretty(report)? + "\n";
    std::fs::write(out.join("workloads.json"), figures)?;
    let mut plots = Vec::new();
    for (file, title, content) in plots::all(report)? {
        std::fs::write(out.join(&file), content)?;
        plots.push((file, title));
    }
    let page = markdown::page(report, &plots);
    std::fs::write(out.join("workloads.md"), &page)?;
    Ok(page)
}

impl Options {
    fn settings(&self) -> Result<Settings> {
        let (items, clients, seconds, rounds) = match self.quick {
            true => (500, 8, 0.2, 1),
            false => (20_000, 32, 3.0, 3),
        };
        let settings = Settings {
            items: self.items.unwrap_or(items),
            clients: self.clients.unwrap_or(clients),
            seconds: self.seconds.unwrap_or(seconds),
            rounds: self.rounds.unwrap_or(rounds),
        };
        let is_time = settings.seconds.is_finite() && settings.seconds > 0.0;
        if settings.items == 0 || settings.clients == 0 || settings.rounds == 0 || !is_time {
            return Err("items, clients, rounds and seconds must be above 0".into());
        }
        Ok(settings)
    }

    fn absent(&self) -> Result<Vec<Absent>> {
        let mut absent = Vec::new();
        for text in &self.absent {
            let (name, reason) = text.split_once('=').ok_or("`--absent` takes NAME=REASON")?;
            absent.push(Absent::new(name, reason));
        }
        Ok(absent)
    }
}

fn names() -> Vec<&'static str> {
    let delegated = DELEGATED.iter().map(|other| other.name);
    WORKLOADS
        .iter()
        .map(|workload| workload.name)
        .chain(delegated)
        .collect()
}

/// The time of the run, as readers see it.
fn date() -> String {
    let millis = u64::try_from(wall_clock().0).unwrap_or_default();
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(millis))
}
