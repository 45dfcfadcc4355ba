//! Where scripts run, and how many at once.
//!
//! Transactions (stored procedures, writes with triggers) and queries with user-defined functions have places of their own, so that
//! neither keeps the other out. A place is memory of the account's budget, too. Who finds none waits in line, not for long, and lines are
//! bounded. A partition takes one transaction of scripts at a time, before it takes a place ([`crate::partition::orders`]): slow scripts of one partition
//! hold one place and one spot in that line.

use std::sync::Arc;
use std::time::Duration;

use bolide_model::Result;
use bolide_model::time::Monotonic;
use bolide_script::Hosts;
use tokio::sync::OwnedSemaphorePermit;

use crate::container::Container;
use crate::memory::{MemoryBudget, MemoryShare};
use crate::partition::Partition;
use crate::partition::admission_queue::AdmissionQueue;
use crate::partition::orders::Order;
use crate::runtime::AccountOptions;
use crate::sql::QueryMemory;

/// Memory of a script at most: the engine's, and messages on their way.
const SCRIPT_BYTES: usize = 64 * 1024 * 1024 + 8 * 1024 * 1024;
/// Of that, what a query that it runs may hold in the server; more is taken beside it.
const QUERY_BYTES: usize = 4 * 1024 * 1024;
/// Part of the budget that scripts of one line may take.
const BUDGET_PART: usize = 3;
/// ScriptPermits for each core, least and most.
const PLACES_PER_CORE: usize = 2;
const MIN_PLACES: usize = 4;
const MAX_PLACES: usize = 32;
/// How long queries wait.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long transactions wait: whoever comes behind a single script that takes all of its five seconds, and is ended late, waits that long, then for the
/// pause of five seconds after it, and still has some for a place.
pub(crate) const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(15);

/// See the module.
pub(crate) struct ScriptPermits {
    clock: Monotonic,
    hosts: Arc<Hosts>,
    memory: MemoryBudget,
    transactions: AdmissionQueue,
    queries: AdmissionQueue,
    /// How long a script may run.
    pub(super) time: Duration,
}

/// What the scripts of an account are doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptFigures {
    /// Scripts, and queries that call functions, which have a process.
    pub running: usize,
    /// Requests that wait for a place, and transactions that wait for others of their partition.
    pub waiting: usize,
}

impl ScriptFigures {
    /// What the scripts of some containers are doing now.
    pub(crate) fn of(places: &ScriptPermits, containers: &[Arc<Container>]) -> ScriptFigures {
        let in_partitions = containers.iter().map(|container| {
            let layout = container.state().layout.clone();
            layout
                .partitions
                .iter()
                .map(|partition| partition.scripts.waiting())
                .sum::<usize>()
        });
        ScriptFigures {
            running: places.hosts.running(),
            waiting: places.transactions.waiting() + places.queries.waiting() + in_partitions.sum::<usize>(),
        }
    }
}

/// A place; kept by whatever runs in it.
pub(crate) type ScriptPermit = Arc<HeldScriptPermit>;

pub(crate) struct HeldScriptPermit {
    hosts: Arc<Hosts>,
    memory: MemoryBudget,
    _permit: OwnedSemaphorePermit,
    _share: MemoryShare,
}

impl ScriptPermits {
    pub fn new(options: &AccountOptions, memory: &MemoryBudget) -> ScriptPermits {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let affordable = memory.limit_bytes() / BUDGET_PART / SCRIPT_BYTES;
        let places = (cores * PLACES_PER_CORE)
            .clamp(MIN_PLACES, MAX_PLACES)
            .min(affordable)
            .max(1);
        ScriptPermits {
            clock: options.monotonic.clone(),
            hosts: Arc::new(Hosts::new(
                options.script_hosting.clone(),
                cores,
                options.monotonic.clone(),
            )),
            memory: memory.clone(),
            transactions: AdmissionQueue::new(places),
            queries: AdmissionQueue::new(places),
            time: options.script_time,
        }
    }

    /// Waits for the partition's previous script and for a place.
    ///
    /// # Errors
    /// `Throttled` if too many wait, none becomes free in time, or its memory is not there.
    pub async fn for_transaction(&self, partition: &Partition) -> Result<(ScriptPermit, Order)> {
        let until = self.clock.now() + TRANSACTION_TIMEOUT;
        let order = partition.scripts.next(&self.clock, until).await?;
        let _waiting = self.transactions.join()?;
        let permit = self.transactions.permit(&self.clock, until).await?;
        Ok((self.place(permit)?, order))
    }

    /// Waits for a place for the functions of a query.
    ///
    /// # Errors
    /// As [`ScriptPermits::for_transaction`].
    pub async fn for_query(&self) -> Result<ScriptPermit> {
        let _waiting = self.queries.join()?;
        let permit = self.queries.permit(&self.clock, self.clock.now() + TIMEOUT).await?;
        self.place(permit)
    }

    /// Ends all scripts. No further one is run.
    pub fn close(&self) {
        self.hosts.close();
    }

    fn place(&self, permit: OwnedSemaphorePermit) -> Result<ScriptPermit> {
        Ok(Arc::new(HeldScriptPermit {
            hosts: self.hosts.clone(),
            _share: self.memory.try_take(SCRIPT_BYTES.min(self.memory.longest_share()))?,
            memory: self.memory.clone(),
            _permit: permit,
        }))
    }
}

impl HeldScriptPermit {
    /// What runs a script.
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// Memory for a query that a script runs; it runs one at a time.
    pub fn query_memory(&self) -> Arc<QueryMemory> {
        QueryMemory::beside(&self.memory, QUERY_BYTES)
    }

    /// Memory for another script in the same place: the functions of a query that a script runs.
    ///
    /// # Errors
    /// `Throttled` if it is not there.
    pub fn more_memory(&self) -> Result<MemoryShare> {
        self.memory.try_take(SCRIPT_BYTES.min(self.memory.longest_share()))
    }
}
