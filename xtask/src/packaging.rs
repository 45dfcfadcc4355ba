//! `cargo xtask packaging`: what releases need besides the binary, as far as it can be checked without making one.
//!
//! Scripts, workflows, the chart, the unit and the formula are read by the tools of their kind. The install script runs for real, against a release
//! page in a directory. A tool that is missing here is named in the result.

mod install;
mod lints;

use clap::Args;

use crate::Result;
use crate::project::Project;
use crate::summary::Outcome;
use crate::tools::Tools;

/// What to check.
#[derive(Args, Default)]
pub struct Options {
    /// Check the chart too, with helm; to build it takes minutes.
    #[arg(long)]
    whole: bool,
    /// Install tools that are missing: shellcheck, actionlint, with --whole helm.
    #[arg(long)]
    install: bool,
}

/// The result of a part that did not fail: `Err` says why it did not run.
type Part = std::result::Result<(), String>;

/// Runs every part.
///
/// # Errors
/// All problems that were found.
pub fn run(project: &Project, options: &Options) -> Result<Outcome> {
    let tools = Tools::new(project, options.install);
    let parts: [(&str, Result<Part>); 7] = [
        ("install.sh", install::check(project)),
        ("versions", lints::versions(project)),
        ("shellcheck", lints::shell(project, &tools)),
        ("actionlint", lints::workflows(project, &tools)),
        ("systemd", lints::unit(project)),
        ("formula", lints::formula(project)),
        ("chart", lints::chart(project, &tools, options.whole)),
    ];
    let (mut skipped, mut failed) = (Vec::new(), Vec::new());
    for (name, result) in parts {
        match result {
            Ok(Ok(())) => println!("packaging: {name}: passed"),
            Ok(Err(why)) => {
                println!("packaging: {name}: skipped: {why}");
                skipped.push(format!("{name} ({why})"));
            }
            Err(error) => {
                println!("packaging: {name}: {error}");
                failed.push(name);
            }
        }
    }
    if !failed.is_empty() {
        return Err(format!("failed: {}", failed.join(", ")).into());
    }
    Ok(match skipped.is_empty() {
        true => Outcome::Passed,
        false => Outcome::PassedBut(format!("not checked: {}", skipped.join("; "))),
    })
}
