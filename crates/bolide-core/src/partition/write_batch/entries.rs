//! Entries of indexes and of the catalog. Those that creates put may be taken to be new without being read: the commit checks it.

use bolide_model::Lsn;
use bolide_storage::{Key, Space};
use bytes::Bytes;

use super::{Decision, WriteBatch};
use crate::format::keys::{self, LogPosition};

impl<'a> WriteBatch<'a> {
    /// Takes entries that creates put to be new, if `takes`: the commit checks it.
    #[must_use]
    pub fn taking_entries_as_new(self, takes: bool) -> WriteBatch<'a> {
        let new_entries = takes.then(Vec::new);
        WriteBatch { new_entries, ..self }
    }

    /// Returns the entry of an index or of the catalog under a key, changes of earlier transactions included.
    pub fn entry(&mut self, key: &Key) -> Decision<Option<Bytes>> {
        debug_assert!(key.space != Space::Item, "items have slots");
        self.get_raw(key)
    }

    /// Like [`WriteBatch::entry`], for several keys, so that all missing ones are read at once.
    pub fn entries(&mut self, keys: &[Key]) -> Decision<Vec<Option<Bytes>>> {
        debug_assert!(keys.iter().all(|key| key.space != Space::Item), "items have slots");
        self.get_all_raw(keys)
    }

    /// Like [`WriteBatch::entry`], for an entry that the decision puts if it is absent.
    pub fn new_entry(&mut self, key: &Key) -> Decision<Option<Bytes>> {
        let is_known = self.effects.contains_key(key) || self.loaded.gets.contains_key(key);
        match &mut self.new_entries {
            Some(new) if !is_known => {
                new.push(key.clone());
                Ok(None)
            }
            _ => self.entry(key),
        }
    }

    /// Like [`WriteBatch::new_entry`], for several keys, so that all missing ones are read at once.
    pub fn new_entries(&mut self, keys: &[Key]) -> Decision<Vec<Option<Bytes>>> {
        self.get_all(keys, WriteBatch::new_entry)
    }

    /// Notes that the row of an item is under a number that no item had.
    pub fn note_new_item(&mut self, key: impl FnOnce() -> Key) {
        if self.new_entries.is_some() {
            self.new_items.push(key());
        }
    }

    /// Keys of puts that are new on the head `base`, for an engine that checks it with the commit: inserts cost it less than what may be there. Those of the
    /// log name positions after the head.
    pub(super) fn new_keys(&self, base: Lsn) -> Vec<Key> {
        let Some(entries) = &self.new_entries else {
            return Vec::new();
        };
        let items = self.new_items.iter().filter(|key| self.is_put(key));
        let log = self.effects.keys().filter(|key| {
            let position = log_position(key).filter(|position| position.lsn > base);
            position.is_some() && self.is_put(key)
        });
        entries.iter().chain(items).chain(log).cloned().collect()
    }

    fn is_put(&self, key: &Key) -> bool {
        self.effects.get(key).is_some_and(Option::is_some)
    }

    /// Whether the commit would not check all entries that were taken to be new, because they are not among its puts: a transaction was undone or refused.
    pub fn has_unchecked_entries(&self) -> bool {
        !self.new_entries.iter().flatten().all(|key| self.is_put(key))
    }

    /// Like [`WriteBatch::get_raw`], for several keys, so that all missing ones are read at once.
    pub fn get_all_raw(&mut self, keys: &[Key]) -> Decision<Vec<Option<Bytes>>> {
        self.get_all(keys, WriteBatch::get_raw)
    }
}

/// The position that a key of the log or of the history names.
fn log_position(key: &Key) -> Option<LogPosition> {
    match key.space {
        Space::Log => keys::history_position(&key.bytes).or_else(|| LogPosition::decode(&key.bytes)),
        _ => None,
    }
}
