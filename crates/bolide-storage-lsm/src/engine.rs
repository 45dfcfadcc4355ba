//! The embedded engine's implementation of `Engine`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use bolide_model::time::{Clock, MonotoneClock, Span};
use bolide_model::{Lsn, SnapshotName, UnixMillis};
use bolide_storage::{
    Batch, Engine, EngineError, EngineFuture, Head, HeldSnapshot, HomeId, JointOutcome, Outcome, PartitionId,
    ReadRequest, ReadResponse, Resolved, Ticket,
};
use tokio::sync::{Mutex, oneshot};

use crate::committer::{Committer, DurableTime, Job, SharedCommitter, Write};
use crate::held::LsmHeldSnapshot;
use crate::snapshots::{self, Issued, Kept, Prepared, Replacement, SnapshotError, Steps};
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
    dir: PathBuf,
    /// Held while snapshots are taken, removed, restored or swept.
    snapshots: Arc<Mutex<()>>,
    /// Nothing in the directory changes after the engine is closed, so its last sweep is waited for.
    sweeper: parking_lot::Mutex<Option<JoinHandle<()>>>,
    steps: Steps,
}

/// The engine that takes the place of another one.
#[derive(Debug)]
pub struct Successor {
    /// The engine.
    pub engine: LsmEngine,
    /// Whether it has the new content: if not, it has that of before.
    pub outcome: Result<(), SnapshotError>,
}

