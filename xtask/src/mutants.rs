//! `cargo xtask mutants`: breaks one safety rule at a time in a copy of the project, and checks that the tests notice (mutation testing).
//!
//! `mutants/list.json` has the rules, each with the change that breaks it and the test that must fail then.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use serde::Deserialize;

use crate::Result;
use crate::project::{Project, succeed};

const LIST: &str = include_str!("mutants/list.json");

/// Which rules to break.
#[derive(Args)]
pub struct Options {
    /// Only those whose rule or file contains this text.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Only those that the simulation notices too, tested by it instead of by the test in the list.
    #[arg(long)]
    simulation: bool,
}

/// Arguments of `cargo test` for the simulation.
const SIMULATION: [&str; 5] = ["-p", "bolide-core", "--test", "it", "simulation::what"];
/// Seconds that the tests of a rule may take; the slowest take three minutes. A broken rule may make one wait for ever.
const SECONDS: &str = "900";
/// What `timeout` of the coreutils returns then, and if it had to kill them.
const TIMED_OUT: i32 = 124;
const KILLED: i32 = 137;
/// Number of its seeds, more than in the ordinary tests.
const SEEDS: &str = "60";

/// A rule, and how to break it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutant {
    rule: String,
    file: PathBuf,
    /// Text that occurs once in the file.
    replace: String,
    by: String,
    /// Arguments of `cargo test`.
    test: Vec<String>,
    /// Whether the simulation notices it too.
    #[serde(default)]
    simulation: bool,
}

/// What the tests said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Caught,
    /// The tests pass although the rule is broken.
    Missed,
    /// They do not fail, and do not end.
    TimedOut,
    /// The broken code does not compile, so nothing was tested.
    NotBuilt,
}

/// Breaks the rules one after the other, each in the same copy of the last commit.
///
/// # Errors
/// If a broken rule is not noticed, or the copy cannot be made.
pub fn run(project: &Project, options: &Options) -> Result<()> {
    let mut mutants = list()?;
    if let Some(only) = &options.only {
        mutants.retain(|mutant| mutant.rule.contains(only) || mutant.file.to_string_lossy().contains(only));
    }
    if options.simulation {
        mutants.retain(|mutant| mutant.simulation);
        for mutant in &mut mutants {
            mutant.test = SIMULATION.map(str::to_owned).to_vec();
        }
    }
    let copy = Copy::of(project)?;
    let mut all_caught = true;
    for mutant in &mutants {
        let verdict = copy.test(project, mutant)?;
        println!("{verdict:?}: {} ({})", mutant.rule, mutant.test.join(" "));
        all_caught &= verdict == Verdict::Caught;
    }
    match all_caught {
        true => Ok(()),
        false => Err("a rule can be broken and no test notices".into()),
    }
}

fn list() -> Result<Vec<Mutant>> {
    Ok(serde_json::from_str(LIST)?)
}

impl Mutant {
    /// Returns the text of its file with the rule broken.
    ///
    /// # Errors
    /// If the text that it replaces does not occur exactly once.
    fn broken(&self, text: &str) -> Result<String> {
        match text.matches(&self.replace).count() {
            1 => Ok(text.replace(&self.replace, &self.by)),
            count => Err(format!("{}: {count} times in {}", self.rule, self.file.display()).into()),
        }
    }
}

/// A work tree of the last commit, which ends when dropped.
struct Copy<'p> {
    project: &'p Project,
    root: PathBuf,
}

impl<'p> Copy<'p> {
    fn of(project: &'p Project) -> Result<Copy<'p>> {
        let root = project.root().join("target/mutants/tree");
        remove(project, &root);
        let mut add = git(project, &["worktree", "add", "--quiet", "--detach", "--force"]);
        succeed(add.arg(&root).arg("HEAD"), "git worktree add")?;
        Ok(Copy { project, root })
    }

    fn test(&self, project: &Project, mutant: &Mutant) -> Result<Verdict> {
        let path = self.root.join(&mutant.file);
        let text = std::fs::read_to_string(&path)?;
        std::fs::write(&path, mutant.broken(&text)?)?;
        let verdict = self.verdict(project, mutant);
        std::fs::write(&path, text)?;
        verdict
    }

    fn verdict(&self, project: &Project, mutant: &Mutant) -> Result<Verdict> {
        let cargo = |arguments: &[&str]| {
            let cargo = project.cargo(arguments);
            // It ends the tests that cargo has started, too.
            let mut timed = Command::new("timeout");
            timed
                .args(["--kill-after=10", SECONDS])
                .arg(cargo.get_program())
                .args(cargo.get_args())
                .current_dir(&self.root)
                .stdin(Stdio::null())
                .env("CARGO_TARGET_DIR", project.root().join("target/mutants/build"))
                // The changes are made by hand, and leave things unused.
                .env("RUSTFLAGS", "--cap-lints=warn")
                .env("BOLIDE_SEEDS", SEEDS)
                .args(&mutant.test)
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            timed
        };
        if !cargo(&["test", "--no-run"]).status()?.success() {
            return Ok(Verdict::NotBuilt);
        }
        Ok(match cargo(&["test"]).status()?.code() {
            Some(0) => Verdict::Missed,
            Some(TIMED_OUT | KILLED) | None => Verdict::TimedOut,
            Some(_) => Verdict::Caught,
        })
    }
}

impl Drop for Copy<'_> {
    fn drop(&mut self) {
        remove(self.project, &self.root);
    }
}

/// Removes a work tree, if it is there.
fn remove(project: &Project, root: &Path) {
    let mut remove = git(project, &["worktree", "remove", "--force"]);
    let _ = remove.arg(root).stderr(Stdio::null()).status();
}

fn git(project: &Project, arguments: &[&str]) -> Command {
    let mut git = Command::new("git");
    git.current_dir(project.root()).args(arguments).stdin(Stdio::null());
    git
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_still_where_the_list_says() {
        let project = Project::locate().expect("a project");
        for mutant in list().expect("a well-formed list") {
            let text = std::fs::read_to_string(project.root().join(&mutant.file)).expect("a file");
            let broken = mutant.broken(&text).expect("the text that is replaced");
            assert_ne!(broken, text, "{}", mutant.rule);
        }
    }
}
