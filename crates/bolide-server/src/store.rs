//! The choice of engine.

use std::sync::Arc;

use bolide_model::time::Clock;
use bolide_storage::Engine;
use bolide_storage::memory::MemoryEngine;
use bolide_storage_lsm::{Durability, LsmEngine, LsmOptions};

use crate::options::{DurabilityOption, ServeOptions};
use crate::server::Failure;

/// Tables that are kept open however few descriptors there are.
#[cfg(unix)]
const LEAST_CACHED_FILES: usize = 16;

/// Opens the engine the options ask for; recovery runs on a thread of its own.
///
/// # Errors
/// Whatever keeps the store from opening: the directory's state, another process, missing writes.
pub async fn open(options: &ServeOptions, clock: Arc<Clock>) -> Result<Arc<dyn Engine>, Failure> {
    if options.memory {
        return Ok(Arc::new(MemoryEngine::new(clock)));
    }
    let dir = options.data_dir.clone();
    let engine_options = LsmOptions {
        durability: match options.durability {
            DurabilityOption::Sync => Durability::Sync,
            DurabilityOption::Interval => Durability::INTERVAL,
            DurabilityOption::Buffered => Durability::Buffered,
        },
        cache_bytes: options.cache_mb.saturating_mul(1024 * 1024),
        accept_data_loss: options.accept_data_loss,
        verify_tables: options.verify_on_start,
        cached_files: cached_files(),
        ..LsmOptions::default()
    };
    let opened = tokio::task::spawn_blocking(move || LsmEngine::open(&dir, clock, engine_options)).await;
    match opened {
        Ok(Ok(engine)) => Ok(Arc::new(engine)),
        Ok(Err(error)) => Err(Failure::new(format!("--data-dir: {error}"))),
        Err(_) => Err(Failure::new(format!(
            "--data-dir: the store cannot be recovered. path={}",
            options.data_dir.display()
        ))),
    }
}

/// How many tables the store may keep open: a quarter of the descriptors this process may have, so that connections are left most of them.
#[cfg(unix)]
fn cached_files() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let quarter = limit.map_or(usize::MAX, |limit| usize::try_from(limit / 4).unwrap_or(usize::MAX));
    quarter.clamp(LEAST_CACHED_FILES, LsmOptions::default().cached_files)
}

#[cfg(not(unix))]
fn cached_files() -> usize {
    LsmOptions::default().cached_files
}
