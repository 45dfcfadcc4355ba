//! Rows that are read for background work before the worker takes it up.
//!
//! The worker reads what its transactions need while all of them wait. A step of the purge reads items that lie anywhere in the store, which takes most of
//! its time; so it reads them beforehand, and a user's write that shares its write batch waits only for the decision.

use bolide_model::UnixMillis;
use bolide_storage::{Head, ReadRequest};

use super::Partition;
use super::worker::{TRANSACTION_BYTES, read_state};
use super::write_batch::{Decision, Loaded, Missing, WriteBatch};

/// Rows of one head of a partition. They are used if the head is still the same when the worker decides; if not, the engine has them in its cache.
#[derive(Debug)]
pub(crate) struct Prepared {
    head: Head,
    loaded: Loaded,
}

impl Prepared {
    /// Returns the rows if they are those of `head`.
    pub(super) fn of_head(self, head: Head) -> Option<Loaded> {
        (self.head == head).then_some(self.loaded)
    }
}

impl Partition {
    /// Decides once for trial, and returns the rows that this took. `None` if there was a commit meanwhile, or if the engine cannot read.
    ///
    /// Each row is read by itself, and other tasks of this thread run in between: the engine's reads may block it.
    pub async fn prepare<T>(
        &self,
        mut decide: impl FnMut(&mut WriteBatch<'_>, UnixMillis) -> Decision<T>,
    ) -> Option<Prepared> {
        let (head, state) = read_state(self.engine.as_ref(), self.id).await.ok()?;
        let now = self.now().await.ok()?.max(head.stamp);
        let mut loaded = Loaded::up_to(TRANSACTION_BYTES);
        let mut is_current = true;
        loop {
            let missing = {
                let mut batch = WriteBatch::new(now, head.lsn, state.clone(), &loaded);
                let _ = decide(&mut batch, now);
                batch.missing()
            };
            if missing.is_empty() || loaded.is_full() {
                return is_current.then_some(Prepared { head, loaded });
            }
            for part in missing.one_by_one() {
                let request: ReadRequest = loaded.read_request(&part);
                let reply = self.engine.read(self.id, request).await.ok()?;
                is_current &= reply.head == head;
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
