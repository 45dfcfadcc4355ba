//! The memory of one page of a query, taken from what requests share.

use std::sync::Arc;

use bolide_query::MemorySource;
use parking_lot::Mutex;

use crate::memory::{MemoryBudget, MemoryShare};

/// What a page has taken so far.
pub(crate) struct QueryMemory {
    budget: MemoryBudget,
    share: Mutex<Option<MemoryShare>>,
}

impl QueryMemory {
    pub fn of(budget: &MemoryBudget) -> Arc<QueryMemory> {
        Arc::new(QueryMemory {
            budget: budget.clone(),
            share: Mutex::default(),
        })
    }

    /// Gives back all but the memory of the page's rows.
    pub fn of_rows(&self, bytes: usize) -> Option<Arc<MemoryShare>> {
        let mut share = self.share.lock().take()?;
        share.shrink_to(bytes);
        Some(Arc::new(share))
    }
}

impl MemorySource for QueryMemory {
    fn take(&self, bytes: usize) -> bool {
        let mut share = self.share.lock();
        let share = share.get_or_insert_default();
        let grown = share.bytes().saturating_add(bytes);
        self.budget.try_grow(share, grown).is_ok()
    }
}
