//! The choice of engine.

use std::sync::Arc;

use bolide_model::time::Clock;
use bolide_storage::Engine;
use bolide_storage::memory::MemoryEngine;
use bolide_storage_lsm::{Durability, LsmEngine, LsmOptions};

use crate::options::{DurabilityOption, ServeOptions};
use crate::server::Failure;

/// Opens the engine chosen by the options; recovery runs on a separate thread. The store keeps at most `open_files` files open.
///
/// # Errors
/// Why the store cannot be opened: the state of the directory, another process, missing writes.
pub async fn open(options: &ServeOptions, clock: Arc<Clock>, open_files: usize) -> Result<Arc<dyn Engine>, Failure> {
    if options.memory {
        return Ok(Arc::new(MemoryEngine::new(clock)));
    }
    let dir = options.data_dir().to_owned();
    let engine_options = LsmOptions {
        durability: match options.durability {
            DurabilityOption::Sync => Durability::Sync,
            DurabilityOption::Interval => Durability::INTERVAL,
            DurabilityOption::Buffered => Durability::Buffered,
        },
        cache_bytes: options.cache_mb.saturating_mul(1024 * 1024),
        cached_files: open_files,
        accept_data_loss: options.accept_data_loss,
        verify_tables: options.verify_on_start,
        ..LsmOptions::default()
    };
    let opened = tokio::task::spawn_blocking(move || LsmEngine::open(&dir, clock, engine_options)).await;
    match opened {
        Ok(Ok(engine)) => Ok(Arc::new(engine)),
        Ok(Err(error)) => Err(Failure::new(format!("--data-dir: {error}"))),
        Err(_) => Err(Failure::new(format!(
            "--data-dir: the store cannot be recovered. path={}",
            options.data_dir().display()
        ))),
    }
}
