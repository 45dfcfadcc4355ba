//! A data directory that a command opens without a server. Nothing is purged meanwhile.

use std::path::Path;
use std::sync::Arc;

use bolide_core::{Account, AccountOptions};
use bolide_model::time::Clock;
use bolide_storage_lsm::{LsmEngine, LsmOptions};
use tokio::runtime::Runtime;

use crate::files;
use crate::script_host;
use crate::server::Failure;

/// An open store.
pub struct LocalStore {
    /// Threads for it.
    pub runtime: Runtime,
    /// Its account.
    pub account: Arc<Account>,
}

impl LocalStore {
    /// Opens the store in a directory, with recovery after a crash.
    ///
    /// # Errors
    /// There is no store, a server is using it, or it is damaged.
    pub fn open(directory: &Path) -> Result<LocalStore, Failure> {
        let is_empty = std::fs::read_dir(directory)
            .map(|mut entries| entries.next().is_none())
            .map_err(|error| Failure::new(format!("--data-dir: {}: {error}", directory.display())))?;
        if is_empty {
            return Err(Failure::new(format!(
                "--data-dir: {}: there is no store",
                directory.display()
            )));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::new(format!("cannot start threads: {error}")))?;
        runtime.block_on(async { files::survive_size_limit() })?;
        let clock = Arc::new(Clock::System);
        let engine = LsmEngine::open(directory, clock, LsmOptions::default())
            .map_err(|error| Failure::new(format!("--data-dir: {error}")))?;
        let options = AccountOptions {
            background_purge: false,
            script_hosting: script_host::hosting()?,
            ..AccountOptions::default()
        };
        let account = runtime.block_on(Account::open(Arc::new(engine), options));
        let account = account.map_err(|error| Failure::new(format!("--data-dir: {error}")))?;
        Ok(LocalStore { runtime, account })
    }

    /// Closes it.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn close(&self) -> Result<(), Failure> {
        let closed = self.runtime.block_on(self.account.close());
        closed.map_err(|error| Failure::new(format!("cannot close the store: {error}")))
    }
}
