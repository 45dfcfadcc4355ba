//! Claims about commits on the calling thread.

use std::sync::mpsc::channel;

use bolide_model::Lsn;
use bolide_storage::{Edition, Head};

use super::super::tests::{NOW, PARTITION, batch, written};
use super::*;
use crate::{Durability, FreeSpace};

struct Shared {
    committer: SharedCommitter,
    jobs: Sender<Job>,
    queue: Receiver<Job>,
    _dir: tempfile::TempDir,
}

/// A committer at LSN 1 without a thread, on a machine with several cores and a fast disk.
fn shared() -> Shared {
    let dir = tempfile::tempdir().unwrap();
    let (mut committer, _calls) = SharedCommitter::new(written(dir.path(), Durability::Sync));
    committer.has_several_cores = true;
    let (jobs, queue) = channel();
    let shared = Shared {
        committer,
        jobs,
        queue,
        _dir: dir,
    };
    shared.change(|committer| committer.write_time = Duration::ZERO);
    shared
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut Committer)) {
        self.committer.with(change).unwrap();
    }

    /// `None` if the batch was returned to the caller.
    fn commit_here(&self, base: u64) -> Option<Result<Outcome, EngineError>> {
        let batch = batch(base, vec![]);
        self.committer.commit_here(&self.jobs, PARTITION, batch).ok()
    }
}

fn done(lsn: u64) -> Option<Result<Outcome, EngineError>> {
    let lsn = Lsn(lsn);
    Some(Ok(Outcome::Done(Head {
        lsn,
        stamp: NOW,
        edition: Edition::FIRST,
    })))
}

#[test]
fn a_single_commit_is_done_without_the_thread_and_wakes_it_once_for_maintenance() {
    let shared = shared();
    // The thread sleeps until it gets a job.
    shared.change(|committer| committer.wakes_at = None);
    assert_eq!(shared.commit_here(1), done(2));
    assert!(matches!(shared.queue.try_recv(), Ok(Job::CheckMaintenance)));
    shared.committer.waiting.store(0, Ordering::SeqCst);
    assert_eq!(shared.commit_here(2), done(3));
    assert!(shared.queue.try_recv().is_err());
}

#[test]
fn a_commit_is_returned_to_the_thread_if_others_wait_or_the_disk_is_slow() {
    let shared = shared();
    shared.committer.send(&shared.jobs, Job::CheckMaintenance);
    assert!(shared.commit_here(1).is_none(), "a job waits");
    shared.committer.waiting.store(0, Ordering::SeqCst);

    shared.change(|committer| committer.write_time = super::super::QUICK_WRITE * 2);
    assert!(shared.commit_here(1).is_none(), "writes are slow");
    shared.change(|committer| committer.write_time = Duration::ZERO);

    let held = shared.committer.committer.lock().unwrap();
    assert!(shared.commit_here(1).is_none(), "the committer is at work");
    drop(held);

    shared.change(|committer| drop(committer.fail("the disk is full")));
    assert!(shared.commit_here(1).is_none(), "the store failed");
    shared.change(|committer| committer.failure = None);
    assert_eq!(shared.commit_here(1), done(2));
}

#[test]
fn a_panic_leaves_the_outcome_unknown_and_ends_the_committer() {
    let shared = shared();
    shared.change(|committer| committer.options.free_space = FreeSpace::by(|_| panic!("a bug")));
    assert!(matches!(shared.commit_here(1), Some(Ok(Outcome::Unknown(_)))));
    assert!(shared.commit_here(1).is_none());
    assert_eq!(shared.committer.with(|_| ()), None);
}
