//! The partition worker: the only writer of a physical partition.
//!
//! ```text
//!   requests ──▶ queue ──▶ [decide ◀─read─ engine] until nothing is missing ──commit──▶ engine
//!                             ▲                                                │
//!                             └────────── Stale: forget all, again ────────────┤
//!                                         Unknown: resolve ─────────────────────┤
//!   answers ◀──────────────────────────── Done ────────────────────────────────┘
//! ```
//!
//! While a commit is on its way the next transactions gather in the queue: the worker is the group commit. It hands out log sequence
//! numbers and takes the time stamps, so both run in the order of commit (TTL-208). The purge is one more client, served one
//! small step per write batch, before the users' transactions (TTL-265). A script has a write batch of its own: it is given a
//! [`ExclusiveTransaction`], during which the partition is its alone.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bolide_model::{Error, ErrorKind, Lsn, Result, UnixMillis};
use bolide_storage::{Batch, CommitToken, Engine, EngineError, Head, Key, Outcome, PartitionId, Resolved, Ticket};
use futures_util::FutureExt;
use tokio::sync::mpsc;

use super::exclusive::{ExclusiveTransaction, Taken, TakesPartition};
use super::shared::Shared;
use super::state::PartitionState;
use super::write_batch::{Changes, Decided, Loaded, Transaction, WriteBatch, refused};
use crate::clock;
use crate::format::keys;

/// Maximum number of transactions in one write batch: bounds the commit's size and the wait of the first.
const WRITE_BATCH_TRANSACTIONS: usize = 256;

/// Maximum number of batches of users in one write batch; there can be one more.
const WRITE_BATCH_BATCHES: usize = 4;

/// Bytes of stored items that one transaction may read: a hundred deletions in a batch can name as many items of the largest size.
const TRANSACTION_BYTES: usize = 64 * 1024 * 1024;

/// How often an exclusive transaction is run again because the partition's head had moved.
const TURN_TRIES: usize = 3;

/// The worker's side of a partition.
pub(crate) struct Worker {
    engine: Arc<dyn Engine>,
    partition: PartitionId,
    head: Head,
    shared: Arc<Shared>,
    state: PartitionState,
    tokens: Tokens,
    /// Keys of commits on the present head whose outcome is unknown, if they are recorded.
    unresolved: Vec<Key>,
    /// Whether nobody waits for what is carried out but the one who asked for it.
    is_alone: bool,
}

/// What transactions came to on what was read so far.
struct Attempt<'l> {
    batch: WriteBatch<'l>,
    /// How many of them are in it.
    taken: usize,
    /// How many of the first found all that they needed.
    complete: usize,
}

/// What users queue.
pub(crate) enum Queued {
    /// A transaction that shares its write batch with others.
    Transaction(Box<dyn Transaction>),
    /// A transaction that needs the partition for itself.
    Exclusive(Box<dyn TakesPartition>),
}

/// The queues of a worker. Closing all of them ends it.
pub(crate) struct Queues {
    /// Users' transactions on single items, and those that take turns.
    pub writes: mpsc::Receiver<Queued>,
    /// Users' transactions on many items: a few per write batch, so that single writes wait for a few of them only, however many are queued.
    pub batches: mpsc::Receiver<Box<dyn Transaction>>,
    /// The purge and other background jobs: one per write batch.
    pub background: mpsc::Receiver<Box<dyn Transaction>>,
}

impl Queues {
    fn are_empty(&self) -> bool {
        self.writes.is_empty() && self.batches.is_empty() && self.background.is_empty()
    }
}

impl Worker {
    /// Reads where the partition stands.
    ///
    /// # Errors
    /// `Unavailable` or `Corrupt`, from the engine.
    pub async fn open(engine: Arc<dyn Engine>, partition: PartitionId, shared: Arc<Shared>) -> Result<Worker> {
        let (head, state) = read_state(engine.as_ref(), partition).await?;
        shared.lsn.store(head.lsn.0, Ordering::Release);
        shared.tombstones.publish(&state.tombstones);
        Ok(Worker {
            engine,
            partition,
            head,
            shared,
            state,
            tokens: Tokens::new(),
            unresolved: Vec::new(),
            is_alone: false,
        })
    }

