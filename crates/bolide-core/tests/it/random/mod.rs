//! Random programs against the literal model (P1–P9): items, batches, stored procedures, deletions by partition key, queries, feeds,
//! settings, budgets, the clock, splits, restarts and crashes.
//!
//! A seed determines a program ([`program`]); a runner executes it on an account and on the model at the same time and compares every answer
//! ([`runner`]). A program that fails is reduced before it is shown ([`shrink`]).
//!
//! `BOLIDE_PROGRAMS=n` runs n programs of each claim instead of the usual number, `BOLIDE_SEED=s` begins with seed s instead of 1.

mod batches;
mod checks;
mod faults;
mod feeds;
mod items;
mod life;
mod partition_key_deletes;
pub mod program;
mod queries;
mod runner;
mod scripts;
mod shrink;
mod store;
mod versions;

pub use program::RandomChoices;
use program::{Program, Theme};
use runner::{Options, Purging};
pub use store::{Kind, Store};

/// Number of steps of a program.
const LENGTH: usize = 60;

#[test]
fn every_answer_equals_the_models() {
    for_seeds(150, |seed| {
        let program = Program::of_seed(seed, LENGTH, Theme::Everything);
        shrink::check(seed, &program, |program| {
            runner::run(program, Options::on(Kind::Memory)).map(|_| ())
        });
    });
}

#[test]
fn every_answer_equals_the_models_on_the_embedded_engine() {
    for_seeds(8, |seed| {
        let program = Program::of_seed(seed, LENGTH, Theme::Everything);
        shrink::check(seed, &program, |program| {
            runner::run(program, Options::on(Kind::Embedded)).map(|_| ())
        });
    });
}

/// P4.
#[test]
fn a_server_that_purges_at_once_and_one_that_never_does_answer_alike() {
    for_seeds(60, |seed| {
        let program = Program::of_seed(seed, LENGTH, Theme::WithoutPacing);
        shrink::check(seed, &program, |program| {
            let run = |purging| {
                let options = Options {
                    purging,
                    ..Options::on(Kind::Memory)
                };
                runner::run(program, options)
            };
            shrink::same_answers(program, &run(Purging::AtOnce)?, &run(Purging::Never)?)
        });
    });
}

#[test]
fn an_engine_in_trouble_may_refuse_but_never_changes_an_answer() {
    for_seeds(100, |seed| {
        let program = Program::of_seed(seed, LENGTH, Theme::WithoutPacing);
        shrink::check(seed, &program, |program| {
            runner::run(program, Options::on(Kind::InTrouble(seed))).map(|_| ())
        });
    });
}

#[test]
fn several_accounts_over_one_engine_in_trouble_answer_as_one() {
    for_seeds(40, |seed| {
        let program = Program::of_seed(seed, LENGTH, Theme::WithoutPacing);
        let kind = Kind::SharedInTrouble(seed, 2 + seed as usize % 2);
        shrink::check(seed, &program, |program| {
            runner::run(program, Options::on(kind)).map(|_| ())
        });
    });
}

fn for_seeds(usually: u64, mut claim: impl FnMut(u64)) {
    let first = setting("BOLIDE_SEED").unwrap_or(1);
    let programs = setting("BOLIDE_PROGRAMS").unwrap_or(usually);
    for seed in first..first + programs {
        claim(seed);
    }
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} must be a number: {text}")),
    )
}
