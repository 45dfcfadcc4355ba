//! One budget for the memory that requests take: bodies, answers, the state of queries, scripts.
//!
//! Whoever is about to hold much takes a share first and drops it with what it holds. When all is taken, those who can wait do so in
//! the order in which they came; the others are refused. What the store holds (its cache and memtables) has limits of its own.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bolide_model::{Error, ErrorKind, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory is counted in units of so many bytes: what is smaller is rounded up.
const UNIT_BYTES: usize = 1024;

/// How long clients are asked to wait before they try again what found no memory.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Memory that requests share.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    units: Arc<Semaphore>,
    limit_bytes: usize,
}

impl MemoryBudget {
    /// A budget of so many bytes.
    pub fn new(limit_bytes: usize) -> MemoryBudget {
        // Larger takings than a permit's number can name are refused, so a larger budget would be of no use to anybody.
        let units = (limit_bytes / UNIT_BYTES).clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        MemoryBudget {
            units: Arc::new(Semaphore::new(units)),
            limit_bytes: units * UNIT_BYTES,
        }
    }

    /// All of it, in bytes.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// What is taken now, in bytes.
    pub fn used_bytes(&self) -> usize {
        self.limit_bytes - self.units.available_permits() * UNIT_BYTES
    }

    /// Takes so many bytes at once.
    ///
    /// # Errors
    /// `Throttled` if they are not there now; `TooLarge` if they never will be.
    pub fn try_take(&self, bytes: usize) -> Result<MemoryShare> {
        let units = self.units_of(bytes)?;
        match self.units.clone().try_acquire_many_owned(units) {
            Ok(permit) => Ok(MemoryShare { permit }),
            Err(_) => Err(self.exhausted()),
        }
    }

    /// Takes so many bytes, behind those who asked before, and waits for them up to `patience`.
    ///
    /// # Errors
    /// As [`MemoryBudget::try_take`].
    pub async fn take(&self, bytes: usize, patience: Duration) -> Result<MemoryShare> {
        let units = self.units_of(bytes)?;
        let waiting = self.units.clone().acquire_many_owned(units);
        match tokio::time::timeout(patience, waiting).await {
            Ok(Ok(permit)) => Ok(MemoryShare { permit }),
            _ => Err(self.exhausted()),
        }
    }

    fn units_of(&self, bytes: usize) -> Result<u32> {
        let too_large = || {
            Error::new(
                ErrorKind::TooLarge,
                format!(
                    "the request needs more memory than all requests may have together. bytes={bytes} limit={}",
                    self.limit_bytes
                ),
            )
        };
        if bytes > self.limit_bytes {
            return Err(too_large());
        }
        u32::try_from(bytes.div_ceil(UNIT_BYTES)).map_err(|_| too_large())
    }

    fn exhausted(&self) -> Error {
        let kind = ErrorKind::Throttled {
            retry_after: RETRY_AFTER,
        };
        Error::new(
            kind,
            format!(
                "The server's memory for requests is used up; try again later. limit={} bytes",
                self.limit_bytes
            ),
        )
    }
}

/// A part of a [`MemoryBudget`], given back when it is dropped.
#[derive(Debug)]
pub struct MemoryShare {
    permit: OwnedSemaphorePermit,
}

impl MemoryShare {
    /// How many bytes it is.
    pub fn bytes(&self) -> usize {
        self.permit.num_permits() * UNIT_BYTES
    }

    /// Makes one share of two of the same budget.
    ///
    /// # Panics
    /// If they are of different budgets.
    pub fn merge(&mut self, other: MemoryShare) {
        self.permit.merge(other.permit);
    }

    /// Gives back all but so many bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        let surplus = self.permit.num_permits().saturating_sub(bytes.div_ceil(UNIT_BYTES));
        drop(self.permit.split(surplus));
    }
}
