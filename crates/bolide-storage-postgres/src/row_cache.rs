//! Rows that were read, as they are at the newest commit that this process has seen.
//!
//! ```text
//!   read ──▶ newest record, and the keys that are not cached ──┬──▶ the record of the cached rows: nothing has changed them
//!                                                              └──▶ another one: all keys once more
//! ```
//!
//! Each read asks the server for the newest record, so it sees what others have committed before it began; only rows that nobody has changed are not sent
//! again. A commit of this process takes the rows along to its own record. After one of another process the rows of the partition are not used any more. Where others
//! commit between most reads, few reads rely on the cache: each time that it was out of date costs a second statement.

use std::collections::HashMap;

use bolide_storage::{Batch, EngineError, Key, PartitionId, ReadRequest, ReadResponse};
use bytes::Bytes;
use lru::LruCache;
use parking_lot::Mutex;

use crate::engine::Inner;
use crate::reads::Found;
use crate::rows::CommitRecord;

/// Bytes that a row takes in addition to its key and its value: about 130 for itself, the rest for its place in the map and what allocations are rounded up by.
const OVERHEAD: usize = 224;
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
    /// The record of a commit of this process that is under way, whose rows will be taken along.
    expected: Option<CommitRecord>,
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

    /// What is known of the keys of a read, if anything is.
    fn find(&self, partition: PartitionId, keys: &[Key]) -> Option<Cached> {
        let mut content = self.content.lock();
        let state = content.partitions.get_mut(&partition)?;
        if state.skipped > 0 {
            state.skipped -= 1;
            return None;
        }
        content.find(partition, keys)
    }

    /// Notes rows that were read at a record.
    fn note(&self, partition: PartitionId, answer: &Answer<'_>) {
        self.content.lock().note(self.limit, partition, answer);
    }

    /// The values of all keys, out of what was cached and what the server has answered for the others. `None`: what was cached is out of date.
    fn complete(
        &self,
        partition: PartitionId,
        keys: &[Key],
        cached: Cached,
        answer: &Answer<'_>,
    ) -> Option<Vec<Option<Bytes>>> {
        let mut content = self.content.lock();
        content.judge(partition, cached.record, answer.record);
        content.note(self.limit, partition, answer);
        if cached.record == answer.record {
            drop(content);
            let mut answered = answer.values.iter().cloned();
            let values = cached.values.into_iter();
            return Some(
                values
                    .map(|value| value.or_else(|| answered.next()).flatten())
                    .collect(),
            );
        }
        // A commit of this process may have taken the rows along meanwhile.
        let now = content.find(partition, keys);
        let now = now.filter(|now| now.record == answer.record)?;
        now.values.into_iter().collect()
    }

    /// Notes that a commit of this process begins, until the guard is dropped.
    pub(crate) fn expect(&self, batches: &[(PartitionId, Batch)]) -> Expected<'_> {
        for (partition, batch) in batches {
            self.set_expected(*partition, Some(CommitRecord::of(batch)));
        }
        Expected {
            cache: self,
            partitions: batches.iter().map(|(partition, _)| *partition).collect(),
        }
    }

    fn set_expected(&self, partition: PartitionId, record: Option<CommitRecord>) {
        if let Some(state) = self.content.lock().partitions.get_mut(&partition) {
            state.expected = record;
        }
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
        let largest = self.limit / LARGEST_PART;
        let puts = batch.puts.iter().map(|put| (&put.key, Some(&put.value)));
        for (key, value) in puts.chain(batch.deletes.iter().map(|key| (key, None))) {
            let name = (partition, key.clone());
            let Some(row) = rows.peek_mut(&name) else { continue };
            *bytes -= row.bytes;
            row.bytes = size(key, value);
            if row.bytes > largest {
                rows.pop(&name);
                continue;
            }
            *bytes += row.bytes;
            // A copy, because the value may be a part of something larger.
            row.value = value.map(|value| Bytes::copy_from_slice(value));
        }
        content.shrink(self.limit);
    }

    /// The partition is gone.
    pub(crate) fn forget(&self, partition: PartitionId) {
        self.content.lock().partitions.remove(&partition);
    }
}

