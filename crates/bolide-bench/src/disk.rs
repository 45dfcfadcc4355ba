//! Disk space of a data directory.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::Result;

/// The unit of `st_blocks`, whatever the file system's block size is.
const BLOCK_BYTES: u64 = 512;

/// Space that files use on the disk: journals have parts without blocks.
#[derive(Debug, Default, Clone, Copy)]
pub struct DiskUse {
    /// Everything but journals.
    pub tables_bytes: u64,
    pub journal_bytes: u64,
}

impl DiskUse {
    /// That of all files in a directory and below.
    pub fn of(dir: &Path) -> Result<DiskUse> {
        let mut used = DiskUse::default();
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            // Tables appear and disappear meanwhile.
            let Ok(metadata) = path.metadata() else { continue };
            if metadata.is_dir() {
                let below = DiskUse::of(&path)?;
                used.tables_bytes += below.tables_bytes;
                used.journal_bytes += below.journal_bytes;
            } else if path.extension().is_some_and(|extension| extension == "jnl") {
                used.journal_bytes += metadata.blocks() * BLOCK_BYTES;
            } else {
                used.tables_bytes += metadata.blocks() * BLOCK_BYTES;
            }
        }
        Ok(used)
    }

    /// Of all files.
    pub fn bytes(self) -> u64 {
        self.tables_bytes + self.journal_bytes
    }
}
