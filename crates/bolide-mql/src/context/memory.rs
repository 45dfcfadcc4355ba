//! The memory that a stage may hold.

use crate::error::{Code, Error, Result};

/// The most bytes that one blocking stage may hold (mongo.md §16).
pub const STAGE_BYTES: usize = 100 * 1024 * 1024;

/// The bytes that one blocking stage holds.
#[derive(Debug, Clone)]
pub struct StageMemory {
    stage: &'static str,
    used: usize,
    limit: usize,
}

impl StageMemory {
    /// Returns an account for `stage`, such as `$group`, with the limit of [`STAGE_BYTES`].
    pub fn new(stage: &'static str) -> StageMemory {
        StageMemory::with_limit(stage, STAGE_BYTES)
    }

    /// Returns an account with a limit in bytes.
    pub fn with_limit(stage: &'static str, limit: usize) -> StageMemory {
        StageMemory { stage, used: 0, limit }
    }

    /// Adds `bytes`.
    ///
    /// # Errors
    /// `QueryExceededMemoryLimitNoDiskUseAllowed` (292) beyond the limit.
    pub fn add(&mut self, bytes: usize) -> Result<()> {
        self.used = self.used.saturating_add(bytes);
        if self.used <= self.limit {
            return Ok(());
        }
        let (stage, limit) = (self.stage, self.limit);
        let exceeded = match stage {
            "$sort" => format!("Sort exceeded memory limit of {limit} bytes"),
            _ => format!("Exceeded memory limit of {limit} bytes for {stage}"),
        };
        // There is nowhere to spill to, so the advice of MongoDB's text to pass allowDiskUse would be wrong.
        Err(Error::new(
            Code::QUERY_EXCEEDED_MEMORY_LIMIT,
            format!("{exceeded}; spilling to disk is not supported, with or without allowDiskUse"),
        ))
    }

    /// Gives `bytes` back.
    pub fn release(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
    }

    /// Returns the bytes in use.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Returns true if `bytes` more would not exceed the limit.
    pub fn has_room_for(&self, bytes: usize) -> bool {
        self.used.saturating_add(bytes) <= self.limit
    }
}
