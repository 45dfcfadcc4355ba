//! Fuel: how much work an execution may do, counted in units, with a check for interruption about every millisecond.
//!
//! Everything a query can make longer (rows, nodes of expressions, bytes compared, searched, copied or parsed, vertices, regular expressions) spends
//! fuel. The fuel of one item is limited, because an execution cannot stop inside an item and continue later. Over all items, whoever runs the
//! execution decides, and is asked after a number of units. When fuel is refused, functions return at once with any value: the expression that called
//! them fails.
//!
//! A unit is about a nanosecond. The counts need not be exact: only their order of magnitude matters, for frequent checks and for ending every execution.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use crate::error::{QueryError, Result};

/// Units between two checks for interruption: about a millisecond.
const CHECK_UNITS: u64 = 1_000_000;

/// A row of FROM, JOIN or a subquery.
pub const ROW: u64 = 250;
/// A node of an expression.
pub const NODE: u64 = 8;
/// A call of a function, without its arguments.
pub const CALL: u64 = 40;
/// An element of an array or a member of an object that is parsed, or put in a new value.
pub const ELEMENT: u64 = 25;
/// A byte of the key that identifies a value, which is built, hashed and compared.
pub const KEY_BYTE: u64 = 4;

/// Why an execution must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// Nobody waits for the result any more.
    Cancelled,
    /// The query has reached its time limit.
    DeadlineExceeded,
    /// One item, or the text of the query, needs more work than allowed.
    TooMuchWork,
}

/// Implemented by whoever runs an execution or compiles a query, to end it.
pub trait Interrupts: Send + Sync {
    /// Whether the execution must end. Called about once per millisecond of work. `item` is different for each item of an execution.
    fn pending(&self, item: u64) -> Option<Interrupt>;
}

/// The fuel of one execution.
pub struct Fuel {
    /// Units until the next check.
    left: Cell<u64>,
    /// Units of the current item in addition to `left`.
    reserve: Cell<u64>,
    /// Maximum units per item.
    item_work: u64,
    item: Cell<u64>,
    interrupts: Option<Arc<dyn Interrupts>>,
    stopped: Cell<Option<Interrupt>>,
    interrupt_checks: Cell<u64>,
}

impl fmt::Debug for Fuel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fuel")
            .field("item_work", &self.item_work)
            .field("stopped", &self.stopped)
            .finish_non_exhaustive()
    }
}

impl Fuel {
    /// Fuel of `item_work` units for each item.
    pub fn new(item_work: u64, interrupts: Option<Arc<dyn Interrupts>>) -> Fuel {
        let left = item_work.min(CHECK_UNITS);
        Fuel {
            left: Cell::new(left),
            reserve: Cell::new(item_work - left),
            item_work,
            item: Cell::new(0),
            interrupts,
            stopped: Cell::new(None),
            interrupt_checks: Cell::new(0),
        }
    }

    /// Starts another item: its units are counted from zero.
    pub fn begin_item(&self) {
        self.item.set(self.item.get() + 1);
        let left = self.left.get().min(self.item_work);
        self.left.set(left);
        self.reserve.set(self.item_work - left);
    }

    /// Spends `units`. `false`: they are refused, and the execution ends.
    #[inline]
    pub fn spend(&self, units: u64) -> bool {
        match self.left.get().checked_sub(units) {
            Some(left) => {
                self.left.set(left);
                true
            }
            None => self.refill(units),
        }
    }

    /// As [`Fuel::spend`], for `count` bytes or elements that cost `units` each.
    #[inline]
    pub fn spend_each(&self, count: usize, units: u64) -> bool {
        self.spend((count as u64).saturating_mul(units))
    }

    /// Spends units for bytes that are only compared, searched or copied.
    #[inline]
    pub fn spend_bytes(&self, bytes: usize) -> bool {
        self.spend(bytes as u64 / 8)
    }

    /// Whether `units` are left for the current item.
    pub fn has(&self, units: u64) -> bool {
        self.left() >= units
    }

    /// Units left for the current item.
    pub fn left(&self) -> u64 {
        self.left.get().saturating_add(self.reserve.get())
    }

    /// Number of checks for interruption so far.
    pub fn interrupt_checks(&self) -> u64 {
        self.interrupt_checks.get()
    }

    /// Checks for interruption now, after work whose cost could not be estimated before.
    pub fn check_interrupts(&self) -> bool {
        self.interrupt_checks.set(self.interrupt_checks.get() + 1);
        let pending = self.interrupts.as_ref().and_then(|own| own.pending(self.item.get()));
        match pending {
            Some(interrupt) => self.stop(interrupt),
            None => self.stopped.get().is_none(),
        }
    }

    /// Returns an error if fuel was refused.
    ///
    /// # Errors
    /// [`QueryError::Interrupted`] when fuel was refused.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.stopped.get() {
            None => Ok(()),
            Some(interrupt) => Err(QueryError::Interrupted(interrupt)),
        }
    }

    /// Spends `units`.
    ///
    /// # Errors
    /// As [`Fuel::check`].
    #[inline]
    pub fn burn(&self, units: u64) -> Result<()> {
        if self.spend(units) { Ok(()) } else { self.check() }
    }

    /// Ends the execution for too much work within an item. Always `false`.
    pub fn exhaust(&self) -> bool {
        self.stop(Interrupt::TooMuchWork)
    }

    #[cold]
    fn refill(&self, units: u64) -> bool {
        if self.stopped.get().is_some() {
            return false;
        }
        let beyond = units - self.left.get();
        let Some(reserve) = self.reserve.get().checked_sub(beyond) else {
            return self.exhaust();
        };
        let left = reserve.min(CHECK_UNITS);
        self.left.set(left);
        self.reserve.set(reserve - left);
        self.check_interrupts()
    }

    #[cold]
    fn stop(&self, interrupt: Interrupt) -> bool {
        self.left.set(0);
        self.reserve.set(0);
        if self.stopped.get().is_none() {
            self.stopped.set(Some(interrupt));
        }
        false
    }
}

#[cfg(test)]
mod tests;
