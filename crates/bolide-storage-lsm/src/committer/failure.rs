//! A failed store: what users are told, and how it is opened again once there is space.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_model::time::Monotonic;

use super::Committer;
use super::opening::missing;
use crate::store::Store;

/// How often to try to open a failed store again.
pub(super) const REOPEN_INTERVAL: Duration = Duration::from_secs(1);
/// How long reads may take to release a store that is to be opened again.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// Why the store cannot be written, and when to try again.
pub(super) struct Failure {
    pub(super) reason: String,
    pub(super) retry_at: Instant,
}

impl Committer {
    /// Records that the store no longer accepts writes. Returns the reason for users.
    pub(super) fn fail(&mut self, cause: &str) -> String {
        let free = self.options.free_space.at(self.store_dir.path());
        let reason = format!("the store cannot be written: {cause}. free_bytes={free}");
        tracing::error!(
            cause,
            free,
            "the store failed; reads go on, writes are refused until it could be opened again"
        );
        self.failure = Some(Failure {
            reason: reason.clone(),
            retry_at: self.monotonic.now() + REOPEN_INTERVAL,
        });
        reason
    }

    /// Why the store failed. For a failure in the background the store itself gives no reason.
    pub(super) fn cause_of(&self, error: &fjall::Error) -> String {
        match (error, self.store_dir.probe()) {
            (fjall::Error::Poisoned, Ok(())) => "a table could not be written".to_owned(),
            (fjall::Error::Poisoned, Err(error)) => error.to_string(),
            (error, _) => error.to_string(),
        }
    }

    /// Opens a failed store again, if the disk has space.
    pub(super) fn reopen(&mut self) {
        let reopened = self.try_reopen();
        let Some(failure) = &mut self.failure else { return };
        match reopened {
            Ok(()) => {
                tracing::info!("the store takes writes again");
                self.failure = None;
            }
            Err(why) => {
                tracing::debug!(why, "the store was not opened again");
                failure.retry_at = self.monotonic.now() + REOPEN_INTERVAL;
            }
        }
    }

    pub(super) fn try_reopen(&mut self) -> Result<(), String> {
        if let Some(store) = &self.store {
            // Tables that were merged may have the space that is missing.
            store.release_versions(self.views.oldest());
        }
        let free = self.options.free_space.at(self.store_dir.path());
        if free < self.options.reserve_bytes {
            return Err(format!("too little space. free_bytes={free}"));
        }
        if let Some(presence) = &mut self.presence {
            presence.check()?;
        }
        // Reads continue while the store is open. It is closed only if it can be opened again.
        self.store_dir.probe().map_err(|error| error.to_string())?;
        self.compactor.finish();
        if let Some(store) = self.store.take() {
            self.views.withdraw();
            if let Err(store) = release(store, &self.monotonic) {
                self.start_from_views(&store);
                self.store = Some(store);
                return Err("reads hold the store".into());
            }
        }
        let path = self.store_dir.store_path();
        let store = Store::open(&path, &self.options).map_err(|error| error.to_string())?;
        let found = store.find(&path).map_err(|error| error.to_string())?;
        missing(self.watermark.position().numbers, found.numbers).map_or(Ok(()), |lost| Err(lost.to_string()))?;
        self.start_from(store, found);
        Ok(())
    }
}

/// Waits until nobody else holds the store, and closes it; returns it if that takes too long.
pub(super) fn release(mut store: Arc<Store>, monotonic: &Monotonic) -> Result<(), Arc<Store>> {
    let deadline = monotonic.now() + RELEASE_TIMEOUT;
    loop {
        store = match Arc::try_unwrap(store) {
            Ok(store) => {
                drop(store);
                return Ok(());
            }
            Err(shared) if monotonic.now() < deadline => shared,
            Err(shared) => return Err(shared),
        };
        std::thread::sleep(Duration::from_millis(1));
    }
}
