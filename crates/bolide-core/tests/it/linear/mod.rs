//! Linearizability: clients race on a few items of one logical partition, and there must be one order of all calls that explains every answer.
//!
//! The clients share ids, etags, one unique key and TTL, in single operations, batches and lists. A round of calls happens within one second of the
//! virtual clock, which steps between rounds; sometimes a purge runs at the same time. After each round [`checker`] searches for an order of its
//! calls that respects which answers came before which calls, and in which the literal model of [`action`] gives every answer that was seen. The
//! model treats the whole partition as one object, so there is no such order either for a torn batch or a unique key that is held twice.
//!
//! Stored procedures, deletions of the whole key, changes of the default ttl and splits take part. With several accounts, each client uses one of them. After each round two readers catch up with the change feed, in both of its
//! modes, and must have seen the existing items; in the end each item has ended once (P7).
//!
//! `BOLIDE_SECONDS` sets the time for each engine, in seconds, and `BOLIDE_SEED` the first seed.

pub mod action;
pub mod checker;
pub mod followers;
mod procedure;
pub mod racers;
pub mod track;

use std::collections::BTreeMap;
use std::time::Duration;

use bolide_model::time::Monotonic;

use crate::random::Kind;
use checker::Checker;
use racers::SharedContainer;

/// Time for each engine in seconds, unless `BOLIDE_SECONDS` is set.
const SECONDS: u64 = 2;
/// Number of rounds in one container; then another one begins.
const ROUNDS: u64 = 200;
/// Minimum number of rounds, also on a busy machine, so that every kind of call occurs.
const MIN_ROUNDS: u64 = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_answer_fits_one_order_of_all_calls() {
    race("memory", Kind::Memory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_answer_fits_one_order_of_all_calls_on_the_embedded_engine() {
    race("embedded", Kind::Embedded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_answer_of_two_accounts_fits_one_order_of_all_calls() {
    race("two accounts", Kind::Shared(2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_answer_of_three_accounts_fits_one_order_of_all_calls() {
    race("three accounts", Kind::Shared(3)).await;
}

#[expect(clippy::print_stdout, reason = "figures, for those who ask for them")]
async fn race(name: &str, kind: Kind) {
    let clock = Monotonic::system();
    let end = clock.now() + Duration::from_secs(setting("BOLIDE_SECONDS").unwrap_or(SECONDS));
    let mut seed = setting("BOLIDE_SEED").unwrap_or(1);
    let (mut rounds, mut calls, mut tried) = (0, 0, 0);
    let mut outcomes: BTreeMap<&'static str, u64> = BTreeMap::new();
    let is_over = |rounds: u64| rounds >= MIN_ROUNDS && clock.now() >= end;
    while !is_over(rounds) {
        let mut race = SharedContainer::begin(kind, seed).await;
        let mut checker = Checker::default();
        for round in 0..ROUNDS {
            let made = race.round().await;
            calls += made.len();
            for call in &made {
                *outcomes.entry(call.outcome.name()).or_default() += 1;
            }
            if let Err(why) = checker.take(&made) {
                panic!("seed {seed}, round {round}: {why}");
            }
            rounds += 1;
            if is_over(rounds) {
                break;
            }
        }
        tried += checker.tried();
        race.assert_sound().await;
        seed += 1;
    }
    println!("{name}: {rounds} rounds, {calls} calls, {tried} steps tried; {outcomes:?}");
    for expected in [
        "written",
        "found",
        "deleted",
        "listed",
        "committed",
        "rolled back",
        "ran",
        "dropped",
        "defined",
        "NotFound",
        "Conflict",
        "Precondition",
    ] {
        assert!(
            outcomes.contains_key(expected),
            "{expected} never happened: {outcomes:?}"
        );
    }
}

fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} must be a number: {value}")),
    )
}
