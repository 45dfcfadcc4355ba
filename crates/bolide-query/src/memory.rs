//! The memory of one execution: what its operators hold, and how large a value may grow.
//!
//! Sizes are those of the structures that hold the values, with what an allocation costs beside its content. Measured by the peak of the
//! process, every operator stays within half and twice of what is counted; the page of rows comes on top and has a limit of its own.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::{QueryError, Result};
use crate::value::{SameKey, Value};

/// What an allocation of its own costs beside its content.
pub const ALLOCATION_BYTES: usize = 16;

/// What an entry of a hash table costs beside its content, at the load at which tables grow.
pub const TABLE_ENTRY_BYTES: usize = 32;

/// What a value's identity costs in the set of those that were seen.
pub fn seen_bytes(key: &SameKey) -> usize {
    key.len() + ALLOCATION_BYTES + TABLE_ENTRY_BYTES
}

/// Counts what the operators of an execution hold.
#[derive(Debug)]
pub struct Memory {
    limit_bytes: usize,
    value_bytes: usize,
    used: AtomicUsize,
    /// A function would have made a value that is too large.
    is_refused: AtomicBool,
}

impl Memory {
    pub fn new(limit_bytes: usize) -> Memory {
        Memory {
            limit_bytes,
            value_bytes: limit_bytes.min(crate::limits::VALUE_BYTES),
            used: AtomicUsize::new(0),
            is_refused: AtomicBool::new(false),
        }
    }

    /// Holds so much more.
    ///
    /// # Errors
    /// [`QueryError::TooLarge`] when it is more than the limit.
    pub fn take(&self, bytes: usize) -> Result<()> {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if used > self.limit_bytes {
            return Err(QueryError::TooLarge {
                limit_bytes: self.limit_bytes,
            });
        }
        Ok(())
    }

    /// Holds so much less.
    pub fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether a function may make a value of so many bytes. If not, the query fails when the function returns.
    pub fn allows(&self, bytes: usize) -> bool {
        let is_allowed = bytes <= self.value_bytes;
        if !is_allowed {
            self.is_refused.store(true, Ordering::Relaxed);
        }
        is_allowed
    }

    /// Lets a value pass that an expression made.
    ///
    /// # Errors
    /// [`QueryError::ValueTooLarge`] if it is larger than any may be: values that share their parts count as if written out.
    pub fn check<'a>(&self, value: Value<'a>) -> Result<Value<'a>> {
        let is_large = match &value {
            Value::String(_) | Value::Array(_) | Value::Object(_) => {
                value.written_out_bytes(self.value_bytes) > self.value_bytes
            }
            _ => false,
        };
        if is_large || self.is_refused.load(Ordering::Relaxed) {
            return Err(self.value_too_large());
        }
        Ok(value)
    }

    /// Lets so many bytes of a value, or of a row, pass.
    ///
    /// # Errors
    /// [`QueryError::ValueTooLarge`] if they are more than any may have.
    pub fn check_bytes(&self, bytes: usize) -> Result<()> {
        if bytes > self.value_bytes {
            return Err(self.value_too_large());
        }
        Ok(())
    }

    fn value_too_large(&self) -> QueryError {
        QueryError::ValueTooLarge {
            limit_bytes: self.value_bytes,
        }
    }
}
