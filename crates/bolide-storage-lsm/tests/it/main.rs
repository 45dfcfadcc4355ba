//! The contract suite on the embedded engine, and claims about this engine alone.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::path::Path;
use std::sync::Arc;

use bolide_model::time::Clock;
use bolide_storage::Engine;
use bolide_storage::suite::EngineFixture;
use bolide_storage_lsm::{LsmEngine, LsmOptions};
use tempfile::TempDir;

mod corruption;
mod crash;
mod directory;
mod full_disk;
mod removal;
mod space;
mod support;

mod suite {
    bolide_storage::engine_suite!(super::Directory::new());
}

/// A store in a directory that is deleted with the fixture.
struct Directory(TempDir);

impl Directory {
    fn new() -> Directory {
        Directory(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl EngineFixture for Directory {
    fn open(&self, clock: Arc<Clock>) -> Arc<dyn Engine> {
        Arc::new(LsmEngine::open(self.path(), clock, LsmOptions::default()).unwrap())
    }

    fn is_durable(&self) -> bool {
        true
    }
}
