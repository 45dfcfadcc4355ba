//! Options of the engine.

use std::time::Duration;

use bolide_model::time::Monotonic;

use crate::{FreeSpace, Steps};

/// When a commit is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// After it is on the disk: survives power loss. Commits that wait at the same time share one fsync.
    Sync,
    /// At once; it is on the disk within this time. A crash of the process loses nothing, a power loss up to this much.
    Interval(Duration),
    /// At once; the operating system chooses when to write. A crash of the process loses nothing.
    Buffered,
}

impl Durability {
    /// [`Durability::Interval`] with the usual 10 ms.
    pub const INTERVAL: Durability = Durability::Interval(Duration::from_millis(10));
}

/// How an [`crate::LsmEngine`] runs.
#[derive(Debug, Clone)]
pub struct LsmOptions {
    /// When commits are acknowledged.
    pub durability: Durability,
    /// Bytes of memory for cached blocks, filled as blocks are read.
    pub cache_bytes: u64,
    /// Bytes of journal above which memtables are flushed early; at least 64 MiB. Bounds the time of the next open.
    pub journal_bytes: u64,
    /// Bytes that must stay free on the disk. Below that, writes are refused; commits that mostly delete may use half of it.
    pub reserve_bytes: u64,
    /// Open even if acknowledged commits are missing, and keep the rest. See [`crate::OpenError::LostCommits`].
    pub accept_data_loss: bool,
    /// Read every table in full at open, and refuse to open if one differs from what was written.
    pub verify_tables: bool,
    /// The maximum number of descriptors of table files kept open between reads; at least 10. See [`LsmOptions::descriptors`].
    pub cached_files: usize,
    /// How the free space of the disk is read.
    pub free_space: FreeSpace,
    /// The clock for maintenance. With a clock that is moved by hand, maintenance is checked whenever a commit, or another call that changes
    /// something, wakes the committer.
    pub monotonic: Monotonic,
    /// Injects crashes into snapshots and replacements, for tests.
    pub steps: Steps,
}

impl Default for LsmOptions {
    fn default() -> LsmOptions {
        LsmOptions {
            durability: Durability::Sync,
            cache_bytes: 64 << 20,
            journal_bytes: 128 << 20,
            reserve_bytes: 32 << 20,
            accept_data_loss: false,
            verify_tables: false,
            cached_files: 256,
            free_space: FreeSpace::of_disk(),
            monotonic: Monotonic::system(),
            steps: Steps::default(),
        }
    }
}

impl LsmOptions {
    /// The approximate maximum number of descriptors of an open store: those of cached tables, and [`UNCACHED_FILES`].
    pub fn descriptors(&self) -> usize {
        self.cached_files + UNCACHED_FILES
    }
}

/// Descriptors besides those of cached tables: lock files, watermark and journal (5); what a flush and a compaction read and write (one table of each
/// run, where each new table is a run of its own); reads of tables that are not cached yet; versions of key spaces; and journals.
const UNCACHED_FILES: usize = 64 + crate::versions::DESCRIPTORS + crate::deleted_journals::OPEN_JOURNALS;
