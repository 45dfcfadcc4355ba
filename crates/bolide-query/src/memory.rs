//! The memory of one execution, or of compiling a query: what it holds, and how large a value may grow.
//!
//! Sizes are those of the structures that hold the values, with what an allocation costs beside its content. Measured by the peak of the
//! process, every operator stays within half and twice of what is counted; the page of rows comes on top and has a limit of its own.
//!
//! What compiling makes (tokens, the syntax tree, the program, constants, patterns) is counted before it is made: a text can name one
//! parameter, or one path, ten thousand times, and some of what is made of it is a copy each time.
//!
//! Where queries share memory, each takes what it holds from there, in chunks.

#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

use crate::error::{QueryError, Result};
use crate::value::{SameKey, Value};

/// What an allocation of its own costs beside its content.
pub const ALLOCATION_BYTES: usize = 16;

/// What an entry of a hash table costs beside its content, at the load at which tables grow.
pub const TABLE_ENTRY_BYTES: usize = 32;

/// Memory is taken from its source by this much at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// The first [`CHUNK_BYTES`] are taken by this much: most queries need little.
const FIRST_CHUNK_BYTES: usize = 4 * 1024;

/// What a value's identity costs in the set of those that were seen.
pub fn seen_bytes(key: &SameKey) -> usize {
    key.len() + ALLOCATION_BYTES + TABLE_ENTRY_BYTES
}

/// Memory that a query shares with others.
pub trait MemorySource: Send + Sync {
    /// Takes so many bytes for the query; `false` if they are not there now. All go back when the source is dropped.
    fn take(&self, bytes: usize) -> bool;
}

/// Counts what is held.
pub struct Memory {
    limit_bytes: usize,
    value_bytes: usize,
    used: Cell<usize>,
    /// Bytes of rows on the page.
    rows: Cell<usize>,
    /// Bytes of the largest value made for the current item.
    largest: Cell<usize>,
    /// Why a function was refused what it would have made.
    refusal: RefCell<Option<QueryError>>,
    source: Option<Arc<dyn MemorySource>>,
    /// Taken from the source.
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

    /// Holds so much more.
    ///
    /// # Errors
    /// [`QueryError::TooLarge`] when it is more than the limit; [`QueryError::OutOfMemory`] when others hold what there is.
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

    /// What is held now, in bytes.
    pub fn used(&self) -> usize {
        self.used.get()
    }

    /// Holds so much less.
    pub fn give_back(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes));
    }

    /// The page of rows has so many bytes now.
    ///
    /// # Errors
    /// [`QueryError::OutOfMemory`].
    pub fn hold_rows(&self, bytes: usize) -> Result<()> {
        self.rows.set(bytes);
        self.cover()
    }

    /// What was made for the item before is gone.
    pub fn begin_item(&self) {
        self.largest.set(0);
    }

    /// Takes from the source what is used and not yet taken.
    #[inline]
    fn cover(&self) -> Result<()> {
        // Beside the value itself there may be one that is being made of it.
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

    /// Whether a function may make a value of so many bytes. If not, the query fails when the function returns.
    pub fn allows(&self, bytes: usize) -> bool {
        let is_allowed = bytes <= self.value_bytes;
        if !is_allowed {
            self.refusal.replace(Some(self.value_too_large()));
        }
        is_allowed
    }

    /// Lets a value pass that an expression made; tells its bytes, 0 for what is small whatever it is.
    ///
    /// # Errors
    /// [`QueryError::ValueTooLarge`] if it is larger than any may be: values that share their parts count as if written out.
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

    /// Lets so many bytes of a value, or of a row, pass.
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
