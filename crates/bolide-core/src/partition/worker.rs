//! The partition worker: the only writer of a physical partition.
//!
//! ```text
//!   requests ──▶ queue ──▶ [decide ◀─read─ engine] until nothing is missing ──commit──▶ engine
//!                             ▲                                                │
//!                             └────────── Stale: discard and retry ────────────┤
//!                                         Unknown: resolve ─────────────────────┤
//!   answers ◀──────────────────────────── Done ────────────────────────────────┘
//! ```
//!
//! While a commit is being written, the next transactions collect in the queue and form the next write batch: this is the group commit. The worker
//! assigns log sequence numbers and time stamps, so both are in commit order (TTL-208). The purge queues its work at the same worker: each write
//! batch contains at most one small step of it, ahead of the users' transactions (TTL-265); while users are active, its rows are
//! read beforehand ([`prepared`](super::prepared)), and the step waits a little for one of these. A script has a write batch of its own: it runs as an
//! [`ExclusiveTransaction`], during which nobody else writes the partition.

mod contention;
mod deciding;
mod lending;
mod new_entries;
mod queues;
mod settings;
mod telling;
mod write_seal;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bolide_model::{Error, ErrorKind, Lsn, Result, UnixMillis};
use bolide_storage::{
    Batch, CommitToken, Edition, Engine, EngineError, Head, Key, Outcome, PartitionId, ReadRequest, ReadResponse,
    Resolved, Ticket, WriteLock,
};
use futures_util::FutureExt;

use super::commit_times::InProgress;
use super::edition::{self, SettingsNumber, settings_changed};
use super::exclusive::{ExclusiveTransaction, Taken, TakesPartition};
use super::pending::refused;
use super::prepared::Prepared;
use super::recent_writes::RecentWrites;
use super::shared::Shared;
use super::state::PartitionState;
use super::transaction::Transaction;
use super::write_batch::{Changes, Decided};
use crate::clock;
use crate::format::keys;
use contention::Contention;
use new_entries::NewEntries;
use queues::{Alone, NextWork};
pub(crate) use queues::{BackgroundWork, ChangeSeal, Queued, Queues, RaiseSettings};
use telling::Telling;

/// Maximum size in bytes of the stored items that one transaction may read. A batch of a hundred deletions can name as many items of the maximum
/// size; this bounds the memory that it uses.
pub(super) const TRANSACTION_BYTES: usize = 64 * 1024 * 1024;

/// Maximum number of attempts of an exclusive transaction. It is run again when the partition's head has moved, which only other servers do.
const EXCLUSIVE_TRIES: u32 = 20;

/// Maximum number of attempts of a write batch, and of a change of the seal.
const TRIES: u32 = 200;

/// The only writer of a partition. See the module.
pub(crate) struct Worker {
    engine: Arc<dyn Engine>,
    partition: PartitionId,
    head: Head,
    shared: Arc<Shared>,
    state: PartitionState,
    tokens: Tokens,
    /// Keys of commits on the current head whose outcome is unknown, while a [`Recording`](super::dirty_keys::Recording) is active.
    unresolved: Vec<Key>,
    recent_writes: RecentWrites,
    /// Commits on the current head whose outcome is unknown: readers of changes wait until it is known.
    undecided: Vec<Arc<InProgress>>,
    /// How far the ends of documents are written into the history.
    telling: Telling,
    /// Which write batches take the entries of creates to be new.
    new_entries: NewEntries,
    contention: Contention,
    /// Whether others have committed since the last commit.
    met_others: bool,
    /// Whether the current write batch has one transaction at most and nothing else is queued, so that its commit may block the thread.
    is_alone: bool,
}

/// How a commit ended.
enum Committed<T = Lsn> {
    /// What is newest after it.
    Done(T),
    /// The partition's head was not the expected one.
    Stale,
    /// An entry that was taken to be new is there.
    Exists,
}

