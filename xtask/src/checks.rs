//! Checks that run other programs: cargo's own commands, the SDK runner, cargo-deny.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use bolide_postgres_server::Database;

use crate::project::{Project, succeed};
use crate::summary::{Outcome, Summary};
use crate::tools::Tools;
use crate::{Result, conformance, dist, explorer, image, instructions, packages, packaging, simulate, tidy};

/// A check as `cargo xtask test` runs it.
type Check = fn(&Project) -> Result<Outcome>;

/// Every check by name, in the order of `cargo xtask test`: the fast ones first, so that mistakes show in seconds. Those in one line run side by side.
///
/// The crash tests are Rust tests, so `unit` already runs what `durability` runs alone.
const CHECKS: &[&[(&str, Check)]] = &[
    &[("fmt", |project| fmt(project).map(passed))],
    &[("tidy", |project| tidy::run(project).map(passed))],
    &[("packaging", |project| {
        packaging::run(project, &packaging::Options::default())
    })],
    &[("lint", |project| lint(project).map(passed))],
    &[("unit", |project| unit(project).map(passed))],
    &[("simulation", |project| {
        simulate::run(project, &simulate::Options::sample()).map(passed)
    })],
    &[("conformance", |project| {
        let not_run = conformance::run(project, &conformance::Options::default())?;
        Ok(not_run.map_or(Outcome::Passed, Outcome::PassedBut))
    })],
    &[("explorer", |project| {
        explorer::run(project, &explorer::Options::default())
    })],
    // Some tests of the SDKs have time limits; all of them often wait, so the other takes little of their time.
    &[
        ("sdk", |project| sdk(project, &SdkOptions::default())),
        ("instructions", |project| {
            instructions::run(project, &instructions::Options::default())
        }),
    ],
    &[("dist", dist::check)],
    &[("image", |project| image::run(project, &image::Options::default()))],
    &[("packages", |project| {
        packages::run(project, &packages::Options::default())
    })],
    &[("docs", |project| docs(project).map(passed))],
    &[("deny", |project| deny(project, false))],
];

fn passed((): ()) -> Outcome {
    Outcome::Passed
}

/// Runs every check except those named in `skip`.
///
/// # Errors
/// If a name in `skip` is not a check, before anything runs; if any check failed, after all have run.
pub fn run_all(project: &Project, skip: &[String]) -> Result<()> {
    let is_check = |name: &String| CHECKS.iter().copied().flatten().any(|(check, _)| check == name);
    if let Some(unknown) = skip.iter().find(|name| !is_check(name)) {
        return Err(format!("no such check. name=`{unknown}`").into());
    }
    let mut summary = Summary::default();
    for together in CHECKS {
        summary.run(together, |(name, check)| {
            if skip.iter().any(|skipped| skipped == name) {
                return Ok(Outcome::Skipped("as asked".to_owned()));
            }
            check(project)
        });
    }
    summary.finish()
}

/// Checks the formatting and changes nothing.
pub fn fmt(project: &Project) -> Result<()> {
    succeed(&mut project.cargo(&["fmt", "--all", "--check"]), "cargo fmt")
}

/// Runs clippy on all targets of all crates, and checks that the server alone compiles: tests and tools add features to its dependencies, with which one
/// that it lacks would not show.
pub fn lint(project: &Project) -> Result<()> {
    succeed(
        &mut project.cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny=warnings"]),
        "cargo clippy",
    )?;
    succeed(
        &mut project.cargo(&["check", "--package=bolide-server"]),
        "cargo check of the server alone",
    )
}

/// Runs the Rust tests of all crates, those against the built server included.
pub fn unit(project: &Project) -> Result<()> {
    // The tests of the engine over it start it.
    Tools::new(project, false).postgres()?;
    succeed(
        &mut project.cargo(&["test", "--workspace", "--no-fail-fast"]),
        "cargo test",
    )?;
    project.tests_are_built();
    Ok(())
}

