//! What a partition writes before anything else once documents have ended: the worker asks before each write batch, so that the ends of documents and
//! the writes of users are in the order in which they happen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bolide_model::time::CommitTime;
use bolide_model::ttl::Class;
use bolide_model::{Error, Lsn, Result, UnixMillis};

use super::edition::SettingsNumber;
use super::state::PartitionState;
use super::transaction::Transaction;
use super::write_batch::{Decision, Stop, WriteBatch};
use crate::format::record::Record;

/// Writes the ends of documents into the history. See the module.
pub(crate) trait Endings: Send + Sync {
    /// Writes the next ends up to the time of the batch. Returns when the next document ends, or `None` if there are more ends to write now.
    fn tell(&self, batch: &mut WriteBatch<'_>) -> Decision<Option<UnixMillis>>;
}

impl PartitionState {
    /// Tells whether the end of a stored version is in the history already, although the version is still stored.
    ///
    /// The queues of ends are told in order, so these are the versions behind the positions up to which they were told.
    pub fn has_told_end(&self, record: &Record) -> bool {
        let by_stamp = match record.stamp().class {
            Class::Inherited => record.version() < self.told.log,
            Class::Own => record
                .expiry_position()
                .is_some_and(|position| position < self.told.expiry),
            Class::Never => false,
        };
        let mut dates = record.deadline_positions();
        by_stamp || dates.any(|position| self.told_dates.have_passed(&position))
    }

    /// Returns the time at which the history has an end: that at which it happened, but behind its last entry, and behind what readers took for settled:
    /// times may be ahead of a clock that stands still.
    pub fn time_of_end(&self, end: UnixMillis, since: CommitTime, commit: CommitTime) -> CommitTime {
        let earliest = since.max(self.history_last).max(self.marked.next());
        CommitTime::first_of(end).max(earliest).min(commit)
    }
}

/// The transaction of a worker that tells ends.
pub(super) struct TellEndings {
    settings: SettingsNumber,
    endings: Arc<dyn Endings>,
    has_failed: Arc<AtomicBool>,
}

impl TellEndings {
    pub fn new((settings, endings): (SettingsNumber, Arc<dyn Endings>)) -> (TellEndings, Arc<AtomicBool>) {
        let has_failed = Arc::<AtomicBool>::default();
        let telling = TellEndings {
            settings,
            endings,
            has_failed: has_failed.clone(),
        };
        (telling, has_failed)
    }
}

impl Transaction for TellEndings {
    fn settings(&self) -> SettingsNumber {
        self.settings
    }

    fn refuse(&mut self, _: Error) {
        // The container gets the settings of the other server, and tells by these.
        self.has_failed.store(true, Ordering::Relaxed);
    }

    fn observe(&mut self, _: UnixMillis) {}

    fn decide(&mut self, batch: &mut WriteBatch<'_>) -> std::result::Result<(), ()> {
        match self.endings.tell(batch) {
            Ok(next) => {
                if let Some(next) = next {
                    batch.after.rest_endings_until(next);
                }
                Ok(())
            }
            Err(Stop::NeedsRead) => Err(()),
            // Nobody writes what ends here.
            Err(Stop::EndsSoon(_)) => Ok(()),
            Err(Stop::Refused(error) | Stop::Unprepared(error)) => {
                tracing::error!(%error, "the ends of documents cannot be told to change streams");
                self.has_failed.store(true, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    fn end(self: Box<Self>, ended: &Result<Lsn>) {
        if ended.is_err() {
            self.has_failed.store(true, Ordering::Relaxed);
        }
    }
}
