//! Counts expired items for statistics, in the second of their expiry, unless the purge removes them first. The job removes no items, and it also runs
//! while the purge is held, has spent its budget or is switched off.

use std::sync::Arc;

use bolide_model::Result;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::PartitionContext;
use crate::background::job::{End, Job, JobKind, JobStep, StepLimits, StepReport};
use crate::container::ContainerState;
use crate::partition::Partition;
use crate::partition::ghosts::{FEW_ROWS, ROWS};

/// Counts expired items; see the module.
pub(in crate::background) struct CountGhosts(PartitionContext);

impl CountGhosts {
    pub fn new(context: PartitionContext) -> CountGhosts {
        CountGhosts(context)
    }
}

impl Job for CountGhosts {
    fn kind(&self) -> JobKind {
        JobKind::CountGhosts
    }

    fn next_due(&self) -> i64 {
        self.0.partition.next_background_count()
    }

    fn step(&self, limits: StepLimits) -> BoxFuture<'_, Result<StepReport>> {
        let rows = usize::try_from(limits.items).unwrap_or(ROWS).min(ROWS);
        let count = async move |state: Arc<ContainerState>, partition: Arc<Partition>| {
            let mut end = End::Unfinished;
            // Users' writes come between two of these.
            for rows in std::iter::once(FEW_ROWS).chain(std::iter::repeat_n(rows, ROWS / rows.max(1))) {
                let counted = partition.count_ghosts(state.settings.clone(), rows).await?;
                if counted.is_some() {
                    end = End::Drained;
                    break;
                }
            }
            Ok(JobStep::new(0, end))
        };
        self.0.step(count).boxed()
    }
}
