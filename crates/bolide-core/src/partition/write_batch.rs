//! A write batch: what a partition worker decides between one read and one commit.
//!
//! Transactions are decided in order. Each sees what was read from the engine, changed by those before it, and adds its own effects.
//! Whatever it needs and is not there yet is noted as missing; the worker then reads all that is missing at once and decides
//! the write batch again from the start. So a decision is a function of what was read, the partition's state and the time. It may be made any
//! number of times; what has an effect outside of the batch is noted ([`AfterCommit`]) and done once, after the commit. Builds with debug
//! assertions decide every write batch twice and compare.

use std::collections::{HashMap, HashSet};

use bolide_model::ttl::{Horizon, Settings};
use bolide_model::{Error, ErrorKind, Lsn, Result, UnixMillis, UnixSeconds};
use bolide_storage::{Key, Page, Put, Scan, Space};
use bytes::Bytes;

use super::after_commit::AfterCommit;
use super::loaded::ScanId;
pub(crate) use super::loaded::{Loaded, Missing};
use super::state::PartitionState;
use super::tombstones::TombstoneView;
use super::visibility::{Slot, StoredVersion, Visibility};
use crate::format::keys::{self, LogPosition};
use crate::format::record::Record;

/// Why a decision ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Something must be read first; decide again then.
    NeedsRead,
    /// The transaction is refused.
    Refused(Error),
    /// What takes too long for a worker, such as judging a condition, was to be done before the decision, and was not done for the version
    /// that is stored. Whoever asked does it and comes again, or gives up with this error.
    Unprepared(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Refused(error)
    }
}

/// What a step of a decision comes to.
pub(crate) type Decision<T> = std::result::Result<T, Stop>;

/// The draft of one commit.
pub(crate) struct WriteBatch<'a> {
    /// Server time of every verdict and every `_ts` of the write batch; not below the head's stamp (TTL-208).
    pub now: UnixMillis,
    /// The partition's counters as they will be after the commit.
    pub state: PartitionState,
    loaded: &'a Loaded,
    effects: HashMap<Key, Option<Bytes>>,
    /// What the transaction that is under way has changed in `effects`, and what was there before, if all of it may have to be taken back.
    undo: Option<Vec<(Key, Option<Effect>)>>,
    missing: Missing,
    lsn: Lsn,
    /// The number of writes so far of the transaction that is under way, if it has several.
    writes_of_batch: Option<u32>,
    /// What is to be done once the write batch is committed.
    pub after: AfterCommit,
}

/// The value that a key shall have; `None`: it shall be gone.
type Effect = Option<Bytes>;

/// A draft that is put aside between two reads.
#[derive(Debug)]
pub(crate) struct Suspended {
    now: UnixMillis,
    state: PartitionState,
    effects: HashMap<Key, Option<Bytes>>,
    lsn: Lsn,
    writes_of_batch: Option<u32>,
    after: AfterCommit,
}

impl Suspended {
    /// An empty draft whose writes are all one transaction.
    pub fn new(now: UnixMillis, lsn: Lsn, state: PartitionState) -> Suspended {
        Suspended {
            now,
            state,
            effects: HashMap::new(),
            lsn,
            writes_of_batch: Some(0),
            after: AfterCommit::default(),
        }
    }

    /// The draft, over what was read by now.
    pub fn resume(self, loaded: &Loaded) -> WriteBatch<'_> {
        WriteBatch {
            now: self.now,
            state: self.state,
            loaded,
            effects: self.effects,
            undo: None,
            missing: Missing::default(),
            lsn: self.lsn,
            writes_of_batch: self.writes_of_batch,
            after: self.after,
        }
    }

    /// The newest log sequence number, writes of the draft included.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// The partition's counters as the draft leaves them.
    pub fn state(&self) -> &PartitionState {
        &self.state
    }

    /// What the draft does to the keys of a space.
    pub fn effects_in(&self, space: Space) -> impl Iterator<Item = (&Bytes, Option<&Bytes>)> {
        self.effects
            .iter()
            .filter(move |(key, _)| key.space == space)
            .map(|(key, value)| (&key.bytes, value.as_ref()))
    }
}

