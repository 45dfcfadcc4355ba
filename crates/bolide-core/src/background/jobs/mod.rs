//! The background jobs, one module for each queue of a partition, and the job that keeps server time durable.

pub(super) mod count_ghosts;
pub(crate) mod delete_by_key;
pub(super) mod durable_second;
pub(crate) mod expire;
pub(super) mod forget_sessions;
pub(super) mod trim_log;

use std::sync::Arc;

use bolide_model::Result;
use bolide_model::time::Monotonic;

use super::job::{JobStep, StepReport};
use crate::container::{Container, ContainerState};
use crate::partition::Partition;

/// The data that all jobs of a partition share.
#[derive(Clone)]
pub(super) struct PartitionContext {
    container: Arc<Container>,
    partition: Arc<Partition>,
    clock: Monotonic,
}

impl PartitionContext {
    pub fn new(container: &Arc<Container>, partition: &Arc<Partition>, clock: &Monotonic) -> PartitionContext {
        PartitionContext {
            container: container.clone(),
            partition: partition.clone(),
            clock: clock.clone(),
        }
    }

    /// Runs one step inside the container, whose partition must still exist: a change of settings waits for one step only, not for the whole backlog.
    ///
    /// # Errors
    /// `RangeGone` if the partition was split; `NotFound` if the container was deleted; the errors of the step.
    async fn step(&self, step: impl AsyncFnOnce(Arc<ContainerState>) -> Result<JobStep>) -> Result<StepReport> {
        let guard = self.container.enter().await?;
        guard.state.layout.partition_with_id(self.partition.range)?;
        let began = self.clock.now();
        let step = step(guard.state.clone()).await?;
        let took = self.clock.since(began);
        Ok(StepReport { step, began, took })
    }
}
