//! A new range that is being filled: a partition that nothing refers to yet, and the rows that wait for the next commit into it.
//!
//! Items are added and removed with their entries from the one list (`crate::format::entries`). An item may be added before the previous owner of the
//! same entry (the same id, say) is removed. So the removal of an item removes only the entries that still belong to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bolide_model::epk::Epk;
use bolide_model::{Error, ErrorKind, Lsn, Result, UnixMillis};
use bolide_storage::{Batch, CommitToken, Engine, Head, Key, Outcome, Put, ReadRequest, Resolved};
use bytes::Bytes;

use crate::format::entries;
use crate::format::keys;
use crate::format::record::Record;
use crate::index::{IndexKind, PropertyIndexes};
use crate::partition::refused;
use crate::partition::state::{Amount, PartitionState};
use crate::partition::text_counters::TextCounters;
use crate::partition::{Placement, engine_error};

/// Maximum number of rows and of bytes of one commit, so that other writes do not wait long for it to be synced. The last row may exceed the bytes.
const COMMIT_ROWS: usize = 500;
const COMMIT_BYTES: usize = 256 * 1024;

/// Maximum number of attempts of a commit that the engine lost or refused as stale.
const COMMIT_TRIES: usize = 5;

/// New values of keys; `None` removes a key.
type Rows = BTreeMap<Key, Option<Bytes>>;

/// See the module.
pub(super) struct Child {
    engine: Arc<dyn Engine>,
    /// The property indexes of which it has the entries.
    indexes: Arc<PropertyIndexes>,
    pub placement: Placement,
    head: Head,
    /// Number of commits. Each needs a token of its own.
    commits: u64,
    /// Rows that the next commits write and remove.
    waiting: Rows,
    waiting_bytes: usize,
    /// The items that the child holds.
    pub stored: Amount,
    /// The words of their texts, by the ids of full-text indexes.
    words: BTreeMap<u32, u64>,
}

impl Child {
    /// Creates the partition.
    pub async fn create(
        engine: Arc<dyn Engine>,
        indexes: Arc<PropertyIndexes>,
        placement: Placement,
        now: UnixMillis,
    ) -> Result<Child> {
        let head = Head::first(now);
        // Ids are never used twice, so the partition is empty.
        engine.create(placement.id, head).await.map_err(engine_error)?;
        Ok(Child {
            engine,
            indexes,
            placement,
            head,
            commits: 0,
            waiting: Rows::new(),
            waiting_bytes: 0,
            stored: Amount::default(),
            words: BTreeMap::new(),
        })
    }

    /// Returns the property indexes of which it has the entries.
    pub fn indexes(&self) -> &Arc<PropertyIndexes> {
        &self.indexes
    }

    /// Returns the words of the texts of all items in each full-text index.
    pub fn texts(&self) -> TextCounters {
        let indexes = self.indexes.list.iter();
        let texts = indexes.filter(|index| matches!(index.kind, IndexKind::FullText(_)));
        let words = texts.map(|index| (index.id, self.words.get(&index.id).copied().unwrap_or_default()));
        TextCounters::of_all(&words.collect::<Vec<_>>())
    }

    /// Tells whether a key that begins with an effective partition key belongs to this range.
    pub fn contains(&self, key: &[u8]) -> bool {
        let range = &self.placement.epk;
        key >= range.min.as_bytes() && (range.max == Epk::end() || key < range.max.as_bytes())
    }

    /// Adds an item that the child does not hold, with its entries.
    pub fn add_item(&mut self, key: Key, record: &Record) {
        self.stored.add(record.size());
        let indexes = self.indexes.clone();
        for entry in entries::of(&indexes, &key.bytes, record) {
            if let Some((index, words)) = entry.words() {
                *self.words.entry(index).or_default() += words;
            }
            let value = entry.value();
            self.set(entry.key, Some(value));
        }
        self.set(key, Some(record.bytes().clone()));
    }

    /// Removes the items with these keys, as far as the child holds them, with their entries.
    pub async fn remove_items(&mut self, keys: &[Key]) -> Result<()> {
        let mut left = keys;
        while !left.is_empty() {
            let values = self.values(left).await?;
            let (read, later) = left.split_at(values.len());
            let mut own = Vec::new();
            for (key, value) in read.iter().zip(values) {
                let Some(record) = value.map(Record::decode).transpose()? else {
                    continue;
                };
                for entry in entries::of(&self.indexes, &key.bytes, &record) {
                    if let Some((index, words)) = entry.words() {
                        *self.words.entry(index).or_default() -= words;
                    }
                    own.push((entry.key.clone(), entry.value()));
                }
                self.stored.remove(record.size());
                self.set(key.clone(), None);
            }
            self.remove_entries(own).await?;
            self.commit_if_full().await?;
            left = later;
        }
        Ok(())
    }

