//! Write batches that others commit in between: after a commit was stale, the partition is locked before the next write batches are decided.
//!
//! Without a lock, one server may win again and again while the others read, decide and find their commits stale.

use bolide_model::Result;
use bolide_storage::WriteLock;

use super::{Worker, error_of, give_way, state_keys, state_of};

/// Number of write batches that lock the partition although nobody else has committed, before the next one goes without: a lock costs a round trip.
const LOCKED_ALONE: u32 = 8;

/// See the module.
#[derive(Default)]
pub(super) struct Contention {
    locked_batches_left: u32,
}

impl Contention {
    /// Whether others are likely to write the partition at the same time.
    pub fn is_expected(&self) -> bool {
        self.locked_batches_left > 0
    }

    /// A commit was stale.
    pub fn found_stale(&mut self) {
        self.locked_batches_left = LOCKED_ALONE;
    }
}

impl Worker {
    /// Others have committed to the partition; on an engine that nobody else uses, only a test can have done that.
    pub(super) fn expect_others(&mut self) {
        if self.engine.is_shared() {
            self.contention.found_stale();
            self.met_others = true;
        }
    }

    /// What an attempt at a write batch begins with: the partition is locked if others write it, too, and its newest head is read if the known one is not it.
    pub(super) async fn take_turn(&mut self, attempt: u32, is_stale: bool) -> Result<Option<WriteLock>> {
        if !self.contention.is_expected() {
            give_way(attempt).await;
            if is_stale {
                self.refresh().await?;
            }
            return Ok(None);
        }
        let engine = self.engine.clone();
        let locked = engine.read_and_lock(self.partition, state_keys()).await;
        let (reply, lock) = locked.map_err(|error| error_of(engine.as_ref(), error))?;
        let (head, state) = state_of(reply)?;
        if head == self.head {
            self.contention.locked_batches_left -= 1;
        } else {
            self.expect_others();
        }
        if is_stale || head != self.head {
            self.take_newest(head, state)?;
        }
        if lock.is_none() {
            give_way(attempt).await;
        }
        Ok(lock)
    }
}
