//! What a worker decides: the transactions in its queues.

use std::time::Duration;

use bolide_model::{Error, Lsn, Result, UnixMillis};

use super::edition::SettingsNumber;
use super::write_batch::WriteBatch;

/// A transaction that the worker decides: it sees the write batch, adds its effects, and receives the outcome of the commit.
pub(crate) trait Transaction: Send {
    /// Returns the settings of the container by which it decides. The worker refuses it at a head that has others.
    fn settings(&self) -> SettingsNumber;

    /// Decides that it is refused, for a reason that it does not see.
    fn refuse(&mut self, why: Error);

    /// Reads values that are not rows of the partition and that the decision depends on, such as the purge's credit in request units. Called again
    /// before decisions at another server time.
    fn observe(&mut self, now: UnixMillis);

    /// Decides on the rows that were read. Is called again, from the start, after more rows were read or after the commit was stale; as long as it
    /// returns [`Stop::NeedsRead`](super::write_batch::Stop::NeedsRead), it must not have added effects.
    ///
    /// # Errors
    /// `Err(())` if a row is missing.
    fn decide(&mut self, batch: &mut WriteBatch<'_>) -> std::result::Result<(), ()>;

    /// Tells whether it was not decided, because a version is about to end: it is no part of the write batch.
    fn waits(&self) -> bool {
        false
    }

    /// Returns after how long it is to be queued again, if it waits, and ends the waiting.
    fn take_wait(&mut self) -> Option<Duration> {
        None
    }

    /// Receives the outcome of the commit: `Ok` with the log sequence number after it, or the reason why nothing was committed.
    fn end(self: Box<Self>, ended: &Result<Lsn>);
}
