//! A round: what a partition worker decides between one read and one commit.
//!
//! Transactions are decided in order. Each sees what was read from the engine, changed by those before it, and adds its own effects.
//! Whatever it needs and is not there yet is noted as missing; the worker then reads all that is missing at once and decides
//! the round again from the start. So a decision is a function of what was read, never a side effect, and may run any
//! number of times.

use std::collections::{HashMap, HashSet};

use bolide_model::ttl::{Horizon, Settings};
use bolide_model::{Error, ErrorKind, Lsn, Result, UnixMillis, UnixSeconds};
use bolide_storage::{Ask, Key, Page, Put, Reply, Scan, Space};
use bytes::Bytes;

use super::state::PartitionState;
use crate::keys::{self, LogPosition};

/// Why a decision ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Something must be read first; decide again then.
    Missing,
    /// The transaction is refused.
    Refused(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Refused(error)
    }
}

/// What a step of a decision comes to.
pub(crate) type Step<T> = std::result::Result<T, Stop>;

/// From so many bytes on, what was read for a round is enough for one: what is still missing is read for the transactions that need it, one
/// after the other.
pub(super) const ROUND_BYTES: usize = 8 * 1024 * 1024;

/// What was read so far for a round, all at one head.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    gets: HashMap<Key, Option<Bytes>>,
    /// How long the values of `gets` are together, and how long they may be.
    bytes: usize,
    most: Option<usize>,
    scans: HashMap<ScanId, Page>,
}

/// Names a scan within a round. A decision is made again after each read, and later: where it ends a scan by the time, that may be elsewhere then.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ScanId {
    space: Space,
    from: Bytes,
    to: Option<Bytes>,
}

impl ScanId {
    fn of(scan: &Scan) -> ScanId {
        ScanId {
            space: scan.space,
            from: scan.from.clone(),
            to: scan.to.clone(),
        }
    }
}

/// What is still to be read for a round.
#[derive(Debug, Default)]
pub(crate) struct Missing {
    gets: Vec<Key>,
    scans: Vec<Scan>,
}

impl Missing {
    pub fn is_empty(&self) -> bool {
        self.gets.is_empty() && self.scans.is_empty()
    }
}

impl Loaded {
    /// Nothing yet, and at most about so many bytes: whoever needs more is refused.
    pub fn up_to(most: usize) -> Loaded {
        Loaded {
            most: Some(most),
            ..Loaded::default()
        }
    }

    /// Asks for all that is missing, or as much as one read may hold and there is room for.
    pub fn ask(&self, missing: &Missing) -> Ask {
        let room = self.most.map_or(ROUND_BYTES, |most| most.saturating_sub(self.bytes));
        Ask {
            gets: missing.gets.clone(),
            scans: missing.scans.clone(),
            max_bytes: ROUND_BYTES.min(room.max(1)),
        }
    }

    /// Takes the answer to what was missing, as far as it goes.
    pub fn take(&mut self, missing: Missing, reply: Reply) {
        for (key, value) in missing.gets.into_iter().zip(reply.gets) {
            self.bytes += value.as_ref().map_or(0, Bytes::len);
            self.gets.insert(key, value);
        }
        let ids = missing.scans.iter().map(ScanId::of);
        self.scans
            .extend(ids.zip(reply.pages).filter(|(_, page)| page.is_made()));
    }

    /// Whether it is as much as a round of several transactions reads.
    pub fn is_full(&self) -> bool {
        self.bytes >= ROUND_BYTES
    }

    fn check(&self) -> Step<()> {
        match self.most {
            Some(most) if self.bytes >= most => Err(Stop::Refused(Error::new(
                ErrorKind::TooLarge,
                format!(
                    "The items that the transaction needs are larger together than one may read. limit={most} bytes"
                ),
            ))),
            _ => Ok(()),
        }
    }
}