    async fn remove_entries(&mut self, own: Vec<(Key, Bytes)>) -> Result<()> {
        let keys: Vec<Key> = own.iter().map(|(key, _)| key.clone()).collect();
        let mut stored = Vec::with_capacity(keys.len());
        while stored.len() < keys.len() {
            stored.extend(self.values(&keys[stored.len()..]).await?);
        }
        for ((key, value), stored) in own.into_iter().zip(stored) {
            // Otherwise the entry belongs to another item now, which was added first.
            if stored == Some(value) {
                self.set(key, None);
            }
        }
        Ok(())
    }

    /// Sets the value of a key; `None` removes it.
    pub fn set(&mut self, key: Key, value: Option<Bytes>) {
        let key_bytes = key.bytes.len();
        let bytes = |value: &Option<Bytes>| key_bytes + value.as_ref().map_or(0, Bytes::len);
        self.waiting_bytes += bytes(&value);
        if let Some(before) = self.waiting.insert(key, value) {
            self.waiting_bytes -= bytes(&before);
        }
    }

    /// What the first of some keys have by now: all of them, or as many as one read gives.
    async fn values(&self, keys: &[Key]) -> Result<Vec<Option<Bytes>>> {
        let gets = keys.iter().filter(|key| !self.waiting.contains_key(key));
        let request = ReadRequest {
            gets: gets.cloned().collect(),
            max_bytes: COMMIT_BYTES,
            ..ReadRequest::default()
        };
        let mut stored = Vec::new().into_iter();
        if !request.gets.is_empty() {
            let reply = self.engine.read(self.placement.id, request).await;
            stored = reply.map_err(engine_error)?.gets.into_iter();
        }
        let value = |key| self.waiting.get(key).cloned().or_else(|| stored.next());
        Ok(keys.iter().map_while(value).collect())
    }

    /// Commits what waits while it is as much as one commit takes.
    pub async fn commit_if_full(&mut self) -> Result<()> {
        while self.waiting.len() >= COMMIT_ROWS || self.waiting_bytes >= COMMIT_BYTES {
            let rows = self.next_rows();
            self.commit(rows, self.head.lsn.next(), self.head.stamp).await?;
        }
        Ok(())
    }

    /// Commits the waiting rows, if there are any.
    pub async fn flush(&mut self) -> Result<()> {
        self.commit_if_full().await?;
        if self.waiting.is_empty() {
            return Ok(());
        }
        let rows = self.next_rows();
        self.commit(rows, self.head.lsn.next(), self.head.stamp).await
    }

    /// Takes as much of what waits as one commit takes.
    fn next_rows(&mut self) -> Rows {
        let (mut rows, mut bytes) = (0, 0);
        let is_behind = |(key, value): &(&Key, &Option<Bytes>)| {
            let is_full = rows >= COMMIT_ROWS || bytes >= COMMIT_BYTES;
            rows += 1;
            bytes += if is_full {
                0
            } else {
                key.bytes.len() + value.as_ref().map_or(0, Bytes::len)
            };
            is_full
        };
        let end = self.waiting.iter().find(is_behind).map(|(key, _)| key.clone());
        let later = end.map_or_else(Rows::new, |end| self.waiting.split_off(&end));
        self.waiting_bytes -= bytes;
        std::mem::replace(&mut self.waiting, later)
    }

    /// Commits the waiting rows and the counters. Afterwards the head is at least at `lsn` and `stamp`.
    pub async fn finish(&mut self, state: &PartitionState, lsn: Lsn, stamp: UnixMillis) -> Result<()> {
        self.commit_if_full().await?;
        let mut rows = self.next_rows();
        rows.insert(keys::state(), Some(state.encode()));
        self.commit(rows, lsn.max(self.head.lsn.next()), stamp.max(self.head.stamp))
            .await
    }

    async fn commit(&mut self, rows: Rows, next: Lsn, stamp: UnixMillis) -> Result<()> {
        let (mut puts, mut deletes) = (Vec::new(), Vec::new());
        for (key, value) in rows {
            match value {
                Some(value) => puts.push(Put { key, value }),
                None => deletes.push(key),
            }
        }
        for _ in 0..COMMIT_TRIES {
            self.commits += 1;
            let batch = Batch {
                base: self.head.lsn,
                next,
                stamp,
                token: CommitToken(u128::from(self.placement.id.0) << 64 | u128::from(self.commits)),
                puts: puts.clone(),
                deletes: deletes.clone(),
                edition: self.head.edition,
                new_keys: Vec::new(),
                may_block: false,
            };
            match self
                .engine
                .commit(self.placement.id, batch)
                .await
                .map_err(engine_error)?
            {
                Outcome::Done(head) => {
                    self.head = head;
                    return Ok(());
                }
                Outcome::Refused(why) => return Err(refused(why)),
                // Nobody else writes this partition, so its head has not changed.
                Outcome::Stale | Outcome::Exists => {}
                Outcome::Unknown(ticket) => {
                    let resolved = self
                        .engine
                        .resolve(self.placement.id, ticket)
                        .await
                        .map_err(engine_error)?;
                    if let Resolved::Done(head) = resolved {
                        self.head = head;
                        return Ok(());
                    }
                }
            }
        }
        Err(Error::new(
            ErrorKind::Unavailable,
            "the split could not be carried out; nothing has changed",
        ))
    }
}

#[cfg(test)]
mod tests;
