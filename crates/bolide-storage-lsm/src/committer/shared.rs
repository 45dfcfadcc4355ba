//! The committer, shared by its thread and the callers of the engine.
//!
//! Concurrent writes are carried out together, by the committer's thread. For a single write the handover to that thread and back would take a
//! quarter of the time of its commit on a fast disk, so it runs on its caller's thread.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bolide_model::time::Monotonic;
use bolide_storage::{Batch, EngineError, Outcome, PartitionId};
use tokio::sync::oneshot;

use super::journal_ahead::{self, JournalAhead};
use super::{Committer, Job, Write};

/// How long the journal thread waits so that others can take the committer first.
const HANDOVER_TIME: Duration = Duration::from_micros(100);

/// See the module.
pub(crate) struct SharedCommitter {
    /// `None` once the engine is dropped; poisoned if the committer panicked.
    committer: Mutex<Option<Committer>>,
    /// Number of jobs, and maintenance of the thread, that wait for the committer. While there are any, nobody else takes it.
    waiting: AtomicUsize,
    /// Whether other threads can run while one waits for the disk.
    has_several_cores: bool,
    monotonic: Monotonic,
}

impl SharedCommitter {
    /// Shares a committer. The receiver is for [`SharedCommitter::write_journal_ahead`].
    pub(crate) fn new(mut committer: Committer) -> (SharedCommitter, Receiver<()>) {
        let (wake, calls) = sync_channel(1);
        committer.journal_ahead = Some(JournalAhead::new(committer.store_dir.store_path(), wake));
        let shared = SharedCommitter {
            monotonic: committer.monotonic.clone(),
            committer: Mutex::new(Some(committer)),
            waiting: AtomicUsize::new(0),
            has_several_cores: std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1),
        };
        (shared, calls)
    }

    /// Sends a job to the thread. `None` if it has ended.
    pub(crate) fn send(&self, jobs: &Sender<Job>, job: Job) -> Option<()> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        jobs.send(job).ok()
    }

    /// Carries a commit out on the calling thread, if it will be short and nothing else is waiting; otherwise returns it.
    pub(crate) fn commit_here(
        &self,
        jobs: &Sender<Job>,
        partition: PartitionId,
        batch: Batch,
    ) -> Result<Result<Outcome, EngineError>, Box<Batch>> {
        if !self.has_several_cores || self.waiting.load(Ordering::SeqCst) > 0 {
            return Err(Box::new(batch));
        }
        let ticket = batch.ticket();
        // A panic ends the committer, as on its own thread, but not the caller: dropping the guard poisons the lock.
        let done = catch_unwind(AssertUnwindSafe(|| {
            let Ok(mut guard) = self.committer.try_lock() else {
                return Err(Box::new(batch));
            };
            let Some(committer) = guard.as_mut().filter(|committer| committer.is_short()) else {
                return Err(Box::new(batch));
            };
            let (reply, mut replied) = oneshot::channel();
            committer.write(vec![Write::Commit {
                partition,
                batch,
                reply,
            }]);
            let must_wake = committer.must_wake_early();
            drop(guard);
            if must_wake {
                self.send(jobs, Job::CheckMaintenance);
            }
            Ok(replied.try_recv().ok())
        }));
        match done {
            Ok(Err(batch)) => Err(batch),
            Ok(Ok(Some(outcome))) => Ok(outcome),
            Ok(Ok(None)) | Err(_) => Ok(Ok(Outcome::Unknown(ticket))),
        }
    }

    /// The loop of the committer's thread: serves jobs and does maintenance, until no sender is left.
    pub(crate) fn run(&self, queue: &Receiver<Job>) {
        loop {
            let Some(next_maintenance) = self.with(Committer::prepare_sleep) else {
                return;
            };
            let job = match next_maintenance {
                None => queue.recv().map_err(RecvTimeoutError::from),
                Some(at) => queue.recv_timeout(at.saturating_duration_since(self.monotonic.now())),
            };
            let went_on = match job {
                Ok(job) => self.with(|committer| {
                    self.waiting.fetch_sub(1, Ordering::SeqCst);
                    committer.serve(job, || {
                        let job = queue.try_recv().ok()?;
                        self.waiting.fetch_sub(1, Ordering::SeqCst);
                        Some(job)
                    });
                    committer.do_maintenance();
                }),
                Err(RecvTimeoutError::Timeout) => {
                    self.waiting.fetch_add(1, Ordering::SeqCst);
                    self.with(|committer| {
                        self.waiting.fetch_sub(1, Ordering::SeqCst);
                        committer.do_maintenance();
                    })
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if went_on.is_none() {
                return;
            }
        }
        self.with(|committer| {
            if let Err(error) = committer.close() {
                tracing::warn!(%error, "the store was not closed cleanly");
            }
        });
    }

    /// The loop of the journal thread: writes blocks of the journal ahead, whenever it is called, until the committer ends.
    pub(crate) fn write_journal_ahead(&self, calls: &Receiver<()>) {
        while calls.recv().is_ok() {
            while self.with(|committer| committer.has_room_ahead()) == Some(true)
                && let Some(file) = self.write_ahead_to_next_sync()
            {
                // If the journal cannot be synced, the store notices it itself.
                let _ = file.sync_data();
            }
        }
    }

    /// Writes the pieces up to the next sync. Returns the file to sync, if anything was written.
    fn write_ahead_to_next_sync(&self) -> Option<Arc<File>> {
        let pieces = (0..journal_ahead::PIECES).map_while(|_| {
            // The lock is not fair: whoever takes it again at once has it before waiting threads have woken up.
            if self.waiting.load(Ordering::SeqCst) > 0 {
                std::thread::sleep(HANDOVER_TIME);
            }
            self.with(Committer::write_journal_ahead).flatten()
        });
        pieces.last()
    }

    /// Ends the committer, in whatever state it is.
    pub(crate) fn end(&self) {
        drop(self.committer.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Calls `act` with the committer; `None` if it has ended.
    fn with<T>(&self, act: impl FnOnce(&mut Committer) -> T) -> Option<T> {
        self.committer.lock().ok()?.as_mut().map(act)
    }
}

#[cfg(test)]
mod tests;