impl Worker {
    /// Reads the partition's head and counters, and returns its worker.
    ///
    /// # Errors
    /// `Unavailable` or `Corrupt`, from the engine.
    pub async fn open(engine: Arc<dyn Engine>, partition: PartitionId, shared: Arc<Shared>) -> Result<Worker> {
        let (head, state) = read_state(engine.as_ref(), partition).await?;
        let new_entries = NewEntries::checked_by(engine.as_ref());
        shared.lsn.store(head.lsn.0, Ordering::Release);
        shared
            .deletions
            .store(edition::deletions(head.edition), Ordering::Release);
        shared.stored_items.store(state.stored.items, Ordering::Relaxed);
        shared.tombstones.publish(&state.tombstones);
        shared.times.raise(state.history_last);
        Ok(Worker {
            engine,
            partition,
            head,
            recent_writes: RecentWrites::of(&shared.interest),
            shared,
            state,
            tokens: Tokens::new(),
            unresolved: Vec::new(),
            undecided: Vec::new(),
            telling: Telling::Off,
            new_entries,
            contention: Contention::default(),
            met_others: false,
            is_alone: false,
        })
    }

    /// Carries out the queued transactions until all queues are closed and empty.
    pub async fn run(mut self, mut queues: Queues) {
        while let Some(mut work) = queues.next().await {
            // A commit of background work does not block the thread: it is not urgent, and users' requests need the threads.
            self.is_alone = !work.has_background_work && work.transactions.len() <= 1 && queues.are_empty();
            self.tell_endings(UnixMillis(i64::MAX)).await;
            let mut turn = None;
            if self.contention.is_expected() && !work.transactions.is_empty() {
                turn = Some(self.take_turn(0, false).await);
                // What was queued while others had the lock belongs to the same write batch.
                queues.fill(&mut work);
            }
            let NextWork {
                mut transactions,
                mut prepared,
                exclusive,
                ..
            } = work;
            while !transactions.is_empty() {
                let mut taken = transactions.len();
                let ended = self
                    .carry_out(&mut transactions, &mut taken, prepared.take(), turn.take())
                    .await;
                for mut transaction in transactions.drain(..taken) {
                    match transaction.take_wait() {
                        Some(pause) => queues.put_back(transaction, pause),
                        None => transaction.end(&ended),
                    }
                }
            }
            match exclusive {
                Some(Alone::Exclusive(settings, mut taker)) => {
                    let ended = self.run_exclusive(settings, taker.as_mut()).await;
                    taker.end(&ended);
                }
                Some(Alone::Joint(part)) => self.run_joint(*part).await,
                Some(Alone::RaiseSettings(raise)) => self.raise_settings(raise).await,
                Some(Alone::Seal(change)) => self.change_seal(change).await,
                None => {}
            }
        }
    }

    /// Runs an exclusive transaction and commits its draft. Returns the log sequence number after it.
    async fn run_exclusive(&mut self, settings: SettingsNumber, taker: &mut dyn TakesPartition) -> Result<Lsn> {
        for attempt in 0..EXCLUSIVE_TRIES {
            // Most end with the first attempt, and some last longer than a lock.
            let _lock = match attempt {
                0 => None,
                _ => self.take_turn(attempt, true).await?,
            };
            self.check_settings(settings).await?;
            let now = clock::exact_now(self.engine.as_ref()).await?.max(self.head.stamp);
            let begun = self.shared.times.begin(now);
            let mut exclusive =
                ExclusiveTransaction::new(self.engine.clone(), self.partition, self.head, now, self.state.clone())
                    .at(begun.time())
                    .waiting_out(attempt == 0 && self.shared.waits_out());
            let taken = AssertUnwindSafe(taker.take(&mut exclusive)).catch_unwind().await;
            match taken {
                Err(_) => {
                    return Err(Error::internal(
                        "a script's transaction panicked; nothing of it was stored",
                    ));
                }
                Ok(Taken::Refused) => return Ok(self.head.lsn),
                Ok(Taken::Stale) => self.expect_others(),
                Ok(Taken::Drafted) => {
                    let decided = exclusive.into_decided(&self.state);
                    match self.commit(decided, begun).await? {
                        Committed::Done(lsn) => return Ok(lsn),
                        Committed::Stale | Committed::Exists => {}
                    }
                }
            }
        }
        Err(overtaken())
    }

