//! What snapshots need of the committer: an image of the store between two writes, and the end of a store that another one replaces.

use std::io;
use std::path::Path;
use std::time::Duration;

use fjall::PersistMode;

use super::failure::release;
use super::{Committer, Refusal};
use crate::durable_watermark::{DurableWatermark, Position};
use crate::journal;
use crate::snapshots::{Journal, failed, link_store};
use crate::store::Store;
use crate::store_dir::{STORE_DIR, StoreDir, WATERMARK_FILE};
use crate::{SnapshotError, Steps};

/// Above this size of the journal, its rows are written to tables: the next open, or each restore of the snapshot, would replay them. Below it that is
/// faster than the fsyncs of new tables.
const REPLAYED_BYTES: u64 = 4 << 20;
/// The longest time that an image waits until everything is in tables. Nothing is written meanwhile.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);

impl Committer {
    /// Injected crashes.
    pub(crate) fn steps(&self) -> Steps {
        self.options.steps.clone()
    }

    /// Makes an image of the store and its watermark in the directory `to`. It is not durable yet.
    pub(super) fn make_image(&mut self, to: &Path) -> Result<(), SnapshotError> {
        self.check_files();
        let store = self.writable().map_err(|refusal| match refusal {
            Refusal::Closed => SnapshotError::Unavailable("the store is closed".to_owned()),
            Refusal::Broken(why) => SnapshotError::Unavailable(why),
        })?;
        let limits = self.space_limits(&store);
        if limits.free < limits.reserve {
            return Err(SnapshotError::NoSpace(limits.free));
        }
        // It would replace tables while they are linked.
        self.compactor.finish();
        self.compactor.note_write();
        let doing = "making a snapshot";
        // In modes without fsync, rows may still be on their way to the journal.
        if !self.persist(PersistMode::Buffer) {
            return Err(SnapshotError::Unavailable("the store cannot be written".to_owned()));
        }
        let journal = match self.short_journal(&store).map_err(failed(doing))? {
            Some(journal) => journal,
            None => {
                self.write_out_all(&store)?;
                Journal::Empty
            }
        };
        self.options.steps.done();
        link_store(&self.store_dir.store_path(), &to.join(STORE_DIR), &journal).map_err(failed(doing))?;
        self.options.steps.done();
        let position = Position {
            numbers: self.written,
            time: self.durable_time.get().max(self.time.now()),
        };
        DurableWatermark::draft(&to.join(WATERMARK_FILE), position).map_err(failed(doing))?;
        self.options.steps.done();
        Ok(())
    }

    /// The journal, if it is the only one, short, and nothing is being flushed.
    pub(super) fn short_journal(&self, store: &Store) -> io::Result<Option<Journal>> {
        if store.db.journal_count() > 1 || store.is_flushing() {
            return Ok(None);
        }
        let path = self.store_dir.store_path();
        let Some(number) = journal::newest_number(&path) else {
            return Ok(None);
        };
        let path = journal::path(&path, number);
        let bytes = journal::written_bytes(&path, REPLAYED_BYTES)?;
        Ok(bytes.map(|bytes| Journal::Start { path, bytes }))
    }

    /// Writes everything to tables.
    fn write_out_all(&mut self, store: &Store) -> Result<(), SnapshotError> {
        let now = self.monotonic.now();
        self.refresh_at = Some(now);
        match store.write_out_all(&self.monotonic, now + FLUSH_TIMEOUT) {
            Ok(true) => Ok(()),
            Ok(false) => Err(SnapshotError::Unavailable(
                "the store did not write its tables in time".to_owned(),
            )),
            Err(error) => {
                let cause = self.cause_of(&error);
                Err(SnapshotError::Unavailable(self.fail(&cause)))
            }
        }
    }

    /// Closes the store without making its memtables durable: it is not needed any more. Returns the directory, which stays locked. After an error the
    /// store is as before.
    pub(super) fn release(&mut self) -> Result<StoreDir, SnapshotError> {
        if self.is_closed {
            return Err(SnapshotError::Unavailable("the store is closed".to_owned()));
        }
        self.compactor.finish();
        if let Some(store) = self.store.take() {
            self.views.withdraw();
            if let Err(store) = release(store, &self.monotonic) {
                self.start_from_views(&store);
                self.store = Some(store);
                return Err(SnapshotError::Unavailable("reads hold the store".to_owned()));
            }
        }
        self.journal_ahead = None;
        self.is_closed = true;
        Ok(self.store_dir.clone())
    }
}
