//! Rows that were read, as they are at the newest commit that this process has seen.
//!
//! ```text
//!   read ──▶ newest record, and the keys that are not cached ──┬──▶ the record of the cached rows: nothing has changed them
//!                                                              └──▶ another one: all keys once more
//! ```
//!
//! Each read asks the server for the newest record, so it sees what others have committed before it began; only rows that nobody has changed are not sent
//! again. A commit of this process takes the rows along to its own record. After one of another process the rows of the partition are not used any more. Where others
//! commit between most reads, few reads rely on the cache.

use std::collections::HashMap;

use bolide_storage::{Batch, EngineError, Key, PartitionId, ReadRequest, ReadResponse};
use bytes::Bytes;
use lru::LruCache;
use parking_lot::Mutex;

use crate::engine::Inner;
use crate::rows::CommitRecord;

/// Bytes that a row takes in addition to its key and its value.
const OVERHEAD: usize = 160;
/// A row larger than this part of the cache is not kept: it would displace many.
const LARGEST_PART: usize = 16;
/// Reads that do not use the cache after one for which it was out of date: at most.
const MOST_CAUTION: u32 = 63;

/// Rows of all partitions, those that were not read for longest dropped first.
pub(crate) struct RowCache {
    limit: usize,
    content: Mutex<Content>,
}

struct Content {
    rows: LruCache<(PartitionId, Key), Row>,
    /// Bytes of all rows.
    bytes: usize,
    partitions: HashMap<PartitionId, State>,
    generations: u64,
}

struct Row {
    /// `None`: there is no such row.
    value: Option<Bytes>,
    bytes: usize,
    generation: u64,
}

/// The rows of a partition.
#[derive(Default)]
struct State {
    /// The commit at which the rows of this generation are as they are here; those of other generations are out of date.
    at: Option<(CommitRecord, u64)>,
    /// Reads that do not use the cache yet.
    skipped: u32,
    /// How many they are after the next failure.
    caution: u32,
}

/// What is known of some keys.
struct Cached {
    record: CommitRecord,
    /// In the order of the keys; `None`: not known.
    values: Vec<Option<Option<Bytes>>>,
}

impl RowCache {
    /// A cache of at most so many bytes.
    pub(crate) fn new(limit: usize) -> RowCache {
        let content = Content {
            rows: LruCache::unbounded(),
            bytes: 0,
            partitions: HashMap::new(),
            generations: 0,
        };
        RowCache {
            limit,
            content: Mutex::new(content),
        }
    }

    /// What is known of the keys, if anything is.
    fn find(&self, partition: PartitionId, keys: &[Key]) -> Option<Cached> {
        let mut content = self.content.lock();
        let Content { rows, partitions, .. } = &mut *content;
        let state = partitions.get_mut(&partition)?;
        if state.skipped > 0 {
            state.skipped -= 1;
            return None;
        }
        let (record, generation) = state.at?;
        let values: Vec<_> = keys
            .iter()
            .map(|key| {
                let row = rows.get(&(partition, key.clone()))?;
                (row.generation == generation).then(|| row.value.clone())
            })
            .collect();
        values.iter().any(Option::is_some).then_some(Cached { record, values })
    }

    /// Notes whether the rows of a partition were as the server has them.
    fn judge(&self, partition: PartitionId, is_right: bool) {
        let mut content = self.content.lock();
        let state = content.partitions.entry(partition).or_default();
        if is_right {
            state.caution = 0;
            return;
        }
        state.at = None;
        state.skipped = state.caution;
        state.caution = (state.caution * 2 + 1).min(MOST_CAUTION);
    }

    /// Notes rows that were read at a record.
    fn note(&self, partition: PartitionId, record: CommitRecord, keys: &[Key], values: &[Option<Bytes>]) {
        if self.limit == 0 {
            return;
        }
        let mut content = self.content.lock();
        let Some(generation) = content.generation_at(partition, record) else {
            return;
        };
        for (key, value) in keys.iter().zip(values) {
            let bytes = size(key, value.as_ref());
            if bytes > self.limit / LARGEST_PART {
                continue;
            }
            // The one that was asked with may be a part of something larger.
            let key = Key::new(key.space, Bytes::copy_from_slice(&key.bytes));
            let row = Row {
                value: value.clone(),
                bytes,
                generation,
            };
            content.bytes += bytes;
            if let Some((_, old)) = content.rows.push((partition, key), row) {
                content.bytes -= old.bytes;
            }
        }
        content.shrink(self.limit);
    }

