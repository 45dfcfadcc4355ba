//! Memory limits of one execution, or of compiling a query: its total memory, and the size of a value.
//!
//! Sizes are those of the structures that hold the values, including the overhead of allocations. Measured by the peak memory of the process, every
//! operator uses between half and twice the counted size; the page of rows is extra and has a limit of its own.
//!
//! The results of compiling (tokens, the syntax tree, the program, constants, patterns) are counted before they are made: a text can mention one
//! parameter or one path ten thousand times, and some mentions make a copy.
//!
//! If queries share memory, each takes what it uses from the shared source, in chunks.

#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

use crate::error::{QueryError, Result};
use crate::value::{SameKey, Value};

/// Overhead of an allocation.
pub const ALLOCATION_BYTES: usize = 16;

/// Overhead of an entry of a hash table, at the load at which tables grow.
pub const TABLE_ENTRY_BYTES: usize = 32;

/// Bytes taken from the source at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// Bytes taken at a time for the first [`CHUNK_BYTES`]: most queries need little.
const FIRST_CHUNK_BYTES: usize = 4 * 1024;

/// Memory of a value's key in the set of values already seen.
pub fn seen_bytes(key: &SameKey) -> usize {
    key.len() + ALLOCATION_BYTES + TABLE_ENTRY_BYTES
}

/// Memory that a query shares with others.
pub trait MemorySource: Send + Sync {
    /// Takes `bytes` for the query; `false` if they are not available now. All are returned when the source is dropped.
    fn take(&self, bytes: usize) -> bool;
}

/// Counts the memory in use.
pub struct Memory {
    limit_bytes: usize,
    value_bytes: usize,
    used: Cell<usize>,
    /// Bytes of rows on the page.
    rows: Cell<usize>,
    /// Bytes of the largest value made for the current item.
    largest: Cell<usize>,
    /// Why a function was not allowed to make its value.
    refusal: RefCell<Option<QueryError>>,
    source: Option<Arc<dyn MemorySource>>,
    /// Bytes taken from the source.
    taken: Cell<usize>,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("limit_bytes", &self.limit_bytes)
            .field("used", &self.used)
            .finish_non_exhaustive()
    }
}

impl Memory {
    pub fn new(limit_bytes: usize, source: Option<Arc<dyn MemorySource>>) -> Memory {
        Memory {
            limit_bytes,
            value_bytes: limit_bytes.min(crate::limits::VALUE_BYTES),
            used: Cell::new(0),
            rows: Cell::new(0),
            largest: Cell::new(0),
            refusal: RefCell::default(),
            source,
            taken: Cell::new(0),
        }
    }

    /// Adds `bytes` to the memory in use.
    ///
    /// # Errors
    /// [`QueryError::TooLarge`] if this exceeds the limit; [`QueryError::OutOfMemory`] if others use the shared memory.
    pub fn take(&self, bytes: usize) -> Result<()> {
        let used = self.used.get().saturating_add(bytes);
        self.used.set(used);
        if used > self.limit_bytes {
            return Err(QueryError::TooLarge {
                limit_bytes: self.limit_bytes,
            });
        }
        self.cover()
    }

    /// As [`Memory::take`], for functions: if it is refused, the query fails when the function returns.
    pub fn take_for_function(&self, bytes: usize) -> bool {
        let taken = self.take(bytes).map_err(|error| self.refusal.replace(Some(error)));
        taken.is_ok()
    }

    /// The memory in use, in bytes.
    pub fn used(&self) -> usize {
        self.used.get()
    }

    /// Subtracts `bytes` from the memory in use.
    pub fn release(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes));
    }

    /// Sets the size of the page of rows.
    ///
    /// # Errors
    /// [`QueryError::OutOfMemory`].
    pub fn hold_rows(&self, bytes: usize) -> Result<()> {
        self.rows.set(bytes);
        self.cover()
    }

    /// The values made for the previous item are dropped.
    pub fn begin_item(&self) {
        self.largest.set(0);
    }

    /// Takes from the source the bytes that are used and not yet taken.
    #[inline]
    fn cover(&self) -> Result<()> {
        // A second value may be made from the largest one.
        let used = self.used.get() + self.rows.get() + 2 * self.largest.get();
        if used <= self.taken.get() || self.source.is_none() {
            return Ok(());
        }
        self.take_from_source(used)
    }

    #[cold]
    fn take_from_source(&self, used: usize) -> Result<()> {
        let Some(source) = &self.source else { return Ok(()) };
        let chunk = if used <= CHUNK_BYTES {
            FIRST_CHUNK_BYTES
        } else {
            CHUNK_BYTES
        };
        let bytes = (used - self.taken.get()).next_multiple_of(chunk);
        if !source.take(bytes) {
            return Err(QueryError::OutOfMemory);
        }
        self.taken.set(self.taken.get() + bytes);
        Ok(())
    }

    /// Whether a function may make a value of `bytes` bytes. If not, the query fails when the function returns.
    pub fn allows(&self, bytes: usize) -> bool {
        let is_allowed = bytes <= self.value_bytes;
        if !is_allowed {
            self.refusal.replace(Some(self.value_too_large()));
        }
        is_allowed
    }

    /// Checks a value that an expression made, and returns its bytes; 0 for kinds that are always small.
    ///
    /// # Errors
    /// [`QueryError::ValueTooLarge`] if it exceeds the limit: values that share their parts count as if written out.
    /// [`QueryError::OutOfMemory`].
    pub fn check(&self, value: &Value<'_>) -> Result<usize> {
        let bytes = match value {
            Value::String(_) | Value::Array(_) | Value::Object(_) => value.written_out_bytes(self.value_bytes),
            _ => 0,
        };
        if let Some(refusal) = &*self.refusal.borrow() {
            return Err(refusal.clone());
        }
        self.check_bytes(bytes)?;
        Ok(bytes)
    }

    /// Checks the size of a value, or of a row.
    ///
    /// # Errors
    /// As [`Memory::check`].
    pub fn check_bytes(&self, bytes: usize) -> Result<()> {
        if bytes > self.value_bytes {
            return Err(self.value_too_large());
        }
        self.note_value(bytes)
    }

    fn note_value(&self, bytes: usize) -> Result<()> {
        if bytes <= CHUNK_BYTES || bytes <= self.largest.get() {
            return Ok(());
        }
        self.largest.set(bytes);
        self.cover()
    }

    fn value_too_large(&self) -> QueryError {
        QueryError::ValueTooLarge {
            limit_bytes: self.value_bytes,
        }
    }
}
