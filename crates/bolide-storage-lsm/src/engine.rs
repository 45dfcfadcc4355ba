//! The embedded engine's implementation of `Engine`.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use bolide_model::UnixMillis;
use bolide_model::time::{Clock, MonotoneClock, Span};
use bolide_storage::{
    Batch, Engine, EngineError, EngineFuture, Head, HeldSnapshot, HomeId, JointOutcome, Outcome, PartitionId,
    ReadRequest, ReadResponse, Resolved, Ticket,
};
use tokio::sync::oneshot;

use crate::committer::{Committer, DurableTime, Job, SharedCommitter, Write};
use crate::held::LsmHeldSnapshot;
use crate::view::Views;
use crate::{LsmOptions, OpenError};

/// The embedded engine: partitions in an LSM store in a directory.
///
/// Reads run on the caller's thread. Most are replied from memory in microseconds, which is less than a handover to another thread costs; one that
/// goes to the disk blocks its thread for the one or two blocks it needs.
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
    /// Opens the store in `dir`, or creates one if `dir` is empty or absent. No other program may use the directory.
    ///
    /// Server time comes from `clock`, but is never below the time that was made durable (TTL-203).
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

    /// Sends a job to the committer and waits for its reply; `None` if the committer ended before it replied.
    async fn send_job<T>(&self, job: impl FnOnce(oneshot::Sender<T>) -> Job) -> Option<T> {
        let (reply, replied) = oneshot::channel();
        self.committer.send(self.jobs.as_ref()?, job(reply))?;
        replied.await.ok()
    }
}

fn start(name: &str, dir: &Path, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, OpenError> {
    let started = std::thread::Builder::new().name(name.into()).spawn(work);
    started.map_err(crate::store_dir::io_error("starting a thread of the store", dir))
}

/// The committer ended: a bug, or a failed assertion in the store.
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
                .send_job(|reply| {
                    Job::Write(Write::Commit {
                        partition,
                        batch,
                        reply,
                    })
                })
                .await;
            // The committer may have ended after the write.
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
                .send_job(|reply| Job::Write(Write::CommitTogether { batches, reply }))
                .await;
            // The committer may have ended after the write.
            done.unwrap_or(Ok(unknown))
        })
    }

    fn hold(&self, home: HomeId, until: UnixMillis) -> EngineFuture<'_, Result<Arc<dyn HeldSnapshot>, EngineError>> {
        Box::pin(async move {
            let hold = self.views.hold(home, until, self.time.now())?;
            let held = LsmHeldSnapshot::new(hold, self.views.clone(), self.time.clone());
            Ok(Arc::new(held) as Arc<dyn HeldSnapshot>)
        })
    }

    fn resolve(&self, partition: PartitionId, ticket: Ticket) -> EngineFuture<'_, Result<Resolved, EngineError>> {
        Box::pin(async move {
            let resolved = self
                .send_job(|reply| Job::Resolve {
                    partition,
                    ticket,
                    reply,
                })
                .await;
            resolved.unwrap_or_else(|| Err(no_committer()))
        })
    }

    fn create(&self, partition: PartitionId, head: Head) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            let created = self
                .send_job(|reply| Job::Write(Write::Create { partition, head, reply }))
                .await;
            created.unwrap_or_else(|| Err(no_committer()))
        })
    }

    fn remove(&self, partition: PartitionId) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            let removed = self
                .send_job(|reply| Job::Write(Write::Remove { partition, reply }))
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
            let made = self.send_job(|reply| Job::MakeTimeDurable { until, reply }).await;
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
        // A panic was already reported by its thread.
        let _ = self.committer_thread.take().map(JoinHandle::join);
        self.committer.end();
        let _ = self.journal_thread.take().map(JoinHandle::join);
        // Reads hold a reference to the engine, so only reads of held snapshots can be in progress. The store closes with its last reference: this
        // one, or that of such a read.
        self.views.withdraw();
    }
}

impl std::fmt::Debug for LsmEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LsmEngine").finish_non_exhaustive()
    }
}
