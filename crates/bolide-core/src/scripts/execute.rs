//! Executes stored procedures.

use std::sync::Arc;
use std::time::Duration;

use bolide_model::epk::Epk;
use bolide_model::error::ItemOperation;
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
    /// The procedure.
    pub name: ScriptName,
    /// The logical partition that it works on.
    pub partition_key: PartitionKey,
    /// Its arguments: the JSON text of an array, of an array-like object, or `null`, as `Function.apply` takes them.
    pub arguments: String,
    /// Whether the output of `console.log` is returned.
    pub is_logging: bool,
}

/// The result of a stored procedure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// The response's body, as JSON text; `None` if it was set to `undefined`.
    pub body: Option<String>,
    /// The output of `console.log`.
    pub log: String,
}

/// Runs scripts in transactions.
#[derive(Clone, Copy)]
pub(crate) struct ScriptRunner<'a> {
    pub runtime: &'a Runtime,
    pub permits: &'a Arc<ScriptPermits>,
}

impl ScriptRunner<'_> {
    /// See `Account::execute_procedure`.
    pub(crate) async fn execute_procedure(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        execute: ExecuteProcedure,
    ) -> ChargedResult<Executed> {
        container.state().check_is_not_collection(ItemOperation::Script)?;
        let script = procedure(container, &execute.name)?;
        script.check_quarantine(ctx.now.seconds())?;
        let (permit, order) = self
            .transaction_place(container, |state| epk_of_key(state, &execute.partition_key))
            .await?;
        // Executions in the meantime may have caused the script to be blocked.
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
            permit.clone(),
        )?;
        let transaction = Arc::new(transaction);
        let (charge, used) = Charged::new();
        let job = Procedure {
            call: call(container, &guard, &script, execute.arguments, execute.is_logging),
            quarantine: script.quarantine.clone(),
            account: self.script_clock(&guard),
            transaction: transaction.clone(),
            permit,
            order,
            charge,
        };
        let outcome = partition.run_exclusive(job).await;
        self.settle(ctx, &partition, &guard, used.get(), outcome)
    }

    /// Waits for a permit for a transaction of scripts. The container's settings can change meanwhile.
    pub(super) async fn transaction_place(
        &self,
        container: &Arc<Container>,
        epk: impl FnOnce(&ContainerState) -> Result<Epk>,
    ) -> Result<(ScriptPermit, Order)> {
        let partition = {
            let guard = container.enter().await?;
            guard.state.layout.partition_of(&epk(&guard.state)?)?.clone()
        };
        self.permits.for_transaction(&partition).await
    }

    /// Charges the cost of a transaction of scripts.
    pub(super) fn settle<T>(
        &self,
        ctx: &RequestContext,
        partition: &Partition,
        guard: &ReadGuard<'_>,
        used: RequestUnits,
        outcome: Result<(T, Lsn)>,
    ) -> ChargedResult<T> {
        // A transaction is charged even if it has no operations.
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

    /// Returns the settings for the budget of a script.
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
            time: self.permits.time,
            // The request units that the throughput provides in the five seconds that a script has.
            charge_limit: ceiling
                .filter(|_| self.runtime.enforces_throughput())
                .map(|per_second| per_second * 5.0),
        }
    }
}

/// The settings for the budgets of an account's scripts.
#[derive(Debug, Clone)]
pub(super) struct ScriptClock {
    monotonic: Monotonic,
    is_virtual: bool,
    time: Duration,
    charge_limit: Option<f64>,
}

impl ScriptClock {
    /// Starts a script's budget. The script has the partition from now on.
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

/// The request units that a job used. The caller can read them even if the job was refused.
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

/// Returns the stored procedure of a name: the container's own, or one that every container has.
fn procedure(container: &Container, name: &ScriptName) -> Result<Arc<Script>> {
    let scripts = container.scripts();
    let found = scripts.get(ScriptKind::StoredProcedure, name);
    match (found, name) {
        (Ok(script), _) => Ok(script.clone()),
        (Err(missing), ScriptName::Id(id)) => system::procedure(container.rid(), id).map(Arc::new).ok_or(missing),
        (Err(missing), ScriptName::Rid(_)) => Err(missing),
    }
}

/// Returns the call of a script, with the links of its container.
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
    permit: ScriptPermit,
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
                &self.permit,
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
