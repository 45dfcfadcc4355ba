//! Executing a stored procedure.

use std::sync::Arc;
use std::time::Duration;

use bolide_model::epk::Epk;
use bolide_model::partition_key::PartitionKey;
use bolide_model::time::Monotonic;
use bolide_model::{Lsn, RequestUnits, Result};
use bolide_script::{Call, Finished, Kind};
use futures_util::future::BoxFuture;

use super::budget::ScriptBudget;
use super::permits::{ScriptPermit, ScriptPermits};
use super::run::run;
use super::system;
use super::transaction::ScriptTransaction;
use crate::container::{Container, ContainerState, ReadGuard, Script, ScriptKind, ScriptName, ScriptQuarantine};
use crate::items::epk_of_key;
use crate::partition::Partition;
use crate::partition::exclusive::{ExclusiveEnd, ExclusiveJob, ExclusiveTransaction};
use crate::partition::orders::Order;
use crate::response::{ChargedResult, Refusal, Response};
use crate::runtime::{RequestContext, Runtime};

/// Executes a stored procedure.
#[derive(Debug, Clone)]
pub struct ExecuteProcedure {
    /// Which one.
    pub name: ScriptName,
    /// The logical partition it works on.
    pub partition_key: PartitionKey,
    /// Its arguments: the JSON text of an array, of an object like one, or `null`, as `Function.apply` takes them.
    pub arguments: String,
    /// Whether `console.log` is heard.
    pub is_logging: bool,
}

/// What a stored procedure left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// The response's body, as JSON text; `None` if it was set to `undefined`.
    pub body: Option<String>,
    /// What it logged.
    pub log: String,
}

/// Runs scripts in transactions.
#[derive(Clone, Copy)]
pub(crate) struct ScriptRunner<'a> {
    pub runtime: &'a Runtime,
    pub places: &'a Arc<ScriptPermits>,
}

impl ScriptRunner<'_> {
    /// See `Account::execute_procedure`.
    pub(crate) async fn execute_procedure(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        execute: ExecuteProcedure,
    ) -> ChargedResult<Executed> {
        let script = procedure(container, &execute.name)?;
        script.check_quarantine(ctx.now.seconds())?;
        let (place, order) = self
            .transaction_place(container, |state| epk_of_key(state, &execute.partition_key))
            .await?;
        // Runs before it may have blocked it.
        script.check_quarantine(ctx.now.seconds())?;
        let guard = container.enter_uninterruptible().await?;
        let epk = epk_of_key(&guard.state, &execute.partition_key)?;
        let partition = guard.state.layout.partition_of(&epk)?.clone();
        self.runtime.admit(ctx, &partition, &guard)?;

        let transaction = ScriptTransaction::new(
            container.clone(),
            guard.state.clone(),
            execute.partition_key,
            epk,
            place.clone(),
        )?;
        let transaction = Arc::new(transaction);
        let (charge, used) = Charged::new();
        let job = Procedure {
            call: call(container, &guard, &script, execute.arguments, execute.is_logging),
            quarantine: script.quarantine.clone(),
            account: self.script_clock(&guard),
            transaction: transaction.clone(),
            place,
            order,
            charge,
        };
        let outcome = partition.run_exclusive(job).await;
        self.settle(ctx, &partition, &guard, used.get(), outcome)
    }

    /// Waits for a place for a transaction of scripts. The container's settings can change meanwhile.
    pub(super) async fn transaction_place(
        &self,
        container: &Arc<Container>,
        epk: impl FnOnce(&ContainerState) -> Result<Epk>,
    ) -> Result<(ScriptPermit, Order)> {
        let partition = {
            let guard = container.enter().await?;
            guard.state.layout.partition_of(&epk(&guard.state)?)?.clone()
        };
        self.places.for_transaction(&partition).await
    }

    /// Accounts for what a transaction of scripts took.
    pub(super) fn settle<T>(
        &self,
        ctx: &RequestContext,
        partition: &Partition,
        guard: &ReadGuard<'_>,
        used: RequestUnits,
        outcome: Result<(T, Lsn)>,
    ) -> ChargedResult<T> {
        // Running it costs something even if it asks for nothing.
        let charge = RequestUnits(used.0.max(1.0)).rounded();
        match outcome {
            Ok((value, lsn)) => {
                let cost = self.runtime.charge(ctx, partition, guard, charge, lsn);
                Ok(Response { value, cost })
            }
            Err(error) => {
                let cost = self.runtime.charge(ctx, partition, guard, charge, partition.lsn());
                Err(Refusal { error, cost })
            }
        }
    }

    /// What a script's budget is made of.
    pub(super) fn script_clock(&self, guard: &ReadGuard<'_>) -> ScriptClock {
        let ceiling = guard
            .state
            .pacing
            .pacing
            .share(guard.state.layout.partitions.len())
            .ceiling();
        ScriptClock {
            monotonic: self.runtime.monotonic().clone(),
            is_virtual: self.runtime.has_virtual_clock(),
            time: self.places.time,
            // As much as the seconds that a script has could give it.
            charge_limit: ceiling
                .filter(|_| self.runtime.enforces_throughput())
                .map(|per_second| per_second * 5.0),
        }
    }
}

