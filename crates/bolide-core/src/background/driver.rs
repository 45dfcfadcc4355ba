//! The driver: gives jobs their steps. It serves the scheduler and a purge by call alike, which differ in their [`StepPolicy`].
//!
//! A pass goes through the partitions of a container and the queues of each, and gives a step to every job that the policy admits: no
//! queue and no partition has to wait until another is empty (TTL-264, TTL-266).

use std::collections::BTreeSet;
use std::time::Duration;

use bolide_model::time::Monotonic;
use bolide_model::{ErrorKind, Result};

use super::job::{End, Job, JobKind, JobSource, PurgeMode, StepLimits, StepReport};

/// Decides which jobs have a step, how large, and how long to rest after it.
pub(crate) trait StepPolicy {
    /// What the next step of a job may do; `None`: it has none in this pass. `range` names the partition.
    fn admit(&mut self, range: u32, job: &dyn Job) -> Option<StepLimits>;

    /// Notes what a step did. Returns how long to rest before the next one.
    fn stepped(&mut self, range: u32, kind: JobKind, report: &StepReport) -> Duration;
}

/// See the module.
pub(crate) struct Driver<P> {
    clock: Monotonic,
    pub policy: P,
}

impl<P: StepPolicy> Driver<P> {
    pub fn new(clock: Monotonic, policy: P) -> Driver<P> {
        Driver { clock, policy }
    }

    /// A step of each job that the policy admits. Tells whether there is more to do.
    ///
    /// # Errors
    /// Those of [`Job::step`]; jobs behind the one that failed have had no step.
    pub async fn pass(&mut self, source: &dyn JobSource) -> Result<bool> {
        let mut is_unfinished = false;
        for partition in source.partitions() {
            for job in &partition.jobs {
                let Some(limits) = self.policy.admit(partition.range, job.as_ref()) else {
                    continue;
                };
                let report = job.step(limits).await?;
                is_unfinished |= report.step.end == End::Unfinished;
                let rest = self.policy.stepped(partition.range, job.kind(), &report);
                if rest.is_zero() {
                    tokio::task::yield_now().await;
                } else {
                    self.clock.sleep(rest).await;
                }
            }
        }
        Ok(is_unfinished)
    }
}

/// The policy of a purge by call: each job until it has nothing more to do, without rests.
pub(crate) struct OnDemand {
    mode: PurgeMode,
    /// How many ghosts may still be removed.
    left: u64,
    purged: u64,
    /// Jobs that have nothing more to do, by partition.
    done: BTreeSet<(u32, JobKind)>,
}

impl OnDemand {
    /// Removes at most `max` ghosts.
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
        let is_admitted = self.left > 0 && !self.done.contains(&(range, job.kind()));
        is_admitted.then_some(StepLimits {
            items: self.left,
            mode: self.mode,
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

impl Driver<OnDemand> {
    /// Rounds until nothing is left to do. Returns how many ghosts were removed.
    ///
    /// # Errors
    /// Those of [`Job::step`], except for a split: its children have their steps next.
    pub async fn run_to_end(mut self, source: &dyn JobSource) -> Result<u64> {
        loop {
            match self.pass(source).await {
                Ok(true) if self.policy.left > 0 => {}
                Ok(_) => return Ok(self.policy.purged),
                Err(error) if error.kind == ErrorKind::RangeGone => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests;
