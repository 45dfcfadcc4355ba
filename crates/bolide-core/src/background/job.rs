//! A job: the work on one queue of one partition, done in steps.

use std::time::{Duration, Instant};

use bolide_model::Result;
use futures_util::future::BoxFuture;

/// Whether a purge keeps to its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurgeMode {
    /// All that is due, whatever it costs.
    Force,
    /// No more than users left over.
    Paced,
}

/// The work on one queue of one partition.
pub(crate) trait Job: Send + Sync {
    fn kind(&self) -> JobKind;

    /// The second of server time before which nothing is due, as far as is known; `i64::MIN`: something waits, `i64::MAX`: nothing does.
    fn next_due(&self) -> i64;

    /// Does a part of what is due.
    ///
    /// # Errors
    /// `RangeGone` if the partition was split; `NotFound` if the container was deleted; otherwise from the engine. What earlier steps did
    /// stays done.
    fn step(&self, limits: StepLimits) -> BoxFuture<'_, Result<StepReport>>;
}

/// The jobs of a partition, in the order in which they have their steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum JobKind {
    Expire,
    DeleteByKey,
    TrimLog,
}

impl JobKind {
    /// Whether its steps are paced. Trimming the history spends no request units and is not.
    pub fn is_paced(self) -> bool {
        self != JobKind::TrimLog
    }
}

/// What one step may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepLimits {
    pub items: u64,
    pub mode: PurgeMode,
}

/// What one step did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobStep {
    /// Items removed.
    pub purged: u64,
    /// Why it ended.
    pub end: End,
}

/// Why a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It was full: there may be more.
    Unfinished,
    /// Nothing more is due.
    Drained,
    /// Nothing more may be spent in this second.
    Exhausted,
    /// Some of what is due may still be read by requests of an earlier second.
    Read,
}

/// A step, and the time it took. The wait for a change of the container's settings is no part of that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepReport {
    pub step: JobStep,
    pub began: Instant,
    pub took: Duration,
}

/// The jobs of one partition.
pub(crate) struct PartitionJobs {
    /// Id of the partition key range.
    pub range: u32,
    pub jobs: Vec<Box<dyn Job>>,
}

/// Where jobs come from: a container.
pub(crate) trait JobSource: Send + Sync {
    /// The earliest [`Job::next_due`] of all.
    fn next_due(&self) -> i64;

    /// The jobs as of now. A split changes them, so they are asked for again in each pass.
    fn partitions(&self) -> Vec<PartitionJobs>;
}
