//! How much work an execution may do: counted in units, and looked at from outside every millisecond or so.
//!
//! Whatever a query can make longer (rows, nodes of expressions, bytes compared, searched, copied or parsed, vertices, regular
//! expressions) spends fuel. Within one item it is limited, since an item is what an execution cannot end in the middle of and go on in
//! later; over all items whoever runs the execution decides, and is asked each time so many units are spent. When fuel is refused, functions
//! return at once with any value: the expression that called them fails.
//!
//! A unit is about a nanosecond. The counts need not be exact: that an execution asks often enough and that nothing goes on for ever
//! hangs on their order of magnitude only.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use crate::error::{QueryError, Result};

/// Units between two questions to the outside: about a millisecond.
const LOOK: u64 = 1_000_000;

/// A row of FROM, JOIN or a subquery.
pub const ROW: u64 = 250;
/// A node of an expression.
pub const NODE: u64 = 8;
/// A call of a function, beside what its arguments cost.
pub const CALL: u64 = 40;
/// An element of an array, or a member of an object, that is taken out of its text or put in a new value.
pub const ELEMENT: u64 = 25;
/// A byte of a value's identity, which is made, hashed and compared.
pub const KEY_BYTE: u64 = 4;

/// Why an execution must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// Nobody waits for the result any more.
    Cancelled,
    /// The query has taken as long as it may.
    DeadlineExceeded,
    /// One item, or the text of the query, takes more work than it may.
    TooMuchWork,
}

/// Whoever runs an execution, or compiles a query, and can end it.
pub trait Interrupts: Send + Sync {
    /// Whether the execution must end. Asked about once in a millisecond of work. `item` tells the items of an execution apart.
    fn pending(&self, item: u64) -> Option<Interrupt>;
}

/// The fuel of one execution.
pub struct Fuel {
    /// Units until the next look.
    left: Cell<u64>,
    /// Units of the current item beside `left`.
    reserve: Cell<u64>,
    /// Most units for an item.
    item_work: u64,
    item: Cell<u64>,
    interrupts: Option<Arc<dyn Interrupts>>,
    stopped: Cell<Option<Interrupt>>,
    looks: Cell<u64>,
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
        let left = item_work.min(LOOK);
        Fuel {
            left: Cell::new(left),
            reserve: Cell::new(item_work - left),
            item_work,
            item: Cell::new(0),
            interrupts,
            stopped: Cell::new(None),
            looks: Cell::new(0),
        }
    }

    /// Another item: its units are counted from zero.
    pub fn begin_item(&self) {
        self.item.set(self.item.get() + 1);
        let left = self.left.get().min(self.item_work);
        self.left.set(left);
        self.reserve.set(self.item_work - left);
    }

    /// Spends so many units. `false`: they are refused, and the execution is over.
    #[inline]
    pub fn spend(&self, units: u64) -> bool {
        match self.left.get().checked_sub(units) {
            Some(left) => {
                self.left.set(left);
                true
            }
            None => self.look(units),
        }
    }

    /// As [`Fuel::spend`], for what costs so many units a byte or an element.
    #[inline]
    pub fn spend_each(&self, count: usize, units: u64) -> bool {
        self.spend((count as u64).saturating_mul(units))
    }

    /// Spends so many units for bytes that are only compared, searched or copied.
    #[inline]
    pub fn spend_bytes(&self, bytes: usize) -> bool {
        self.spend(bytes as u64 / 8)
    }

    /// Whether so many units are left for the current item.
    pub fn has(&self, units: u64) -> bool {
        self.left() >= units
    }

    /// Units left for the current item.
    pub fn left(&self) -> u64 {
        self.left.get().saturating_add(self.reserve.get())
    }

    /// How often there was a reason to ask the outside.
    pub fn looks(&self) -> u64 {
        self.looks.get()
    }

    /// Asks the outside now: something was done whose cost cannot be told beforehand.
    pub fn look_now(&self) -> bool {
        self.looks.set(self.looks.get() + 1);
        let pending = self.interrupts.as_ref().and_then(|own| own.pending(self.item.get()));
        match pending {
            Some(interrupt) => self.stop(interrupt),
            None => self.stopped.get().is_none(),
        }
    }

    /// Lets the execution go on.
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

    /// Spends so many units.
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
    fn look(&self, units: u64) -> bool {
        if self.stopped.get().is_some() {
            return false;
        }
        let beyond = units - self.left.get();
        let Some(reserve) = self.reserve.get().checked_sub(beyond) else {
            return self.exhaust();
        };
        let left = reserve.min(LOOK);
        self.left.set(left);
        self.reserve.set(reserve - left);
        self.look_now()
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
