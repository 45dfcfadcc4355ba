//! Limits how many scripts run at once.
//!
//! Transactions (stored procedures, writes with triggers) and queries with user-defined functions have separate permits, so that neither blocks the
//! other. A permit includes memory of the account's budget. A request that finds no permit waits in a queue for a short time; queues are bounded. A
//! partition admits one transaction of scripts at a time, before that takes a permit ([`crate::partition::orders`]): so slow scripts of one partition
//! hold one permit and one place in the queue for permits.

use std::sync::Arc;
use std::time::Duration;

use bolide_model::time::Monotonic;
use bolide_model::{Error, Result};
use bolide_script::{Hosts, OperationError};
use tokio::sync::OwnedSemaphorePermit;

use crate::container::Container;
use crate::memory::{MemoryBudget, MemoryShare};
use crate::partition::Partition;
use crate::partition::admission_queue::AdmissionQueue;
use crate::partition::orders::Order;
use crate::runtime::{AccountOptions, ScriptErrors};
use crate::sql::QueryMemory;

/// Maximum memory of a script in bytes: that of its engine, and that of messages in transit.
const SCRIPT_BYTES: usize = 64 * 1024 * 1024 + 8 * 1024 * 1024;
/// The part of it that is reserved for a query which the script runs, in bytes; a query that needs more takes it in addition.
const QUERY_BYTES: usize = 4 * 1024 * 1024;
/// Divisor of the memory budget: scripts of one queue may take a third of it.
const BUDGET_PART: usize = 3;
/// Number of permits per core, and the minimum and maximum number of permits.
const PERMITS_PER_CORE: usize = 2;
const MIN_PERMITS: usize = 4;
const MAX_PERMITS: usize = 32;
/// How long queries wait for a permit.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long transactions wait. A transaction behind one script that uses all of its five seconds, and is aborted late, waits that long, then for the
/// pause of five seconds after it, and still has some time to get a permit.
pub(crate) const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(15);

/// See the module.
pub(crate) struct ScriptPermits {
    clock: Monotonic,
    hosts: Arc<Hosts>,
    errors: ScriptErrors,
    memory: MemoryBudget,
    transactions: AdmissionQueue,
    queries: AdmissionQueue,
    /// How long a script may run.
    pub(super) time: Duration,
}

/// The number of running and waiting scripts of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptFigures {
    /// Scripts, and queries that call functions, that have a process.
    pub running: usize,
    /// Requests that wait for a permit, and transactions that wait for others of their partition.
    pub waiting: usize,
}

impl ScriptFigures {
    /// Returns the number of running and waiting scripts of some containers.
    pub(crate) fn of(permits: &ScriptPermits, containers: &[Arc<Container>]) -> ScriptFigures {
        let in_partitions = containers.iter().map(|container| {
            let layout = container.state().layout.clone();
            layout
                .partitions
                .iter()
                .map(|partition| partition.scripts.waiting())
                .sum::<usize>()
        });
        ScriptFigures {
            running: permits.hosts.running(),
            waiting: permits.transactions.waiting() + permits.queries.waiting() + in_partitions.sum::<usize>(),
        }
    }
}

/// A permit. It is held by everything that runs under it.
pub(crate) type ScriptPermit = Arc<HeldScriptPermit>;

pub(crate) struct HeldScriptPermit {
    hosts: Arc<Hosts>,
    errors: ScriptErrors,
    memory: MemoryBudget,
    _permit: OwnedSemaphorePermit,
    _share: MemoryShare,
}

impl ScriptPermits {
    pub fn new(options: &AccountOptions, memory: &MemoryBudget) -> ScriptPermits {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let affordable = memory.limit_bytes() / BUDGET_PART / SCRIPT_BYTES;
        let permits = (cores * PERMITS_PER_CORE)
            .clamp(MIN_PERMITS, MAX_PERMITS)
            .min(affordable)
            .max(1);
        ScriptPermits {
            clock: options.monotonic.clone(),
            hosts: Arc::new(Hosts::new(
                options.script_hosting.clone(),
                cores,
                options.monotonic.clone(),
            )),
            errors: options.script_errors,
            memory: memory.clone(),
            transactions: AdmissionQueue::new(permits),
            queries: AdmissionQueue::new(permits),
            time: options.script_time,
        }
    }

    /// Waits for the partition's previous script and for a permit.
    ///
    /// # Errors
    /// `Throttled` if too many wait, if none becomes free in time, or if there is not enough memory.
    pub async fn for_transaction(&self, partition: &Partition) -> Result<(ScriptPermit, Order)> {
        let until = self.clock.now() + TRANSACTION_TIMEOUT;
        let order = partition.scripts.next(&self.clock, until).await?;
        let _waiting = self.transactions.join()?;
        let permit = self.transactions.permit(&self.clock, until).await?;
        Ok((self.permit(permit)?, order))
    }

    /// Waits for a permit for the functions of a query.
    ///
    /// # Errors
    /// The errors of [`ScriptPermits::for_transaction`].
    pub async fn for_query(&self) -> Result<ScriptPermit> {
        let _waiting = self.queries.join()?;
        let permit = self.queries.permit(&self.clock, self.clock.now() + TIMEOUT).await?;
        self.permit(permit)
    }

    /// Aborts all scripts. No further script is run.
    pub fn close(&self) {
        self.hosts.close();
    }

    fn permit(&self, permit: OwnedSemaphorePermit) -> Result<ScriptPermit> {
        Ok(Arc::new(HeldScriptPermit {
            hosts: self.hosts.clone(),
            errors: self.errors,
            _share: self.memory.try_take(SCRIPT_BYTES.min(self.memory.longest_share()))?,
            memory: self.memory.clone(),
            _permit: permit,
        }))
    }
}

impl HeldScriptPermit {
    /// Returns the processes that run scripts.
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// Maps the refusal of an operation to the error that the script sees.
    pub fn refused(&self, error: &Error) -> OperationError {
        (self.errors)(error)
    }

    /// Returns the memory for a query that a script runs; a script runs one query at a time.
    pub fn query_memory(&self) -> Arc<QueryMemory> {
        QueryMemory::beside(&self.memory, QUERY_BYTES)
    }

    /// Takes memory for another process under the same permit, for the functions of a query that a script runs.
    ///
    /// # Errors
    /// `Throttled` if there is not enough memory.
    pub fn more_memory(&self) -> Result<MemoryShare> {
        self.memory.try_take(SCRIPT_BYTES.min(self.memory.longest_share()))
    }
}