/// How watches of an account's scripts begin.
#[derive(Debug, Clone)]
pub(super) struct ScriptClock {
    monotonic: Monotonic,
    is_virtual: bool,
    time: Duration,
    charge_limit: Option<f64>,
}

impl ScriptClock {
    /// The partition is the script's from now on.
    pub fn start(&self, exclusive: &ExclusiveTransaction, order: &mut Order) -> Arc<ScriptBudget> {
        order.begin();
        let others_wait = order.others_wait();
        ScriptBudget::start(
            &self.monotonic,
            exclusive.now(),
            self.time,
            self.is_virtual,
            self.charge_limit,
            others_wait,
        )
    }
}

/// What a job used, for whoever waits for it: told also when it is refused.
#[derive(Clone, Default)]
pub(super) struct Charged(Arc<parking_lot::Mutex<RequestUnits>>);

impl Charged {
    pub fn new() -> (Charged, Charged) {
        let charged = Charged::default();
        (charged.clone(), charged)
    }

    pub fn set(&self, units: RequestUnits) {
        *self.0.lock() = units;
    }

    pub fn get(&self) -> RequestUnits {
        *self.0.lock()
    }
}

/// The stored procedure of a name: the container's own, or one that every container has.
fn procedure(container: &Container, name: &ScriptName) -> Result<Arc<Script>> {
    let scripts = container.scripts();
    let found = scripts.get(ScriptKind::StoredProcedure, name);
    match (found, name) {
        (Ok(script), _) => Ok(script.clone()),
        (Err(missing), ScriptName::Id(id)) => system::procedure(container.rid(), id).map(Arc::new).ok_or(missing),
        (Err(missing), ScriptName::Rid(_)) => Err(missing),
    }
}

/// A script with the links of its container.
pub(super) fn call(
    container: &Container,
    guard: &ReadGuard<'_>,
    script: &Script,
    arguments: String,
    is_logging: bool,
) -> Call {
    let info = container.info();
    let partition_key = &guard.state.properties.to_json()["partitionKey"];
    Call {
        source: script.body.to_string(),
        kind: Kind::Procedure { arguments },
        self_link: info.rid.self_link(),
        alt_link: format!("dbs/{}/colls/{}", info.database_id, info.properties.id),
        partition_key: partition_key.to_string(),
        is_logging,
    }
}

struct Procedure {
    call: Call,
    quarantine: ScriptQuarantine,
    account: ScriptClock,
    transaction: Arc<ScriptTransaction>,
    place: ScriptPermit,
    order: Order,
    charge: Charged,
}

impl ExclusiveJob for Procedure {
    type Output = (Executed, Lsn);

    fn run<'t>(
        &'t mut self,
        exclusive: &'t mut ExclusiveTransaction,
    ) -> BoxFuture<'t, Result<Self::Output, ExclusiveEnd>> {
        Box::pin(async move {
            let budget = self.account.start(exclusive, &mut self.order);
            let ended = run(
                exclusive,
                &self.transaction,
                &budget,
                &self.place,
                self.call.clone(),
                &self.quarantine,
            )
            .await;
            self.charge.set(budget.charge());
            let Finished { body, log } = ended?;
            Ok((Executed { body, log }, exclusive.lsn()))
        })
    }
}
