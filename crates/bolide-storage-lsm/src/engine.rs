//! The engine as the rest of the product sees it.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use bolide_model::UnixMillis;
use bolide_model::time::{Clock, MonotoneClock, Span};
use bolide_storage::{
    Batch, Engine, EngineError, EngineFuture, Head, Held, HomeId, JointOutcome, Outcome, PartitionId, ReadRequest,
    ReadResponse, Resolved, Ticket,
};
use tokio::sync::oneshot;

use crate::committer::{Committer, DurableTime, Job, SharedCommitter, Write};
use crate::held::LsmHeld;
use crate::view::Views;
use crate::{LsmOptions, OpenError};

/// The embedded engine: partitions in an LSM store in a directory.
///
/// Reads run where they are called, on the caller's thread: most are answered from memory in microseconds, less than handing them to
/// another thread costs; one that goes to the disk blocks its thread for the one or two blocks it needs.
///
/// Dropping the engine closes it.
pub struct LsmEngine {
    views: Arc<Views>,
    time: Arc<MonotoneClock>,
    durable_time: Arc<DurableTime>,
    committer: Arc<SharedCommitter>,
    /// `None` once the engine is being dropped.
    jobs: Option<Sender<Job>>,
    committer_thread: Option<JoinHandle<()>>,
    journal_thread: Option<JoinHandle<()>>,
}

impl LsmEngine {
    /// Opens the store in `dir`, or makes one if `dir` is empty or absent. The directory must be the store's alone.
    ///
    /// Server time comes from `clock`, but is never below what was made durable of it (TTL-203).
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(dir: &Path, clock: Arc<Clock>, options: LsmOptions) -> Result<LsmEngine, OpenError> {
        let views = Arc::new(Views::default());
        let committer = Committer::open(dir, clock, options, views.clone())?;
        let (time, durable_time) = committer.times();
        let (jobs, queue) = channel();
        let (committer, calls) = SharedCommitter::new(committer);
        let committer = Arc::new(committer);
        let mut engine = LsmEngine {
            views,
            time,
            durable_time,
            committer: committer.clone(),
            jobs: Some(jobs),
            committer_thread: None,
            journal_thread: None,
        };
        engine.committer_thread = Some(start("bolide-committer", dir, move || committer.run(&queue))?);
        let committer = engine.committer.clone();
        engine.journal_thread = Some(start("bolide-journal", dir, move || {
            committer.write_journal_ahead(&calls);
        })?);
        Ok(engine)
    }

    /// Sends a job to the committer and waits for its answer; `None` if the committer died before it answered.
    async fn send_job<T>(&self, job: impl FnOnce(oneshot::Sender<T>) -> Job) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        self.committer.send(self.jobs.as_ref()?, job(answer))?;
        answered.await.ok()
    }
}

fn start(name: &str, dir: &Path, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, OpenError> {
    let started = std::thread::Builder::new().name(name.into()).spawn(work);
    started.map_err(crate::store_dir::io_error("starting a thread of the store", dir))
}

/// The committer died, which only a bug or a store that asserts can bring about.
fn no_committer() -> EngineError {
    EngineError::Unavailable("the writer of the store has stopped; restart the server".into())
}

impl Engine for LsmEngine {
    fn name(&self) -> &'static str {
        "lsm"
    }

    fn read(
        &self,
        partition: PartitionId,
        request: ReadRequest,
    ) -> EngineFuture<'_, Result<ReadResponse, EngineError>> {
        Box::pin(async move { self.views.read(partition, &request) })
    }

    fn commit(&self, partition: PartitionId, mut batch: Batch) -> EngineFuture<'_, Result<Outcome, EngineError>> {
        Box::pin(async move {
            let ticket = batch.ticket();
            if batch.may_block
                && let Some(jobs) = &self.jobs
            {
                match self.committer.commit_here(jobs, partition, batch) {
                    Ok(done) => return done,
                    Err(given_back) => batch = given_back,
                }
            }
            let done = self
                .send_job(|answer| {
                    Job::Write(Write::Commit {
                        partition,
                        batch,
                        answer,
                    })
                })
                .await;
            // It may have died behind the write.
            done.unwrap_or(Ok(Outcome::Unknown(ticket)))
        })
    }

    fn commit_together(
        &self,
        batches: Vec<(PartitionId, Batch)>,
    ) -> EngineFuture<'_, Result<JointOutcome, EngineError>> {
        Box::pin(async move {
            let unknown = JointOutcome::unknown(&batches);
            let done = self
                .send_job(|answer| Job::Write(Write::CommitTogether { batches, answer }))
                .await;
            // It may have died behind the write.
            done.unwrap_or(Ok(unknown))
        })
    }

    fn hold(&self, home: HomeId, until: UnixMillis) -> EngineFuture<'_, Result<Arc<dyn Held>, EngineError>> {
        Box::pin(async move {
            let hold = self.views.hold(home, until, self.time.now())?;
            let held = LsmHeld::new(hold, self.views.clone(), self.time.clone());
            Ok(Arc::new(held) as Arc<dyn Held>)
        })
    }

    fn resolve(&self, partition: PartitionId, ticket: Ticket) -> EngineFuture<'_, Result<Resolved, EngineError>> {
        Box::pin(async move {
            let resolved = self
                .send_job(|answer| Job::Resolve {
                    partition,
                    ticket,
                    answer,
                })
                .await;
            resolved.unwrap_or_else(|| Err(no_committer()))
        })
    }

    fn create(&self, partition: PartitionId, head: Head) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            let created = self
                .send_job(|answer| {
                    Job::Write(Write::Create {
                        partition,
                        head,
                        answer,
                    })
                })
                .await;
            created.unwrap_or_else(|| Err(no_committer()))
        })
    }

    fn remove(&self, partition: PartitionId) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            let removed = self
                .send_job(|answer| Job::Write(Write::Remove { partition, answer }))
                .await;
            removed.unwrap_or_else(|| Err(no_committer()))
        })
    }

    fn time(&self) -> Span {
        Span::point(self.time.now())
    }

    fn durable_time(&self) -> UnixMillis {
        self.durable_time.get()
    }

    fn make_time_durable(&self, until: UnixMillis) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            if self.durable_time.get() >= until {
                return Ok(());
            }
            let made = self.send_job(|answer| Job::KeepTime { until, answer }).await;
            made.unwrap_or_else(|| Err(no_committer()))
        })
    }

    fn close(&self) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move { self.send_job(Job::Close).await.unwrap_or_else(|| Err(no_committer())) })
    }
}

impl Drop for LsmEngine {
    fn drop(&mut self) {
        self.jobs = None;
        // A panic in a thread was reported by the thread; there is nobody to tell here.
        let _ = self.committer_thread.take().map(JoinHandle::join);
        self.committer.end();
        let _ = self.journal_thread.take().map(JoinHandle::join);
        // Reads hold the engine, so none is under way, except of held snapshots: this is the last reference to the store, and closes it, or the end
        // of such a read does.
        self.views.withdraw();
    }
}

impl std::fmt::Debug for LsmEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LsmEngine").finish_non_exhaustive()
    }
}
