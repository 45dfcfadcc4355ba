//! A new range that is being filled: a partition that is not in use yet, and the rows that wait for the next commit to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bolide_model::epk::Epk;
use bolide_model::{Error, ErrorKind, Lsn, Result, UnixMillis};
use bolide_storage::{Batch, CommitToken, Engine, Head, Key, Outcome, Put, ReadRequest, Resolved, Space};
use bytes::Bytes;

use crate::format::keys;
use crate::format::record::LogEntry;
use crate::partition::state::{Amount, PartitionState};
use crate::partition::write_batch::refused;
use crate::partition::{Placement, engine_error};

/// Maximum number of rows and of bytes of one commit, so that other writes do not wait long for it to be synced. The last row may exceed the bytes.
const COMMIT_ROWS: usize = 500;
const COMMIT_BYTES: usize = 256 * 1024;

/// Maximum number of attempts of a commit that the engine lost or refused as stale.
const COMMIT_TRIES: usize = 5;

/// See the module.
pub(super) struct Child {
    engine: Arc<dyn Engine>,
    pub placement: Placement,
    head: Head,
    /// Number of commits. Each needs a token of its own.
    commits: u64,
    /// Rows that the next commit writes; `None` for a row that it removes.
    waiting: BTreeMap<Key, Option<Bytes>>,
    waiting_bytes: usize,
    /// Number and bytes of the stored items, counted by their entries of the log: each item has one.
    pub stored: Amount,
}

impl Child {
    /// Creates the partition.
    pub async fn create(engine: Arc<dyn Engine>, placement: Placement, now: UnixMillis) -> Result<Child> {
        let head = Head::first(now);
        // Ids are never used twice, so the partition is empty.
        engine.create(placement.id, head).await.map_err(engine_error)?;
        Ok(Child {
            engine,
            placement,
            head,
            commits: 0,
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            stored: Amount::default(),
        })
    }

    /// Tells whether a key that begins with an effective partition key belongs to this range.
    pub fn contains(&self, key: &[u8]) -> bool {
        let range = &self.placement.epk;
        key >= range.min.as_bytes() && (range.max == Epk::end() || key < range.max.as_bytes())
    }

    /// Sets the value of a key, or removes the key. `before` is the present value, if the key is an entry of the log.
    pub fn set(&mut self, key: Key, before: Option<&Bytes>, value: Option<Bytes>) -> Result<()> {
        if is_log_entry(&key) {
            let size = |entry: &Bytes| LogEntry::decode(entry).map(|entry| entry.size as usize);
            if let Some(before) = before {
                self.stored.remove(size(before)?);
            }
            if let Some(value) = &value {
                self.stored.add(size(value)?);
            }
        }
        self.waiting_bytes += key.bytes.len() + value.as_ref().map_or(0, Bytes::len);
        self.waiting.insert(key, value);
        Ok(())
    }

    /// Returns the values of those keys that are entries of the log.
    pub async fn log_entries(&self, keys: &[Key]) -> Result<BTreeMap<Key, Bytes>> {
        let mut entries = BTreeMap::new();
        let mut gets = Vec::new();
        for key in keys.iter().filter(|key| is_log_entry(key)) {
            match self.waiting.get(key) {
                Some(Some(value)) => drop(entries.insert(key.clone(), value.clone())),
                Some(None) => {}
                None => gets.push(key.clone()),
            }
        }
        if !gets.is_empty() {
            let request = ReadRequest {
                gets: gets.clone(),
                ..ReadRequest::default()
            };
            let reply = self
                .engine
                .read(self.placement.id, request)
                .await
                .map_err(engine_error)?;
            let found = gets.into_iter().zip(reply.gets);
            entries.extend(found.filter_map(|(key, value)| Some((key, value?))));
        }
        Ok(entries)
    }

    /// Commits the waiting rows if they fill a commit.
    pub async fn commit_if_full(&mut self) -> Result<()> {
        if self.waiting.len() < COMMIT_ROWS && self.waiting_bytes < COMMIT_BYTES {
            return Ok(());
        }
        self.commit(self.head.lsn.next(), self.head.stamp).await
    }

    /// Commits the waiting rows, if there are any.
    pub async fn flush(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.commit(self.head.lsn.next(), self.head.stamp).await
    }

    /// Commits the waiting rows and the counters. Afterwards the head is at least at `lsn` and `stamp`.
    pub async fn finish(&mut self, state: &PartitionState, lsn: Lsn, stamp: UnixMillis) -> Result<()> {
        self.waiting.insert(keys::state(), Some(state.encode()));
        self.commit(lsn.max(self.head.lsn.next()), stamp.max(self.head.stamp))
            .await
    }

    async fn commit(&mut self, next: Lsn, stamp: UnixMillis) -> Result<()> {
        let (mut puts, mut deletes) = (Vec::new(), Vec::new());
        for (key, value) in std::mem::take(&mut self.waiting) {
            match value {
                Some(value) => puts.push(Put { key, value }),
                None => deletes.push(key),
            }
        }
        self.waiting_bytes = 0;
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
                Outcome::Stale => {}
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

/// Tells whether a key is an entry of the log, and not of the history, which is stored after it.
fn is_log_entry(key: &Key) -> bool {
    key.space == Space::Log && key.bytes < keys::log_end()
}
