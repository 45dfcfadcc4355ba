//! Random programs against literal models, through the commands that clients send.
//!
//! A seed determines a program. `BOLIDE_PROGRAMS=n` runs n programs of each claim instead of the usual number, `BOLIDE_SEED=s` begins with seed s instead
//! of 1.

mod choices;
mod expiry;
mod indexes;
mod transactions;

use std::future::Future;

use choices::RandomChoices;

/// Whether and when ghosts are removed. No answer may depend on it (P4).
#[derive(Debug, Clone, Copy, PartialEq)]
enum Purging {
    /// After every step.
    Eager,
    Never,
    /// When the program says so.
    AtTimes,
}

/// Runs a claim for each seed, and names the seed if it fails.
async fn for_seeds<F>(usually: u64, claim: impl Fn(u64) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let first = setting("BOLIDE_SEED").unwrap_or(1);
    for seed in first..first + setting("BOLIDE_PROGRAMS").unwrap_or(usually) {
        if let Err(failed) = tokio::spawn(claim(seed)).await {
            std::panic::resume_unwind(Box::new(format!("BOLIDE_SEED={seed}: {failed}")));
        }
    }
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}
