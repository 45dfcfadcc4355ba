//! For unit tests: what a script has when it begins.

use std::sync::Arc;
use std::time::Duration;

use bolide_model::time::Monotonic;

use super::budget::ScriptBudget;
use super::permits::ScriptPermits;
use super::transaction::ScriptTransaction;
use crate::fixture::{Fixture, key};
use crate::items::epk_of_key;
use crate::memory::MemoryBudget;
use crate::runtime::AccountOptions;

/// A script in partition key `"p"`.
pub(super) struct BegunScript {
    /// By which it has its time: ten seconds.
    pub clock: Monotonic,
    pub budget: Arc<ScriptBudget>,
    pub transaction: Arc<ScriptTransaction>,
}

impl BegunScript {
    /// `charge_limit`: request units after which it is to stop.
    pub async fn new(fixture: &Fixture, charge_limit: Option<f64>) -> BegunScript {
        let (state, clock) = (fixture.state(), Monotonic::manual());
        let permits = ScriptPermits::new(&AccountOptions::default(), &MemoryBudget::new(1 << 30));
        let (permit, _order) = permits.for_transaction(&fixture.partition()).await.expect("a permit");
        let epk = epk_of_key(&state, &key("p")).expect("a key");
        let transaction = ScriptTransaction::new(fixture.container.clone(), state, key("p"), epk, permit);
        let (now, time) = (fixture.begin().await.now, Duration::from_secs(10));
        BegunScript {
            budget: ScriptBudget::start(&clock, now, time, true, charge_limit, Arc::new(|| false)),
            clock,
            transaction: Arc::new(transaction.expect("a transaction")),
        }
    }
}
