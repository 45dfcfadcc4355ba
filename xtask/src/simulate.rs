//! `cargo xtask simulate`: servers over one store in one thread, in an order that a seed determines
//! (`crates/bolide-core/tests/it/simulation/`).

use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;

use crate::Result;
use crate::project::{Project, succeed};

/// The tests; all are in one module.
const TESTS: &str = "simulation::";

/// Which seeds to run, and for how long.
#[derive(Args)]
pub struct Options {
    /// After this time no more seeds begin. Without it, and with a seed, only that seed runs, or as many as `--seeds` tells.
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
    /// The first seed; by default one that depends on the time, so that each run has others.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// No more seeds than these, even if there is time.
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// Rounds of each seed. The same seed with another number of rounds has the same first rounds.
    #[arg(long, value_name = "N", default_value_t = 12)]
    rounds: u64,
}

impl Options {
    /// The sample of `cargo xtask test`: always the same seeds, as many as there is time for. The bound is for fast machines: what they run has been run
    /// elsewhere, so a failure is of the change that is tested.
    pub fn sample() -> Options {
        Options {
            seconds: Some(60),
            seed: Some(1),
            seeds: Some(150),
            rounds: 12,
        }
    }
}

/// Runs seeds until the time is over, or one fails: that one is printed with the command that repeats it, and its whole trace is in
/// `target/simulation/trace.txt`.
///
/// # Errors
/// If a seed fails.
pub fn run(project: &Project, options: &Options) -> Result<()> {
    let directory = project.root().join("target/simulation");
    std::fs::create_dir_all(&directory)?;
    let seed = options.seed.map_or_else(seed_of_time, Ok)?;
    let mut command = project.cargo(&["test", "--package=bolide-core", "--test=it", "--", TESTS, "--nocapture"]);
    command
        .env("BOLIDE_SEED", seed.to_string())
        .env("BOLIDE_ROUNDS", options.rounds.to_string())
        .env("BOLIDE_TRACE", directory.join("trace.txt"));
    if options.seconds.is_none() && options.seed.is_some() {
        command.env("BOLIDE_SEEDS", options.seeds.unwrap_or(1).to_string());
    } else {
        command.env("BOLIDE_SECONDS", options.seconds.unwrap_or(60).to_string());
        if let Some(seeds) = options.seeds {
            command.env("BOLIDE_SEEDS", seeds.to_string());
        }
    }
    succeed(&mut command, "the simulation")
}

fn seed_of_time() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())
}