impl Content {
    fn find(&mut self, partition: PartitionId, keys: &[Key]) -> Option<Cached> {
        let rows = &mut self.rows;
        let state = self.partitions.get(&partition).filter(|state| state.skipped == 0)?;
        let (record, generation) = state.at?;
        let values: Vec<_> = keys
            .iter()
            .map(|key| {
                let name = (partition, key.clone());
                // Those of other generations are to be dropped soon.
                let value = rows
                    .peek(&name)
                    .filter(|row| row.generation == generation)?
                    .value
                    .clone();
                rows.promote(&name);
                Some(value)
            })
            .collect();
        values.iter().any(Option::is_some).then_some(Cached { record, values })
    }

    /// Notes that the rows of a partition, as they were at one record, were to be used when the server's newest record was another one, or the same.
    fn judge(&mut self, partition: PartitionId, cached: CommitRecord, newest: CommitRecord) {
        let Some(state) = self.partitions.get_mut(&partition) else {
            return;
        };
        if cached == newest {
            state.caution /= 2;
        } else if state.at.is_some_and(|(at, _)| at == cached) && state.expected != Some(newest) {
            // Another process has committed. Other reads may have found that, too.
            state.at = None;
            state.skipped = state.caution;
            state.caution = (state.caution * 2 + 1).min(MOST_CAUTION);
        }
    }

    fn note(&mut self, limit: usize, partition: PartitionId, answer: &Answer<'_>) {
        if limit == 0 {
            return;
        }
        let Some(generation) = self.generation_at(partition, answer.record) else {
            return;
        };
        for (key, value) in answer.keys.iter().zip(answer.values) {
            let bytes = size(key, value.as_ref());
            if bytes > limit / LARGEST_PART {
                continue;
            }
            // The one that was asked with may be a part of something larger.
            let key = Key::new(key.space, Bytes::copy_from_slice(&key.bytes));
            let row = Row {
                value: value.clone(),
                bytes,
                generation,
            };
            self.bytes += bytes;
            if let Some((_, old)) = self.rows.push((partition, key), row) {
                self.bytes -= old.bytes;
            }
        }
        self.shrink(limit);
    }

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
            // The rows that are known will be taken along to this record.
            Some(_) if state.expected == Some(record) => return None,
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

impl Cached {
    /// The keys that are not known.
    fn missing(&self, keys: &[Key]) -> Vec<Key> {
        let keys = keys.iter().zip(&self.values);
        keys.filter(|(_, value)| value.is_none())
            .map(|(key, _)| key.clone())
            .collect()
    }
}

/// What the server has answered to a question for some keys, with the newest record.
struct Answer<'a> {
    record: CommitRecord,
    keys: &'a [Key],
    values: &'a [Option<Bytes>],
}

impl<'a> Answer<'a> {
    fn of(keys: &'a [Key], found: &'a Found) -> Answer<'a> {
        Answer {
            record: found.record,
            keys,
            values: &found.gets,
        }
    }
}

/// A commit that is under way; see [`RowCache::expect`].
pub(crate) struct Expected<'c> {
    cache: &'c RowCache,
    partitions: Vec<PartitionId>,
}

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        for partition in &self.partitions {
            self.cache.set_expected(*partition, None);
        }
    }
}

impl Inner {
    /// Reads keys without a limit; those that are cached are not sent again, unless they may have changed.
    pub(crate) async fn read_cached(
        &self,
        partition: PartitionId,
        request: &ReadRequest,
    ) -> Result<ReadResponse, EngineError> {
        let keys = &request.gets;
        if let Some(cached) = self.row_cache.find(partition, keys) {
            let missing = ReadRequest::of_keys(cached.missing(keys));
            let found = self.find_now(partition, &missing).await?;
            let answer = Answer::of(&missing.gets, &found);
            if let Some(gets) = self.row_cache.complete(partition, keys, cached, &answer) {
                return Ok(ReadResponse {
                    gets,
                    ..found.into_response()
                });
            }
        }
        let found = self.find_now(partition, request).await?;
        self.row_cache.note(partition, &Answer::of(keys, &found));
        Ok(found.into_response())
    }
}

#[cfg(test)]
mod tests;
