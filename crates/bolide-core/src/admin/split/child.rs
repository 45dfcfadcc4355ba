//! A new range on its way: a partition that nobody refers to yet, and the rows that wait for the next commit into it.

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

/// Rows and bytes of one commit; the last row may go beyond. Others wait for a commit of this size to be synced.
const COMMIT_ROWS: usize = 500;
const COMMIT_BYTES: usize = 256 * 1024;

/// How often a commit is tried that the engine lost, or took for stale.
const COMMIT_TRIES: usize = 5;

/// See the module.
pub(super) struct Child {
    engine: Arc<dyn Engine>,
    pub placement: Placement,
    head: Head,
    /// Counts commits: each needs a token of its own.
    commits: u64,
    /// What the next commit writes; `None`: what it removes.
    waiting: BTreeMap<Key, Option<Bytes>>,
    waiting_bytes: usize,
    /// What is stored, by the entries of the log: there is one for each item.
    pub stored: Amount,
}

impl Child {
    /// Creates the partition.
    pub async fn create(engine: Arc<dyn Engine>, placement: Placement, now: UnixMillis) -> Result<Child> {
        let head = Head::first(now);
        // Ids are never handed out twice, so nothing is there.
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

    /// Whether a key that begins with an effective partition key belongs here.
    pub fn contains(&self, key: &[u8]) -> bool {
        let range = &self.placement.epk;
        key >= range.min.as_bytes() && (range.max == Epk::end() || key < range.max.as_bytes())
    }

    /// Gives a key its value, or none. `before`: the value it has, where that is an entry of the log.
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

    /// The values of those keys that are entries of the log, by key.
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

    /// Commits what waits, if that is as much as one commit takes.
    pub async fn commit_if_full(&mut self) -> Result<()> {
        if self.waiting.len() < COMMIT_ROWS && self.waiting_bytes < COMMIT_BYTES {
            return Ok(());
        }
        self.commit(self.head.lsn.next(), self.head.stamp).await
    }

    /// Commits what waits, if anything.
    pub async fn flush(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.commit(self.head.lsn.next(), self.head.stamp).await
    }

    /// Commits what waits and the counters; the head is then not behind `lsn` and `stamp`.
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
                // Nobody else writes here: it stands where it stood.
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

/// Whether a key is of the log, and not of the history behind it.
fn is_log_entry(key: &Key) -> bool {
    key.space == Space::Log && key.bytes < keys::log_end()
}