/// Runs only the tests that kill the server under load.
pub fn durability(project: &Project) -> Result<()> {
    succeed(
        &mut project.cargo(&["test", "--package=bolide-server", "--test=durability"]),
        "the durability tests",
    )
}

/// Builds the documentation of our crates.
pub fn docs(project: &Project) -> Result<()> {
    let mut command = project.cargo(&[
        "doc",
        "--workspace",
        "--all-features",
        "--no-deps",
        "--document-private-items",
    ]);
    // Front pages name private modules on purpose: the documentation is for people who work on them.
    let flags = "--deny=warnings --allow=rustdoc::private-intra-doc-links";
    succeed(command.env("RUSTDOCFLAGS", flags), "cargo doc")
}

/// What `cargo xtask sdk` is told.
#[derive(clap::Args, Default)]
pub struct SdkOptions {
    /// The server to test; by default the development build.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Run the SDKs' own tests completely, including those that take many minutes.
    #[arg(long)]
    whole: bool,
    /// Comma-separated parts to run; `conformance/clients/run.py --help` lists them.
    #[arg(long, value_name = "PARTS")]
    only: Option<String>,
    /// Keep the data of all servers in PostgreSQL.
    #[arg(long)]
    postgres: bool,
}

/// The part of the SDK runner that needs PostgreSQL.
const FAILOVER: &str = "java-failover";

/// Runs the client tours and the SDK suites; the runner fetches the SDKs that it needs.
///
/// Suites that take many minutes run only with `whole`.
pub fn sdk(project: &Project, options: &SdkOptions) -> Result<Outcome> {
    let built;
    let binary = match &options.binary {
        Some(path) => path,
        None => {
            built = project.build_server()?;
            &built
        }
    };
    let python = python().ok_or("Python 3 is missing. Install it (https://www.python.org/downloads/, or `apt install python3 python3-venv`) and run `cargo xtask sdk`")?;
    let mut command = Command::new(python);
    command
        .current_dir(project.root())
        .arg("conformance/clients/run.py")
        .arg("--binary")
        .arg(binary)
        .args(options.whole.then_some("--whole"));
    if let Some(parts) = &options.only {
        command.args(["--only", parts]);
    }
    let parts = options.only.as_deref().unwrap_or(FAILOVER);
    let needs_database = options.postgres || parts.split(',').any(|part| part == FAILOVER);
    let database = match needs_database.then(Database::create).transpose() {
        Err(missing) if options.postgres => return Err(missing.into()),
        database => database,
    };
    if let Ok(Some(database)) = &database {
        command.args(["--several", &database.address()]);
        if options.postgres {
            command.args(["--postgres", &database.address()]);
        }
    }
    succeed(command.stdin(Stdio::null()), "the SDK runner")?;
    Ok(match database {
        Ok(_) => Outcome::Passed,
        Err(missing) => Outcome::PassedBut(format!("{FAILOVER} was not run: {missing}")),
    })
}

/// A Python that can make virtual environments.
pub fn python() -> Option<&'static str> {
    ["python3", "python"]
        .into_iter()
        .find(|name| answers(Command::new(name).args(["-c", "import sys; sys.exit(sys.version_info < (3, 9))"])))
}

/// Checks licences, sources and versions of all dependencies, if cargo-deny is installed or may be installed.
pub fn deny(project: &Project, install: bool) -> Result<Outcome> {
    if !answers(&mut project.cargo(&["deny", "--version"])) {
        if !install {
            return Ok(Outcome::Skipped(
                "cargo-deny is not installed; `cargo xtask deny --install` does both".to_owned(),
            ));
        }
        succeed(
            &mut project.cargo(&["install", "cargo-deny", "--locked"]),
            "cargo install cargo-deny",
        )?;
    }
    // Advisories change independently of the project; the CI workflow checks them every time.
    succeed(
        &mut project.cargo(&["deny", "check", "bans", "licenses", "sources"]),
        "cargo deny",
    )
    .map(passed)
}

/// Whether a program exists and succeeds.
pub fn answers(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
