//! Physical partitions: one worker each, and the handle by which everything else reaches it.

pub(crate) mod admission_queue;
pub(crate) mod after_commit;
pub(crate) mod dirty_keys;
pub(crate) mod exclusive;
pub(crate) mod forecast;
mod loaded;
pub(crate) mod orders;
mod pages;
mod purge_rate;
mod schedule;
mod shared;
mod snapshot;
pub(crate) mod state;
pub(crate) mod tombstones;
pub(crate) mod visibility;
mod wakeup;
mod worker;
pub(crate) mod write_batch;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bolide_model::epk::EpkRange;
use bolide_model::{Error, ErrorKind, Lsn, Result, UnixMillis, UnixSeconds};
use bolide_storage::{Engine, PartitionId};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::clock;
use crate::format::keys::LogPosition;
use crate::partition::orders::{Orders, OthersWait};
use crate::throughput::SharedMeter;
use dirty_keys::Recording;
use exclusive::{ExclusiveJob, PendingExclusive};
pub(crate) use pages::RawPages;
use shared::Shared;
pub(crate) use snapshot::{AsOf, Snapshot, StoredRow};
use state::PartitionState;
pub(crate) use wakeup::Wakeup;
pub(crate) use worker::engine_error;
use worker::{Queued, Queues, Worker, read_state};
use write_batch::{Decision, Loaded, Stop, Transaction, WriteBatch};

/// Transactions that may wait for a worker before senders wait too.
const QUEUE: usize = 1024;

/// A physical partition: the storage of one partition key range.
pub(crate) struct Partition {
    /// Its name in the engine.
    pub id: PartitionId,
    /// Id of the partition key range.
    pub range: u32,
    /// The effective partition keys it holds.
    pub epk: EpkRange,
    /// Ids of the ranges it was split from, oldest first.
    pub parents: Vec<u32>,
    engine: Arc<dyn Engine>,
    shared: Arc<Shared>,
    writes: mpsc::Sender<Queued>,
    batches: mpsc::Sender<Box<dyn Transaction>>,
    background: mpsc::Sender<Box<dyn Transaction>>,
    /// Nothing before it in the log lives by the default, as far as is known.
    first_in_log: Mutex<LogPosition>,
    /// Transactions of scripts, one of which at a time is queued at the worker.
    pub scripts: Orders,
}

/// What places a partition among the ranges of its container.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    pub id: PartitionId,
    pub range: u32,
    pub epk: EpkRange,
    pub parents: Vec<u32>,
}

impl Partition {
    /// Opens a partition and starts its worker.
    ///
    /// # Errors
    /// From the engine.
    pub async fn open(
        engine: Arc<dyn Engine>,
        placement: Placement,
        meter: SharedMeter,
        wakeup: Arc<Wakeup>,
    ) -> Result<Arc<Partition>> {
        let shared = Arc::new(Shared::new(meter, wakeup));
        let worker = Worker::open(engine.clone(), placement.id, shared.clone()).await?;
        let (writes, writes_queue) = mpsc::channel(QUEUE);
        let (batches, batches_queue) = mpsc::channel(QUEUE);
        let (background, background_queue) = mpsc::channel(QUEUE);
        let (write_waits, batch_waits) = (anything_queued(&writes), anything_queued(&batches));
        let others_wait = Arc::new(move || write_waits() || batch_waits());
        tokio::spawn(worker.run(Queues {
            writes: writes_queue,
            batches: batches_queue,
            background: background_queue,
        }));
        let Placement {
            id,
            range,
            epk,
            parents,
        } = placement;
        Ok(Arc::new(Partition {
            id,
            range,
            epk,
            parents,
            engine,
            shared,
            writes,
            batches,
            background,
            first_in_log: Mutex::default(),
            scripts: Orders::new(others_wait),
        }))
    }

    /// What users consumed, and what the purge may spend.
    pub fn meter(&self) -> SharedMeter {
        self.shared.meter.read().clone()
    }

    /// Consumes and spends by another meter from now on.
    pub fn set_meter(&self, meter: SharedMeter) {
        *self.shared.meter.write() = meter;
    }

    /// The newest log sequence number.
    pub fn lsn(&self) -> Lsn {
        Lsn(self.shared.lsn.load(Ordering::Acquire))
    }

    /// How many items are stored, ghosts included.
    ///
    /// # Errors
    /// From the engine; `Corrupt` if the counters are damaged.
    pub async fn stored_items(&self) -> Result<u64> {
        let (_, state) = read_state(self.engine.as_ref(), self.id).await?;
        Ok(state.stored.items)
    }

