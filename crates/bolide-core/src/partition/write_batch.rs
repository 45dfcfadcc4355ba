//! A write batch: the transactions that a partition worker decides together and commits at once.
//!
//! Transactions are decided in order. Each sees the rows that were read from the engine, changed by the transactions before it, and adds its own
//! effects. A row that it needs and that was not read yet is noted as missing; the worker then reads all missing rows at once and decides the write
//! batch again from the start. So a decision is a function of the rows that were read, the partition's state and the time. It may be made any number
//! of times; effects outside of the write batch are noted in [`AfterCommit`] and applied once, after the commit. Builds with debug assertions decide
//! every write batch twice and compare the results.
//!
//! Where the engine can check it with the commit, an entry that a create puts is taken to be new without being read ([`WriteBatch::new_entry`]). If it is
//! there, the commit changes nothing, and the write batch is decided on what is stored.

mod entries;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use bolide_model::time::CommitTime;
use bolide_model::ttl::{Horizon, Settings};
use bolide_model::{Error, Lsn, Reason, UnixMillis, UnixSeconds};
use bolide_storage::{Key, Page, Put, Scan, Space};
use bytes::Bytes;

use super::after_commit::AfterCommit;
use super::loaded::ScanId;
pub(crate) use super::loaded::{Loaded, Missing};
use super::state::PartitionState;
use super::text_changes::{TextChange, TextChanges};
use super::tombstones::TombstoneView;
use super::visibility::{Slot, StoredVersion, Visibility, ends_in};
use crate::format::keys::{self, LogPosition};
use crate::format::record::Record;

/// Why a decision ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A row must be read before the decision can be made.
    NeedsRead,
    /// The transaction is refused.
    Refused(Error),
    /// A step that takes too long for a worker, such as the evaluation of a condition, has to be done before the decision, but it was not done for
    /// the version that is stored now. The caller does that step and queues the transaction again, or gives up with this error.
    Unprepared(Error),
    /// A version that is about to end decides it, on a store that other servers read: they could call it gone before the commit is visible. To be decided
    /// again after this time, when it has ended.
    EndsSoon(Duration),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Refused(error)
    }
}

impl From<Reason> for Stop {
    fn from(reason: Reason) -> Stop {
        Stop::Refused(reason.into())
    }
}

/// The result of one step of a decision.
pub(crate) type Decision<T> = Result<T, Stop>;

/// The draft of one commit.
pub(crate) struct WriteBatch<'a> {
    /// Server time of the write batch: it decides what has expired and is the `_ts` of every item written. Not below the head's stamp (TTL-208).
    pub now: UnixMillis,
    /// The commit's place in the order of all commits.
    pub time: CommitTime,
    /// The partition's counters as they will be after the commit.
    pub state: PartitionState,
    /// Whether versions that are about to end are waited out: [`Stop::EndsSoon`].
    pub(super) waits_out: bool,
    /// The entries that are taken to be new; `None`: all are read.
    new_entries: Option<Vec<Key>>,
    /// Rows of items under numbers that no item had.
    new_items: Vec<Key>,
    loaded: &'a Loaded,
    effects: HashMap<Key, Option<Bytes>>,
    /// The changes of the current transaction to `effects`, each with the previous effect, if the transaction may have to be undone.
    undo: Option<Vec<(Key, Option<Effect>)>>,
    missing: Missing,
    lsn: Lsn,
    /// Number of writes so far of the current transaction, if it may have several.
    writes_of_batch: Option<u32>,
    /// What is to be done after the commit.
    pub after: AfterCommit,
    /// The texts that it stores and removes.
    pub texts: TextChanges,
}

/// The new value of a key; `None` deletes it.
type Effect = Option<Bytes>;

/// The draft of a write batch while rows are being read for it.
#[derive(Debug)]
pub(crate) struct Suspended {
    now: UnixMillis,
    time: CommitTime,
    state: PartitionState,
    waits_out: bool,
    effects: HashMap<Key, Option<Bytes>>,
    lsn: Lsn,
    writes_of_batch: Option<u32>,
    after: AfterCommit,
    texts: TextChanges,
}

impl Suspended {
    /// Returns an empty draft all of whose writes belong to one transaction.
    pub fn new(now: UnixMillis, lsn: Lsn, state: PartitionState) -> Suspended {
        Suspended {
            now,
            time: CommitTime::default(),
            state,
            waits_out: false,
            effects: HashMap::new(),
            lsn,
            writes_of_batch: Some(0),
            after: AfterCommit::default(),
            texts: TextChanges::default(),
        }
    }

    /// Gives the draft its place in the order of all commits.
    #[must_use]
    pub fn at(self, time: CommitTime) -> Suspended {
        Suspended { time, ..self }
    }

    /// Waits out versions that are about to end, if `waits_out`.
    #[must_use]
    pub fn waiting_out(self, waits_out: bool) -> Suspended {
        Suspended { waits_out, ..self }
    }