impl<'a> WriteBatch<'a> {
    /// A write batch at server time `now` over the head `lsn`.
    pub fn new(now: UnixMillis, lsn: Lsn, state: PartitionState, loaded: &'a Loaded) -> WriteBatch<'a> {
        WriteBatch {
            now,
            state,
            loaded,
            effects: HashMap::new(),
            undo: None,
            missing: Missing::default(),
            lsn,
            writes_of_batch: None,
            after: AfterCommit::default(),
        }
    }

    /// The write batch's second.
    pub fn seconds(&self) -> UnixSeconds {
        self.now.seconds()
    }

    /// The horizon of the write batch under a container's settings.
    pub fn horizon(&self, settings: &Settings) -> Horizon {
        settings.horizon(self.seconds())
    }

    /// What decides which stored versions exist for the write batch's transactions.
    pub fn visibility(&self, settings: &Settings) -> Visibility {
        Visibility::new(self.horizon(settings), TombstoneView::of(&self.state.tombstones))
    }

    /// What is stored under an item's key, as transactions before this one leave it.
    pub fn slot(&mut self, key: Key, settings: &Settings) -> Decision<Slot> {
        let Some(record) = self.get_raw(&key)?.map(Record::decode).transpose()? else {
            return Ok(Slot::Free);
        };
        let horizon = self.horizon(settings);
        Ok(Slot::of(StoredVersion { key, record }, horizon, &self.state.tombstones))
    }

    /// The entry of an index or of the catalog under a key, as transactions before this one leave it.
    pub fn entry(&mut self, key: &Key) -> Decision<Option<Bytes>> {
        debug_assert!(key.space != Space::Item, "items have slots");
        self.get_raw(key)
    }

    /// As [`WriteBatch::entry`], of several keys, so that all that are missing are read at once.
    pub fn entries(&mut self, keys: &[Key]) -> Decision<Vec<Option<Bytes>>> {
        debug_assert!(keys.iter().all(|key| key.space != Space::Item), "items have slots");
        self.get_all_raw(keys)
    }

    /// The value of a key as it is stored, ghosts included, as transactions before this one leave it.
    pub fn get_raw(&mut self, key: &Key) -> Decision<Option<Bytes>> {
        if let Some(value) = self.effects.get(key) {
            return Ok(value.clone());
        }
        match self.loaded.gets.get(key) {
            Some(value) => Ok(value.clone()),
            None => {
                self.loaded.check()?;
                self.missing.gets.push(key.clone());
                Err(Stop::NeedsRead)
            }
        }
    }

    /// Reads what will be needed at once, as far as that is not much: the rest is read when it is needed.
    pub fn foresee(&mut self, keys: &[Key]) -> Decision<()> {
        if self.loaded.is_full() {
            return Ok(());
        }
        self.get_all_raw(keys).map(drop)
    }

    /// What is stored under a key, if that was read.
    pub fn loaded(&self, key: &Key) -> Option<Bytes> {
        self.loaded.gets.get(key).cloned().flatten()
    }

    /// As [`WriteBatch::get_raw`], of several keys, so that all that are missing are read at once.
    pub fn get_all_raw(&mut self, keys: &[Key]) -> Decision<Vec<Option<Bytes>>> {
        let mut values = Vec::with_capacity(keys.len());
        let mut complete = true;
        for key in keys {
            match self.get_raw(key) {
                Ok(value) => values.push(value),
                Err(Stop::NeedsRead) => complete = false,
                Err(refused) => return Err(refused),
            }
        }
        if complete { Ok(values) } else { Err(Stop::NeedsRead) }
    }

    /// The rows of several ranges as they are stored, ghosts included and without the effects of other transactions: only the first transaction of a write batch
    /// may scan.
    pub fn scan_raw(&mut self, scans: &[Scan]) -> Decision<Vec<Page>> {
        debug_assert!(
            self.effects.is_empty(),
            "a scan does not see the effects of transactions before it"
        );
        let mut pages = Vec::with_capacity(scans.len());
        let mut complete = true;
        for scan in scans {
            match self.loaded.scans.get(&ScanId::of(scan)) {
                Some(page) => pages.push(page.clone()),
                None => {
                    self.missing.scans.push(scan.clone());
                    complete = false;
                }
            }
        }
        if complete { Ok(pages) } else { Err(Stop::NeedsRead) }
    }

    /// Begins the next write of the log and returns its LSN: one per committed transaction (TTL-208). To be called when nothing
    /// can stop the decision any more.
    pub fn next_lsn(&mut self) -> Lsn {
        self.next_version().lsn
    }

    /// The newest log sequence number, writes of this write batch included.
    pub fn head(&self) -> Lsn {
        self.lsn
    }

    /// As [`WriteBatch::next_lsn`], with the write's place in its transaction.
    pub fn next_version(&mut self) -> LogPosition {
        let seq = self.writes_of_batch.unwrap_or(0);
        if seq == 0 {
            self.lsn = self.lsn.next();
        }
        if let Some(writes) = &mut self.writes_of_batch {
            *writes += 1;
        }
        LogPosition { lsn: self.lsn, seq }
    }

    /// Decides several writes as one transaction: they share one LSN, and all of their effects stay or none. Whatever stops `decide`
    /// takes back what it had added.
    pub fn batch<T>(&mut self, decide: impl FnOnce(&mut WriteBatch<'a>) -> Decision<T>) -> Decision<T> {
        let (state, lsn, after) = (self.state.clone(), self.lsn, self.after);
        self.undo = Some(Vec::new());
        self.writes_of_batch = Some(0);
        let decided = decide(self);
        self.writes_of_batch = None;
        let undo = self.undo.take().unwrap_or_default();
        if decided.is_err() {
            (self.state, self.lsn, self.after) = (state, lsn, after);
            for (key, before) in undo.into_iter().rev() {
                match before {
                    Some(effect) => self.effects.insert(key, effect),
                    None => self.effects.remove(&key),
                };
            }
        }
        decided
    }

    /// Puts a draft aside, for what it needs to be read.
    pub fn suspend(self) -> Suspended {
        Suspended {
            now: self.now,
            state: self.state,
            effects: self.effects,
            lsn: self.lsn,
            writes_of_batch: self.writes_of_batch,
            after: self.after,
        }
    }

    pub fn put(&mut self, key: Key, value: Bytes) {
        self.set(key, Some(value));
    }

    pub fn delete(&mut self, key: Key) {
        self.set(key, None);
    }

    fn set(&mut self, key: Key, effect: Effect) {
        match &mut self.undo {
            None => {
                self.effects.insert(key, effect);
            }
            Some(undo) => {
                let before = self.effects.insert(key.clone(), effect);
                undo.push((key, before));
            }
        }
    }

    /// Whether transactions before have changed anything.
    pub fn has_effects(&self) -> bool {
        !self.effects.is_empty()
    }

    /// What is still to be read before the write batch is decided, each key once.
    pub fn missing(&mut self) -> Missing {
        let mut missing = std::mem::take(&mut self.missing);
        let mut seen = HashSet::with_capacity(missing.gets.len());
        missing.gets.retain(|key| seen.insert(key.clone()));
        missing
    }

    /// How much was noted so far of what is still to be read.
    pub fn missing_so_far(&self) -> usize {
        self.missing.gets.len() + self.missing.scans.len()
    }

    /// Whether another write batch that was decided on the same rows has the same result.
    #[cfg(debug_assertions)]
    pub fn is_like(&self, other: &WriteBatch<'_>) -> bool {
        self.effects == other.effects && self.state == other.state && self.lsn == other.lsn && self.after == other.after
    }

    /// The result of the write batch over the head `base` and the state `before` it.
    pub fn into_decided(mut self, base: Lsn, before: &PartitionState) -> Decided {
        let (stamp, after) = (self.now, self.after);
        if self.lsn == base && self.effects.is_empty() {
            return Decided {
                changes: None,
                state: self.state,
                stamp,
                after,
            };
        }
        let row = self.state.encode();
        if row != before.encode() {
            self.effects.insert(keys::state(), Some(row));
        }
        let mut changes = Changes {
            next: self.lsn.max(base.next()),
            puts: Vec::new(),
            deletes: Vec::new(),
        };
        for (key, value) in self.effects {
            match value {
                Some(value) => changes.puts.push(Put { key, value }),
                None => changes.deletes.push(key),
            }
        }
        Decided {
            changes: Some(changes),
            state: self.state,
            stamp,
            after,
        }
    }
}

/// The result of a write batch.
#[derive(Debug)]
pub(crate) struct Decided {
    /// What is to be committed; `None` if nothing changes.
    pub changes: Option<Changes>,
    /// The partition's state after the commit.
    pub state: PartitionState,
    /// Server time of the write batch, and the commit's stamp.
    pub stamp: UnixMillis,
    /// What is to be done after the commit.
    pub after: AfterCommit,
}

/// What a write batch writes.
#[derive(Debug, Clone)]
pub(crate) struct Changes {
    pub next: Lsn,
    pub puts: Vec<Put>,
    pub deletes: Vec<Key>,
}

/// What the worker decides: sees a write batch, adds effects, and is told how the commit ended.
pub(crate) trait Transaction: Send {
    /// Looks at what is no row of the partition and decides with them, such as the credit of the purge. Called before decisions at another
    /// server time.
    fn observe(&mut self, _now: UnixSeconds) {}

    /// Decides on what was read. Runs again from the start after more was read or the commit was stale; until it returns anything
    /// but [`Stop::NeedsRead`], it must not have added effects.
    ///
    /// # Errors
    /// `Err(())` if something is missing.
    fn decide(&mut self, batch: &mut WriteBatch<'_>) -> std::result::Result<(), ()>;

    /// The commit ended: `Ok` with the head after it, or nothing happened and this is why.
    fn end(self: Box<Self>, ended: &Result<Lsn>);
}

/// The error for an engine's refusal.
pub(crate) fn refused(why: String) -> Error {
    Error::new(ErrorKind::StorageFull, why)
}

#[cfg(test)]
mod tests;
