//! The committer: the one that writes.
//!
//! It takes a job, and with it all writes that wait, merges them into one [`group`], and carries the group out as one write of the store with
//! one fsync. Everything that must not meet a write is its work too, between groups: publishing views, resolving
//! tickets, deleting what removed partitions left ([`removal`]), writing the durable watermark ([`chores`]), and opening the store again after it
//! failed ([`failure`], [`opening`]). It has a thread; [`shared`] tells what is done elsewhere.

mod chores;
mod compactor;
mod durable_time;
mod failure;
mod group;
mod jobs;
mod journal_ahead;
mod opening;
mod removal;
mod shared;

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_model::UnixMillis;
use bolide_model::time::{MonotoneClock, Monotonic};
use bolide_storage::{EngineError, PartitionId, RecentCommits, Resolved, Ticket};
use fjall::PersistMode;

use crate::durable_watermark::{DurableWatermark, Numbers};
use crate::layout::{Sequence, sequence_key};
use crate::presence::Presence;
use crate::store::Store;
use crate::store_dir::StoreDir;
use crate::view::Views;
use crate::{Durability, LsmOptions};

use chores::REFRESH_INTERVAL;
use compactor::Compactor;
pub(crate) use compactor::{filter_of, idle};
pub(crate) use durable_time::DurableTime;
use failure::Failure;
use group::{Group, Room};
use jobs::{Answer, Refusal};
pub(crate) use jobs::{Job, Write};
use journal_ahead::JournalAhead;
use removal::Removal;
pub(crate) use shared::SharedCommitter;

/// A group takes no more writes above this many bytes.
const GROUP_BYTES: usize = 8 << 20;
/// How often the durable watermark is written, at most.
const WATERMARK_INTERVAL: Duration = Duration::from_secs(1);
/// After so long without a write the store has time for what would disturb writes.
const REST_INTERVAL: Duration = Duration::from_millis(500);
/// A write of the store that takes longer is waited for on the committer's thread, so that others have the one it came from.
const QUICK_WRITE: Duration = Duration::from_millis(1);
/// A disk on which writes take less has nothing to gain from a journal that is written ahead.
const SLOW_WRITE: Duration = Duration::from_micros(50);
/// Free space beside the reserve without which the journal is not written ahead.
const SPARE_BYTES: u64 = 256 << 20;
/// How often to look whether the files are in their place, where writes do not wait for the disk.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// See the module.
pub(crate) struct Committer {
    store_dir: StoreDir,
    /// `None` where it cannot be told.
    presence: Option<Presence>,
    /// The clock of chores.
    monotonic: Monotonic,
    looked_at: Instant,
    options: LsmOptions,
    views: Arc<Views>,
    time: Arc<MonotoneClock>,
    durable_time: Arc<DurableTime>,
    /// `None` only if the store failed and could not be opened again.
    store: Option<Arc<Store>>,
    failure: Option<Failure>,
    is_closed: bool,
    partitions: HashMap<PartitionId, RecentCommits>,
    removals: VecDeque<Removal>,
    compactor: Compactor,
    /// `None` where nobody calls for it.
    journal_ahead: Option<JournalAhead>,
    /// The newest write of all.
    newest: Sequence,
    /// The newest write of each space that was carried out.
    written: Numbers,
    /// The newest write of each space that is surely on the disk.
    durable: Numbers,
    watermark: DurableWatermark,
    watermark_written_at: Instant,
    /// Whether the last try to write the watermark failed.
    watermark_failed: bool,
    /// When the journal must be on the disk, in mode `interval`.
    persist_at: Option<Instant>,
    removal_at: Instant,
    /// When to look whether the newest view is behind; `None` while nothing happens.
    refresh_at: Option<Instant>,
    /// When the store has rested for long enough to write memtables out; `None` once it did.
    rested_at: Option<Instant>,
    /// How long a write of the store takes, in the mean of the last few.
    write_time: Duration,
    /// When the thread wakes although nobody asks.
    wakes_at: Option<Instant>,
}

impl Committer {
    /// Server time, and how far it is durable.
    pub(crate) fn times(&self) -> (Arc<MonotoneClock>, Arc<DurableTime>) {
        (self.time.clone(), self.durable_time.clone())
    }

    /// Does `first` and the jobs that wait behind it, until there are none or the group is large.
    fn serve(&mut self, first: Job, mut take_next: impl FnMut() -> Option<Job>) {
        let mut writes = Vec::new();
        let mut time_waiters = Vec::new();
        let mut bytes = 0;
        let mut next = Some(first);
        while let Some(job) = next {
            match job {
                Job::Write(write) => {
                    bytes += write.bytes();
                    writes.push(write);
                }
                // These ask for the state behind the writes before them.
                Job::Resolve {
                    partition,
                    ticket,
                    answer,
                } => {
                    self.write(std::mem::take(&mut writes));
                    let _ = answer.send(self.resolve(partition, &ticket));
                }
                // Later: the stamps of the writes may be enough.
                Job::KeepTime { until, answer } => time_waiters.push((until, answer)),
                Job::Close(answer) => {
                    self.write(std::mem::take(&mut writes));
                    let _ = answer.send(self.close());
                }
                Job::Look => {}
            }
            next = if bytes < GROUP_BYTES { take_next() } else { None };
        }
        self.write(writes);
        self.keep_time(time_waiters);
    }

