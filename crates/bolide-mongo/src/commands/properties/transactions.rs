//! Transactions over all collections of a database, in two and three sessions whose commands interleave, against a literal model of snapshot isolation.
//!
//! ```text
//!   model     what each command must answer: snapshots, own writes over them, the first committer wins, expiry at the transaction's time
//!   program   the commands of the sessions, from a seed, and the orders in which they run
//!   runner    sends them, and compares every answer with the model's
//! ```
//!
//! Each program runs with an eager purge and without any; the model knows no purge, so both answer alike (P4, TTL-290, TTL-292).

mod model;
mod program;
mod runner;

use super::{Purging, RandomChoices, for_seeds};
use program::{Program, orders};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_order_of_two_short_transactions_is_isolated() {
    for_seeds(3, |seed| async move {
        let program = Program::of_seed(seed, 2, 3);
        for order in orders(&program.lengths()) {
            for purging in [Purging::Eager, Purging::Never] {
                runner::run(&program, &order, purging).await;
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_order_of_three_very_short_transactions_is_isolated() {
    for_seeds(1, |seed| async move {
        let program = Program::of_seed(seed, 3, 1);
        for order in orders(&program.lengths()) {
            for purging in [Purging::Eager, Purging::Never] {
                runner::run(&program, &order, purging).await;
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_transactions_of_three_sessions_are_isolated() {
    for_seeds(30, |seed| async move {
        let mut choices = RandomChoices::new(seed);
        let program = Program::of_seed(seed, 3, 14);
        let order = program.random_order(&mut choices);
        for purging in [Purging::Eager, Purging::Never] {
            runner::run(&program, &order, purging).await;
        }
    })
    .await;
}
