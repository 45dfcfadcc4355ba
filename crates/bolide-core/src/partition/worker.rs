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

mod lending;
mod queues;
mod settings;
mod telling;
mod write_seal;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bolide_model::time::CommitTime;
use bolide_model::{Error, ErrorKind, Lsn, Result, UnixMillis};
use bolide_storage::{
    Batch, CommitToken, Edition, Engine, EngineError, Head, Key, Outcome, PartitionId, Resolved, Ticket,
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
use super::write_batch::{Changes, Decided, Loaded, WriteBatch};
use crate::clock;
use crate::format::keys;
use queues::{Alone, NextWork};
pub(crate) use queues::{BackgroundWork, ChangeSeal, Queued, Queues, RaiseSettings};
use telling::Telling;

/// Maximum size in bytes of the stored items that one transaction may read. A batch of a hundred deletions can name as many items of the maximum
/// size; this bounds the memory that it uses.
pub(super) const TRANSACTION_BYTES: usize = 64 * 1024 * 1024;

/// Maximum number of attempts of an exclusive transaction. It is run again when the partition's head has moved, which only other servers do.
const EXCLUSIVE_TRIES: u32 = 20;

/// Maximum number of attempts of a write batch.
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
    /// Whether the current write batch has one transaction at most and nothing else is queued, so that its commit may block the thread.
    is_alone: bool,
}

/// The result of deciding transactions on the rows that were read so far.
struct Attempt<'l> {
    batch: WriteBatch<'l>,
    /// Number of transactions that are in the write batch.
    taken: usize,
    /// Number of transactions, counted from the first, for which no row is missing.
    complete: usize,
    /// Whether one more of them waits for a version to end, so that all have to be decided without it.
    waits: bool,
}

