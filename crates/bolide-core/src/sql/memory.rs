//! The memory of a query or condition, of compiling it and of one page, taken from what requests share.

use std::sync::Arc;

use bolide_model::Result;
use bolide_query::{MemorySource, QueryError};
use parking_lot::Mutex;

use super::query_error;
use crate::memory::{MemoryBudget, MemoryShare};

/// What was taken so far.
pub(crate) struct QueryMemory {
    budget: MemoryBudget,
    held: Mutex<HeldMemory>,
}

#[derive(Default)]
struct HeldMemory {
    /// What is left of another share, which is used first.
    allowance_bytes: usize,
    share: Option<MemoryShare>,
}

impl QueryMemory {
    pub fn of(budget: &MemoryBudget) -> Arc<QueryMemory> {
        QueryMemory::beside(budget, 0)
    }

    /// For a query of somebody who has so many bytes for it in a share of their own.
    pub fn beside(budget: &MemoryBudget, allowance_bytes: usize) -> Arc<QueryMemory> {
        let held = HeldMemory {
            allowance_bytes,
            share: None,
        };
        Arc::new(QueryMemory {
            budget: budget.clone(),
            held: Mutex::new(held),
        })
    }

    /// What it is taken from.
    pub fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    /// Takes so many bytes for what is made of the query outside of the query language.
    ///
    /// # Errors
    /// `Throttled` if they are not there now.
    pub fn hold(&self, bytes: usize) -> Result<()> {
        if self.take(bytes) {
            Ok(())
        } else {
            Err(query_error(QueryError::OutOfMemory))
        }
    }

    /// Gives back all but the memory of the page's rows.
    pub fn of_rows(&self, bytes: usize) -> Option<Arc<MemoryShare>> {
        let mut share = self.held.lock().share.take()?;
        share.shrink_to(bytes);
        Some(Arc::new(share))
    }
}

impl MemorySource for QueryMemory {
    fn take(&self, bytes: usize) -> bool {
        let mut held = self.held.lock();
        let allowed = bytes.min(held.allowance_bytes);
        held.allowance_bytes -= allowed;
        let bytes = bytes - allowed;
        if bytes == 0 {
            return true;
        }
        let share = held.share.get_or_insert_default();
        let grown = share.bytes().saturating_add(bytes);
        self.budget.try_grow(share, grown).is_ok()
    }
}
