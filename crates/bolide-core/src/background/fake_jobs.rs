//! Jobs for tests: their queues are numbers of items, and their steps take time on a manual clock.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use bolide_model::time::Monotonic;
use bolide_model::{Error, ErrorKind, Result};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::Containers;
use super::job::{End, Job, JobKind, JobSource, JobStep, PartitionJobs, StepLimits, StepReport};
use crate::container::Container;

/// Maximum number of items of a step.
pub(super) const STEP_ITEMS: u64 = 10;

/// The steps that were run, in order: the partition, the job, and the number of items removed.
pub(super) type Log = Arc<Mutex<Vec<(u32, JobKind, u64)>>>;

/// A queue of one partition.
pub(super) struct FakeQueue {
    pub range: u32,
    pub kind: JobKind,
    pub clock: Monotonic,
    pub log: Log,
    /// The duration of a step.
    pub took: Duration,
    pub items: AtomicU64,
    pub next_due: AtomicI64,
    /// Number of items that may still be removed, by all queues that share this counter.
    pub budget: Arc<AtomicU64>,
    /// How the next steps end, instead of removing items.
    pub instead: Mutex<VecDeque<Result<End>>>,
}

impl FakeQueue {
    /// Creates a queue with `items` items, all of them due.
    pub fn new(range: u32, kind: JobKind, items: u64, clock: &Monotonic, log: &Log) -> FakeQueue {
        FakeQueue {
            range,
            kind,
            clock: clock.clone(),
            log: log.clone(),
            took: Duration::ZERO,
            items: AtomicU64::new(items),
            next_due: AtomicI64::new(i64::MIN),
            budget: Arc::new(AtomicU64::new(u64::MAX)),
            instead: Mutex::default(),
        }
    }

    /// Makes its next step remove nothing and end like this.
    pub fn instead(self, ends: Result<End, ErrorKind>) -> FakeQueue {
        let ends = ends.map_err(|kind| Error::new(kind, "on purpose"));
        self.instead.lock().push_back(ends);
        self
    }

    pub fn budget(mut self, budget: &Arc<AtomicU64>) -> FakeQueue {
        self.budget = budget.clone();
        self
    }

    pub fn took(mut self, took: Duration) -> FakeQueue {
        self.took = took;
        self
    }

    pub fn due_at(self, second: i64) -> FakeQueue {
        self.next_due.store(second, Ordering::SeqCst);
        self
    }

    fn run(&self, limits: StepLimits) -> Result<JobStep> {
        if let Some(ends) = self.instead.lock().pop_front() {
            self.log.lock().push((self.range, self.kind, 0));
            return ends.map(|end| JobStep::new(0, end));
        }
        let (items, budget) = (self.items.load(Ordering::SeqCst), self.budget.load(Ordering::SeqCst));
        let purged = items.min(limits.items).min(STEP_ITEMS).min(budget);
        self.items.fetch_sub(purged, Ordering::SeqCst);
        self.budget.fetch_sub(purged, Ordering::SeqCst);
        self.log.lock().push((self.range, self.kind, purged));
        let end = match () {
            () if purged == items => End::Drained,
            () if purged == budget => End::Exhausted,
            () => End::Unfinished,
        };
        if end == End::Drained {
            self.next_due.store(i64::MAX, Ordering::SeqCst);
        }
        Ok(JobStep::new(purged, end))
    }
}

impl Job for Arc<FakeQueue> {
    fn kind(&self) -> JobKind {
        self.kind
    }

    fn next_due(&self) -> i64 {
        self.next_due.load(Ordering::SeqCst)
    }

    fn step(&self, limits: StepLimits) -> BoxFuture<'_, Result<StepReport>> {
        async move {
            let (began, took) = (self.clock.now(), self.took);
            self.clock.advance(took);
            let step = self.run(limits)?;
            Ok(StepReport { step, began, took })
        }
        .boxed()
    }
}

/// A container: its partitions in the first pass, then in the following ones.
pub(super) struct FakeSource(Mutex<VecDeque<Vec<Arc<FakeQueue>>>>);

impl FakeSource {
    /// Creates a container that always has the same queues.
    pub fn new(queues: impl IntoIterator<Item = FakeQueue>) -> FakeSource {
        FakeSource(Mutex::new([queues.into_iter().map(Arc::new).collect()].into()))
    }

    /// Gives the container other queues after the first pass.
    pub fn then(self, queues: impl IntoIterator<Item = FakeQueue>) -> FakeSource {
        self.0.lock().push_back(queues.into_iter().map(Arc::new).collect());
        self
    }
}

impl JobSource for FakeSource {
    fn next_due(&self) -> i64 {
        let layouts = self.0.lock();
        let queues = layouts.front().into_iter().flatten();
        queues.map(|queue| queue.next_due()).min().unwrap_or(i64::MAX)
    }

    fn backlog(&self) -> u64 {
        let layouts = self.0.lock();
        let queues = layouts.front().into_iter().flatten();
        queues.map(|queue| queue.items.load(Ordering::SeqCst)).sum()
    }

    fn settle(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn partitions(&self) -> Vec<PartitionJobs> {
        let mut layouts = self.0.lock();
        let queues = layouts[0].clone();
        if layouts.len() > 1 {
            layouts.pop_front();
        }
        let mut partitions: Vec<PartitionJobs> = Vec::new();
        for queue in queues {
            let range = queue.range;
            if partitions.last().is_none_or(|last| last.range != range) {
                let jobs = Vec::new();
                partitions.push(PartitionJobs { range, jobs });
            }
            let last = partitions.last_mut().expect("one was just added");
            last.jobs.push(Box::new(queue));
        }
        partitions
    }
}

/// An account without containers.
pub(crate) struct NoContainers;

impl Containers for NoContainers {
    fn all(&self) -> Vec<Arc<Container>> {
        Vec::new()
    }

    fn settle<'a>(&'a self, _: &'a Container) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}