    /// Decides and commits one write batch. Returns the log sequence number after it; after an error other than `Timeout`, nothing was committed.
    /// `taken` is set to the number of transactions that the write batch contains. `turn`: the one of the first attempt, if it was taken already.
    async fn carry_out(
        &mut self,
        transactions: &mut [Box<dyn Transaction>],
        taken: &mut usize,
        mut prepared: Option<Prepared>,
        mut turn: Option<Result<Option<WriteLock>>>,
    ) -> Result<Lsn> {
        let mut is_stale = false;
        for attempt in 0..TRIES {
            let _lock = match turn.take() {
                Some(turn) => turn?,
                None => self.take_turn(attempt, is_stale).await?,
            };
            let together = self.alone_while_sealed(transactions).await?;
            let (decided, begun) = self.decide(together, taken, prepared.take()).await?;
            match self.commit(decided, begun).await? {
                Committed::Done(lsn) => return Ok(lsn),
                // The next attempt reads the entries.
                Committed::Exists if attempt == 0 => {}
                Committed::Stale | Committed::Exists => is_stale = true,
            }
        }
        Err(overtaken())
    }

    /// Commits a decided write batch, and then applies its [`AfterCommit`](super::after_commit::AfterCommit).
    async fn commit(&mut self, decided: Decided, begun: InProgress) -> Result<Committed> {
        let Decided {
            changes,
            state,
            stamp,
            after,
            texts,
        } = decided;
        let Some(changes) = changes else {
            self.state = state;
            self.shared.committed(&after, stamp.seconds(), &self.state);
            return Ok(Committed::Done(self.head.lsn));
        };
        let edition = self.next_edition(&state);
        match self.commit_changes(changes, (stamp, edition)).await {
            Ok(Committed::Done(head)) => {
                self.shared.committed(&after, stamp.seconds(), &state);
                self.shared.ranked.apply(self.head.lsn, head.lsn, texts);
                self.advance(head, state);
                Ok(Committed::Done(head.lsn))
            }
            Ok(Committed::Stale) => Ok(Committed::Stale),
            Ok(Committed::Exists) => Ok(Committed::Exists),
            Err(error) => {
                if error.kind == ErrorKind::Timeout {
                    self.undecided.push(Arc::new(begun));
                    self.shared.perhaps_committed(&after, stamp.seconds());
                }
                Err(error)
            }
        }
    }

    async fn commit_changes(
        &mut self,
        changes: Changes,
        (stamp, edition): (UnixMillis, Edition),
    ) -> Result<Committed<Head>> {
        let edition = self.pass_seal(&changes, (stamp, edition))?;
        let keys = self.shared.dirty_keys.keys_of(&changes);
        // A seal changes no rows but its own and, in the catalog, its empty entry of the log: a copy would never see an end of changes while it renews it.
        let is_of_seal = !keys.is_empty() && write_seal::is_of_seal(&changes);
        let written = self.recent_writes.keys_of(&changes);
        let batch = Batch {
            base: self.head.lsn,
            next: changes.next,
            stamp,
            edition,
            token: self.tokens.next(),
            puts: changes.puts,
            deletes: changes.deletes,
            new_keys: changes.new_keys,
            may_block: self.is_alone,
        };
        let committed = self.engine.commit(self.partition, batch).await;
        let head = match committed.map_err(|error| error_of(self.engine.as_ref(), error))? {
            Outcome::Done(head) => Some(head),
            Outcome::Stale => {
                self.shared.conflicts.add();
                self.expect_others();
                None
            }
            Outcome::Exists => {
                self.new_entries.found_one();
                return Ok(Committed::Exists);
            }
            Outcome::Refused(why) => return Err(refused(why)),
            Outcome::Unknown(ticket) => {
                let resolved = self.resolve(ticket).await;
                resolved.inspect_err(|_| self.unresolved.extend_from_slice(&keys))?
            }
        };
        let Some(head) = head else {
            return Ok(Committed::Stale);
        };
        self.recent_writes.note(self.head.lsn, head.lsn, written);
        self.shared.rivals.committed(std::mem::take(&mut self.met_others));
        // Commits on the previous head that are still unresolved were not applied, and never will be.
        self.unresolved.clear();
        if !is_of_seal {
            self.shared.dirty_keys.record(keys);
        }
        Ok(Committed::Done(head))
    }

    async fn resolve(&self, ticket: Ticket) -> Result<Option<Head>> {
        match self.engine.resolve(self.partition, ticket).await {
            Ok(Resolved::Done(head)) => Ok(Some(head)),
            Ok(Resolved::NotDone) => Ok(None),
            Err(why) => Err(Error::new(
                ErrorKind::Timeout,
                format!("the outcome of the write is unknown: {why}"),
            )),
        }
    }

