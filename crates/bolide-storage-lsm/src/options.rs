//! What a user may choose about the engine.

use std::time::Duration;

use bolide_model::time::Monotonic;

use crate::FreeSpace;

/// When a commit is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Once it is on the disk: survives power loss. Commits that wait at the same time share one fsync.
    Sync,
    /// At once; the disk follows within this time. A crash of the process loses nothing, a power loss up to this much.
    Interval(Duration),
    /// At once; the operating system writes when it likes. A crash of the process loses nothing.
    Buffered,
}

impl Durability {
    /// [`Durability::Interval`] as it is usually meant: 10 ms.
    pub const INTERVAL: Durability = Durability::Interval(Duration::from_millis(10));
}

/// How an [`crate::LsmEngine`] runs.
#[derive(Debug, Clone)]
pub struct LsmOptions {
    /// When commits are answered.
    pub durability: Durability,
    /// Bytes of memory for cached blocks, filled as blocks are read.
    pub cache_bytes: u64,
    /// Bytes of journal above which memtables are written out early; at least 64 MiB. Bounds the time of the next open.
    pub journal_bytes: u64,
    /// Bytes that must stay free on the disk. Below, writes are refused, except half of it for commits that mostly delete.
    pub reserve_bytes: u64,
    /// Open although acknowledged commits are missing, and keep what is there. See [`crate::OpenError::LostCommits`].
    pub accept_data_loss: bool,
    /// Read every table in full at open, and refuse to open if one differs from what was written.
    pub verify_tables: bool,
    /// Most descriptors of table files that are kept open between reads; at least 10. See [`LsmOptions::descriptors`].
    pub cached_files: usize,
    /// How to ask for the free space of the disk.
    pub free_space: FreeSpace,
    /// The clock of everything that is done now and then. One that is moved by hand is looked at whenever a commit, or another call that changes
    /// something, wakes the committer.
    pub monotonic: Monotonic,
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
        }
    }
}

impl LsmOptions {
    /// About how many descriptors an open store holds at most: those of cached tables, and [`UNCACHED_FILES`].
    pub fn descriptors(&self) -> usize {
        self.cached_files + UNCACHED_FILES
    }
}

/// Descriptors beside those of cached tables: lock files, watermark and journal (5), what a flush and a compaction read and write (one table of
/// each run, and fresh tables are runs of their own), and reads of tables that are not cached yet.
const UNCACHED_FILES: usize = 64;
