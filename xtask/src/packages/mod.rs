//! The packages for other languages: each is built as a release does it, installed from the built file into a fresh environment, tested there, and
//! uninstalled again.
//!
//!   binary ─▶ package file ─▶ fresh environment ─▶ its tests, with the language's official SDK ─▶ uninstalled: is anything left?
//!
//! Everything is made below `target/packages`. A language that is not installed is skipped, and the outcome says so.

mod files;
mod go;
mod java;
mod manifests;
mod npm;
mod python;
mod rust;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use clap::Args;

use crate::Result;
use crate::project::{Project, succeed};
use crate::summary::Outcome;

/// The command line's options.
#[derive(Args, Debug, Default)]
pub struct Options {
    /// Test only this package: python, npm, rust, go or java; may be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// The server to pack and to test with; by default the development build.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

/// Builds, installs, tests and uninstalls one package.
type Test = fn(&Place<'_>) -> Result<Outcome>;

const PACKAGES: &[(&str, Test)] = &[
    ("python", python::test),
    ("npm", npm::test),
    ("rust", rust::test),
    ("go", go::test),
    ("java", java::test),
];

/// Where a package is tested.
struct Place<'a> {
    project: &'a Project,
    /// The server, in a file named `bolide`.
    binary: &'a Path,
    /// Empty, for everything that the test makes.
    folder: PathBuf,
    /// The version that every package has.
    version: &'a str,
}

impl Place<'_> {
    /// A folder of the project.
    fn source(&self, path: &str) -> PathBuf {
        self.project.root().join(path)
    }
}

/// Tests the packages.
///
/// # Errors
/// If a name is unknown, before anything runs; if a package fails, after all have run.
pub fn run(project: &Project, options: &Options) -> Result<Outcome> {
    if let Some(unknown) = options
        .only
        .iter()
        .find(|only| PACKAGES.iter().all(|(name, _)| name != only))
    {
        return Err(format!("--only: no such package. value=`{unknown}`").into());
    }
    let version = manifests::check(project)?;
    let work = work_folder(project)?;
    let binary = prepare_binary(project, options.binary.as_deref(), &work)?;
    let mut failed = Vec::new();
    let mut skipped = Vec::new();
    for (name, test) in PACKAGES {
        if !options.only.is_empty() && options.only.iter().all(|only| only != name) {
            continue;
        }
        let folder = files::emptied(&work.join(name))?;
        let place = Place {
            project,
            binary: &binary,
            folder,
            version: &version,
        };
        let start = Instant::now();
        let outcome = test(&place);
        let seconds = start.elapsed().as_secs_f64();
        match outcome {
            Ok(Outcome::Skipped(reason)) => {
                println!("packages: {name}: skipped: {reason}");
                skipped.push(format!("{name} did not run: {reason}"));
            }
            Ok(outcome) => println!("packages: {name}: {outcome} ({seconds:.1} s)"),
            Err(error) => {
                println!("packages: {name}: FAILED: {error}");
                failed.push(*name);
            }
        }
    }
    match (failed.is_empty(), skipped.is_empty()) {
        (false, _) => Err(format!("failed: {}", failed.join(", ")).into()),
        (true, true) => Ok(Outcome::Passed),
        (true, false) => Ok(Outcome::PassedBut(skipped.join("; "))),
    }
}

/// `packages` in cargo's target directory.
fn work_folder(project: &Project) -> Result<PathBuf> {
    let metadata = project.metadata()?;
    let target = metadata["target_directory"]
        .as_str()
        .ok_or("cargo names no target directory")?;
    Ok(Path::new(target).join("packages"))
}

/// Copies the server to where it has its name, without debug information if there is a tool that removes it.
fn prepare_binary(project: &Project, given: Option<&Path>, work: &Path) -> Result<PathBuf> {
    let built = match given {
        Some(path) if path.is_file() => path.to_path_buf(),
        Some(path) => return Err(format!("--binary: no such file. value=`{}`", path.display()).into()),
        None => project.build_server()?,
    };
    let binary = files::emptied(&work.join("binary"))?.join("bolide");
    std::fs::copy(&built, &binary)?;
    // Debug information is most of a development build, and takes most of the time of packing it. Without `strip` it is packed with it.
    let _ = Command::new("strip").arg(&binary).stdin(Stdio::null()).status();
    Ok(binary)
}

/// A command without the options and the binary that the caller's environment names.
fn clean(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BOLIDE_")) {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// Runs a step of a package's test.
fn step(mut command: Command, what: &str) -> Result<()> {
    succeed(&mut command, what)
}

/// What a command prints, for commands that answer in a line.
fn line_of(mut command: Command, what: &str) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cannot run {what}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{what} failed ({})", output.status).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The command line of an installed package must be this version's.
fn check_version_line(line: &str, version: &str) -> Result<()> {
    if line == format!("bolide {version}") {
        Ok(())
    } else {
        Err(format!("`bolide --version` printed `{line}`, expected `bolide {version}`").into())
    }
}
