//! Background work: removing ghosts to free their space, and processing the other queues of partitions.
//!
//! Reads are exact without it (see `bolide_model::ttl`): a job is an ordinary client of the partition's worker, in small steps.
//!
//! ```text
//!   job (jobs/)        queue                                              due while
//!   count_ghosts       the queues of expire, from its own cursors         as for expire; each item is counted once
//!   expire             expiry queue, by (_ts + ttl, lsn)                  base <= X(T)
//!                      log from the cursor, by (_ts, lsn)                 _ts <= W(T); entries with an own ttl are skipped
//!                      a queue for each date rule, by (date, lsn)         date <= the rule's threshold
//!   delete_by_key      deleted partition keys, oldest first               at once
//!   trim_log           history, by (lsn, seq)                             crts + retention <= T
//! ```
//!
//! Each queue is sorted by the value that is compared, so no entry after the first one that is not due is due, and no job scans the items. The
//! cursor of the log only moves forward, because an item that was skipped loses its own ttl only by a write, which gives it a new position at the
//! end of the log. A settings change needs nothing but new horizons (TTL-234).
//!
//! [`driver`] runs the steps of jobs, for the scheduler and for a purge by call; [`scheduler`] decides when they run, [`pacer`] how much they do.
//! Steps share a write batch with users' writes (TTL-265) and are paced by the units that users left over (TTL-259). Out of scope: reclaiming bytes
//! on disk, which is each engine's task.

mod build_indexes;
mod driver;
#[cfg(test)]
mod fake_jobs;
mod fault;
mod job;
pub(crate) mod jobs;
mod pacer;
mod property_index_builds;
mod rest;
mod scheduler;
mod vector_training;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bolide_model::time::Monotonic;
use bolide_model::{Result, UnixMillis};
use bolide_storage::Engine;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::catalog::Catalog;
use crate::clock;
use crate::cluster::Cluster;
use crate::container::{Container, ContainerState};
use crate::partition::Partition;
pub use build_indexes::BuildFailure;
use driver::{Driver, OnDemand};
pub(crate) use fault::PurgeFault;
pub use job::PurgeMode;
use job::{Job, JobSource, PartitionJobs};
use jobs::count_ghosts::CountGhosts;
use jobs::delete_by_key::DeleteByKey;
use jobs::expire::Expire;
use jobs::forget_sessions::ForgetSessions;
use jobs::trim_log::TrimLog;
pub(crate) use property_index_builds::PropertyIndexBuilds;
pub(crate) use scheduler::{PurgeOptions, PurgeScheduler, READERS_PAUSE};

/// Returns every container that exists now.
pub(crate) trait Containers: Send + Sync {
    fn all(&self) -> Vec<Arc<Container>>;

    /// Puts into force what another server has changed of a container.
    fn settle<'a>(&'a self, container: &'a Container) -> BoxFuture<'a, Result<()>>;
}

impl Containers for Catalog {
    fn all(&self) -> Vec<Arc<Container>> {
        self.all_containers()
    }

    fn settle<'a>(&'a self, container: &'a Container) -> BoxFuture<'a, Result<()>> {
        Catalog::settle(self, container).boxed()
    }
}

/// What background work shares with its account.
pub(crate) struct Background {
    engine: Arc<dyn Engine>,
    clock: Monotonic,
    containers: Arc<dyn Containers>,
    cluster: Option<Arc<Cluster>>,
    /// Number of user requests that have begun; the purge pauses for users while it rises.
    requests: AtomicU64,
    is_held: AtomicBool,
    fault: Arc<PurgeFault>,
}

impl Background {
    /// Creates the background work; it does not run yet.
    pub fn new(
        engine: Arc<dyn Engine>,
        clock: Monotonic,
        (containers, cluster): (Arc<dyn Containers>, Option<Arc<Cluster>>),
        fault: PurgeFault,
    ) -> Background {
        Background {
            engine,
            clock,
            containers,
            cluster,
            requests: AtomicU64::new(0),
            is_held: AtomicBool::new(false),
            fault: Arc::new(fault),
        }
    }

