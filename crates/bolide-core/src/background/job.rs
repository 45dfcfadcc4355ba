//! A job: the work on one queue of one partition, done in steps.

use std::time::{Duration, Instant};

use bolide_model::Result;
use futures_util::future::BoxFuture;

/// Whether a purge respects its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurgeMode {
    /// Removes everything that is due, whatever it costs.
    Force,
    /// Spends no more than users left over.
    Paced,
}

/// The work on one queue of one partition.
pub(crate) trait Job: Send + Sync {
    fn kind(&self) -> JobKind;

    /// Returns the second of server time before which nothing is known to be due; `i64::MIN`: something is due now, `i64::MAX`: nothing is.
    fn next_due(&self) -> i64;

    /// Processes a part of what is due.
    ///
    /// # Errors
    /// `RangeGone` if the partition was split; `NotFound` if the container was deleted; otherwise from the engine. The results of earlier steps
    /// remain.
    fn step(&self, limits: StepLimits) -> BoxFuture<'_, Result<StepReport>>;
}

/// The jobs of a partition, in the order in which their steps run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum JobKind {
    CountGhosts,
    Expire,
    DeleteByKey,
    TrimLog,
    ForgetSessions,
}

impl JobKind {
    /// Returns whether its steps are paced. Counting ghosts, trimming the history and forgetting sessions are not, because they spend no request units.
    pub fn is_paced(self) -> bool {
        matches!(self, JobKind::Expire | JobKind::DeleteByKey)
    }
}

/// The limits of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepLimits {
    /// Maximum number of items to remove, or of rows to count.
    pub items: u64,
    pub mode: PurgeMode,
    /// How long the step may wait for a user's write to be committed with.
    pub patience: Duration,
}

/// The result of one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobStep {
    /// Number of items removed.
    pub purged: u64,
    /// Why the step ended.
    pub end: End,
    /// When the partition's worker took up a step that could wait for a user's write.
    pub began: Option<Instant>,
}

impl JobStep {
    /// Creates the result of a step that did not wait for a user's write.
    pub fn new(purged: u64, end: End) -> JobStep {
        let began = None;
        JobStep { purged, end, began }
    }
}

/// Why a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The step reached its limits; there may be more to do.
    Unfinished,
    /// Nothing more is due.
    Drained,
    /// The budget of this second is used up.
    Exhausted,
    /// Some of the items that are due may still be read by requests of an earlier second.
    Read,
}

/// The result of a step and its duration, which excludes the waits for a change of the container's settings and for a user's write.
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

/// A source of jobs: a container.
pub(crate) trait JobSource: Send + Sync {
    /// Returns the earliest [`Job::next_due`] of all jobs.
    fn next_due(&self) -> i64;

    /// Returns the number of items that are to be removed, as far as they are counted.
    fn backlog(&self) -> u64;

    /// Learns what another server has changed, after a step that ended with [`bolide_model::Reason::SettingsChanged`].
    fn settle(&self) -> BoxFuture<'_, Result<()>>;

    /// Returns the current jobs. A split changes them, so each pass reads them again.
    fn partitions(&self) -> Vec<PartitionJobs>;
}
