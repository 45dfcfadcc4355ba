//! What snapshots need of the committer: an image of the store between two writes, and the end of a store that another one replaces.

use std::path::Path;
use std::time::Duration;

use fjall::PersistMode;

use super::failure::release;
use super::{Committer, Refusal};
use crate::{SnapshotError, Steps};
use crate::durable_watermark::{DurableWatermark, Position};
use crate::snapshots::{failed, link_store};
use crate::store_dir::{STORE_DIR, StoreDir, WATERMARK_FILE, sync_dir};

/// The longest time that an image waits until everything is in tables. Nothing is written meanwhile.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);

impl Committer {
    /// Injected crashes.
    pub(crate) fn steps(&self) -> Steps {
        self.options.steps.clone()
    }

    /// Makes an image of the store and its watermark in the directory `to`, durable on return.
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
        let now = self.monotonic.now();
        self.refresh_at = Some(now);
        match store.write_out_all(&self.monotonic, now + FLUSH_TIMEOUT) {
            Ok(true) => {}
            Ok(false) => {
                return Err(SnapshotError::Unavailable(
                    "the store did not write its tables in time".to_owned(),
                ));
            }
            Err(error) => {
                let cause = self.cause_of(&error);
                return Err(SnapshotError::Unavailable(self.fail(&cause)));
            }
        }
        if !self.persist(PersistMode::SyncAll) {
            return Err(SnapshotError::Unavailable("the store cannot be written".to_owned()));
        }
        self.options.steps.done();
        let doing = "making a snapshot";
        link_store(&self.store_dir.store_path(), &to.join(STORE_DIR)).map_err(failed(doing))?;
        self.options.steps.done();
        let position = Position {
            numbers: self.written,
            time: self.durable_time.get().max(self.time.now()),
        };
        DurableWatermark::create_at(&to.join(WATERMARK_FILE), position).map_err(failed(doing))?;
        sync_dir(to).map_err(failed(doing))?;
        self.options.steps.done();
        Ok(())
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