    /// Returns the draft as a write batch over the rows that were read so far.
    pub fn resume(self, loaded: &Loaded) -> WriteBatch<'_> {
        WriteBatch {
            now: self.now,
            time: self.time,
            state: self.state,
            waits_out: self.waits_out,
            new_entries: None,
            new_items: Vec::new(),
            loaded,
            effects: self.effects,
            undo: None,
            missing: Missing::default(),
            lsn: self.lsn,
            writes_of_batch: self.writes_of_batch,
            after: self.after,
            texts: self.texts,
        }
    }

    /// Returns the newest log sequence number, writes of the draft included.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// Returns the partition's counters, changes of the draft included.
    pub fn state(&self) -> &PartitionState {
        &self.state
    }

    /// Returns the effects of the draft on the keys of a space.
    pub fn effects_in(&self, space: Space) -> impl Iterator<Item = (&Bytes, Option<&Bytes>)> {
        self.effects
            .iter()
            .filter(move |(key, _)| key.space == space)
            .map(|(key, value)| (&key.bytes, value.as_ref()))
    }
}

impl<'a> WriteBatch<'a> {
    /// Returns an empty write batch at server time `now` on the head `lsn`.
    pub fn new(now: UnixMillis, lsn: Lsn, state: PartitionState, loaded: &'a Loaded) -> WriteBatch<'a> {
        WriteBatch {
            now,
            time: CommitTime::default(),
            state,
            waits_out: false,
            new_entries: None,
            new_items: Vec::new(),
            loaded,
            effects: HashMap::new(),
            undo: None,
            missing: Missing::default(),
            lsn,
            writes_of_batch: None,
            after: AfterCommit::default(),
            texts: TextChanges::default(),
        }
    }

    /// Gives the write batch its place in the order of all commits.
    #[must_use]
    pub fn at(self, time: CommitTime) -> WriteBatch<'a> {
        WriteBatch { time, ..self }
    }

    /// Returns the write batch's server time in seconds.
    pub fn seconds(&self) -> UnixSeconds {
        self.now.seconds()
    }

    /// Returns the horizon of the write batch for a container's settings.
    pub fn horizon(&self, settings: &Settings) -> Horizon {
        settings.horizon(self.now)
    }

    /// Returns the rule that decides which stored versions are visible to the write batch's transactions.
    pub fn visibility(&self, settings: &Settings) -> Visibility {
        Visibility::new(self.horizon(settings), TombstoneView::of(&self.state.tombstones))
    }

    /// Returns what is stored under an item's key, changes of earlier transactions included.
    pub fn slot(&mut self, key: Key, settings: &Settings) -> Decision<Slot> {
        let Some(record) = self.get_raw(&key)?.map(Record::decode).transpose()? else {
            return Ok(Slot::Free);
        };
        // What this write batch has written itself nobody else has seen.
        if self.waits_out
            && !self.effects.contains_key(&key)
            && let Some(pause) = ends_in(&record, settings, self.now)
        {
            return Err(Stop::EndsSoon(pause));
        }
        Ok(self.slot_of(StoredVersion { key, record }, settings))
    }

    /// Like [`WriteBatch::slot`], for a decision that writes no item.
    pub fn slot_at_once(&mut self, key: Key, settings: &Settings) -> Decision<Slot> {
        let record = self.get_raw(&key)?.map(Record::decode).transpose()?;
        let slot = record.map(|record| self.slot_of(StoredVersion { key, record }, settings));
        Ok(slot.unwrap_or(Slot::Free))
    }

    fn slot_of(&self, version: StoredVersion, settings: &Settings) -> Slot {
        Slot::of(version, &self.horizon(settings), &self.state.tombstones)
    }

    /// Returns the stored value of a key, ghosts included, with changes of earlier transactions.
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

    /// Requests several keys that the decision will need, so that they are read at once. Does nothing if the write batch has already read its
    /// maximum; then each key is read when it is needed.
    pub fn foresee(&mut self, keys: &[Key]) -> Decision<()> {
        if self.loaded.is_full() {
            return Ok(());
        }
        self.get_all_raw(keys).map(drop)
    }

    /// Returns the value that was read for a key; `None` if the key was not read or has no value.
    pub fn loaded(&self, key: &Key) -> Option<Bytes> {
        self.loaded.gets.get(key).cloned().flatten()
    }

