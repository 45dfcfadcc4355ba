//! The memory of a page of a feed.

use bolide_model::Result;

use crate::memory::{MemoryBudget, MemoryShare};

/// A page holds its items, and their text when it is written out.
const COPIES: usize = 2;

/// Memory that grows with a page. Where there is none left, a page ends with what it has.
pub(super) struct PageMemory {
    budget: MemoryBudget,
    share: MemoryShare,
    is_short: bool,
}

impl PageMemory {
    /// Nothing yet.
    pub fn of(budget: &MemoryBudget) -> PageMemory {
        PageMemory {
            budget: budget.clone(),
            share: MemoryShare::default(),
            is_short: false,
        }
    }

    /// A page of so many bytes, and of so many items.
    ///
    /// # Errors
    /// `Throttled` if there is no memory for its first item.
    pub fn grow(&mut self, page_bytes: usize, items: usize) -> Result<()> {
        match self.budget.try_grow(&mut self.share, COPIES * page_bytes) {
            Ok(()) => Ok(()),
            Err(error) if items <= 1 => Err(error),
            Err(_) => {
                self.is_short = true;
                Ok(())
            }
        }
    }

    /// Whether the page has to end.
    pub fn is_short(&self) -> bool {
        self.is_short
    }

    /// What the page holds.
    pub fn into_share(self) -> MemoryShare {
        self.share
    }
}
