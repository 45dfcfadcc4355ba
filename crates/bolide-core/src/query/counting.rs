//! Measures the work of a page in each range: the page is charged for its execution, and each range for the work on its items.

use std::ops::{Deref, DerefMut};

use bolide_model::{RequestUnits, charge};
use bolide_query::{Execution, Metrics};

/// An execution with the charge of each range; see the module.
pub(super) struct Counting {
    execution: Execution,
    range: Option<u32>,
    /// The metrics of the execution when the range was entered.
    before: Metrics,
    costs: Vec<(u32, RequestUnits)>,
    looks: u64,
}

impl Counting {
    pub fn of(execution: Execution) -> Counting {
        Counting {
            before: execution.metrics(),
            execution,
            range: None,
            costs: Vec::new(),
            looks: 0,
        }
    }

    /// Records that the next items belong to this range.
    pub fn enter(&mut self, range: u32) {
        if self.range != Some(range) {
            self.leave();
            self.range = Some(range);
        }
    }

    /// Returns whether there was about a millisecond of work since the last call.
    pub fn has_worked(&mut self) -> bool {
        let looks = self.execution.interrupt_checks();
        std::mem::replace(&mut self.looks, looks) != looks
    }

    fn leave(&mut self) {
        let now = self.execution.metrics();
        if let Some(range) = self.range {
            self.costs.push((range, work(&now) - work(&self.before)));
        }
        self.before = now;
    }

    pub fn into_parts(mut self) -> (Execution, Vec<(u32, RequestUnits)>) {
        self.leave();
        (self.execution, self.costs)
    }
}

impl Deref for Counting {
    type Target = Execution;

    fn deref(&self) -> &Execution {
        &self.execution
    }
}

impl DerefMut for Counting {
    fn deref_mut(&mut self) -> &mut Execution {
        &mut self.execution
    }
}

/// Returns the charge of an execution's work.
pub(super) fn work(metrics: &Metrics) -> RequestUnits {
    let number = |n| usize::try_from(n).unwrap_or(usize::MAX);
    charge::query_work(
        number(metrics.items + metrics.covered_items),
        number(metrics.item_bytes + metrics.covered_bytes),
        number(metrics.row_bytes),
    ) + charge::index_entries(number(metrics.index_entries))
}
