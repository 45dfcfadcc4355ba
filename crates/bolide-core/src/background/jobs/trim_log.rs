//! Trims the history: removes entries whose retention period is over (`crate::change_log`).

use std::sync::Arc;

use bolide_model::Result;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::PartitionContext;
use crate::background::job::{End, Job, JobKind, JobStep, StepLimits, StepReport};
use crate::change_log::trim;
use crate::container::ContainerState;
use crate::partition::Partition;

/// Trims the history; see the module.
pub(in crate::background) struct TrimLog(PartitionContext);

impl TrimLog {
    pub fn new(context: PartitionContext) -> TrimLog {
        TrimLog(context)
    }
}

impl Job for TrimLog {
    fn kind(&self) -> JobKind {
        JobKind::TrimLog
    }

    fn next_due(&self) -> i64 {
        self.0.partition.next_trim()
    }

    fn step(&self, _: StepLimits) -> BoxFuture<'_, Result<StepReport>> {
        let trim = async |state: Arc<ContainerState>, partition: Arc<Partition>| {
            let is_last = trim::step(state.retention(), &partition).await?;
            let end = if is_last { End::Drained } else { End::Unfinished };
            Ok(JobStep::new(0, end))
        };
        self.0.step(trim).boxed()
    }
}
