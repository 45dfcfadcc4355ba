//! `cargo xtask fuzz`: runs every fuzz target for some time, on the nightly toolchain.

use std::process::{Command, Stdio};

use clap::Args;

use crate::Result;
use crate::project::{Project, succeed};

/// What to fuzz, and for how long.
#[derive(Args)]
pub struct Options {
    /// Seconds for each target.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Targets by name; all of them if none is given.
    targets: Vec<String>,
}

/// An input that takes longer than this is a failure.
const INPUT_SECONDS: u64 = 10;

/// Installs cargo-fuzz if it is missing and runs the targets one after the other.
///
/// # Errors
/// If there is no nightly toolchain, or a target fails; the targets after it do not run.
pub fn run(project: &Project, options: &Options) -> Result<()> {
    if !nightly(project, &["--version"])
        .stdout(Stdio::null())
        .status()?
        .success()
    {
        return Err("the nightly toolchain is missing. Install it (`rustup toolchain install nightly`)".into());
    }
    let mut asked = nightly(project, &["fuzz", "--version"]);
    if !asked.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success() {
        let install = ["install", "cargo-fuzz", "--locked"];
        succeed(&mut nightly(project, &install), "cargo install cargo-fuzz")?;
    }
    let targets = match options.targets.is_empty() {
        true => all_targets(project)?,
        false => options.targets.clone(),
    };
    for target in targets {
        println!("\n── {target} ──");
        succeed(
            &mut fuzz(project, &target, options.seconds)?,
            &format!("fuzzing `{target}`"),
        )?;
    }
    Ok(())
}

fn all_targets(project: &Project) -> Result<Vec<String>> {
    let output = nightly(project, &["fuzz", "list"]).output()?;
    if !output.status.success() {
        return Err("cargo fuzz list failed".into());
    }
    Ok(String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(str::to_owned)
        .collect())
}

/// New inputs go into the first directory, so that seeds do not change.
fn fuzz(project: &Project, target: &str, seconds: u64) -> Result<Command> {
    let (corpus, seeds) = (format!("fuzz/corpus/{target}"), format!("fuzz/seeds/{target}"));
    std::fs::create_dir_all(project.root().join(&corpus))?;
    let (time, timeout) = (
        format!("-max_total_time={seconds}"),
        format!("-timeout={INPUT_SECONDS}"),
    );
    let arguments = [
        "fuzz",
        "run",
        target,
        &corpus,
        &seeds,
        "--",
        &time,
        &timeout,
        "-print_final_stats=1",
    ];
    Ok(nightly(project, &arguments))
}

/// Cargo of the nightly toolchain, through rustup: the cargo that runs this task belongs to the pinned one.
fn nightly(project: &Project, arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command
        .current_dir(project.root())
        .args(["run", "nightly", "cargo"])
        .args(arguments);
    command
        .env_remove("CARGO")
        .env_remove("RUSTUP_TOOLCHAIN")
        .stdin(Stdio::null());
    command
}