    fn get_all(
        &mut self,
        keys: &[Key],
        get: impl Fn(&mut WriteBatch<'a>, &Key) -> Decision<Option<Bytes>>,
    ) -> Decision<Vec<Option<Bytes>>> {
        let mut values = Vec::with_capacity(keys.len());
        let mut complete = true;
        for key in keys {
            match get(self, key) {
                Ok(value) => values.push(value),
                Err(Stop::NeedsRead) => complete = false,
                Err(refused) => return Err(refused),
            }
        }
        if complete { Ok(values) } else { Err(Stop::NeedsRead) }
    }

    /// Returns the stored rows of several ranges, ghosts included, without the effects of other transactions: only the first transaction of a write
    /// batch may scan.
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

    /// Begins the next write of the log and returns its LSN; each committed transaction has one (TTL-208). Must be called only when nothing can stop
    /// the decision any more.
    pub fn next_lsn(&mut self) -> Lsn {
        self.next_version().lsn
    }

    /// Returns the newest log sequence number, writes of this write batch included.
    pub fn head(&self) -> Lsn {
        self.lsn
    }

    /// Like [`WriteBatch::next_lsn`], but also returns the number of the write within its transaction.
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

    /// Decides several writes as one transaction: they share one LSN, and all of their effects are kept, or none. If `decide` returns an error, its
    /// effects are undone.
    pub fn batch<T>(&mut self, decide: impl FnOnce(&mut WriteBatch<'a>) -> Decision<T>) -> Decision<T> {
        let (state, lsn, after, texts) = (self.state.clone(), self.lsn, self.after, self.texts.len());
        self.undo = Some(Vec::new());
        self.writes_of_batch = Some(0);
        let decided = decide(self);
        self.writes_of_batch = None;
        let undo = self.undo.take().unwrap_or_default();
        if decided.is_err() {
            (self.state, self.lsn, self.after) = (state, lsn, after);
            self.texts.truncate(texts);
            for (key, before) in undo.into_iter().rev() {
                match before {
                    Some(effect) => self.effects.insert(key, effect),
                    None => self.effects.remove(&key),
                };
            }
        }
        decided
    }

    /// Decides further writes of the current transaction: if `decide` returns an error, the effects of these are undone.
    pub fn keeping_writes<T>(&mut self, decide: impl FnOnce(&mut WriteBatch<'a>) -> Decision<T>) -> Decision<T> {
        let (state, lsn, after, texts) = (self.state.clone(), self.lsn, self.after, self.texts.len());
        let (writes, outer) = (self.writes_of_batch, self.undo.replace(Vec::new()));
        let decided = decide(self);
        let undo = std::mem::replace(&mut self.undo, outer).unwrap_or_default();
        if decided.is_ok() {
            if let Some(outer) = &mut self.undo {
                outer.extend(undo);
            }
        } else {
            (self.state, self.lsn, self.after, self.writes_of_batch) = (state, lsn, after, writes);
            self.texts.truncate(texts);
            for (key, before) in undo.into_iter().rev() {
                match before {
                    Some(effect) => self.effects.insert(key, effect),
                    None => self.effects.remove(&key),
                };
            }
        }
        decided
    }

    /// Returns the draft without the rows it was decided on, so that more rows can be read.
    pub fn suspend(self) -> Suspended {
        Suspended {
            now: self.now,
            time: self.time,
            state: self.state,
            waits_out: self.waits_out,
            effects: self.effects,
            lsn: self.lsn,
            writes_of_batch: self.writes_of_batch,
            after: self.after,
            texts: self.texts,
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

    /// Tells whether earlier transactions have changed anything.
    pub fn has_effects(&self) -> bool {
        !self.effects.is_empty()
    }

    /// Returns the rows that must be read before the write batch is decided, each key once.
    pub fn missing(&mut self) -> Missing {
        let mut missing = std::mem::take(&mut self.missing);
        let mut seen = HashSet::with_capacity(missing.gets.len());
        missing.gets.retain(|key| seen.insert(key.clone()));
        missing
    }

    /// Returns the number of missing keys and scans noted so far.
    pub fn missing_so_far(&self) -> usize {
        self.missing.gets.len() + self.missing.scans.len()
    }

    /// Tells whether another write batch, decided on the same rows, has the same result.
    #[cfg(debug_assertions)]
    pub fn is_like(&self, other: &WriteBatch<'_>) -> bool {
        (&self.effects, &self.state, self.lsn, self.after) == (&other.effects, &other.state, other.lsn, other.after)
            && self.texts == other.texts
            && self.new_entries == other.new_entries
    }

    /// Returns the result of the write batch on the head `base`. `before` is the partition's state before it.
    pub fn into_decided(mut self, base: Lsn, before: &PartitionState) -> Decided {
        let (new_keys, stamp, after, texts) = (self.new_keys(base), self.now, self.after, self.texts.into_list());
        if self.lsn == base && self.effects.is_empty() {
            return Decided {
                changes: None,
                state: self.state,
                stamp,
                after,
                texts,
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
            new_keys,
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
            texts,
        }
    }
}

/// The result of a write batch.
#[derive(Debug)]
pub(crate) struct Decided {
    /// The changes to commit; `None` if nothing changes.
    pub changes: Option<Changes>,
    /// The partition's state after the commit.
    pub state: PartitionState,
    /// Server time of the write batch, and the commit's stamp.
    pub stamp: UnixMillis,
    /// What is to be done after the commit.
    pub after: AfterCommit,
    /// The texts that are stored and removed.
    pub texts: Vec<TextChange>,
}

/// The rows that a write batch writes and deletes.
#[derive(Debug, Clone)]
pub(crate) struct Changes {
    pub next: Lsn,
    pub puts: Vec<Put>,
    pub deletes: Vec<Key>,
    pub new_keys: Vec<Key>,
}

#[cfg(test)]
mod tests;
