//! DISTINCT within one page: each value once (cosmos-sql §8.4). The values of earlier pages are in `emitted_rows`.

use std::collections::HashSet;

use super::emitted_rows;
use crate::error::Result;
use crate::fuel::KEY_BYTE;
use crate::memory::seen_bytes;
use crate::session::Session;
use crate::value::{SameKey, Value, append_same_key, same_key};

/// The values that were already accepted.
#[derive(Debug, Default)]
pub(super) struct Distinct {
    seen: HashSet<SameKey>,
    scratch: Vec<u8>,
    /// The hash of the value of the last call.
    last: u64,
}

impl Distinct {
    pub fn hash_of_last(&self) -> u64 {
        self.last
    }

    /// Whether a value is new.
    ///
    /// # Errors
    /// [`crate::QueryError::TooLarge`] if there are too many values; [`crate::QueryError::Interrupted`].
    pub fn is_new(&mut self, value: &Value<'_>, session: &Session) -> Result<bool> {
        self.scratch.clear();
        append_same_key(value, &mut self.scratch);
        session.fuel.burn(self.scratch.len() as u64 * KEY_BYTE)?;
        let key = same_key(&self.scratch);
        self.last = emitted_rows::hash(&key);
        let key_bytes = seen_bytes(&key);
        if !self.seen.insert(key) {
            return Ok(false);
        }
        session.memory.take(key_bytes)?;
        Ok(true)
    }
}
