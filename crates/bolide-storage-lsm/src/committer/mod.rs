//! The committer: the only writer of the store.
//!
//! It takes a job together with all waiting writes, merges them into one [`group`], and carries the group out as one write of the store with one
//! fsync. Between groups it does everything that must not run during a write: publishing views, resolving tickets, deleting rows of removed
//! partitions ([`removal`]), writing the durable watermark ([`maintenance`]), and opening the store again after a failure ([`failure`], [`opening`]).
//! It has its own thread; [`shared`] describes what runs on other threads.

mod compactor;
mod durable_time;
mod failure;
mod group;
mod image;
mod jobs;
mod journal_ahead;
mod maintenance;
mod opening;
mod removal;
mod shared;

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
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
use crate::{Durability, LsmOptions, journal};

use compactor::Compactor;
pub(crate) use compactor::{filter_of, idle};
pub(crate) use durable_time::DurableTime;
use failure::Failure;
use group::{Group, SpaceLimits};
pub(crate) use jobs::{Job, Write};
use jobs::{Refusal, Reply};
use journal_ahead::JournalAhead;
use maintenance::REFRESH_INTERVAL;
use removal::Removal;
pub(crate) use shared::SharedCommitter;

/// A group takes no more writes above this size.
const GROUP_BYTES: usize = 8 << 20;
/// The minimum time between two writes of the durable watermark.
const WATERMARK_INTERVAL: Duration = Duration::from_secs(1);
/// After this time without a write the store is idle, and work that would disturb writes may run.
const REST_INTERVAL: Duration = Duration::from_millis(500);
/// If a write of the store takes longer, it runs on the committer's thread, so that the caller's thread is free for other tasks.
const QUICK_WRITE: Duration = Duration::from_millis(1);
/// If writes take less than this, writing the journal ahead gains nothing.
const SLOW_WRITE: Duration = Duration::from_micros(50);
/// Free space required beyond the reserve before the journal is written ahead.
const SPARE_BYTES: u64 = 256 << 20;
/// The longest time a close waits for tables to be written, well below the time the server gives a close. The rest is replayed at the next open.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often to check that the files are in their place, if writes do not wait for the disk.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// See the module.
pub(crate) struct Committer {
    store_dir: StoreDir,
    /// `None` if the platform cannot tell.
    presence: Option<Presence>,
    /// The clock for maintenance.
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
    /// `None` if it is not used.
    journal_ahead: Option<JournalAhead>,
    /// The newest write of all spaces.
    newest: Sequence,
    /// The newest write of each space that was carried out.
    written: Numbers,
    /// The newest write of each space that is certainly on the disk.
    durable: Numbers,
    watermark: DurableWatermark,
    watermark_written_at: Instant,
    /// Whether the last write of the watermark failed.
    watermark_failed: bool,
    /// When the journal must be on the disk, in mode `interval`.
    persist_at: Option<Instant>,
    removal_at: Instant,
    /// When to check whether the newest view is outdated; `None` while nothing happens.
    refresh_at: Option<Instant>,
    /// When the store will have been idle long enough to flush memtables; `None` once they were flushed.
    rested_at: Option<Instant>,
    /// Average time of the last writes of the store.
    write_time: Duration,
    /// When the thread wakes without a job.
    wakes_at: Option<Instant>,
}

impl Committer {
    /// Server time, and how far it is durable.
    pub(crate) fn times(&self) -> (Arc<MonotoneClock>, Arc<DurableTime>) {
        (self.time.clone(), self.durable_time.clone())
    }