/// Why an engine has no successor.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// Nothing has changed, and the engine goes on.
    #[error(transparent)]
    Unchanged(SnapshotError),
    /// The engine has ended, and neither store can be opened now. The next open finds one of them.
    #[error(transparent)]
    Lost(OpenError),
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
        let engine = LsmEngine::start(dir, committer, views, Arc::default())?;
        // What an interrupted snapshot or replacement has left.
        if let Err(error) = snapshots::discard_undecided(dir) {
            tracing::warn!(%error, "an interrupted replacement of the store is still on the disk");
        }
        if let Ok(turn) = engine.snapshots.clone().try_lock_owned() {
            engine.sweep_when(turn);
        }
        Ok(engine)
    }

    fn start(
        dir: &Path,
        committer: Committer,
        views: Arc<Views>,
        snapshots: Arc<Mutex<()>>,
    ) -> Result<LsmEngine, OpenError> {
        let steps = committer.steps();
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
            dir: dir.to_owned(),
            snapshots,
            sweeper: parking_lot::Mutex::default(),
            steps,
        };
        engine.committer_thread = Some(spawn("bolide-committer", dir, move || committer.run(&queue))?);
        let committer = engine.committer.clone();
        engine.journal_thread = Some(spawn("bolide-journal", dir, move || {
            committer.write_journal_ahead(&calls);
        })?);
        Ok(engine)
    }

    /// The snapshots of the store, by name.
    ///
    /// # Errors
    /// An error of the file system.
    pub async fn snapshots(&self) -> Result<Vec<Kept>, SnapshotError> {
        let dir = self.dir.clone();
        aside(move || snapshots::list(&dir).map_err(snapshots::failed("listing the snapshots"))).await
    }

    /// Keeps the store as it is between two writes, in the place of any snapshot of that name. `about` is kept with it; it has no line ends. After an error
    /// nothing has changed.
    ///
    /// # Errors
    /// See [`SnapshotError`].
    pub async fn take_snapshot(&self, name: &SnapshotName, about: String) -> Result<(), SnapshotError> {
        let taking = self.snapshots.clone().lock_owned().await;
        let taken = self.take_alone(name, about).await;
        self.sweep_when(taking);
        taken
    }

    async fn take_alone(&self, name: &SnapshotName, about: String) -> Result<(), SnapshotError> {
        let (dir, steps, name) = (self.dir.clone(), self.steps.clone(), name.clone());
        let draft = {
            let (dir, steps, name) = (dir.clone(), steps.clone(), name.clone());
            aside(move || snapshots::draft(&dir, &name, &steps)).await?
        };
        let to = snapshots::content_dir(&dir, draft);
        let made = self.send_job(|reply| Job::Image { to, reply }).await;
        made.unwrap_or_else(|| Err(ended()))?;
        aside(move || {
            let published = snapshots::publish(&dir, &name, draft, &about, &steps);
            published.map_err(snapshots::failed("making a snapshot"))
        })
        .await
    }

    /// Removes a snapshot.
    ///
    /// # Errors
    /// See [`SnapshotError`].
    pub async fn remove_snapshot(&self, name: &SnapshotName) -> Result<(), SnapshotError> {
        let removing = self.snapshots.clone().lock_owned().await;
        let (dir, name) = (self.dir.clone(), name.clone());
        let removed = aside(move || snapshots::remove(&dir, &name)).await;
        self.sweep_when(removing);
        removed
    }

    /// Makes the store of a replacement, while this one is in use.
    ///
    /// # Errors
    /// See [`SnapshotError`]; then nothing has changed.
    pub async fn prepare(&self, replacement: Replacement, options: LsmOptions) -> Result<Prepared, SnapshotError> {
        let preparing = self.snapshots.clone().lock_owned().await;
        let dir = self.dir.clone();
        let prepared = aside(move || snapshots::prepare(&dir, &replacement, &options)).await;
        drop(preparing);
        prepared
    }

    /// Ends this engine, and opens the store that was prepared in its place. Server time comes from `clock` and is not below `least`, and no partition
    /// counts from a lower number than the issued one.
    ///
    /// # Errors
    /// See [`ReplaceError`].
    pub async fn replace(
        &self,
        prepared: Prepared,
        (clock, least): (Arc<Clock>, UnixMillis),
        issued: Issued,
        options: LsmOptions,
    ) -> Result<Successor, ReplaceError> {
        let replacing = self.snapshots.clone().lock_owned().await;
        let released = self.send_job(Job::Release).await;
        let released = released.unwrap_or_else(|| Err(ended()));
        let store_dir = released.map_err(ReplaceError::Unchanged)?;
        let mutex = self.snapshots.clone();
        let opened = tokio::task::spawn_blocking(move || {
            let dir = store_dir.path().to_owned();
            let position = prepared.position(least);
            let installed = snapshots::install(&dir, position, &issued, &options.steps);
            // If it was decided, it is completed now or at the next start.
            snapshots::complete(&dir).map_err(crate::store_dir::io_error("replacing the store", &dir))?;
            let watermark = store_dir.watermark()?;
            let views = Arc::new(Views::default());
            let committer = Committer::open_in(store_dir, watermark, clock, options, views.clone())?;
            Ok(Successor {
                engine: LsmEngine::start(&dir, committer, views, mutex)?,
                outcome: installed.map_err(snapshots::failed("replacing the store")),
            })
        })
        .await
        .unwrap_or_else(|_| Err(OpenError::Corrupt("the store cannot be opened".to_owned())));
        // By the one that has the directory from now on, and that is not dropped while somebody waits for the replacement.
        match &opened {
            Ok(successor) => successor.engine.sweep_when(replacing),
            Err(_) => self.sweep_when(replacing),
        }
        opened.map_err(ReplaceError::Lost)
    }

    /// The numbers that were issued before the content of the store was replaced, until [`LsmEngine::forget_issued`].
    ///
    /// # Errors
    /// An error of the file system.
    pub async fn issued(&self) -> Result<Option<Issued>, SnapshotError> {
        let dir = self.dir.clone();
        aside(move || Issued::read(&dir).map_err(snapshots::failed("reading the issued numbers"))).await
    }

    /// Forgets the issued numbers: the content of the store leaves them out by now.
    ///
    /// # Errors
    /// An error of the file system.
    pub async fn forget_issued(&self) -> Result<(), SnapshotError> {
        let dir = self.dir.clone();
        aside(move || Issued::forget(&dir).map_err(snapshots::failed("removing the issued numbers"))).await
    }

    /// The highest log sequence number of any partition.
    pub fn highest_lsn(&self) -> Lsn {
        self.views.highest_lsn()
    }

    /// Deletes, on a thread of its own, what snapshots and replacements have left. `turn` is held until it is done.
    fn sweep_when(&self, turn: tokio::sync::OwnedMutexGuard<()>) {
        let dir = self.dir.clone();
        let sweep = move || {
            if let Err(error) = snapshots::publish_blank(&dir) {
                tracing::debug!(%error, "there is no blank store");
            }
            snapshots::sweep(&dir);
            snapshots::sweep_old(&dir);
            drop(turn);
        };
        match std::thread::Builder::new().name("bolide-sweeper".into()).spawn(sweep) {
            // One of before has ended but for its last instructions: it had the turn.
            Ok(sweeper) => *self.sweeper.lock() = Some(sweeper),
            Err(error) => tracing::warn!(%error, "what was replaced is still on the disk"),
        }
    }

    fn last_sweep(&self) -> Option<JoinHandle<()>> {
        self.sweeper.lock().take()
    }

    /// Sends a job to the committer and waits for its reply; `None` if the committer ended before it replied.
    async fn send_job<T>(&self, job: impl FnOnce(oneshot::Sender<T>) -> Job) -> Option<T> {
        let (reply, replied) = oneshot::channel();
        self.committer.send(self.jobs.as_ref()?, job(reply))?;
        replied.await.ok()
    }
}

fn spawn(name: &str, dir: &Path, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, OpenError> {
    let started = std::thread::Builder::new().name(name.into()).spawn(work);
    started.map_err(crate::store_dir::io_error("starting a thread of the store", dir))
}

/// Runs work that waits for the disk.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SnapshotError> + Send + 'static,
) -> Result<T, SnapshotError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(ended()))
}

fn ended() -> SnapshotError {
    SnapshotError::Unavailable("the writer of the store has stopped; restart the server".to_owned())
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
                    Err(given_back) => batch = *given_back,
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
        Box::pin(async move {
            let closed = self.send_job(Job::Close).await.unwrap_or_else(|| Err(no_committer()));
            // After the store is durable: deleting a large store takes a while.
            if let Some(sweep) = self.last_sweep() {
                let _ = tokio::task::spawn_blocking(|| sweep.join()).await;
            }
            closed
        })
    }
}

impl Drop for LsmEngine {
    fn drop(&mut self) {
        self.jobs = None;
        // A panic was already reported by its thread.
        let _ = self.last_sweep().map(JoinHandle::join);
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
