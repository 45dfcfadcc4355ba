//! Background work: removing ghosts so that their space comes back, and what else waits in the queues of partitions.
//!
//! Reads are exact without it (see `bolide_model::ttl`): a job is an ordinary client of the partition's worker, in small steps.
//!
//! ```text
//!   job (jobs/)        queue                                              due while
//!   expire             expiry queue, by (_ts + ttl, lsn)                  base <= X(T)
//!                      log from the cursor, by (_ts, lsn)                 _ts <= W(T); entries with an own ttl are stepped over
//!   delete_by_key      deleted partition keys, oldest first               at once
//!   trim_log           history, by (lsn, seq)                             crts + retention <= T
//! ```
//!
//! Each queue is sorted by what it is compared with, so its first entry that is not due ends it: no scan over items. The cursor of the log
//! only moves forward, since an item that was stepped over becomes one without an own ttl only by a write, which gives it a new
//! place at the end of the log. A settings change needs nothing but new horizons (TTL-234).
//!
//! [`driver`] gives jobs their steps, for the scheduler and for a purge by call; [`scheduler`] decides when, [`pacer`] how much. Steps share
//! a write batch with users' writes (TTL-265) and are paced by the units that users left over (TTL-259). Out of scope: reclaiming bytes on disk,
//! which is each engine's business.

mod driver;
#[cfg(test)]
mod fake_jobs;
mod fault;
mod job;
pub(crate) mod jobs;
mod pacer;
mod scheduler;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bolide_model::time::Monotonic;
use bolide_model::{Result, UnixMillis};
use bolide_storage::Engine;

use crate::container::Container;
use driver::{Driver, OnDemand};
pub(crate) use fault::PurgeFault;
pub use job::PurgeMode;
use job::{Job, JobSource, PartitionJobs};
use jobs::delete_by_key::DeleteByKey;
use jobs::expire::Expire;
use jobs::trim_log::TrimLog;
pub(crate) use scheduler::{PurgeOptions, PurgeScheduler};

/// Every container with work in the background, as of now.
pub(crate) type Containers = Box<dyn Fn() -> Vec<Arc<Container>> + Send + Sync>;

/// What background work knows of its account, and what it tells it.
pub(crate) struct Background {
    engine: Arc<dyn Engine>,
    clock: Monotonic,
    containers: Containers,
    /// How many requests of users have begun: by it users are noticed.
    requests: AtomicU64,
    is_held: AtomicBool,
    fault: Arc<PurgeFault>,
}

impl Background {
    /// Background work that is not running yet.
    pub fn new(engine: Arc<dyn Engine>, clock: Monotonic, containers: Containers, fault: PurgeFault) -> Background {
        Background {
            engine,
            clock,
            containers,
            requests: AtomicU64::new(0),
            is_held: AtomicBool::new(false),
            fault: Arc::new(fault),
        }
    }

    /// Purges a container now, at most `max` items. Returns how many ghosts were removed.
    ///
    /// # Errors
    /// From the engine; what was removed before stays removed.
    pub async fn purge(&self, container: &Arc<Container>, mode: PurgeMode, max: Option<u64>) -> Result<u64> {
        let driver = Driver::new(self.clock.clone(), OnDemand::new(mode, max));
        driver.run_to_end(&self.jobs_of(container.clone())).await
    }

    /// A request of a user has begun.
    pub fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// How many requests of users have begun so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Whether the purge is held after a step of the wall clock.
    pub fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Relaxed)
    }

    /// A crash on purpose, for tests.
    pub fn fault(&self) -> &PurgeFault {
        &self.fault
    }

    fn set_held(&self, is_held: bool) {
        self.is_held.store(is_held, Ordering::Relaxed);
    }

    fn server_time(&self) -> UnixMillis {
        self.engine.time().lo
    }

    /// The jobs of every container.
    fn sources(&self) -> Vec<ContainerJobs> {
        let containers = (self.containers)();
        containers
            .into_iter()
            .map(|container| self.jobs_of(container))
            .collect()
    }

    fn jobs_of(&self, container: Arc<Container>) -> ContainerJobs {
        ContainerJobs {
            container,
            clock: self.clock.clone(),
            fault: self.fault.clone(),
        }
    }
}

/// The jobs of one container.
struct ContainerJobs {
    container: Arc<Container>,
    clock: Monotonic,
    fault: Arc<PurgeFault>,
}

impl JobSource for ContainerJobs {
    fn next_due(&self) -> i64 {
        let state = self.container.state();
        let partitions = state.layout.partitions.iter();
        partitions
            .map(|partition| partition.next_background_work())
            .min()
            .unwrap_or(i64::MAX)
    }

    fn partitions(&self) -> Vec<PartitionJobs> {
        let state = self.container.state();
        let jobs_of = |partition| {
            let context = jobs::PartitionContext::new(&self.container, partition, &self.clock);
            let jobs: Vec<Box<dyn Job>> = vec![
                Box::new(Expire::new(context.clone(), self.fault.clone())),
                Box::new(DeleteByKey::new(context.clone())),
                Box::new(TrimLog::new(context)),
            ];
            PartitionJobs {
                range: partition.range,
                jobs,
            }
        };
        state.layout.partitions.iter().map(jobs_of).collect()
    }
}