/// The draft of one commit.
pub(crate) struct Round<'a> {
    /// Server time of every verdict and every `_ts` of the round; not below the head's stamp (TTL-208).
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
        }
    }

    /// The draft, over what was read by now.
    pub fn resume(self, loaded: &Loaded) -> Round<'_> {
        Round {
            now: self.now,
            state: self.state,
            loaded,
            effects: self.effects,
            undo: None,
            missing: Missing::default(),
            lsn: self.lsn,
            writes_of_batch: self.writes_of_batch,
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

impl<'a> Round<'a> {
    /// A round at server time `now` over the head `lsn`.
    pub fn new(now: UnixMillis, lsn: Lsn, state: PartitionState, loaded: &'a Loaded) -> Round<'a> {
        Round {
            now,
            state,
            loaded,
            effects: HashMap::new(),
            undo: None,
            missing: Missing::default(),
            lsn,
            writes_of_batch: None,
        }
    }

    /// The round's second.
    pub fn seconds(&self) -> UnixSeconds {
        self.now.seconds()
    }

    /// The horizon of the round under a container's settings.
    pub fn horizon(&self, settings: &Settings) -> Horizon {
        settings.horizon(self.seconds())
    }

    /// The value of a key, as transactions before this one leave it.
    pub fn get(&mut self, key: &Key) -> Step<Option<Bytes>> {
        if let Some(value) = self.effects.get(key) {
            return Ok(value.clone());
        }
        match self.loaded.gets.get(key) {
            Some(value) => Ok(value.clone()),
            None => {
                self.loaded.check()?;
                self.missing.gets.push(key.clone());
                Err(Stop::Missing)
            }
        }
    }

    /// Reads what will be needed at once, as far as that is not much: the rest is read when it is needed.
    pub fn foresee(&mut self, keys: &[Key]) -> Step<()> {
        if self.loaded.is_full() {
            return Ok(());
        }
        self.get_all(keys).map(drop)
    }

    /// What is stored under a key, if that was read.
    pub fn loaded(&self, key: &Key) -> Option<Bytes> {
        self.loaded.gets.get(key).cloned().flatten()
    }

    /// Looks keys up together, so that all that are missing are read at once.
    pub fn get_all(&mut self, keys: &[Key]) -> Step<Vec<Option<Bytes>>> {
        let mut values = Vec::with_capacity(keys.len());
        let mut complete = true;
        for key in keys {
            match self.get(key) {
                Ok(value) => values.push(value),
                Err(Stop::Missing) => complete = false,
                Err(refused) => return Err(refused),
            }
        }
        if complete { Ok(values) } else { Err(Stop::Missing) }
    }

    /// The rows of several ranges as they were read, without the effects of other transactions: only the first transaction of a round
    /// may scan.
    pub fn scan_all(&mut self, scans: &[Scan]) -> Step<Vec<Page>> {
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
        if complete { Ok(pages) } else { Err(Stop::Missing) }
    }

    /// Begins the next write of the log and returns its LSN: one per committed transaction (TTL-208). To be called when nothing
    /// can stop the decision any more.
    pub fn next_lsn(&mut self) -> Lsn {
        self.next_version().lsn
    }

    /// The newest log sequence number, writes of this round included.
    pub fn head(&self) -> Lsn {
        self.lsn
    }

    /// As [`Round::next_lsn`], with the write's place in its transaction.
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
    pub fn batch<T>(&mut self, decide: impl FnOnce(&mut Round<'a>) -> Step<T>) -> Step<T> {
        let (state, lsn) = (self.state.clone(), self.lsn);
        self.undo = Some(Vec::new());
        self.writes_of_batch = Some(0);
        let decided = decide(self);
        self.writes_of_batch = None;
        let undo = self.undo.take().unwrap_or_default();
        if decided.is_err() {
            (self.state, self.lsn) = (state, lsn);
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

    /// What is still to be read before the round is decided, each key once.
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

    /// The commit that carries the round out, `None` if it changes nothing; and the state after it.
    pub fn into_changes(mut self, base: Lsn, before: &PartitionState) -> (Option<Changes>, PartitionState) {
        if self.lsn == base && self.effects.is_empty() {
            return (None, self.state);
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
        (Some(changes), self.state)
    }
}

/// What a round writes.
#[derive(Debug, Clone)]
pub(crate) struct Changes {
    pub next: Lsn,
    pub puts: Vec<Put>,
    pub deletes: Vec<Key>,
}

/// What the worker decides: sees a round, adds effects, and is told how the commit ended.
pub(crate) trait Transaction: Send {
    /// Decides on what was read. Runs again from the start after more was read or the commit was stale; until it returns anything
    /// but [`Stop::Missing`], it must not have added effects.
    ///
    /// # Errors
    /// `Err(())` if something is missing.
    fn decide(&mut self, round: &mut Round<'_>) -> std::result::Result<(), ()>;

    /// The commit ended: `Ok` with the head after it, or nothing happened and this is why.
    fn end(self: Box<Self>, ended: &Result<Lsn>);
}

/// The error for an engine's refusal.
pub(crate) fn refused(why: String) -> Error {
    Error::new(ErrorKind::StorageFull, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page that ended early was taken for all there is up to a later end.
    #[test]
    fn a_scan_with_another_end_is_read_anew() {
        let scan = |to: &'static [u8]| Scan {
            space: Space::Expiry,
            from: Bytes::from_static(b"a"),
            to: Some(Bytes::from_static(to)),
            reverse: false,
            max_rows: 10,
            max_bytes: 1_000,
            keys_only: false,
        };
        let mut loaded = Loaded::default();
        let missing = Missing {
            scans: vec![scan(b"b")],
            ..Missing::default()
        };
        let page = Page {
            rows: vec![(Bytes::from_static(b"a1"), Bytes::new())],
            ..Page::default()
        };
        let reply = Reply {
            head: bolide_storage::Head {
                lsn: Lsn(1),
                ..bolide_storage::Head::first(UnixMillis(1))
            },
            gets: vec![],
            pages: vec![page],
        };
        loaded.take(missing, reply);
        let mut round = Round::new(UnixMillis(1), Lsn(1), PartitionState::default(), &loaded);
        assert_eq!(round.scan_all(&[scan(b"b")]).expect("it was read")[0].rows.len(), 1);
        assert!(matches!(round.scan_all(&[scan(b"c")]), Err(Stop::Missing)));
    }
}
