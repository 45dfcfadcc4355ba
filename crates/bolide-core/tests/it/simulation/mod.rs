//! Deterministic simulation: servers, clients, store, clock and network in one thread, in an order that a seed determines.
//!
//! ```text
//!   clients ──▶ servers (accounts of bolide-core) ──▶ links with delays, losses and cuts ──▶ memory engine with faults
//!   time: tokio's, paused. It goes on to the next timer when nothing is left to do, so a simulated minute takes a moment.
//! ```
//!
//! Servers die in the middle of their work and start again, are cut off, and have clocks that are not exact. After each round all calls must fit one
//! order ([`crate::linear`]): single calls, batches, queries, feeds and the items that quotas count, under changes of the default ttl (P1, P2, P10). The model of that order ends each item by
//! itself, under each default in turn (P9), and knows no purge, so no answer may depend on one (P4). Transactions of MongoDB must be snapshot isolation, with a
//! unique index ([`transactions`]). Readers of both change feeds must have seen every version once, and its removal once (P7), in the order of time (P3) and not before it
//! had ended ([`defaults`], P6). All stored entries agree (P5). In the end the purge has removed everything that has expired (P6).
//!
//! Not here: P8, which each server keeps for itself (`random/`), P11 (`cost.rs`), the bytes that quotas count, and stored procedures, which have threads of their own.
//!
//! `BOLIDE_SEED` sets the first seed, `BOLIDE_SEEDS` the number of seeds, `BOLIDE_SECONDS` a time after which no more begins, `BOLIDE_ROUNDS` the
//! rounds of each, and `BOLIDE_TRACE` the file for the trace of a seed that fails. `cargo xtask simulate` sets them.

mod defaults;
mod faults;
mod fence;
mod held;
mod network;
mod round;
mod trace;
mod transactions;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bolide_model::time::Monotonic;
use futures_util::FutureExt as _;

use round::Simulation;
use world::World;

/// Number of seeds in the ordinary tests.
const SEEDS: u64 = 5;
/// Number of rounds of a seed.
const ROUNDS: u64 = 12;

/// Maximum simulated time of a round. Usually it lasts a few seconds.
const LONGEST: Duration = Duration::from_secs(100);

/// What a seed came to.
struct Ran {
    trace: Vec<String>,
    /// Number of calls by their outcome.
    outcomes: BTreeMap<&'static str, u64>,
    /// Simulated time in milliseconds.
    lasted: i64,
    failed: Option<String>,
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 1..=2 {
        let (first, second) = (simulate(seed, 4), simulate(seed, 4));
        assert!(!first.outcomes.is_empty());
        for (first, second) in first.trace.iter().zip(&second.trace) {
            assert_eq!(first, second, "seed {seed}");
        }
        assert_eq!(first.trace.len(), second.trace.len(), "seed {seed}");
    }
}

/// The claim above within one process does not notice what differs from one to the next, such as addresses and hash keys of the process.
#[test]
fn the_same_seed_gives_the_same_trace_in_another_process() {
    const CLAIM: &str = "simulation::the_same_seed_gives_the_same_trace_in_another_process";
    const CHILD: &str = "BOLIDE_TRACE_OF_CHILD";
    let trace = simulate(3, 4).trace.join("\n");
    if let Ok(path) = std::env::var(CHILD) {
        return std::fs::write(path, trace).expect("a file for the trace");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("trace.txt");
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.args([CLAIM, "--exact"]).env(CHILD, &path).stdout(Stdio::null());
    assert!(child.status().expect("a child").success());
    let other = std::fs::read_to_string(path).expect("the child has run the claim");
    for (one, other) in trace.lines().zip(other.lines()) {
        assert_eq!(one, other);
    }
    assert_eq!(trace.lines().count(), other.lines().count());
}

#[test]
fn what_clients_see_of_servers_in_trouble_keeps_every_promise() {
    let clock = Monotonic::system();
    let began = clock.now();
    let first = setting("BOLIDE_SEED").unwrap_or(1);
    let rounds = setting("BOLIDE_ROUNDS").unwrap_or(ROUNDS);
    let time = setting("BOLIDE_SECONDS").map(Duration::from_secs);
    let seeds = setting("BOLIDE_SEEDS").unwrap_or(if time.is_some() { u64::MAX } else { SEEDS });
    let (mut ran, mut lasted, mut outcomes) = (0, 0, BTreeMap::<_, u64>::new());
    while ran < seeds && time.is_none_or(|time| clock.since(began) < time) {
        let seed = first + ran;
        let done = simulate(seed, rounds);
        if let Some(why) = &done.failed {
            fail(seed, rounds, &done.trace, why);
        }
        ran += 1;
        for (name, calls) in done.outcomes {
            *outcomes.entry(name).or_default() += calls;
        }
        lasted += done.lasted;
    }
    let (calls, simulated) = (outcomes.values().sum::<u64>(), lasted / 1_000);
    println!("{ran} seeds from {first}, {calls} calls in {simulated} simulated seconds: {outcomes:?}");
}

/// Runs a seed.
fn simulate(seed: u64, rounds: u64) -> Ran {
    // What the core chooses at random, on this thread.
    fastrand::seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let mut simulation = Simulation::begin(seed).await;
        let world: Arc<World> = simulation.world.clone();
        let all = async {
            for round in 0..rounds {
                simulation
                    .round()
                    .await
                    .map_err(|why| format!("round {round}: {why}"))?;
            }
            simulation.end().await
        };
        let clock = Monotonic::system();
        let all = clock.timeout_at(
            clock.now() + LONGEST * rounds as u32,
            AssertUnwindSafe(all).catch_unwind(),
        );
        let done = all.await.unwrap_or_else(|| Ok(Err("it does not end".to_owned())));
        let failed = done.unwrap_or_else(|panic| Err(text_of(panic))).err();
        Ran {
            trace: world.network.trace.lines(),
            outcomes: simulation.outcomes,
            lasted: world.network.elapsed(),
            failed,
        }
    })
}

/// Returns the text of a panic; other panics go on.
fn text_of(panic: Box<dyn std::any::Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => resume_unwind(panic),
    }
}

fn fail(seed: u64, rounds: u64, trace: &[String], why: &str) -> ! {
    const SHOWN: usize = 40;
    let last = trace[trace.len().saturating_sub(SHOWN)..].join("\n");
    if let Ok(path) = std::env::var("BOLIDE_TRACE") {
        std::fs::write(&path, trace.join("\n")).expect("a file for the trace");
    }
    panic!("{last}\nseed {seed}: {why}\nrepeat it: cargo xtask simulate --seed {seed} --rounds {rounds}");
}

fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    let number = value.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} must be a number: {value}")))
}