    /// Serves the queues until all are closed and empty.
    pub async fn run(mut self, mut queues: Queues) {
        let mut transactions: Vec<Box<dyn Transaction>> = Vec::new();
        loop {
            let mut exclusive = None;
            let mut take = |queued, transactions: &mut Vec<_>| match queued {
                Queued::Transaction(write) => transactions.push(write),
                Queued::Exclusive(taker) => exclusive = Some(taker),
            };
            let background = tokio::select! {
                biased;
                Some(queued) = queues.writes.recv() => {
                    take(queued, &mut transactions);
                    queues.background.try_recv().ok()
                }
                Some(write) = queues.batches.recv() => {
                    transactions.push(write);
                    queues.background.try_recv().ok()
                }
                Some(background) = queues.background.recv() => Some(background),
                else => return,
            };
            // One background transaction at most, and it goes first: only the first transaction of a write batch may scan.
            let has_background_work = background.is_some();
            if let Some(background) = background {
                transactions.insert(0, background);
            }
            while exclusive.is_none() && transactions.len() < WRITE_BATCH_TRANSACTIONS {
                match queues.writes.try_recv() {
                    Ok(Queued::Transaction(write)) => transactions.push(write),
                    // What was queued before it goes before it.
                    Ok(Queued::Exclusive(taker)) => exclusive = Some(taker),
                    Err(_) => break,
                }
            }
            for _ in 0..WRITE_BATCH_BATCHES {
                let Ok(write) = queues.batches.try_recv() else { break };
                transactions.push(write);
            }
            // Background work is not urgent, and users' requests need the threads.
            self.is_alone = !has_background_work && transactions.len() <= 1 && queues.are_empty();
            while !transactions.is_empty() {
                let mut taken = transactions.len();
                let ended = self.carry_out(&mut transactions, &mut taken).await;
                for transaction in transactions.drain(..taken) {
                    transaction.end(&ended);
                }
            }
            if let Some(mut taker) = exclusive {
                let ended = self.give_turn(taker.as_mut()).await;
                taker.end(&ended);
            }
        }
    }

    /// Gives a transaction the partition for itself, and commits what it drafts.
    async fn give_turn(&mut self, taker: &mut dyn TakesPartition) -> Result<Lsn> {
        for _ in 0..TURN_TRIES {
            let now = clock::exact_now(self.engine.as_ref()).await?.max(self.head.stamp);
            let mut exclusive =
                ExclusiveTransaction::new(self.engine.clone(), self.partition, self.head, now, self.state.clone());
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
                    match self.commit(decided).await? {
                        Some(lsn) => return Ok(lsn),
                        None => self.refresh().await?,
                    }
                }
            }
        }
        Err(Error::new(
            ErrorKind::Unavailable,
            "the transaction could not be committed: others write the partition at the same time",
        ))
    }

    /// Decides and commits one write batch. `Ok` with the head after it; else nothing happened. `taken` becomes the number of transactions that
    /// were in it, if not all were.
    async fn carry_out(&mut self, transactions: &mut [Box<dyn Transaction>], taken: &mut usize) -> Result<Lsn> {
        loop {
            let decided = self.decide(transactions, taken).await?;
            match self.commit(decided).await? {
                Some(lsn) => return Ok(lsn),
                None => self.refresh().await?,
            }
        }
    }

    /// Reads and decides until nothing is missing. Where much has to be read, fewer transactions are taken: those of which all is there, or the
    /// first, alone.
    async fn decide(&mut self, mut transactions: &mut [Box<dyn Transaction>], taken: &mut usize) -> Result<Decided> {
        let mut loaded = Loaded::up_to(TRANSACTION_BYTES);
        loop {
            // Taken inside the order of commit, and never below the stamp of the commit before.
            let now = clock::exact_now(self.engine.as_ref()).await?.max(self.head.stamp);
            for transaction in transactions.iter_mut() {
                transaction.observe(now.seconds());
            }
            let Attempt {
                mut batch,
                taken: decided,
                complete,
            } = self.decide_on(transactions, now, &loaded)?;
            *taken = decided;
            let missing = batch.missing();
            if missing.is_empty() {
                #[cfg(debug_assertions)]
                {
                    let again = self.decide_on(transactions, now, &loaded)?.batch;
                    if !batch.is_like(&again) {
                        return Err(Error::internal("a decision is no function of what was read"));
                    }
                }
                return Ok(batch.into_decided(self.head.lsn, &self.state));
            }
            if loaded.is_full() && transactions.len() > 1 {
                transactions = &mut transactions[..complete.max(1)];
                if complete == 0 {
                    // What it may read does not depend on others.
                    loaded = Loaded::up_to(TRANSACTION_BYTES);
                }
                continue;
            }
            let reply = self
                .engine
                .read(self.partition, loaded.read_request(&missing))
                .await
                .map_err(engine_error)?;
            if reply.head == self.head {
                loaded.take(missing, reply);
            } else {
                self.refresh().await?;
                loaded = Loaded::up_to(TRANSACTION_BYTES);
            }
        }
    }

    /// Lets transactions decide on what was read so far.
    fn decide_on<'l>(
        &self,
        transactions: &mut [Box<dyn Transaction>],
        now: UnixMillis,
        loaded: &'l Loaded,
    ) -> Result<Attempt<'l>> {
        let mut batch = WriteBatch::new(now, self.head.lsn, self.state.clone(), loaded);
        let (mut taken, mut complete) = (transactions.len(), 0);
        for (at, transaction) in transactions.iter_mut().enumerate() {
            decide_guarded(transaction.as_mut(), &mut batch)?;
            if complete == at && batch.missing_so_far() == 0 {
                complete = at + 1;
            }
            if batch.state.tombstones.newest() > Some(self.head.lsn) {
                // Readers learn that a logical partition was deleted when the commit is done. In one that also has later writes, they could
                // see those beside what was deleted before them.
                taken = at + 1;
                break;
            }
        }
        Ok(Attempt { batch, taken, complete })
    }

    /// Commits what was decided, and does what is to be done then. The head after it; `None` if the head was not where it was thought to be.
    async fn commit(&mut self, decided: Decided) -> Result<Option<Lsn>> {
        let Decided {
            changes,
            state,
            stamp,
            after,
        } = decided;
        let Some(changes) = changes else {
            self.state = state;
            self.shared.committed(&after, stamp.seconds());
            return Ok(Some(self.head.lsn));
        };
        match self.commit_changes(changes, stamp).await {
            Ok(Some(head)) => {
                self.shared.committed(&after, stamp.seconds());
                self.advance(head, state);
                Ok(Some(head.lsn))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                if error.kind == ErrorKind::Timeout {
                    self.shared.perhaps_committed(&after, stamp.seconds());
                }
                Err(error)
            }
        }
    }

    async fn commit_changes(&mut self, changes: Changes, stamp: UnixMillis) -> Result<Option<Head>> {
        let keys = self.shared.dirty_keys.keys_of(&changes);
        let batch = Batch {
            base: self.head.lsn,
            next: changes.next,
            stamp,
            edition: self.head.edition,
            token: self.tokens.next(),
            puts: changes.puts,
            deletes: changes.deletes,
            may_block: self.is_alone,
        };
        let head = match self.engine.commit(self.partition, batch).await.map_err(engine_error)? {
            Outcome::Done(head) => Some(head),
            Outcome::Stale => None,
            Outcome::Refused(why) => return Err(refused(why)),
            Outcome::Unknown(ticket) => {
                let resolved = self.resolve(ticket).await;
                resolved.inspect_err(|_| self.unresolved.extend_from_slice(&keys))?
            }
        };
        if head.is_some() {
            // Commits on the head before this one have not happened, and never will.
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
        if head.lsn != self.head.lsn {
            match std::mem::take(&mut self.unresolved) {
                unknown if unknown.is_empty() => self.shared.dirty_keys.lose_track(),
                unresolved => self.shared.dirty_keys.record(unresolved),
            }
        }
        // Ghosts counted in memory belong to a head that is gone; they are counted again from the purge cursors.
        self.advance(head, state);
        Ok(())
    }

    /// Stands at another head, and lets others know.
    fn advance(&mut self, head: Head, state: PartitionState) {
        let purged = state.purged_total.saturating_sub(self.state.purged_total);
        (self.head, self.state) = (head, state);
        self.shared.lsn.store(head.lsn.0, Ordering::Release);
        self.shared.tombstones.publish(&self.state.tombstones);
        self.shared.purge_rate.note(head.stamp.seconds(), purged);
    }
}