    /// Notes a commit of this process that has followed `base`.
    pub(crate) fn committed(&self, partition: PartitionId, base: CommitRecord, batch: &Batch) {
        let mut content = self.content.lock();
        let Content {
            rows,
            bytes,
            partitions,
            ..
        } = &mut *content;
        let Some(state) = partitions.get_mut(&partition) else {
            return;
        };
        let Some((record, generation)) = state.at else { return };
        let new = CommitRecord::of(batch);
        if record != base {
            // Another process has committed between, or after.
            if record.age() < new.age() {
                state.at = None;
            }
            return;
        }
        state.at = Some((new, generation));
        let puts = batch.puts.iter().map(|put| (&put.key, Some(&put.value)));
        for (key, value) in puts.chain(batch.deletes.iter().map(|key| (key, None))) {
            let name = (partition, key.clone());
            let Some(row) = rows.peek_mut(&name) else { continue };
            *bytes -= row.bytes;
            row.bytes = size(key, value);
            *bytes += row.bytes;
            // A copy, because the value may be a part of something larger.
            row.value = value.map(|value| Bytes::copy_from_slice(value));
            if row.bytes > self.limit / LARGEST_PART {
                *bytes -= row.bytes;
                rows.pop(&name);
            }
        }
        content.shrink(self.limit);
    }

    /// The partition is gone.
    pub(crate) fn forget(&self, partition: PartitionId) {
        self.content.lock().partitions.remove(&partition);
    }
}

impl Content {
    /// The generation of rows that were read at a record. `None`: they are not to be kept.
    fn generation_at(&mut self, partition: PartitionId, record: CommitRecord) -> Option<u64> {
        let state = self.partitions.entry(partition).or_default();
        if state.skipped > 0 {
            return None;
        }
        match state.at {
            Some((known, generation)) if known == record => return Some(generation),
            // An answer that was overtaken.
            Some((known, _)) if known.age() > record.age() => return None,
            _ => {}
        }
        self.generations += 1;
        state.at = Some((record, self.generations));
        Some(self.generations)
    }

    fn shrink(&mut self, limit: usize) {
        while self.bytes > limit {
            let Some((_, dropped)) = self.rows.pop_lru() else {
                return;
            };
            self.bytes -= dropped.bytes;
        }
    }
}

/// Bytes that a row takes.
fn size(key: &Key, value: Option<&Bytes>) -> usize {
    OVERHEAD + key.bytes.len() + value.map_or(0, Bytes::len)
}

impl Inner {
    /// Reads keys without a limit; those that are cached are not sent again, unless they may have changed.
    pub(crate) async fn read_cached(
        &self,
        partition: PartitionId,
        request: &ReadRequest,
    ) -> Result<ReadResponse, EngineError> {
        if let Some(cached) = self.row_cache.find(partition, &request.gets) {
            let keys = request.gets.iter().zip(&cached.values);
            let missing: Vec<Key> = keys
                .filter(|(_, value)| value.is_none())
                .map(|(key, _)| key.clone())
                .collect();
            let missing = ReadRequest::of_keys(missing);
            let found = self.find_now(partition, &missing).await?;
            let is_right = found.record == cached.record;
            self.row_cache.judge(partition, is_right);
            if is_right {
                self.row_cache.note(partition, found.record, &missing.gets, &found.gets);
                let mut answer = found.into_response();
                let mut read = std::mem::take(&mut answer.gets).into_iter();
                let values = cached.values.into_iter();
                answer.gets = values.map(|value| value.or_else(|| read.next()).flatten()).collect();
                return Ok(answer);
            }
        }
        let found = self.find_now(partition, request).await?;
        self.row_cache.note(partition, found.record, &request.gets, &found.gets);
        Ok(found.into_response())
    }
}

#[cfg(test)]
mod tests;
