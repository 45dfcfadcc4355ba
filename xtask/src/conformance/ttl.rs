//! The TTL suite: runs scenarios, each on its own server.
//!
//! Server time never goes back, so a server that one scenario has moved ahead cannot be used for the next. Starting one takes milliseconds.

use std::collections::BTreeSet;
use std::path::Path;

use super::Run;
use super::report::{Report, Verdict, run_all, with_known_gap};
use super::scenario::{self, Scenario};
use super::server::Engine;
use super::session::Session;
use crate::Result;

/// The directories of scenarios, below `conformance/`.
pub const DIRECTORIES: [&str; 2] = ["ttl", "ttl-more"];

/// Abilities that need a server with durable data.
const NEEDS_A_DISK: [&str; 3] = ["restart", "crash", "fault"];

/// The names of all scenarios.
///
/// # Errors
/// If one of them cannot be read.
pub fn names(conformance: &Path) -> Result<BTreeSet<String>> {
    Ok(read(conformance)?.into_iter().map(|scenario| scenario.name).collect())
}

/// Runs the selected scenarios on an engine.
///
/// # Errors
/// If a scenario cannot be read; failures are in the report.
pub fn run(run: &Run<'_>, engine: Engine) -> Result<Report> {
    let mut scenarios = read(run.conformance)?;
    scenarios.retain(|scenario| run.wants(&scenario.name));
    let verdicts = run_all(&scenarios, |scenario| verdict_of(run, engine, scenario));
    let names = scenarios.into_iter().map(|scenario| scenario.name);
    Ok(Report {
        title: format!("ttl scenarios on {}", engine.name()),
        verdicts: names.zip(verdicts).collect(),
    })
}

fn read(conformance: &Path) -> Result<Vec<Scenario>> {
    let mut scenarios = Vec::new();
    for directory in DIRECTORIES {
        for path in scenario::files(&conformance.join(directory))? {
            scenarios.push(Scenario::read(&path)?);
        }
    }
    Ok(scenarios)
}

fn verdict_of(run: &Run<'_>, engine: Engine, scenario: &Scenario) -> Verdict {
    let needed = |tag: &&str| scenario.requires.iter().any(|required| required == tag);
    if engine != Engine::Postgres && scenario.needs_replica() {
        return Verdict::Skipped("two servers over one store".to_owned());
    }
    if let (Engine::Memory, Some(tag)) = (engine, NEEDS_A_DISK.iter().find(|tag| needed(tag))) {
        return Verdict::Skipped(format!("{tag} in memory"));
    }
    let outcome = Session::play(run.binary, engine, scenario)
        .map_err(|error| format!("{error} [{}, {}]", scenario.title, scenario.covers.join(" ")).into());
    with_known_gap(outcome, run.gaps.contains_key(&scenario.name))
}
