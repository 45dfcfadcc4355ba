//! Rows that are read for background work before the worker takes it up.
//!
//! The worker reads what its transactions need while all of them wait. A step of the purge reads items that lie anywhere in the store, which takes most of
//! its time; so it reads them beforehand, and a user's write that shares its write batch waits only for the decision.

use bolide_model::UnixMillis;
use bolide_storage::{Head, ReadRequest};

use super::Partition;
use super::recent_writes::{Interest, RecentWrites};
use super::worker::{TRANSACTION_BYTES, read_state};
use super::write_batch::{Decision, Loaded, Missing, WriteBatch};

/// Rows of a partition as they were at one head. Some of them may have been read at a later one.
#[derive(Debug)]
pub(crate) struct Prepared {
    head: Head,
    /// The newest head at which one of them was read.
    newest: Head,
    loaded: Loaded,
    /// While it is held, the worker keeps the keys of its commits.
    _interest: Interest,
}

impl Prepared {
    /// Returns the rows that are the same at the current head, because nothing that they depend on was written in between. `None` if it is not known
    /// what was written: the engine has the rows in its cache then.
    pub(super) fn at(self, head: Head, writes: &RecentWrites) -> Option<Loaded> {
        // If not, a row was read at the head of another writer of the partition, which this worker does not know yet.
        let is_of_known_heads = writes.between(self.newest.lsn, head.lsn).is_some();
        let mut loaded = is_of_known_heads.then_some(self.loaded)?;
        for key in writes.between(self.head.lsn, head.lsn)? {
            loaded.forget_written(key);
        }
        Some(loaded)
    }
}

impl Partition {
    /// Decides once for trial, and returns the rows that this took. `None` if the engine cannot read.
    ///
    /// Each row is read by itself, and other tasks of this thread run in between: the engine's reads may block it.
    pub async fn prepare<T>(
        &self,
        mut decide: impl FnMut(&mut WriteBatch<'_>, UnixMillis) -> Decision<T>,
    ) -> Option<Prepared> {
        // Before the head is read: a commit that comes after that head is one whose keys are kept.
        let interest = self.shared.interest.clone();
        let (head, state) = read_state(self.engine.as_ref(), self.id).await.ok()?;
        let now = self.now().await.ok()?.max(head.stamp);
        let (mut newest, mut loaded) = (head, Loaded::up_to(TRANSACTION_BYTES));
        loop {
            let missing = {
                let mut batch = WriteBatch::new(now, head.lsn, state.clone(), &loaded);
                let _ = decide(&mut batch, now);
                batch.missing()
            };
            if missing.is_empty() || loaded.is_full() {
                return Some(Prepared {
                    head,
                    newest,
                    loaded,
                    _interest: interest,
                });
            }
            for part in missing.one_by_one() {
                let request: ReadRequest = loaded.read_request(&part);
                // A row that was written since `head` is one of those that the worker drops.
                let reply = self.engine.read(self.id, request).await.ok()?;
                newest = newest.max(reply.head);
                loaded.take(part, reply);
                tokio::task::yield_now().await;
            }
        }
    }
}

impl Missing {
    /// Returns the scans, and each of the other rows by itself.
    fn one_by_one(self) -> impl Iterator<Item = Missing> {
        let scans = Missing {
            gets: Vec::new(),
            scans: self.scans,
        };
        let gets = self.gets.into_iter().map(|key| Missing {
            gets: vec![key],
            scans: Vec::new(),
        });
        std::iter::once(scans).filter(|scans| !scans.is_empty()).chain(gets)
    }
}
