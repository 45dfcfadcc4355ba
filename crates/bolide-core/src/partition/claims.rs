//! The keys of documents, and of entries of unique indexes, that open transactions have written. Each belongs to one transaction.

use std::collections::HashMap;

use bolide_storage::Key;
use parking_lot::Mutex;

/// See the module. They are in memory only: commits compare what is stored.
#[derive(Debug, Default)]
pub(crate) struct Claims(Mutex<HashMap<Key, u64>>);

impl Claims {
    /// Claims keys for a transaction. Returns those that it did not have before; `None` if another one has one of them, and then nothing is claimed.
    pub fn claim(&self, keys: &[Key], owner: u64) -> Option<Vec<Key>> {
        let mut owners = self.0.lock();
        let is_taken = |key: &Key| owners.get(key).is_some_and(|other| *other != owner);
        if keys.iter().any(is_taken) {
            return None;
        }
        let mut new = Vec::new();
        for key in keys {
            if owners.insert(key.clone(), owner).is_none() {
                new.push(key.clone());
            }
        }
        Some(new)
    }

    /// Gives a key back, of which its transaction has been told that it was new.
    pub fn give_back(&self, key: &Key) {
        self.0.lock().remove(key);
    }
}