impl Worker {
    /// Reads the partition's head and counters, and returns its worker.
    ///
    /// # Errors
    /// `Unavailable` or `Corrupt`, from the engine.
    pub async fn open(engine: Arc<dyn Engine>, partition: PartitionId, shared: Arc<Shared>) -> Result<Worker> {
        let (head, state) = read_state(engine.as_ref(), partition).await?;
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
            is_alone: false,
        })
    }

    /// Carries out the queued transactions until all queues are closed and empty.
    pub async fn run(mut self, mut queues: Queues) {
        while let Some(work) = queues.next().await {
            let NextWork {
                mut transactions,
                has_background_work,
                mut prepared,
                exclusive,
            } = work;
            // A commit of background work does not block the thread: it is not urgent, and users' requests need the threads.
            self.is_alone = !has_background_work && transactions.len() <= 1 && queues.are_empty();
            self.tell_endings(UnixMillis(i64::MAX)).await;
            while !transactions.is_empty() {
                let mut taken = transactions.len();
                let ended = self.carry_out(&mut transactions, &mut taken, prepared.take()).await;
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
            give_way(attempt).await;
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
                Ok(Taken::Stale) => self.refresh().await?,
                Ok(Taken::Drafted) => {
                    let decided = exclusive.into_decided(&self.state);
                    match self.commit(decided, begun).await? {
                        Some(lsn) => return Ok(lsn),
                        None => self.refresh().await?,
                    }
                }
            }
        }
        Err(overtaken())
    }

    /// Decides and commits one write batch. Returns the log sequence number after it; after an error other than `Timeout`, nothing was committed.
    /// `taken` is set to the number of transactions that the write batch contains.
    async fn carry_out(
        &mut self,
        transactions: &mut [Box<dyn Transaction>],
        taken: &mut usize,
        mut prepared: Option<Prepared>,
    ) -> Result<Lsn> {
        for attempt in 0..TRIES {
            give_way(attempt).await;
            let together = self.alone_while_sealed(transactions).await?;
            let (decided, begun) = self.decide(together, taken, prepared.take()).await?;
            match self.commit(decided, begun).await? {
                Some(lsn) => return Ok(lsn),
                None => self.refresh().await?,
            }
        }
        Err(overtaken())
    }

    /// Reads rows and decides, in a loop, until no row is missing. If the rows are more than one write batch reads, the write batch keeps fewer
    /// transactions: the first ones that need no more rows, or, if there are none, the first transaction alone.
    async fn decide(
        &mut self,
        mut transactions: &mut [Box<dyn Transaction>],
        taken: &mut usize,
        prepared: Option<Prepared>,
    ) -> Result<(Decided, InProgress)> {
        let prepared = prepared.and_then(|prepared| prepared.at(self.head, &self.recent_writes));
        let mut loaded = prepared.unwrap_or_else(|| Loaded::up_to(TRANSACTION_BYTES));
        loop {
            let settings = settings::newest_settings(transactions);
            self.reach_settings(settings).await?;
            // Read here, so that stamps are in commit order, and never below the stamp of the previous commit.
            let now = self.now().await?;
            let begun = self.shared.times.begin(now);
            for transaction in transactions.iter_mut() {
                transaction.observe(now);
            }
            let Attempt {
                mut batch,
                taken: decided,
                complete,
                waits,
            } = self.decide_on(transactions, (now, begun.time()), &loaded)?;
            *taken = decided;
            let missing = batch.missing();
            if waits {
                // What it has written in the batch before it came to the version is not to be committed.
                continue;
            }
            if missing.is_empty() {
                #[cfg(debug_assertions)]
                {
                    let again = self.decide_on(transactions, (now, begun.time()), &loaded)?.batch;
                    if !batch.is_like(&again) {
                        return Err(Error::internal("a decision is no function of what was read"));
                    }
                }
                return Ok((batch.into_decided(self.head.lsn, &self.state), begun));
            }
            if loaded.is_full() && transactions.len() > 1 {
                transactions = &mut transactions[..complete.max(1)];
                if complete == 0 {
                    // How much a transaction may read must not depend on what others have read.
                    loaded = Loaded::up_to(TRANSACTION_BYTES);
                }
                continue;
            }
            let reply = self
                .engine
                .read(self.partition, loaded.read_request(&missing))
                .await
                .map_err(|error| error_of(self.engine.as_ref(), error))?;
            if reply.head == self.head {
                loaded.take(missing, reply);
            } else {
                self.refresh().await?;
                loaded = Loaded::up_to(TRANSACTION_BYTES);
            }
        }
    }

    /// Lets transactions decide on the rows that were read so far.
    fn decide_on<'l>(
        &self,
        transactions: &mut [Box<dyn Transaction>],
        (now, time): (UnixMillis, CommitTime),
        loaded: &'l Loaded,
    ) -> Result<Attempt<'l>> {
        let mut batch = WriteBatch::new(now, self.head.lsn, self.state.clone(), loaded).at(time);
        batch.waits_out = self.shared.waits_out();
        let (mut taken, mut complete, mut waits) = (transactions.len(), 0, false);
        for (at, transaction) in transactions.iter_mut().enumerate() {
            if transaction.settings() != SettingsNumber::of(self.head.edition) {
                transaction.refuse(settings_changed());
            } else if !transaction.waits() {
                decide_guarded(transaction.as_mut(), &mut batch)?;
                waits |= transaction.waits();
            }
            if complete == at && batch.missing_so_far() == 0 {
                complete = at + 1;
            }
            if batch.state.tombstones.newest() > Some(self.head.lsn) {
                // Readers learn that a logical partition was deleted when the commit is done. If the same commit contained later writes, readers
                // could see these together with items that were deleted before them. So the write batch ends here.
                taken = at + 1;
                break;
            }
        }
        Ok(Attempt {
            batch,
            taken,
            complete,
            waits,
        })
    }

    /// Commits a decided write batch, and then applies its [`AfterCommit`](super::after_commit::AfterCommit). Returns the log sequence number after
    /// it; `None` if the partition's head was not the expected one.
    async fn commit(&mut self, decided: Decided, begun: InProgress) -> Result<Option<Lsn>> {
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
            return Ok(Some(self.head.lsn));
        };
        let edition = self.next_edition(&state);
        match self.commit_changes(changes, (stamp, edition)).await {
            Ok(Some(head)) => {
                self.shared.committed(&after, stamp.seconds(), &state);
                self.shared.ranked.apply(self.head.lsn, head.lsn, texts);
                self.advance(head, state);
                Ok(Some(head.lsn))
            }
            Ok(None) => Ok(None),
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
    ) -> Result<Option<Head>> {
        let edition = self.pass_seal(&changes, (stamp, edition))?;
        let keys = self.shared.dirty_keys.keys_of(&changes);
        let written = self.recent_writes.keys_of(&changes);
        let batch = Batch {
            base: self.head.lsn,
            next: changes.next,
            stamp,
            edition,
            token: self.tokens.next(),
            puts: changes.puts,
            deletes: changes.deletes,
            may_block: self.is_alone,
        };
        let committed = self.engine.commit(self.partition, batch).await;
        let head = match committed.map_err(|error| error_of(self.engine.as_ref(), error))? {
            Outcome::Done(head) => Some(head),
            Outcome::Stale => {
                self.shared.conflicts.add();
                None
            }
            Outcome::Refused(why) => return Err(refused(why)),
            Outcome::Unknown(ticket) => {
                let resolved = self.resolve(ticket).await;
                resolved.inspect_err(|_| self.unresolved.extend_from_slice(&keys))?
            }
        };
        if let Some(head) = head {
            self.recent_writes.note(self.head.lsn, head.lsn, written);
            // Commits on the previous head that are still unresolved were not applied, and never will be.
            self.unresolved.clear();
            self.shared.dirty_keys.record(keys);
        }
        Ok(head)
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

/// Lets one transaction decide. The rows that it lacks are noted in the write batch; later transactions are decided all the same, so that the rows
/// that they lack are read together with these.
///
/// # Errors
/// `Internal` after a panic. A bug in one decision fails its write batch, of which nothing is stored, but not the partition.
fn decide_guarded(transaction: &mut dyn Transaction, batch: &mut WriteBatch<'_>) -> Result<()> {
    match catch_unwind(AssertUnwindSafe(|| transaction.decide(batch))) {
        Ok(Ok(()) | Err(())) => Ok(()),
        Err(_) => Err(Error::internal(
            "a decision panicked; nothing of its write batch was stored",
        )),
    }
}

/// Reads a partition's head and its stored counters.
pub(super) async fn read_state(engine: &dyn Engine, partition: PartitionId) -> Result<(Head, PartitionState)> {
    let request = bolide_storage::ReadRequest {
        gets: vec![keys::write_seal(), keys::state()],
        ..bolide_storage::ReadRequest::default()
    };
    let read = engine.read(partition, request).await;
    let mut reply = read.map_err(|error| error_of(engine, error))?;
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
