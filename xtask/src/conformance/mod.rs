//! The conformance runner: plays scenarios against the built server over the wire, as a client would.
//!
//!   scenario file ──steps──▶ session ──signed requests──▶ bolide (a process of its own, virtual clock)
//!                               └── answer ──expect──▶ passed | failed at step n
//!
//! Each scenario has a fresh server: server time never goes back, so a server that one scenario has moved ahead is of no use to the next.
//! Starting one takes milliseconds. A scenario is skipped, visibly, if it needs what this runner cannot do; one that is listed in
//! `known_gaps.json` must fail, so that a gap that closes leaves the list.

mod expect;
mod gaps;
mod scenario;
mod server;
mod session;
mod steps;
mod wire;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use clap::{Args, ValueEnum};

use self::gaps::KnownGaps;
use self::scenario::Scenario;
pub use self::server::Engine;
use self::session::Session;
use crate::Result;
use crate::project::Project;

/// Where scenarios are, below `conformance/`.
const SCENARIO_DIRECTORIES: [&str; 2] = ["ttl", "ttl-more"];

/// What scenarios may require and this runner cannot do.
const MISSING_ABILITIES: [&str; 4] = ["mongo", "mongo-doc-ttl-switch", "cosmos-ts-only", "replica"];

/// What only a server can do whose data outlives its process.
const NEEDS_A_DISK: [&str; 3] = ["restart", "crash", "fault"];

/// Servers that run at a time.
const PARALLEL: usize = 4;

/// Options of `cargo xtask conformance`.
#[derive(Args, Default)]
pub struct Options {
    /// Which scenarios to run.
    #[arg(value_enum, default_value_t)]
    suite: Suite,
    /// The engine to run on; by default one after the other.
    #[arg(long, value_enum)]
    engine: Option<Engine>,
    /// Run only scenarios whose name contains this.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// The server to test; by default the development build is made and used.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

/// The scenario suites.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Suite {
    /// Time to live.
    #[default]
    Ttl,
}

/// How a scenario ended.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed(String),
    Skipped(String),
}

/// The verdicts of one engine, by scenario name.
struct Report {
    engine: Engine,
    verdicts: Vec<(String, Verdict)>,
}

/// Runs the scenarios that the options name and prints what became of them.
///
/// # Errors
/// If any scenario failed, or a listed gap has closed; after all have run.
pub fn run(project: &Project, options: &Options) -> Result<()> {
    let Suite::Ttl = options.suite;
    let binary = match &options.binary {
        Some(path) => path
            .canonicalize()
            .map_err(|error| format!("{}: {error}", path.display()))?,
        None => project.build_server()?,
    };
    let conformance = project.root().join("conformance");
    let (scenarios, gaps) = read(&conformance)?;
    let wanted: Vec<Scenario> = scenarios
        .into_iter()
        .filter(|scenario| options.filter.as_ref().is_none_or(|text| scenario.name.contains(text)))
        .collect();

    let mut failed = 0;
    for &engine in options
        .engine
        .as_ref()
        .map_or(Engine::value_variants(), std::slice::from_ref)
    {
        let report = Report {
            engine,
            verdicts: run_all(&binary, engine, &wanted, &gaps),
        };
        println!("{report}");
        failed += report.count(|verdict| matches!(verdict, Verdict::Failed(_)));
    }
    if failed == 0 {
        Ok(())
    } else {
        Err(format!("{failed} conformance scenarios failed").into())
    }
}

/// Checks that all scenarios and the list of known gaps can be read and belong together, without running anything.
pub fn check_files(project: &Project) -> Result<()> {
    read(&project.root().join("conformance")).map(drop)
}

fn read(conformance: &Path) -> Result<(Vec<Scenario>, KnownGaps)> {
    let gaps = gaps::read(&conformance.join("known_gaps.json"))?;
    let scenarios = read_scenarios(conformance)?;
    check_gap_names(&gaps, &scenarios)?;
    Ok((scenarios, gaps))
}

fn read_scenarios(conformance: &Path) -> Result<Vec<Scenario>> {
    let mut scenarios = Vec::new();
    for directory in SCENARIO_DIRECTORIES {
        for path in scenario::files(&conformance.join(directory))? {
            scenarios.push(Scenario::read(&path)?);
        }
    }
    Ok(scenarios)
}

/// A gap that names no scenario would stay listed for ever.
fn check_gap_names(gaps: &KnownGaps, scenarios: &[Scenario]) -> Result<()> {
    match gaps
        .keys()
        .find(|name| scenarios.iter().all(|scenario| scenario.name != **name))
    {
        Some(name) => Err(format!("known_gaps.json names no scenario. name=`{name}`").into()),
        None => Ok(()),
    }
}

