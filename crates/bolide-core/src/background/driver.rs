//! The driver: runs the steps of jobs. The scheduler and a purge by call both use it, each with its own [`StepPolicy`].
//!
//! A pass visits the partitions of a container and the queues of each, and runs one step of every job that the policy admits: no queue and no
//! partition has to wait until another is empty (TTL-264, TTL-266).

use std::collections::BTreeSet;
use std::time::Duration;

use bolide_model::time::Monotonic;
use bolide_model::{ErrorKind, Result};

use super::job::{End, Job, JobKind, JobSource, PurgeMode, StepLimits, StepReport};

/// Decides which jobs run a step, how large it is, and how long to rest after it.
pub(crate) trait StepPolicy {
    /// Returns the limits of a job's next step; `None`: the job runs no step in this pass. `range` names the partition.
    fn admit(&mut self, range: u32, job: &dyn Job) -> Option<StepLimits>;

    /// Records the report of a step. Returns how long to rest before the next one.
    fn stepped(&mut self, range: u32, kind: JobKind, report: &StepReport) -> Duration;
}

/// Runs the steps of jobs; see the module.
pub(crate) struct Driver<P> {
    clock: Monotonic,
    pub policy: P,
}

impl<P: StepPolicy> Driver<P> {
    pub fn new(clock: Monotonic, policy: P) -> Driver<P> {
        Driver { clock, policy }
    }

    /// Runs one step of each job that the policy admits. Returns whether any of them has more to do.
    ///
    /// # Errors
    /// Those of [`Job::step`]; the jobs after the one that failed have run no step, unless the failed job was [`JobKind::CountGhosts`].
    pub async fn pass(&mut self, source: &dyn JobSource) -> Result<bool> {
        let (mut is_unfinished, mut uncounted) = (false, Ok(()));
        for partition in source.partitions() {
            for job in &partition.jobs {
                let Some(limits) = self.policy.admit(partition.range, job.as_ref()) else {
                    continue;
                };
                let report = match job.step(limits).await {
                    // No other job depends on the counts.
                    Err(error) if job.kind() == JobKind::CountGhosts => {
                        uncounted = Err(error);
                        continue;
                    }
                    report => report?,
                };
                is_unfinished |= report.step.end == End::Unfinished;
                let rest = self.policy.stepped(partition.range, job.kind(), &report);
                if rest.is_zero() {
                    tokio::task::yield_now().await;
                } else {
                    self.clock.sleep(rest).await;
                }
            }
        }
        uncounted.map(|()| is_unfinished)
    }
}

/// The policy of a purge by call: each job runs until it has nothing more to do, without rests.
pub(crate) struct OnDemand {
    mode: PurgeMode,
    /// Number of ghosts that may still be removed.
    left: u64,
    purged: u64,
    /// Jobs that have nothing more to do, with their partition's range.
    done: BTreeSet<(u32, JobKind)>,
}

impl OnDemand {
    /// Creates the policy of a purge that removes at most `max` ghosts.
    pub fn new(mode: PurgeMode, max: Option<u64>) -> OnDemand {
        OnDemand {
            mode,
            left: max.unwrap_or(u64::MAX),
            purged: 0,
            done: BTreeSet::new(),
        }
    }
}

impl StepPolicy for OnDemand {
    fn admit(&mut self, range: u32, job: &dyn Job) -> Option<StepLimits> {
        // A purge needs no counts, and requests for exact statistics count ghosts themselves.
        let is_admitted =
            job.kind() != JobKind::CountGhosts && self.left > 0 && !self.done.contains(&(range, job.kind()));
        is_admitted.then_some(StepLimits {
            items: self.left,
            mode: self.mode,
            patience: Duration::ZERO,
        })
    }

    fn stepped(&mut self, range: u32, kind: JobKind, report: &StepReport) -> Duration {
        if kind == JobKind::Expire {
            self.purged += report.step.purged;
            self.left = self.left.saturating_sub(report.step.purged);
        }
        if report.step.end != End::Unfinished {
            self.done.insert((range, kind));
        }
        Duration::ZERO
    }
}

/// Maximum number of changes by other servers that one purge follows.
const SETTLED: u32 = 100;

impl Driver<OnDemand> {
    /// Runs passes until no job has more to do. Returns the number of ghosts removed.
    ///
    /// # Errors
    /// Those of [`Job::step`], except when a partition was split: the steps of its children follow.
    pub async fn run_to_end(mut self, source: &dyn JobSource) -> Result<u64> {
        let mut settled = 0;
        loop {
            match self.pass(source).await {
                Ok(true) if self.policy.left > 0 => {}
                Ok(_) => return Ok(self.policy.purged),
                Err(error) if error.kind == ErrorKind::RangeGone => {}
                Err(error) if error.is_of_changed_settings() && settled < SETTLED => {
                    settled += 1;
                    source.settle().await?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests;