    /// Decides and commits a user's transaction. Returns what it decided, once that is durable.
    ///
    /// # Errors
    /// What `decide` refused with, or why nothing could be committed.
    pub async fn write<T, F>(&self, decide: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut WriteBatch<'_>) -> Decision<T> + Send + 'static,
    {
        transact(&self.writes, decide, Queued::Transaction).await
    }

    /// As [`Partition::write`], for what writes many items: others do not wait for all that were queued before them.
    ///
    /// # Errors
    /// As [`Partition::write`].
    pub async fn write_batch<T, F>(&self, decide: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut WriteBatch<'_>) -> Decision<T> + Send + 'static,
    {
        transact(&self.batches, decide, |transaction| transaction).await
    }

    /// Gives a job the partition for itself, and commits what it drafted. Others' writes wait meanwhile, so the job must bound itself;
    /// reads go on. Returns what the job did, once that is durable. A job whose future is dropped before its commit begins is ended.
    ///
    /// # Errors
    /// What the job was refused with, or why nothing could be committed.
    pub async fn run_exclusive<J: ExclusiveJob>(&self, job: J) -> Result<J::Output> {
        let (reply, answer) = oneshot::channel();
        let gone = || Error::new(ErrorKind::Unavailable, "the partition is closed");
        let pending = Box::new(PendingExclusive::new(job, reply));
        self.writes.send(Queued::Exclusive(pending)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// As [`Partition::write`], for background jobs: the only one of its write batch and the first, so it may scan.
    ///
    /// # Errors
    /// As [`Partition::write`].
    pub async fn background<T, F>(&self, decide: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut WriteBatch<'_>) -> Decision<T> + Send + 'static,
    {
        transact(&self.background, decide, |transaction| transaction).await
    }

    /// As [`Partition::background`], for a decision that also depends on what is no row of the partition: `observe` looks at that, at the server
    /// time of the decision.
    ///
    /// # Errors
    /// As [`Partition::write`].
    pub async fn background_observing<I, T, O, F>(&self, observe: O, decide: F) -> Result<T>
    where
        I: Send + 'static,
        T: Send + 'static,
        O: FnMut(UnixSeconds) -> I + Send + 'static,
        F: FnMut(&mut WriteBatch<'_>, &I) -> Decision<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let pending = PendingObserver {
            observe,
            observed: None,
            decide,
            outcome: PendingOutcome::new(reply),
        };
        let queued: Box<dyn Transaction> = Box::new(pending);
        send(&self.background, queued, answer).await
    }

    /// Reads what a decision would need, so that the engine has it at hand when the worker decides. What the decision comes to is dropped.
    ///
    /// # Errors
    /// From the engine.
    pub async fn read_ahead<T>(&self, mut decide: impl FnMut(&mut WriteBatch<'_>) -> Decision<T>) -> Result<()> {
        let (now, mut loaded) = (self.now().await?, Loaded::default());
        loop {
            let missing = {
                let mut batch = WriteBatch::new(now, self.lsn(), PartitionState::default(), &loaded);
                let _ = decide(&mut batch);
                batch.missing()
            };
            if missing.is_empty() {
                return Ok(());
            }
            let reply = self.read_raw(loaded.read_request(&missing)).await?;
            loaded.take(missing, reply);
        }
    }

    /// Records the keys of all commits that are not visible yet, until the result is dropped. For one copy at a time.
    ///
    /// # Errors
    /// From the engine.
    pub async fn record_dirty_keys(&self) -> Result<Recording> {
        let recording = Recording::start(&self.shared.dirty_keys);
        // A commit that was under way has ended when the worker gets to this.
        self.background(|_| Ok(())).await?;
        Ok(recording)
    }

    /// The second before which nothing falls due, as far as is known.
    pub fn next_expiry(&self) -> i64 {
        self.shared.schedule.next_expiry()
    }

    /// Whether items of deleted logical partitions wait for their removal.
    pub fn has_tombstones(&self) -> bool {
        self.shared.tombstones.are_any()
    }

    /// Ghosts removed in a second, in the mean of the last minute.
    pub fn purge_rate(&self, now: UnixSeconds) -> f64 {
        self.shared.purge_rate.per_second(now)
    }

    /// Server time now.
    ///
    /// # Errors
    /// `Unavailable` if the engine's clock is too uncertain.
    pub async fn now(&self) -> Result<UnixMillis> {
        clock::exact_now(self.engine.as_ref()).await
    }

    /// A place in the log before which nothing lives by the default: entries there are gone, or stay what they are.
    pub fn first_in_log(&self) -> LogPosition {
        *self.first_in_log.lock()
    }

    /// Remembers such a place.
    pub fn set_first_in_log(&self, position: LogPosition) {
        let mut known = self.first_in_log.lock();
        *known = position.max(*known);
    }

    /// Something falls due at a second, by other than a write: settings have changed, say.
    pub fn expect_due(&self, second: i64) {
        self.shared.schedule.expect_expiry(second);
    }

    /// The second before which nothing falls due or leaves the history, as far as is known.
    pub fn next_background_work(&self) -> i64 {
        if self.has_tombstones() {
            return i64::MIN;
        }
        self.next_expiry().min(self.next_trim())
    }

    /// The second before which nothing leaves the history, as far as is known.
    pub fn next_trim(&self) -> i64 {
        self.shared.schedule.next_trim()
    }

    /// Something leaves the history at a second, by other than a write.
    pub fn expect_trim(&self, second: i64) {
        self.shared.schedule.expect_trim(second);
    }
}

/// Tells whether anything waits in a queue, without keeping it open.
fn anything_queued<Q: Send + 'static>(queue: &mpsc::Sender<Q>) -> OthersWait {
    let queue = queue.downgrade();
    Arc::new(move || {
        queue
            .upgrade()
            .is_some_and(|queue| queue.capacity() < queue.max_capacity())
    })
}

async fn transact<T, F, Q>(queue: &mpsc::Sender<Q>, decide: F, queued: fn(Box<dyn Transaction>) -> Q) -> Result<T>
where
    T: Send + 'static,
    F: FnMut(&mut WriteBatch<'_>) -> Decision<T> + Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    let pending = Pending {
        decide,
        outcome: PendingOutcome::new(reply),
    };
    send(queue, queued(Box::new(pending)), answer).await
}

async fn send<T, Q>(queue: &mpsc::Sender<Q>, queued: Q, answer: oneshot::Receiver<Result<T>>) -> Result<T> {
    let gone = || Error::new(ErrorKind::Unavailable, "the partition is closed");
    queue.send(queued).await.map_err(|_| gone())?;
    answer.await.map_err(|_| gone())?
}

/// What a transaction came to, and who waits for it.
struct PendingOutcome<T> {
    decided: Option<Result<T>>,
    /// Transactions of the same write batch went before, and it saw their effects.
    rests_on_others: bool,
    reply: oneshot::Sender<Result<T>>,
}

impl<T> PendingOutcome<T> {
    fn new(reply: oneshot::Sender<Result<T>>) -> PendingOutcome<T> {
        PendingOutcome {
            decided: None,
            rests_on_others: false,
            reply,
        }
    }

    fn take(&mut self, rests_on_others: bool, decided: Decision<T>) -> std::result::Result<(), ()> {
        self.rests_on_others = rests_on_others;
        self.decided = match decided {
            Ok(value) => Some(Ok(value)),
            Err(Stop::Refused(error) | Stop::Unprepared(error)) => Some(Err(error)),
            Err(Stop::NeedsRead) => None,
        };
        self.decided.as_ref().map(|_| ()).ok_or(())
    }

    fn end(self, ended: &Result<Lsn>) {
        let result = match (ended, self.decided) {
            // What a refusal saw of others has not happened, or may not have.
            (Err(error), Some(Err(_))) if self.rests_on_others => Err(error.clone()),
            (_, Some(Err(refusal))) => Err(refusal),
            (Ok(_), Some(Ok(value))) => Ok(value),
            (Err(error), _) => Err(error.clone()),
            (Ok(_), None) => Err(Error::internal("a write batch ended before it was decided")),
        };
        // The request may be gone; its write stands.
        let _ = self.reply.send(result);
    }
}

/// A transaction on its way through a worker.
struct Pending<T, F> {
    decide: F,
    outcome: PendingOutcome<T>,
}

impl<T, F> Transaction for Pending<T, F>
where
    T: Send,
    F: FnMut(&mut WriteBatch<'_>) -> Decision<T> + Send,
{
    fn decide(&mut self, batch: &mut WriteBatch<'_>) -> std::result::Result<(), ()> {
        let rests_on_others = batch.has_effects();
        self.outcome.take(rests_on_others, (self.decide)(batch))
    }

    fn end(self: Box<Self>, ended: &Result<Lsn>) {
        self.outcome.end(ended);
    }
}

/// As [`Pending`], with what it observes.
struct PendingObserver<I, T, O, F> {
    observe: O,
    observed: Option<I>,
    decide: F,
    outcome: PendingOutcome<T>,
}

impl<I, T, O, F> Transaction for PendingObserver<I, T, O, F>
where
    I: Send,
    T: Send,
    O: FnMut(UnixSeconds) -> I + Send,
    F: FnMut(&mut WriteBatch<'_>, &I) -> Decision<T> + Send,
{
    fn observe(&mut self, now: UnixSeconds) {
        self.observed = Some((self.observe)(now));
    }

    fn decide(&mut self, batch: &mut WriteBatch<'_>) -> std::result::Result<(), ()> {
        let rests_on_others = batch.has_effects();
        let observed = self.observed.as_ref().expect("a worker lets it observe first");
        let decided = (self.decide)(batch, observed);
        self.outcome.take(rests_on_others, decided)
    }

    fn end(self: Box<Self>, ended: &Result<Lsn>) {
        self.outcome.end(ended);
    }
}

#[cfg(test)]
mod tests;
