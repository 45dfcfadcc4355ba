//! State shared by the functions of one execution: the time, random numbers, the container's UDFs, limits.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

use crate::error::{QueryError, Result};
use crate::fuel::{self, Fuel, Interrupts};
use crate::functions::regex::Patterns;
use crate::limits::{ITEM_ROWS, ITEM_WORK, STATE_BYTES};
use crate::memory::{Memory, MemorySource};
use crate::value::Value;

/// The user-defined functions of a container.
///
/// Arguments and results are JSON texts; `None` is JavaScript's `undefined`. A call with an undefined argument is never made.
pub trait Udfs: Send + Sync {
    /// Runs one function.
    ///
    /// # Errors
    /// The exception of the script, or that the function does not exist; it fails the query.
    fn call(&self, name: &str, arguments: &[String]) -> Result<Option<String>, String>;
}

/// What an execution needs from its caller.
#[derive(Clone)]
pub struct Environment {
    /// The request's time, in milliseconds since 1970.
    pub now_ms: i64,
    /// Seed of `RAND()`.
    pub random_seed: u64,
    /// The container's user-defined functions, if the server can run them.
    pub udfs: Option<Arc<dyn Udfs>>,
    /// Maximum memory for groups, distinct values, sorted and ranked rows together, in bytes.
    pub state_bytes: usize,
    /// Maximum number of rows that FROM, JOIN and subqueries visit for one item.
    pub item_rows: u64,
    /// Maximum work for one item, in units of about a nanosecond.
    pub item_work: u64,
    /// Ends the execution from outside.
    pub interrupts: Option<Arc<dyn Interrupts>>,
    /// The source of the memory for `state_bytes`, if it is shared with others.
    pub memory: Option<Arc<dyn MemorySource>>,
}

impl Default for Environment {
    fn default() -> Environment {
        Environment {
            now_ms: 0,
            random_seed: 0,
            udfs: None,
            state_bytes: STATE_BYTES,
            item_rows: ITEM_ROWS,
            item_work: ITEM_WORK,
            interrupts: None,
            memory: None,
        }
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("now_ms", &self.now_ms)
            .field("random_seed", &self.random_seed)
            .finish_non_exhaustive()
    }
}

/// An environment in use.
#[derive(Debug)]
pub struct Session {
    pub now_ms: i64,
    pub udfs: Option<UdfsHandle>,
    /// Whether spatial functions use a plane.
    pub geometry: bool,
    pub memory: Memory,
    pub fuel: Fuel,
    /// The patterns that were compiled for items.
    pub patterns: RefCell<Patterns>,
    random: RefCell<fastrand::Rng>,
    /// Rows visited for the current item.
    rows: Cell<u64>,
    item_rows: u64,
}

/// Its debug output shows only that there are functions.
#[derive(Clone)]
pub struct UdfsHandle(pub Arc<dyn Udfs>);

impl fmt::Debug for UdfsHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Udfs")
    }
}

impl Session {
    pub fn new(environment: Environment, geometry: bool) -> Session {
        let Environment {
            now_ms,
            random_seed,
            udfs,
            state_bytes,
            item_rows,
            item_work,
            interrupts,
            memory,
        } = environment;
        Session {
            now_ms,
            udfs: udfs.map(UdfsHandle),
            geometry,
            memory: Memory::new(state_bytes, memory),
            fuel: Fuel::new(item_work, interrupts),
            patterns: RefCell::default(),
            random: RefCell::new(fastrand::Rng::with_seed(random_seed)),
            rows: Cell::new(0),
            item_rows,
        }
    }

    /// Starts another item: its rows and its work are counted from zero.
    pub fn begin_item(&self) {
        self.rows.set(0);
        self.fuel.begin_item();
        self.memory.begin_item();
    }

    /// Rows visited for the item so far.
    pub fn rows(&self) -> u64 {
        self.rows.get()
    }

    /// Counts one more row.
    ///
    /// # Errors
    /// [`QueryError::TooManyRows`] if this exceeds the limit; [`QueryError::Interrupted`].
    pub fn count_row(&self) -> Result<()> {
        let rows = self.rows() + 1;
        self.rows.set(rows);
        if rows > self.item_rows {
            return Err(QueryError::TooManyRows { limit: self.item_rows });
        }
        self.fuel.burn(fuel::ROW)
    }

    /// Checks a value that an expression made.
    ///
    /// # Errors
    /// [`QueryError::ValueTooLarge`] if it exceeds the limit; [`QueryError::Interrupted`].
    pub fn check<'a>(&self, value: Value<'a>) -> Result<Value<'a>> {
        let bytes = self.memory.check(&value)?;
        self.fuel.burn(bytes as u64 / 16)?;
        self.fuel.check()?;
        Ok(value)
    }

    /// The next random number in [0, 1).
    pub fn random(&self) -> f64 {
        self.random.borrow_mut().f64()
    }
}
