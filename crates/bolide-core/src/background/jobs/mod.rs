//! The background jobs, one module for each queue of a partition, and the job that keeps server time durable.

pub(super) mod count_ghosts;
pub(crate) mod delete_by_key;
pub(super) mod durable_second;
pub(crate) mod expire;
pub(super) mod forget_sessions;
pub(super) mod trim_log;

use std::sync::Arc;
use std::time::Instant;

use bolide_model::time::Monotonic;
use bolide_model::{Result, UnixMillis};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::job::{JobStep, StepLimits, StepReport};
use crate::cluster::Cluster;
use crate::container::{Container, ContainerState};
use crate::partition::Partition;

/// The data that all jobs of a partition share.
#[derive(Clone)]
pub(super) struct PartitionContext {
    container: Arc<Container>,
    partition: Arc<Partition>,
    cluster: Option<Arc<Cluster>>,
    clock: Monotonic,
}

/// How a step waits for a user's write to be committed with.
struct WaitForUsers {
    /// Ends when it no longer waits. `None`: it does not wait.
    patience: Option<BoxFuture<'static, ()>>,
    /// Returns the time of its first call, which is when the worker takes the step up.
    begin: Box<dyn FnMut() -> Instant + Send>,
}

impl PartitionContext {
    pub fn new(
        container: &Arc<Container>,
        partition: &Arc<Partition>,
        (cluster, clock): (&Option<Arc<Cluster>>, &Monotonic),
    ) -> PartitionContext {
        PartitionContext {
            container: container.clone(),
            partition: partition.clone(),
            cluster: cluster.clone(),
            clock: clock.clone(),
        }
    }

    /// Returns the latest time at which it may be judged what is removed: requests that read in several steps must not lose items that were live when they
    /// began, on whichever server they run.
    fn judged(&self, now: UnixMillis) -> UnixMillis {
        let here = self.container.oldest_reader();
        let elsewhere = self
            .cluster
            .as_ref()
            .map(|cluster| cluster.purge_bound(self.container.rid()));
        here.into_iter().chain(elsewhere).fold(now, UnixMillis::min)
    }

    /// Returns how a step with these limits waits for a user's write.
    fn wait_for_users(&self, limits: StepLimits) -> WaitForUsers {
        let (sleeping, clock) = (self.clock.clone(), self.clock.clone());
        let patience = limits.patience;
        let patience = (!patience.is_zero()).then(|| async move { sleeping.sleep(patience).await }.boxed());
        let mut began = None;
        WaitForUsers {
            patience,
            begin: Box::new(move || *began.get_or_insert_with(|| clock.now())),
        }
    }

    /// Runs one step inside the container, whose partition must still exist: a change of settings waits for one step only, not for the whole backlog.
    ///
    /// # Errors
    /// `RangeGone` if the partition was split; `NotFound` if the container was deleted; the errors of the step.
    async fn step(
        &self,
        step: impl AsyncFnOnce(Arc<ContainerState>, Arc<Partition>) -> Result<JobStep>,
    ) -> Result<StepReport> {
        let guard = self.container.enter().await?;
        let partition = guard.state.layout.partition_with_id(self.partition.range)?.clone();
        let began = self.clock.now();
        let step = step(guard.state.clone(), partition).await?;
        let began = step.began.unwrap_or(began);
        let took = self.clock.since(began);
        Ok(StepReport { step, began, took })
    }
}
