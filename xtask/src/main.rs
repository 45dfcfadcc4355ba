//! Project tasks: everything that developers and CI run, as `cargo xtask <command>`.
//!
//! `cargo xtask test` runs all checks in order and ends with a table. Each check is also a separate command, so that a failing one can be repeated
//! alone. The tasks use plain processes and plain files; nothing here is part of the product.
#![expect(
    clippy::disallowed_methods,
    reason = "a task that runs processes and waits for them has no clock to be given"
)]
#![expect(clippy::print_stdout, reason = "a command line tool reports on its standard output")]

mod bench;
mod checks;
mod compatibility;
mod conformance;
mod dist;
mod explorer;
mod fuzz;
mod image;
mod instructions;
mod mutants;
mod packages;
mod packaging;
mod parallel;
mod project;
mod simulate;
mod summary;
mod tidy;
mod tools;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::project::Project;

/// An error message for the person who runs the task.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "Checks and runs the Bolide project",
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every check, in order, and end with a table.
    Test(TestOptions),
    /// Check the formatting.
    Fmt,
    /// Check what compilers do not: dependency table, manifests, file sizes, links, requirement coverage.
    Tidy,
    /// Run clippy on everything, warnings are errors.
    Lint,
    /// Run the Rust tests of all crates.
    Unit,
    /// Run conformance scenarios over the wire against the built server.
    Conformance(conformance::Options),
    /// Count the instructions of a few operations with valgrind, and compare them with earlier figures.
    Instructions(instructions::Options),
    /// Run named workloads on Bolide and on the peers that can run here, and write a report with plots.
    Bench(bench::Options),
    /// Run the client tours and the SDK suites against the built server.
    Sdk(checks::SdkOptions),
    /// Build the packages for other languages, install, test and uninstall each.
    Packages(packages::Options),
    /// Build the data explorer, compare it with the built files in the repository, and tour it with Chromium.
    Explorer(explorer::Options),
    /// Kill the server under load and check that nothing acknowledged is lost.
    Durability,
    /// Fuzz everything that reads bytes from outside, on the nightly toolchain.
    Fuzz(fuzz::Options),
    /// Simulate servers over one store with faults, in an order that a seed determines, and check what clients see.
    Simulate(simulate::Options),
    /// Break one safety rule at a time in a copy of the project, and check that the tests notice.
    Mutants(mutants::Options),
    /// Build the container image from a binary, check it and start it.
    Image(image::Options),
    /// Check what releases need besides the binary: scripts, workflows, the chart, the unit, the formula.
    Packaging(packaging::Options),
    /// Build release archives with completions, man pages and checksums, into target/dist.
    Dist(dist::Options),
    /// Write the compatibility page from the results of client tours and SDK tests.
    Compatibility,
    /// Build the documentation, warnings are errors.
    Docs,
    /// Check licences, sources and duplicate versions of dependencies.
    Deny(DenyOptions),
}

#[derive(Args)]
struct TestOptions {
    /// Leave out a check, by its name in the table; may be given several times.
    #[arg(long, value_name = "CHECK")]
    skip: Vec<String>,
}

#[derive(Args)]
struct DenyOptions {
    /// Install cargo-deny if it is missing.
    #[arg(long)]
    install: bool,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    let project = Project::locate()?;
    match command {
        Command::Test(options) => checks::run_all(&project, &options.skip),
        Command::Fmt => checks::fmt(&project),
        Command::Tidy => tidy::run(&project),
        Command::Lint => checks::lint(&project),
        Command::Unit => checks::unit(&project),
        Command::Conformance(options) => conformance::run(&project, &options).map(|_| ()),
        Command::Instructions(options) => {
            instructions::run(&project, &options).map(|outcome| println!("instructions: {outcome}"))
        }
        Command::Bench(options) => bench::run(&project, &options),
        Command::Sdk(options) => checks::sdk(&project, &options).map(|outcome| println!("sdk: {outcome}")),
        Command::Packages(options) => packages::run(&project, &options).map(|outcome| println!("packages: {outcome}")),
        Command::Explorer(options) => explorer::run(&project, &options).map(|outcome| println!("explorer: {outcome}")),
        Command::Durability => checks::durability(&project),
        Command::Fuzz(options) => fuzz::run(&project, &options),
        Command::Simulate(options) => simulate::run(&project, &options),
        Command::Mutants(options) => mutants::run(&project, &options),
        Command::Image(options) => image::run(&project, &options).map(|outcome| println!("image: {outcome}")),
        Command::Packaging(options) => {
            packaging::run(&project, &options).map(|outcome| println!("packaging: {outcome}"))
        }
        Command::Dist(options) => dist::run(&project, &options),
        Command::Compatibility => compatibility::run(&project),
        Command::Docs => checks::docs(&project),
        Command::Deny(options) => checks::deny(&project, options.install).map(|outcome| println!("deny: {outcome}")),
    }
}