    /// Does `first` and the jobs that wait after it, until there are none or the group is large.
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
                // These need the state after the writes before them.
                Job::Resolve {
                    partition,
                    ticket,
                    reply,
                } => {
                    self.write(std::mem::take(&mut writes));
                    let _ = reply.send(self.resolve(partition, &ticket));
                }
                // Done after the writes: their stamps may already be enough.
                Job::MakeTimeDurable { until, reply } => time_waiters.push((until, reply)),
                Job::Close(reply) => {
                    self.write(std::mem::take(&mut writes));
                    let _ = reply.send(self.close());
                }
                Job::Image { to, reply } => {
                    self.write(std::mem::take(&mut writes));
                    let _ = reply.send(self.make_image(&to));
                }
                Job::Release(reply) => {
                    self.write(std::mem::take(&mut writes));
                    let _ = reply.send(self.release());
                }
                Job::CheckMaintenance => {}
            }
            next = if bytes < GROUP_BYTES { take_next() } else { None };
        }
        self.write(writes);
        self.make_time_durable_for(time_waiters);
    }

    /// Makes server time durable for all who wait for it, with one write.
    fn make_time_durable_for(&mut self, waiters: Vec<(UnixMillis, Reply<()>)>) {
        let Some(until) = waiters.iter().map(|(until, _)| *until).max() else {
            return;
        };
        // Includes later callers: they have read the clock by now.
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
        for (_, reply) in waiters {
            // The receiver may be gone.
            let _ = reply.send(kept.clone());
        }
    }

    fn write(&mut self, writes: Vec<Write>) {
        if writes.is_empty() {
            return;
        }
        self.check_files();
        let store = match self.writable() {
            Ok(store) => store,
            Err(refusal) => return writes.into_iter().for_each(|write| write.refuse(&refusal)),
        };
        let mut group = Group::new(self.space_limits(&store));
        for write in writes {
            group.admit(write, &self.partitions, &self.removals);
        }
        if group.is_empty() {
            return group.reply();
        }
        match self.carry_out(&store, &mut group) {
            Ok(()) => match self.check_behind() {
                Ok(()) => {
                    self.adopt(&store, &group);
                    group.reply();
                }
                // It was written, but to files that nobody will find.
                Err(why) => {
                    self.fail(&why);
                    group.reply_unknown();
                }
            },
            // The store checks its health before it writes anything.
            Err(error @ fjall::Error::Poisoned) => {
                let reason = self.fail(&self.cause_of(&error));
                group.reply_refused(&reason);
            }
            Err(error) => {
                self.fail(&error.to_string());
                group.reply_unknown();
            }
        }
    }

    /// Records a failure if the files of the store are no longer in their place.
    fn check_files(&mut self) {
        // In modes that do not sync each write, an occasional check is enough.
        let is_early =
            self.options.durability != Durability::Sync && self.monotonic.since(self.looked_at) < CHECK_INTERVAL;
        if self.failure.is_some() || self.is_closed || is_early {
            return;
        }
        self.looked_at = self.monotonic.now();
        if let Some(Err(why)) = self.presence.as_mut().map(Presence::check) {
            self.fail(&why);
        }
    }

    /// Checks the files again after a write that must be durable.
    fn check_behind(&mut self) -> Result<(), String> {
        match (&mut self.presence, self.options.durability) {
            (Some(presence), Durability::Sync) => presence.check(),
            _ => Ok(()),
        }
    }

    /// The store, if it accepts writes.
    fn writable(&self) -> Result<Arc<Store>, Refusal> {
        if self.is_closed {
            return Err(Refusal::Closed);
        }
        match (&self.failure, &self.store) {
            (None, Some(store)) => match self.compactor.blocked_reason(store) {
                None => Ok(store.clone()),
                Some(why) => Err(Refusal::Broken(format!("the store cannot be written: {why}"))),
            },
            (Some(failure), _) => Err(Refusal::Broken(failure.reason.clone())),
            (None, None) => Err(Refusal::Closed),
        }
    }

    fn space_limits(&self, store: &Store) -> SpaceLimits {
        SpaceLimits {
            free: self.options.free_space.at(self.store_dir.path()),
            // The content of memtables will be written again, as tables.
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

    /// Whether the disk has space for blocks that are still empty.
    fn has_room_ahead(&self) -> bool {
        self.store.as_ref().is_some_and(|store| {
            let limits = self.space_limits(store);
            limits.free >= limits.reserve.saturating_add(SPARE_BYTES)
        })
    }

    /// Writes a piece of the journal ahead. Returns the file to sync.
    fn write_journal_ahead(&mut self) -> Option<Arc<File>> {
        let is_written = self.failure.is_none() && !self.is_closed;
        self.journal_ahead.as_mut().filter(|_| is_written)?.advance()
    }

    /// Applies a written group to the state of the engine, and publishes it.
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
            if let Some(recent_commits) = self.partitions.get_mut(partition) {
                recent_commits.push_commit(*token, *head);
            }
        }
        // No reader may see a stamp that server time has not reached.
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
        let recent_commits = self
            .partitions
            .get(&partition)
            .ok_or(EngineError::NoPartition(partition))?;
        recent_commits
            .resolve(ticket)
            .ok_or_else(|| EngineError::Unavailable("the commit is too old to be resolved".into()))
    }

    /// Whether a commit is likely to be so short that a handover to another thread would be a large part of its time. A fsync waits for tables that
    /// are being written to the disk.
    fn is_short(&self) -> bool {
        let is_at_rest = |store: &Arc<Store>| !store.is_busy() && !self.compactor.is_running();
        self.failure.is_none() && self.write_time <= QUICK_WRITE && self.store.as_ref().is_some_and(is_at_rest)
    }

    /// Writes everything to tables, unless replaying the journal is faster. Returns whether everything is in tables.
    fn write_out_before_close(&self, store: &Store) -> bool {
        if let Ok(Some(_)) = self.short_journal(store) {
            return false;
        }
        let written = store.write_out_all(&self.monotonic, self.monotonic.now() + CLOSE_TIMEOUT);
        if !matches!(written, Ok(true)) {
            tracing::warn!(
                ?written,
                "not all tables were written at close; the next open replays the rest"
            );
        }
        matches!(written, Ok(true))
    }

    /// Empties the journal after everything was written to tables: the next open would read all of it, and find that its rows are in tables.
    fn empty_journal(&mut self) -> io::Result<()> {
        let Some(presence) = &mut self.presence else {
            return Ok(());
        };
        let journal = journal::open_newest(&self.store_dir.store_path())?;
        // There may be another directory in the place of this one.
        if presence.check().is_ok() && presence.is_journal(&journal) {
            journal.set_len(0)?;
            journal.sync_all()?;
        }
        Ok(())
    }

    /// Makes everything acknowledged durable and the next open fast. Afterwards, writes are refused.
    ///
    /// A store that failed can still be closed without error if everything acknowledged is on the disk already.
    fn close(&mut self) -> Result<(), EngineError> {
        if self.is_closed {
            return Ok(());
        }
        // Tables are written by their paths, where another store may be now.
        self.check_files();
        self.compactor.finish();
        if let (None, Some(store)) = (&self.failure, &self.store) {
            let limits = self.space_limits(store);
            // The journal contains everything in the memtables, and a table without space would make the store fail.
            let is_written_out = limits.free >= limits.reserve && self.write_out_before_close(store);
            if self.persist(PersistMode::SyncAll)
                && is_written_out
                && let Err(error) = self.empty_journal()
            {
                tracing::warn!(%error, "the journal was not emptied at close; the next open reads it");
            }
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
        // If this fails the watermark lags, which is allowed.
        let _ = self.write_watermark(self.durable_time.get());
        self.is_closed = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
