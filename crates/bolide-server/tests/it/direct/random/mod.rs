//! Random programs in direct mode against a literal model, whose answer to each frame must be the server's.
//!
//! ```text
//!   seed ──▶ program ──step──▶ server   frames; HTTP for settings, the clock, purges, splits and the all-versions feed
//!                       └────▶ model    then reads, queries, counts, feeds and change feeds of both are compared
//! ```
//!
//! Of the properties of TTL (`docs/ttl.md`, and the specification's section 6) clients in direct mode see these:
//!
//! - P1, P2, P3: after each step. P6, P7: by what a purge says, and by the all-versions feed, which .NET reads over HTTP.
//! - P4: [`a_server_that_purges_at_once_and_one_that_never_does_answer_frames_alike`].
//! - P10: [`concurrent`].
//!
//! P5 (what is stored), P8 (what the purge spends), P9 (floors and history) and P11 (costs) do not depend on the protocol: `bolide-core` has them in
//! `tests/it/random`, with the same kinds of steps.
//!
//! `BOLIDE_PROGRAMS=n` runs n programs of each claim instead of the usual number, `BOLIDE_SEED=s` begins with seed s instead of 1.

mod checks;
mod concurrent;
mod model;
mod program;
mod runner;

use program::{Program, Step};
use runner::{Purging, Runner};

/// Steps of a program.
const LENGTH: usize = 40;

#[test]
fn every_answer_in_direct_mode_equals_the_models() {
    for_seeds(3, |seed| {
        run(seed, Purging::AsWritten, false);
    });
}

#[test]
fn every_answer_equals_the_models_over_kills_and_restarts() {
    for_seeds(2, |seed| {
        run(1000 + seed, Purging::AsWritten, true);
    });
}

/// P4.
#[test]
fn a_server_that_purges_at_once_and_one_that_never_does_answer_frames_alike() {
    for_seeds(2, |seed| {
        let [eager, never] = [Purging::AtOnce, Purging::Never].map(|purging| run(2000 + seed, purging, false));
        assert_eq!(eager.len(), never.len(), "frames of seed {}", 2000 + seed);
        for (at, (eager, never)) in eager.iter().zip(&never).enumerate() {
            assert_eq!(eager, never, "P4: frame {at} of seed {}", 2000 + seed);
        }
    });
}

/// Runs the program of a seed; returns what its frames were answered.
fn run(seed: u64, purging: Purging, is_on_disk: bool) -> Vec<String> {
    let program = Program::of_seed(seed, LENGTH);
    let mut runner = Runner::start(&program, purging, is_on_disk);
    for (at, step) in program.steps.iter().enumerate() {
        let _place = Place { seed, at, step };
        runner.step(step);
    }
    runner.answers().to_vec()
}

/// Where a program is, for whoever looks for the cause of a failure.
struct Place<'a> {
    seed: u64,
    at: usize,
    step: &'a Step,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in step {} of seed {}: {:?}", self.at, self.seed, self.step);
        }
    }
}

fn for_seeds(usually: u64, mut claim: impl FnMut(u64)) {
    let first = setting("BOLIDE_SEED").unwrap_or(1);
    let programs = setting("BOLIDE_PROGRAMS").unwrap_or(usually);
    for seed in first..first + programs {
        claim(seed);
    }
}

/// A number from the environment.
pub fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} must be a number: {text}")),
    )
}
