//! The memory of a feed's page.

use bolide_model::Result;

use crate::memory::{MemoryBudget, MemoryShare};

/// Number of copies that a page's share covers: its items, and their text when the page is written out.
const COPIES: usize = 2;

/// Memory that grows with a page. When no memory is left, the page ends with the items that it has.
pub(super) struct PageMemory {
    budget: MemoryBudget,
    share: MemoryShare,
    is_short: bool,
}

impl PageMemory {
    /// Creates a share of zero bytes.
    pub fn of(budget: &MemoryBudget) -> PageMemory {
        PageMemory {
            budget: budget.clone(),
            share: MemoryShare::default(),
            is_short: false,
        }
    }

    /// Grows the share to that of a page with `page_bytes` bytes and `items` items.
    ///
    /// # Errors
    /// `Throttled` if there is no memory for the first item of the page.
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

    /// Returns whether the page has to end because memory ran out.
    pub fn is_short(&self) -> bool {
        self.is_short
    }

    /// Returns the memory share of the page.
    pub fn into_share(self) -> MemoryShare {
        self.share
    }
}