    /// Purges a container now, at most `max` items. Returns the number of ghosts removed.
    ///
    /// # Errors
    /// `Unavailable` if another server still reads at an earlier time; errors of the engine. Items removed before the error stay removed.
    pub async fn purge(&self, container: &Arc<Container>, mode: PurgeMode, max: Option<u64>) -> Result<u64> {
        if let Some(cluster) = &self.cluster {
            let asked = clock::exact_now(self.engine.as_ref()).await?;
            cluster.await_purge_bound(container.rid(), asked).await?;
        }
        let driver = Driver::new(self.clock.clone(), OnDemand::new(mode, max));
        driver.run_to_end(&self.jobs_of(container.clone(), false)).await
    }

    /// Counts a user request that has begun.
    pub fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of user requests that have begun so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Returns whether the purge pauses after a step of the wall clock.
    pub fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Relaxed)
    }

    /// Returns the deliberate crash, for tests.
    pub fn fault(&self) -> &PurgeFault {
        &self.fault
    }

    fn set_held(&self, is_held: bool) {
        self.is_held.store(is_held, Ordering::Relaxed);
    }

    fn server_time(&self) -> UnixMillis {
        self.engine.time().lo
    }

    /// Returns the jobs of every container, of its partitions whose upkeep this server does.
    fn sources(&self) -> Vec<ContainerJobs> {
        let containers = self.containers.all();
        containers
            .into_iter()
            .map(|container| self.jobs_of(container, true))
            .collect()
    }

    fn jobs_of(&self, container: Arc<Container>, is_upkeep: bool) -> ContainerJobs {
        ContainerJobs {
            container,
            containers: self.containers.clone(),
            cluster: self.cluster.clone(),
            is_upkeep,
            clock: self.clock.clone(),
            fault: self.fault.clone(),
        }
    }
}

/// The jobs of one container.
struct ContainerJobs {
    container: Arc<Container>,
    containers: Arc<dyn Containers>,
    cluster: Option<Arc<Cluster>>,
    /// Whether only owned partitions have jobs.
    is_upkeep: bool,
    clock: Monotonic,
    fault: Arc<PurgeFault>,
}

impl ContainerJobs {
    /// Returns the partitions whose jobs run here: another server may do the upkeep of the rest.
    fn own<'s>(&'s self, state: &'s ContainerState) -> impl Iterator<Item = &'s Arc<Partition>> {
        let cluster = self.cluster.as_ref().filter(|_| self.is_upkeep);
        let partitions = state.layout.partitions.iter();
        partitions.filter(move |partition| cluster.is_none_or(|cluster| cluster.owns(partition.id)))
    }
}

impl JobSource for ContainerJobs {
    fn next_due(&self) -> i64 {
        let state = self.container.state();
        self.own(&state)
            .map(|partition| partition.next_background_work())
            .min()
            .unwrap_or(i64::MAX)
    }

    fn backlog(&self) -> u64 {
        let state = self.container.state();
        self.own(&state).map(|partition| partition.backlog()).sum()
    }

    fn settle(&self) -> BoxFuture<'_, Result<()>> {
        self.containers.settle(&self.container)
    }

    fn partitions(&self) -> Vec<PartitionJobs> {
        let state = self.container.state();
        let jobs_of = |partition: &Arc<Partition>| {
            let shared = (&self.cluster, &self.clock);
            let context = jobs::PartitionContext::new(&self.container, partition, shared);
            let jobs: Vec<Box<dyn Job>> = vec![
                // Runs first, so that statistics show the ghosts even if their purge fails.
                Box::new(CountGhosts::new(context.clone())),
                Box::new(Expire::new(context.clone(), self.fault.clone())),
                Box::new(DeleteByKey::new(context.clone())),
                Box::new(TrimLog::new(context.clone())),
                Box::new(ForgetSessions::new(context)),
            ];
            PartitionJobs {
                range: partition.range,
                jobs,
            }
        };
        self.own(&state).map(jobs_of).collect()
    }
}
