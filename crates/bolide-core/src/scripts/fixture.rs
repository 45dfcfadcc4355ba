//! A fixture of unit tests: a script that has just begun.

use std::sync::Arc;
use std::time::Duration;

use bolide_model::ErrorKind;
use bolide_model::time::Monotonic;
use bolide_script::OperationError;

use super::budget::ScriptBudget;
use super::permits::{ScriptPermit, ScriptPermits};
use super::transaction::ScriptTransaction;
use crate::fixture::{Fixture, key};
use crate::items::epk_of_key;
use crate::memory::MemoryBudget;
use crate::runtime::AccountOptions;

/// Options whose error numbers tell the kinds of errors apart.
fn options() -> AccountOptions {
    AccountOptions {
        script_errors: |error| OperationError {
            number: match error.kind {
                ErrorKind::Conflict => 409,
                ErrorKind::TooLarge => 413,
                ErrorKind::Unavailable => 500,
                _ => 400,
            },
            message: error.to_string(),
        },
        ..AccountOptions::default()
    }
}

/// A script in partition key `"p"`.
pub(super) struct BegunScript {
    /// Measures the script's time, which is limited to ten seconds.
    pub clock: Monotonic,
    pub budget: Arc<ScriptBudget>,
    pub transaction: Arc<ScriptTransaction>,
    pub permit: ScriptPermit,
}

impl BegunScript {
    /// Begins a script. It is stopped after `charge_limit` request units.
    pub async fn new(fixture: &Fixture, charge_limit: Option<f64>) -> BegunScript {
        let (state, clock) = (fixture.state(), Monotonic::manual());
        let permits = ScriptPermits::new(&options(), &MemoryBudget::new(1 << 30));
        let (permit, _order) = permits.for_transaction(&fixture.partition()).await.expect("a permit");
        let epk = epk_of_key(&state, &key("p")).expect("a key");
        let transaction = ScriptTransaction::new(fixture.container.clone(), state, key("p"), epk, permit.clone());
        let (now, time) = (fixture.begin().await.now, Duration::from_secs(10));
        BegunScript {
            budget: ScriptBudget::start(&clock, now, time, true, charge_limit, Arc::new(|| false)),
            clock,
            transaction: Arc::new(transaction.expect("a transaction")),
            permit,
        }
    }
}