    async fn refresh(&mut self) -> Result<()> {
        let (head, state) = read_state(self.engine.as_ref(), self.partition).await?;
        self.take_newest(head, state)
    }

    /// Goes on with the head and state that were read.
    fn take_newest(&mut self, head: Head, state: PartitionState) -> Result<()> {
        self.shared.lost.compare(self.partition, self.head.lsn, head)?;
        if head.lsn != self.head.lsn {
            self.shared.ranked.forget_all();
            match std::mem::take(&mut self.unresolved) {
                // On a shared engine another server may have committed after it, too.
                unknown if unknown.is_empty() || self.engine.is_shared() => self.shared.dirty_keys.lose_track(),
                unresolved => self.shared.dirty_keys.record(unresolved),
            }
        }
        // The ghosts counted in memory belong to the old head. They are counted again from the purge cursors.
        self.advance(head, state);
        self.shared.schedule.expect_anything(self.head.stamp.seconds().0);
        Ok(())
    }

    /// Sets the current head and state, and publishes them to readers.
    fn advance(&mut self, head: Head, state: PartitionState) {
        let purged = state.purged_total.saturating_sub(self.state.purged_total);
        (self.head, self.state) = (head, state);
        // Before the number of the commit: a reader that finds it, or a later one, uses these tombstones.
        self.shared.tombstones.publish(&self.state.tombstones);
        self.shared
            .deletions
            .store(edition::deletions(head.edition), Ordering::Release);
        self.shared.lsn.store(head.lsn.0, Ordering::Release);
        self.shared
            .stored_items
            .store(self.state.stored.items, Ordering::Relaxed);
        self.shared.purge_rate.note(head.stamp.seconds(), purged);
        // What was undecided on an earlier head is visible now, or never will be.
        self.undecided.clear();
    }
}

/// Reads a partition's head and its stored counters.
pub(super) async fn read_state(engine: &dyn Engine, partition: PartitionId) -> Result<(Head, PartitionState)> {
    let request = ReadRequest::of_keys(state_keys());
    let read = engine.read(partition, request).await;
    state_of(read.map_err(|error| error_of(engine, error))?)
}

fn state_keys() -> Vec<Key> {
    vec![keys::write_seal(), keys::state()]
}

/// The head and the state in the answer to a read of [`state_keys`].
fn state_of(mut reply: ReadResponse) -> Result<(Head, PartitionState)> {
    let state = PartitionState::of_row(reply.gets.pop().flatten())?.with_seal(reply.gets.pop().flatten())?;
    Ok((reply.head, state))
}

/// Waits before an attempt that follows others: two servers that write one partition would otherwise meet each other again and again.
async fn give_way(attempt: u32) {
    if attempt > 0 {
        let longest = u64::from(attempt.min(5)) * 1_000;
        tokio::time::sleep(Duration::from_micros(fastrand::u64(0..=longest))).await;
    }
}

fn overtaken() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "the write could not be committed: others write the partition at the same time",
    )
}

/// Converts an error of the engine that a partition in use has met. If the partition is not there, another server has removed the container, or has
/// split the range.
pub(super) fn error_of(engine: &dyn Engine, error: EngineError) -> Error {
    match error {
        EngineError::NoPartition(_) if engine.is_shared() => settings_changed(),
        error => engine_error(error),
    }
}

/// Converts an error of the engine.
pub(crate) fn engine_error(error: EngineError) -> Error {
    let kind = match &error {
        EngineError::Unavailable(_) => ErrorKind::Unavailable,
        EngineError::NoPartition(_) => ErrorKind::NotFound,
        EngineError::Corrupt(_) => ErrorKind::Corrupt,
    };
    Error::new(kind, error.to_string())
}

/// Generates commit tokens: the first is random for each worker, the next ones count up from it.
struct Tokens(u128);

impl Tokens {
    fn new() -> Tokens {
        use std::hash::{BuildHasher, RandomState};
        let random = |salt: u64| u128::from(RandomState::new().hash_one(salt));
        Tokens((random(1) << 64) | random(2))
    }

    fn next(&mut self) -> CommitToken {
        self.0 = self.0.wrapping_add(1);
        CommitToken(self.0)
    }
}