    /// Makes server time durable for all who wait for it, with one write.
    fn keep_time(&mut self, waiters: Vec<(UnixMillis, Answer<()>)>) {
        let Some(until) = waiters.iter().map(|(until, _)| *until).max() else {
            return;
        };
        // Whoever asks next has read the clock by now.
        let until = until.max(self.time.now());
        let kept = if self.durable_time.get() >= until {
            Ok(())
        } else if self.watermark_failed && self.monotonic.since(self.watermark_written_at) < WATERMARK_INTERVAL {
            Err(EngineError::Unavailable(
                "the durable watermark cannot be written".into(),
            ))
        } else {
            self.write_watermark(until)
                .map_err(|error| EngineError::Unavailable(error.to_string()))
        };
        for (_, answer) in waiters {
            // Nobody may be waiting any more.
            let _ = answer.send(kept.clone());
        }
    }

    fn write(&mut self, writes: Vec<Write>) {
        if writes.is_empty() {
            return;
        }
        self.look_for_files();
        let store = match self.writable() {
            Ok(store) => store,
            Err(refusal) => return writes.into_iter().for_each(|write| write.refuse(&refusal)),
        };
        let mut group = Group::new(self.room(&store));
        for write in writes {
            group.admit(write, &self.partitions, &self.removals);
        }
        if group.is_empty() {
            return group.answer();
        }
        match self.carry_out(&store, &mut group) {
            Ok(()) => match self.check_behind() {
                Ok(()) => {
                    self.adopt(&store, &group);
                    group.answer();
                }
                // Written, and to files that nobody will find.
                Err(why) => {
                    self.fail(&why);
                    group.answer_unknown();
                }
            },
            // The store looks at its health before it writes anything.
            Err(error @ fjall::Error::Poisoned) => {
                let reason = self.fail(&self.cause_of(&error));
                group.answer_refused(&reason);
            }
            Err(error) => {
                self.fail(&error.to_string());
                group.answer_unknown();
            }
        }
    }

    /// Notes a failure if the files of the store are not in their place any more.
    fn look_for_files(&mut self) {
        // What is not on the disk at once is not promised to be found again; a look now and then is enough there.
        let is_early =
            self.options.durability != Durability::Sync && self.monotonic.since(self.looked_at) < LOOK_INTERVAL;
        if self.failure.is_some() || self.is_closed || is_early {
            return;
        }
        self.looked_at = self.monotonic.now();
        if let Some(Err(why)) = self.presence.as_mut().map(Presence::check) {
            self.fail(&why);
        }
    }

    /// Looks at the files once more behind a write that is promised to be there.
    fn check_behind(&mut self) -> Result<(), String> {
        match (&mut self.presence, self.options.durability) {
            (Some(presence), Durability::Sync) => presence.check(),
            _ => Ok(()),
        }
    }

    /// The store, if it takes writes.
    fn writable(&self) -> Result<Arc<Store>, Refusal> {
        if self.is_closed {
            return Err(Refusal::Closed);
        }
        match (&self.failure, &self.store) {
            (None, Some(store)) => match self.compactor.hindrance(store) {
                None => Ok(store.clone()),
                Some(why) => Err(Refusal::Broken(format!("the store cannot be written: {why}"))),
            },
            (Some(failure), _) => Err(Refusal::Broken(failure.reason.clone())),
            (None, None) => Err(Refusal::Closed),
        }
    }

    fn room(&self, store: &Store) -> Room {
        Room {
            free: self.options.free_space.at(self.store_dir.path()),
            // What is in memtables will be written once more, as tables.
            reserve: self.options.reserve_bytes.saturating_add(store.db.write_buffer_size()),
        }
    }

    /// One write of the store.
    fn carry_out(&mut self, store: &Store, group: &mut Group) -> fjall::Result<()> {
        self.newest = Sequence {
            number: self.newest.number + 1,
            stamp: self.newest.stamp.max(group.stamp()),
        };
        let journal_bytes = group.journal_bytes();
        let mode = match self.options.durability {
            Durability::Sync => PersistMode::SyncData,
            Durability::Interval(_) | Durability::Buffered => PersistMode::Buffer,
        };
        let mut batch = fjall::OwnedWriteBatch::with_capacity(store.db.clone(), group.len()).durability(Some(mode));
        let mut written = self.written;
        for (space, rows) in group.take_rows() {
            let keyspace = store.space(space);
            for (key, value) in rows {
                match value {
                    Some(value) => batch.insert(keyspace, key, value),
                    None => batch.remove(keyspace, key),
                }
            }
            batch.insert(keyspace, sequence_key(), self.newest.encode());
            written[space as usize] = self.newest.number;
        }
        let began = self.monotonic.now();
        batch.commit()?;
        self.write_time = (self.write_time * 7 + self.monotonic.since(began)) / 8;
        self.written = written;
        self.note_appended(journal_bytes);
        Ok(())
    }

