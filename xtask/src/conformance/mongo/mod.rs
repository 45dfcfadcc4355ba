//! The suite of the MongoDB API's expiry: cases in the format `bolide-mongo-ttl/1`, played with raw OP_MSG messages.
//!
//!   case ──▶ session ─ OP_MSG ─▶ bolide (a process of its own, virtual clock) ─▶ expect ─▶ verdict
//!
//! The client has no driver below it, so that what a driver would repair or refuse is seen here. The cases are outside the project, where
//! `mongo/README.md` describes the format.

mod case;
mod client;
mod expect;
mod json;
mod session;

use std::collections::BTreeSet;
use std::path::Path;

use self::case::Case;
pub use self::client::Client;
pub use self::json::document;
use super::Run;
use super::report::{Report, Verdict, run_all, with_known_gap};
use super::server::Engine;
use crate::Result;

/// The folder of the cases, below the folder of all cases.
pub const FAMILY: &str = "mongo/ttl";

/// Needs that the server does not have.
const MISSING: [(&str, &str); 1] = [("clustered", "clustered collections are refused")];

/// The options of a server on which a client need not authenticate; the account has the well-known key and listens on loopback only.
pub const NO_AUTHENTICATION: &str = "--mongo-no-auth";

/// The option that selects which fields may have a TTL index.
const TTL_MODE: &str = "--mongo-ttl-mode";

/// The names of all cases.
///
/// # Errors
/// If a file cannot be read.
pub fn names(cases: &Path) -> Result<BTreeSet<String>> {
    Ok(case::read_all(&cases.join(FAMILY))?
        .into_iter()
        .map(|case| case.label())
        .collect())
}

/// The number of cases.
///
/// # Errors
/// If the folder cannot be read.
pub fn count(cases: &Path) -> Result<usize> {
    Ok(super::scenario::files(&cases.join(FAMILY))?.len())
}

/// Runs the selected cases on an engine.
///
/// # Errors
/// If a case cannot be read; failures are in the report.
pub fn run(run: &Run<'_>, cases: &Path, engine: Engine) -> Result<Report> {
    let mut all = case::read_all(&cases.join(FAMILY))?;
    all.retain(|case| run.wants(&case.label()));
    let verdicts = run_all(&all, |case| verdict_of(run, engine, case));
    Ok(Report {
        title: format!("ttl cases of the MongoDB API on {}", engine.name()),
        verdicts: all.iter().map(Case::label).zip(verdicts).collect(),
    })
}

fn verdict_of(run: &Run<'_>, engine: Engine, case: &Case) -> Verdict {
    if let Some((_, why)) = MISSING.iter().find(|(need, _)| case.needs(need)) {
        return Verdict::Skipped((*why).to_owned());
    }
    if engine == Engine::Memory && case.needs("restart") {
        return Verdict::Skipped("restart in memory".to_owned());
    }
    let outcome = session::play(run.binary, engine, case).map_err(|error| format!("{error} [{}]", case.about).into());
    with_known_gap(outcome, run.gaps.contains_key(&case.label()))
}

/// The options of a server for a test with these needs.
pub fn options_for(needs: &[String]) -> Vec<String> {
    let needed = |need: &str| needs.iter().any(|one| one == need);
    let mut options = vec![NO_AUTHENTICATION.to_owned()];
    if needed("cosmos-custom-path") || needed("single-ttl-per-collection") {
        options.push(format!("{TTL_MODE}=cosmos-custom-path"));
    } else if needed("cosmos-ts-only") {
        options.push(format!("{TTL_MODE}=cosmos-ts-only"));
    }
    options
}