/// Runs scenarios on [`PARALLEL`] threads; verdicts come in the order of the scenarios.
fn run_all(binary: &Path, engine: Engine, scenarios: &[Scenario], gaps: &KnownGaps) -> Vec<(String, Verdict)> {
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(Vec::with_capacity(scenarios.len()));
    std::thread::scope(|threads| {
        for _ in 0..PARALLEL {
            threads.spawn(|| {
                while let Some((index, scenario)) = take(&next, scenarios) {
                    let verdict = judge(binary, engine, scenario, gaps);
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
    verdicts
        .into_iter()
        .map(|(index, verdict)| (scenarios[index].name.clone(), verdict))
        .collect()
}

fn take<'a>(next: &AtomicUsize, scenarios: &'a [Scenario]) -> Option<(usize, &'a Scenario)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    scenarios.get(index).map(|scenario| (index, scenario))
}

fn judge(binary: &Path, engine: Engine, scenario: &Scenario, gaps: &KnownGaps) -> Verdict {
    if let Some(tag) = missing_ability(scenario) {
        return Verdict::Skipped(tag.to_owned());
    }
    let needed = |tag: &&str| scenario.requires.iter().any(|required| required == tag);
    if let (Engine::Memory, Some(tag)) = (engine, NEEDS_A_DISK.iter().find(|tag| needed(tag))) {
        return Verdict::Skipped(format!("{tag} in memory"));
    }
    let outcome = Session::play(binary, engine, scenario)
        .map_err(|error| format!("{error} [{}, {}]", scenario.title, scenario.covers.join(" ")).into());
    with_known_gap(outcome, gaps.contains_key(&scenario.name))
}

/// The first of a scenario's needs that this runner cannot meet.
fn missing_ability(scenario: &Scenario) -> Option<&'static str> {
    MISSING_ABILITIES
        .into_iter()
        .find(|tag| scenario.requires.iter().any(|required| required == tag))
}

/// A listed gap must fail; that it does is no news.
fn with_known_gap(outcome: Result<()>, is_known_gap: bool) -> Verdict {
    match (outcome, is_known_gap) {
        (Ok(()), false) => Verdict::Passed,
        (Ok(()), true) => Verdict::Failed("it passes now; take it out of known_gaps.json".to_owned()),
        (Err(_), true) => Verdict::Skipped("known gap".to_owned()),
        (Err(error), false) => Verdict::Failed(error.to_string()),
    }
}

impl Report {
    fn count(&self, of: impl Fn(&Verdict) -> bool) -> usize {
        self.verdicts.iter().filter(|(_, verdict)| of(verdict)).count()
    }

    /// How many were skipped for each reason, in order of first appearance.
    fn skipped_by_reason(&self) -> Vec<(&str, usize)> {
        let mut reasons: Vec<(&str, usize)> = Vec::new();
        for (_, verdict) in &self.verdicts {
            let Verdict::Skipped(reason) = verdict else { continue };
            match reasons.iter_mut().find(|(known, _)| known == reason) {
                Some((_, count)) => *count += 1,
                None => reasons.push((reason, 1)),
            }
        }
        reasons
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "ttl scenarios on {}", self.engine.name())?;
        for (name, verdict) in &self.verdicts {
            if let Verdict::Failed(why) = verdict {
                writeln!(formatter, "FAILED {name}: {why}")?;
            }
        }
        for (reason, count) in self.skipped_by_reason() {
            writeln!(formatter, "skipped {count}: {reason}")?;
        }
        let passed = self.count(|verdict| *verdict == Verdict::Passed);
        let failed = self.count(|verdict| matches!(verdict, Verdict::Failed(_)));
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
    fn a_gap_that_names_no_scenario_is_refused() {
        let gaps = KnownGaps::from([("misspelt".to_owned(), "not built yet".to_owned())]);
        assert!(check_gap_names(&gaps, &[]).is_err());
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
        ];
        let verdicts = verdicts
            .into_iter()
            .map(|(name, verdict)| (name.to_owned(), verdict))
            .collect();
        let text = Report {
            engine: Engine::Memory,
            verdicts,
        }
        .to_string();
        assert!(
            text.ends_with("\nskipped 2: mongo\n1 passed, 1 failed, 2 skipped"),
            "{text}"
        );
        assert!(
            text.contains("FAILED b: step 3 item.read: status: expected 404, got 200\n"),
            "{text}"
        );
    }
}
