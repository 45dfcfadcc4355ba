//! The conformance runner: checks what clients see, over the wire against the built server.
//!
//!   scenario of steps ──▶ ttl ────────┐
//!   mongo case of steps ──▶ mongo ────┤
//!   query and result ──▶ cases::sql ──┼─ signed requests ─▶ bolide (a process of its own, virtual clock) ─▶ verdicts ─▶ report
//!   query and plan ────▶ cases::plan ─┘
//!
//! What this runner cannot do is reported as skipped; what is listed in `known_gaps.json` must fail, so that a gap that was closed is removed from the list.

mod cases;
mod expect;
mod gaps;
mod mongo;
mod report;
mod scenario;
mod server;
mod session;
mod steps;
mod ttl;
mod wire;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bolide_postgres_server::Database;
use clap::{Args, ValueEnum};

use self::gaps::KnownGaps;
use self::report::Report;
pub use self::server::Engine;
use crate::Result;
use crate::project::Project;

/// Options of `cargo xtask conformance`.
#[derive(Args, Default)]
pub struct Options {
    /// The suite to run; by default all.
    #[arg(value_enum)]
    suite: Option<Suite>,
    /// The engine to use; by default several, one after the other: queries are the same on all, so those on PostgreSQL run only when it is named.
    #[arg(long, value_enum)]
    engine: Option<Engine>,
    /// Run only scenarios and cases whose name contains this.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// The server to test; by default the development build.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// A folder with cases in `sql`, `query-plan` and `mongo`, instead of `../shared/cases` next to the project.
    #[arg(long, value_name = "DIR")]
    cases: Option<PathBuf>,
}

/// The suites, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Suite {
    /// Time to live.
    Ttl,
    /// The query language: queries and their results.
    Sql,
    /// Time to live of the MongoDB API.
    MongoTtl,
    /// Query plans, with which clients merge the results of several ranges.
    QueryPlan,
}

impl Suite {
    /// The engines of a run that names none.
    fn engines(self) -> &'static [Engine] {
        match self {
            Suite::Ttl | Suite::MongoTtl => Engine::value_variants(),
            Suite::Sql | Suite::QueryPlan => &[Engine::Memory, Engine::Lsm],
        }
    }

    /// The family of its cases, for suites whose cases are outside the project.
    fn family(self) -> Option<&'static str> {
        match self {
            Suite::Ttl => None,
            Suite::Sql => Some("sql"),
            Suite::QueryPlan => Some("query-plan"),
            Suite::MongoTtl => Some(mongo::FAMILY),
        }
    }
}

/// The parameters of a run.
struct Run<'a> {
    binary: &'a Path,
    conformance: &'a Path,
    /// The directory of the cases of all suites but `ttl`, if it exists.
    cases: Option<&'a Path>,
    gaps: &'a KnownGaps,
    filter: Option<&'a str>,
}

impl Run<'_> {
    /// Whether the options select a scenario or case.
    fn wants(&self, name: &str) -> bool {
        self.filter.is_none_or(|text| name.contains(text))
    }
}

/// Runs the suites that the options select and prints the results. If cases are missing because they are outside the project, returns how many did not run.
///
/// # Errors
/// If anything failed, or a listed gap was closed; after all have run.
pub fn run(project: &Project, options: &Options) -> Result<Option<String>> {
    let binary = match &options.binary {
        Some(path) => path
            .canonicalize()
            .map_err(|error| format!("{}: {error}", path.display()))?,
        None => project.build_server()?,
    };
    let conformance = project.root().join("conformance");
    let gaps = gaps::read(&conformance.join("known_gaps.json"))?;
    let cases = match &options.cases {
        Some(folder) => Some(folder.clone()),
        None => cases_beside(project),
    };
    check_gap_names(&gaps, &conformance, cases.as_deref())?;
    let run = Run {
        binary: &binary,
        conformance: &conformance,
        cases: cases.as_deref(),
        gaps: &gaps,
        filter: options.filter.as_deref(),
    };
    let mut failed = 0;
    let mut not_run = Vec::new();
    for &suite in one_or_all(options.suite.as_ref()) {
        if let Some(family) = suite.family() {
            let listed = cases::count(&conformance, family)?;
            let Some(folder) = run.cases else {
                not_run.push(format!("{listed} {family}"));
                continue;
            };
            compare_count(suite, folder, listed)?;
        }
        for &engine in options.engine.as_ref().map_or(suite.engines(), std::slice::from_ref) {
            let report = play(suite, &run, engine)?;
            println!("{report}\n");
            failed += report.failed();
        }
    }
    let not_run = (!not_run.is_empty()).then(|| format!("not run: {} cases", not_run.join(" and ")));
    if let Some(not_run) = &not_run {
        println!("{not_run}, which are not beside the project; `--cases DIR` names their folder");
    }
    if failed == 0 {
        Ok(not_run)
    } else {
        Err(format!("{failed} conformance scenarios and cases failed").into())
    }
}

/// Prints a note if a suite has another number of cases than listed. Cases change independently of the project, so this is not an error.
fn compare_count(suite: Suite, folder: &Path, listed: u64) -> Result<()> {
    let Some(family) = suite.family() else { return Ok(()) };
    let found = match suite {
        Suite::MongoTtl => mongo::count(folder)?,
        _ => cases::number_of(folder, family)?,
    };
    if found as u64 != listed {
        println!("hint: there are {found} {family} cases; case_counts.json says {listed}");
    }
    Ok(())
}

fn play(suite: Suite, run: &Run<'_>, engine: Engine) -> Result<Report> {
    // Keeps PostgreSQL running between the servers that are started on it.
    let _running = (engine == Engine::Postgres).then(Database::create).transpose()?;
    match (suite, run.cases) {
        (Suite::Ttl, _) => ttl::run(run, engine),
        (Suite::Sql, Some(folder)) => cases::sql(run, folder, engine),
        (Suite::QueryPlan, Some(folder)) => cases::plan(run, folder, engine),
        (Suite::MongoTtl, Some(folder)) => mongo::run(run, folder, engine),
        (Suite::Sql | Suite::QueryPlan | Suite::MongoTtl, None) => {
            Err("the suite's cases are not beside the project".into())
        }
    }
}

/// The directory of the cases next to the project.
fn cases_beside(project: &Project) -> Option<PathBuf> {
    let folder = project.root().join("../shared/cases");
    folder.is_dir().then_some(folder)
}

fn one_or_all<T: ValueEnum>(chosen: Option<&T>) -> &[T] {
    chosen.map_or(T::value_variants(), std::slice::from_ref)
}

/// Checks that all scenarios, all cases and the list of known gaps can be read and match, without running anything.
pub fn check_files(project: &Project) -> Result<()> {
    let conformance = project.root().join("conformance");
    let gaps = gaps::read(&conformance.join("known_gaps.json"))?;
    check_gap_names(&gaps, &conformance, cases_beside(project).as_deref())
}

/// Every gap must name a scenario or case; otherwise it would stay listed forever. Without `cases`, their names cannot be checked.
fn check_gap_names(gaps: &KnownGaps, conformance: &Path, cases: Option<&Path>) -> Result<()> {
    let Some(cases) = cases else { return Ok(()) };
    let mut names: BTreeSet<String> = ttl::names(conformance)?;
    names.extend(cases::names(cases)?);
    names.extend(mongo::names(cases)?);
    match gaps.keys().find(|name| !names.contains(*name)) {
        Some(name) => Err(format!("known_gaps.json names no scenario or case. name=`{name}`").into()),
        None => Ok(()),
    }
}