    fn note_appended(&mut self, bytes: u64) {
        let is_worth_it = self.options.durability == Durability::Sync && self.write_time >= SLOW_WRITE;
        let journal = self.presence.as_ref().and_then(Presence::journal);
        if let (Some(ahead), Some(journal)) = (&mut self.journal_ahead, journal) {
            ahead.note(journal, bytes, is_worth_it);
        }
    }

    /// Whether the disk has room for blocks that nothing is in yet.
    fn has_room_ahead(&self) -> bool {
        self.store.as_ref().is_some_and(|store| {
            let room = self.room(store);
            room.free >= room.reserve.saturating_add(SPARE_BYTES)
        })
    }

    /// Writes a piece of the journal ahead. Returns the file that is to be synced.
    fn write_journal_ahead(&mut self) -> Option<Arc<File>> {
        let is_written = self.failure.is_none() && !self.is_closed;
        self.journal_ahead.as_mut().filter(|_| is_written)?.advance()
    }

    /// Makes a group that was written the state of the engine, and shows it.
    fn adopt(&mut self, store: &Arc<Store>, group: &Group) {
        match self.options.durability {
            Durability::Sync => {
                self.durable = self.written;
                self.durable_time.raise(self.newest.stamp);
            }
            Durability::Interval(delay) => {
                self.persist_at.get_or_insert(self.monotonic.now() + delay);
            }
            Durability::Buffered => {}
        }
        for (partition, row) in group.heads() {
            match row {
                Some(row) => {
                    self.partitions
                        .entry(partition)
                        .or_insert_with(|| RecentCommits::starting_at(row.head));
                }
                None => {
                    self.partitions.remove(&partition);
                    self.removals.push_back(Removal::of(partition));
                }
            }
        }
        for (partition, token, head) in group.commits() {
            if let Some(history) = self.partitions.get_mut(partition) {
                history.push_commit(*token, *head);
            }
        }
        // Nobody may see a stamp that server time has not reached.
        let time = self.time.observe(self.newest.stamp);
        self.views.expire(time);
        self.views.publish(
            store,
            group
                .heads()
                .map(|(partition, row)| (partition, row.map(|row| row.head))),
        );
        self.compactor.note_write();
        for (space, deletes) in group.deletes() {
            self.compactor.note_deletes(space, deletes);
        }
        let now = self.monotonic.now();
        self.refresh_at.get_or_insert(now + REFRESH_INTERVAL);
        self.rested_at = Some(now + REST_INTERVAL);
    }

    fn resolve(&self, partition: PartitionId, ticket: &Ticket) -> Result<Resolved, EngineError> {
        if let Some(failure) = &self.failure {
            return Err(EngineError::Unavailable(failure.reason.clone()));
        }
        let history = self
            .partitions
            .get(&partition)
            .ok_or(EngineError::NoPartition(partition))?;
        history
            .resolve(ticket)
            .ok_or_else(|| EngineError::Unavailable("the commit is too old to be resolved".into()))
    }

    /// Whether a commit is likely to be over so soon that the way to another thread would be a good part of its time. A fsync waits for tables
    /// on their way to the disk.
    fn is_quick(&self) -> bool {
        let is_at_rest = |store: &Arc<Store>| !store.is_busy() && !self.compactor.is_running();
        self.failure.is_none() && self.write_time <= QUICK_WRITE && self.store.as_ref().is_some_and(is_at_rest)
    }

    /// Makes everything acknowledged durable and the next open quick. Afterwards, writes are turned away.
    ///
    /// A store that failed is closed all the same if everything acknowledged is on the disk already.
    fn close(&mut self) -> Result<(), EngineError> {
        if self.is_closed {
            return Ok(());
        }
        self.compactor.finish();
        if let (None, Some(store)) = (&self.failure, &self.store) {
            let room = self.room(store);
            // The journal has everything that is in memtables, and a table that has no space fails the store.
            if room.free >= room.reserve {
                store.settle_down(&self.monotonic);
            }
            self.persist(PersistMode::SyncAll);
        }
        if let Some(failure) = &self.failure {
            let reason = failure.reason.clone();
            let found = self.presence.as_mut().map_or(Ok(()), Presence::check);
            if found.is_err() || self.durable != self.written {
                return Err(EngineError::Unavailable(format!(
                    "{reason}. Writes that were acknowledged may be missing at the next start"
                )));
            }
            tracing::warn!(
                reason,
                "the store is closed as it is: all that was acknowledged is on the disk, and the next start recovers it"
            );
        }
        // If it fails it lags, which is allowed.
        let _ = self.write_watermark(self.durable_time.get());
        self.is_closed = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
