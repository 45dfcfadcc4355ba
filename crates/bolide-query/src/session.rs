//! What the functions of one execution share: the time, random numbers, the container's UDFs.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{QueryError, Result};
use crate::limits::{ITEM_ROWS, STATE_BYTES};
use crate::memory::Memory;

/// The user-defined functions of a container.
///
/// Arguments and results are JSON texts; `None` is JavaScript's `undefined`. A call with an undefined argument is never made.
pub trait Udfs: Send + Sync {
    /// Runs one function.
    ///
    /// # Errors
    /// Whatever the script threw, or that there is no such function; it fails the query.
    fn call(&self, name: &str, arguments: &[String]) -> Result<Option<String>, String>;
}

/// What an execution needs from outside.
#[derive(Clone)]
pub struct Environment {
    /// The request's time, in milliseconds since 1970.
    pub now_ms: i64,
    /// Where `RAND()` starts.
    pub random_seed: u64,
    /// The container's user-defined functions, if the server can run them.
    pub udfs: Option<Arc<dyn Udfs>>,
    /// Most memory for groups, distinct values, sorted and ranked rows together, in bytes.
    pub state_bytes: usize,
    /// Most rows that FROM, JOIN and subqueries go through for one item.
    pub item_rows: u64,
}

impl Default for Environment {
    fn default() -> Environment {
        Environment {
            now_ms: 0,
            random_seed: 0,
            udfs: None,
            state_bytes: STATE_BYTES,
            item_rows: ITEM_ROWS,
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
    /// Spatial functions work on a plane.
    pub geometry: bool,
    pub memory: Memory,
    random: AtomicU64,
    /// Rows gone through since the item was taken in.
    rows: AtomicU64,
    item_rows: u64,
}

/// Printable only as "there are some".
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
        } = environment;
        Session {
            now_ms,
            udfs: udfs.map(UdfsHandle),
            geometry,
            memory: Memory::new(state_bytes),
            random: AtomicU64::new(random_seed),
            rows: AtomicU64::new(0),
            item_rows,
        }
    }

    /// Another item: its rows are counted from zero.
    pub fn begin_item(&self) {
        self.rows.store(0, Ordering::Relaxed);
    }

    /// Rows gone through for the item so far.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Goes through one more row.
    ///
    /// # Errors
    /// [`QueryError::TooManyRows`] when it is more than the limit.
    pub fn count_row(&self) -> Result<()> {
        // An execution runs on one thread at a time, so nothing is lost between the two.
        let rows = self.rows() + 1;
        self.rows.store(rows, Ordering::Relaxed);
        if rows > self.item_rows {
            return Err(QueryError::TooManyRows { limit: self.item_rows });
        }
        Ok(())
    }

    /// The next random number in [0, 1): SplitMix64.
    pub fn random(&self) -> f64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.random.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
