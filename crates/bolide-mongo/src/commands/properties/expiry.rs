//! Expiry through the commands of clients, against a second literal model (P1 to P7, P9, P10): rules on dates and on `_ts`, own ttls, indexes that come, go
//! and change, purges of any size, restarts.
//!
//! ```text
//!   model       what is stored, which rules are in force, and what has ended: judged whenever time or a rule has moved
//!   program     the steps of a program, from a seed
//!   runner      carries them out, and compares every reply
//!   audit       compares all that clients can see between the steps
//!   concurrent  clients, a clock and changes of rules at the same time
//! ```

mod audit;
mod concurrent;
mod model;
mod program;
mod runner;

use super::{Purging, RandomChoices, for_seeds};

const PROGRAMS: u64 = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_the_models_with_an_eager_purge() {
    for_seeds(PROGRAMS, |seed| runner::run(seed, Purging::Eager)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_the_models_without_a_purge() {
    for_seeds(PROGRAMS, |seed| runner::run(seed, Purging::Never)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_the_models_with_purges_in_between() {
    for_seeds(PROGRAMS, |seed| runner::run(seed, Purging::AtTimes)).await;
}