/// Lets one transaction decide. What is missing is noted in the write batch; later transactions go on, to note theirs.
///
/// # Errors
/// `Internal` after a panic: a bug in one decision fails its write batch, of which nothing is stored, and not the partition.
fn decide_guarded(transaction: &mut dyn Transaction, batch: &mut WriteBatch<'_>) -> Result<()> {
    match catch_unwind(AssertUnwindSafe(|| transaction.decide(batch))) {
        Ok(Ok(()) | Err(())) => Ok(()),
        Err(_) => Err(Error::internal(
            "a decision panicked; nothing of its write batch was stored",
        )),
    }
}

/// Where a partition stands, and its counters as they are stored.
pub(super) async fn read_state(engine: &dyn Engine, partition: PartitionId) -> Result<(Head, PartitionState)> {
    let request = bolide_storage::ReadRequest {
        gets: vec![keys::state()],
        ..bolide_storage::ReadRequest::default()
    };
    let mut reply = engine.read(partition, request).await.map_err(engine_error)?;
    let state = PartitionState::of_row(reply.gets.pop().flatten())?;
    Ok((reply.head, state))
}

/// The error for an engine that cannot serve.
pub(crate) fn engine_error(error: EngineError) -> Error {
    let kind = match &error {
        EngineError::Unavailable(_) => ErrorKind::Unavailable,
        EngineError::NoPartition(_) => ErrorKind::NotFound,
        EngineError::Corrupt(_) => ErrorKind::Corrupt,
    };
    Error::new(kind, error.to_string())
}

/// Commit tokens: random for each worker, then counting.
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
