//! `cargo xtask bench`: runs named workloads on Bolide and on the systems that people would use otherwise, and writes a report.
//!
//!   cargo ──▶ bolide, bolide-bench          registries ──▶ peers below `target/tools`, or on the machine
//!                       └────── bolide-bench workloads ──────┘ ──▶ `docs/benchmarks/`: workloads.md, workloads.json, plots
//!
//! A peer that is not there is named in the report, with the reason. The measurement itself is in `bolide-bench`, in its module `workloads`.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::Result;
use crate::project::{Project, succeed};
use crate::tools::{GoProgram, Tools};

const COSMIUM: GoProgram = GoProgram {
    name: "cosmium",
    package: "github.com/pikami/cosmium/cmd/server@latest",
};
const VERCEL: (&str, &str) = ("@vercel/cosmosdb-server", "1.0.1");

/// What to measure.
#[derive(Args)]
pub struct Options {
    /// Tiny sizes, to see whether everything works; the report goes to target/bench/quick.
    #[arg(long)]
    quick: bool,
    /// Only workloads whose names contain this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Rounds; each system is measured once in each.
    #[arg(long, value_name = "NUMBER")]
    rounds: Option<usize>,
    /// The profile in which Bolide and the benchmarks are built.
    #[arg(long, value_name = "NAME", default_value = "release")]
    profile: String,
    /// The server to measure; by default it is built.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// The directory of the report.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Cosmium's executable, instead of one that Go builds.
    #[arg(long, value_name = "PATH")]
    cosmium: Option<PathBuf>,
    /// Install what is missing: PostgreSQL and Redis from Debian, Cosmium with Go, @vercel/cosmosdb-server with npm.
    #[arg(long)]
    install: bool,
}

/// Builds, installs, measures.
///
/// # Errors
/// If Bolide does not build, or the measurement fails as a whole; a peer that fails is part of the report.
pub fn run(project: &Project, options: &Options) -> Result<()> {
    let tools = Tools::new(project, options.install);
    let bench = project.build_in("bolide-bench", "bolide-bench", &options.profile)?;
    let bolide = match &options.binary {
        Some(path) => std::path::absolute(path)?,
        None => project.build_in("bolide-server", "bolide", &options.profile)?,
    };
    let out = options.out.clone().unwrap_or_else(|| match options.quick {
        true => project.root().join("target/bench/quick"),
        false => project.root().join("docs/benchmarks"),
    });
    let mut command = Command::new(bench);
    command.current_dir(project.root()).arg("workloads");
    command.arg("--bolide").arg(bolide).arg("--out").arg(&out);
    let built = match options.binary {
        Some(_) => format!("{} (the benchmark; the server was given)", options.profile),
        None => options.profile.clone(),
    };
    command.args(["--built", &built]);
    if options.quick {
        command.arg("--quick");
    }
    if let Some(only) = &options.only {
        command.args(["--only", only]);
    }
    if let Some(rounds) = options.rounds {
        command.args(["--rounds", &rounds.to_string()]);
    }
    for argument in peers(&tools, options.cosmium.as_deref()) {
        command.arg(argument);
    }
    succeed(&mut command, "bolide-bench")?;
    println!("wrote {}", out.join("workloads.md").display());
    Ok(())
}

/// The arguments that say where the peers are, or why they are not there.
fn peers(tools: &Tools, cosmium: Option<&Path>) -> Vec<String> {
    let mut arguments = Vec::new();
    let cosmium = match cosmium {
        Some(path) => Ok(path.to_owned()),
        None => tools.go(&COSMIUM),
    };
    for (name, found) in [("cosmium", cosmium), ("vercel", tools.npm(VERCEL.0, VERCEL.1))] {
        match found {
            Ok(path) => arguments.push(format!("--{name}={}", path.display())),
            Err(reason) => arguments.push(absent(name, &reason)),
        }
    }
    // The benchmark finds these by itself.
    let postgres = tools.postgres();
    let redis = tools.debian("redis-server", "redis-server").map(drop);
    for (name, found) in [("postgres", postgres), ("redis", redis)] {
        if let Err(reason) = found {
            arguments.push(absent(name, &reason));
        }
    }
    arguments
}

/// Says the whole reason here. The report has only its beginning: what a program said belongs to this machine.
fn absent(name: &str, reason: &str) -> String {
    println!("{name} is not measured: {reason}");
    let beginning = reason.split_once(" fails: ").map_or_else(
        || reason.to_owned(),
        |(beginning, _)| format!("{beginning} fails on this machine"),
    );
    format!("--absent={name}={beginning}")
}

#[cfg(test)]
mod tests;
