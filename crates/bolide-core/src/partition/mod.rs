//! Physical partitions. Each has one worker, and one handle ([`Partition`]) through which the rest of the core uses it.

pub(crate) mod admission_queue;
pub(crate) mod after_commit;
mod claims;
pub(crate) mod commit_times;
pub(crate) mod copied;
pub(crate) mod date_cursors;
pub(crate) mod dirty_keys;
mod edition;
pub(crate) mod endings;
pub(crate) mod exclusive;
pub(crate) mod forecast;
pub(crate) mod ghosts;
mod handle;
mod heard;
mod joint;
mod live_index;
mod loaded;
mod lost_history;
pub(crate) mod orders;
mod pages;
mod pending;
mod prepared;
mod purge_rate;
mod ranked_texts;
mod recent_writes;
mod rivals;
mod schedule;
mod shared;
mod signals;
mod snapshot;
pub(crate) mod state;
pub(crate) mod statistics;
mod text_changes;
pub(crate) mod text_counters;
pub(crate) mod tombstones;
mod transaction;
pub(crate) mod visibility;
mod wakeup;
mod whole;
mod worker;
pub(crate) mod write_batch;
pub(crate) mod write_seal;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bolide_model::epk::EpkRange;
use bolide_model::time::CommitTime;
use bolide_model::ttl::{RuleId, Settings};
use bolide_model::{Lsn, Result, UnixMillis, UnixSeconds};
use bolide_storage::{Engine, PartitionId, Space};
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use crate::clock;
use crate::format::keys::DeadlinePosition;
use crate::partition::orders::{Orders, OthersWait};
use crate::throughput::{Meter, SharedMeter};
pub(crate) use claims::Claims;
use commit_times::CommitTimes;
use dirty_keys::Recording;
pub(crate) use edition::SettingsNumber;
use endings::Endings;
use exclusive::{ExclusiveJob, PendingExclusive};
pub(crate) use heard::Heard;
pub(crate) use joint::{JointDecision, commit_jointly};
pub(crate) use live_index::{EntryRead, HeldIndex, LiveFigures, LiveIndex};
pub(crate) use pages::RawPages;
pub(crate) use pending::refused;
use pending::{send, transact};
pub(crate) use prepared::Prepared;
pub(crate) use ranked_texts::{Group, ListId, Making, Ranked, RankedList, RankedText, RankedTexts, order_of_ties};
use shared::Shared;
pub(crate) use signals::Signals;
pub(crate) use snapshot::{AsOf, HistoryPage, IndexInterval, Snapshot, StoredRow, read_history};
use state::PartitionState;
use statistics::Statistics;
use transaction::Transaction;
pub(crate) use wakeup::Wakeup;
pub(crate) use worker::engine_error;
use worker::{BackgroundWork, Queued, Queues, RaiseSettings, Worker, read_state};
use write_batch::{Decision, Loaded, WriteBatch};

/// Maximum number of transactions in one queue of a worker. When a queue is full, senders wait until there is room in it.
const QUEUE: usize = 1024;

/// A physical partition, the storage of one partition key range, as requests by settings of one number use it ([`SettingsNumber`]).
#[derive(Clone)]
pub(crate) struct Partition {
    /// Id of the partition in the engine.
    pub id: PartitionId,
    /// Id of the partition key range.
    pub range: u32,
    /// Range of effective partition keys that it holds.
    pub epk: EpkRange,
    /// Ids of the ranges it was split from, oldest first.
    pub parents: Vec<u32>,
    /// What is read and written at a head with another number ends with [`SettingsChanged`](bolide_model::Reason::SettingsChanged).
    settings: SettingsNumber,
    engine: Arc<dyn Engine>,
    shared: Arc<Shared>,
    writes: mpsc::Sender<Queued>,
    batches: mpsc::Sender<Box<dyn Transaction>>,
    background: mpsc::Sender<BackgroundWork>,
    /// Orders the transactions of scripts: only one of them is queued at the worker at a time.
    pub scripts: Arc<Orders>,
    /// What open transactions have written.
    pub claims: Arc<Claims>,
}

/// Identity of a partition and its place among the ranges of its container.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    pub id: PartitionId,
    pub range: u32,
    pub epk: EpkRange,
    pub parents: Vec<u32>,
}

impl Partition {
    /// Opens a partition and starts its worker. The handle is for requests by the first settings; see [`Partition::at`].
    ///
    /// # Errors
    /// From the engine.
    pub async fn open(
        engine: Arc<dyn Engine>,
        placement: Placement,
        meter: SharedMeter,
        signals: Signals,
    ) -> Result<Arc<Partition>> {
        let shared = Arc::new(Shared::new(meter, signals));
        let worker = Worker::open(engine.clone(), placement.id, shared.clone()).await?;
        let (writes, writes_queue) = mpsc::channel(QUEUE);
        let (batches, batches_queue) = mpsc::channel(QUEUE);
        let (background, background_queue) = mpsc::channel(QUEUE);
        let (write_waits, batch_waits) = (anything_queued(&writes), anything_queued(&batches));
        let others_wait = Arc::new(move || write_waits() || batch_waits());
        let writes_queue = (writes_queue, writes.downgrade());
        tokio::spawn(worker.run(Queues::new(writes_queue, batches_queue, background_queue)));
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
            settings: SettingsNumber::default(),
            engine,
            shared,
            writes,
            batches,
            background,
            scripts: Arc::new(Orders::new(others_wait)),
            claims: Arc::default(),
        }))
    }

    /// Returns the meter of the request units that users consumed and that the purge may spend.
    pub fn meter(&self) -> SharedMeter {
        self.shared.meter.read().clone()
    }

    /// Uses the meter, without counting a reference to it.
    pub fn with_meter<T>(&self, use_it: impl FnOnce(&mut Meter) -> T) -> T {
        use_it(&mut self.shared.meter.read().lock())
    }

    /// Replaces the meter.
    pub fn set_meter(&self, meter: SharedMeter) {
        *self.shared.meter.write() = meter;
    }

    /// Returns the newest log sequence number.
    pub fn lsn(&self) -> Lsn {
        Lsn(self.shared.lsn.load(Ordering::Acquire))
    }

    /// Raises the number of the settings in the partition's head, if it is lower, so that commits and reads by earlier settings end. Returns the stamp of
    /// the head that has it. May be repeated.
    ///
    /// # Errors
    /// From the engine; `Timeout` if it is unknown whether it was raised.
    pub async fn raise_settings(&self, settings: SettingsNumber) -> Result<UnixMillis> {
        let (reply, answer) = oneshot::channel();
        let raise = RaiseSettings { settings, reply };
        send(&self.writes, Queued::RaiseSettings(raise), answer).await
    }

    /// Returns the number of items that were stored after the newest commit, ghosts included. A read may see an older or a newer version.
    pub fn stored_items(&self) -> u64 {
        self.shared.stored_items.load(Ordering::Relaxed)
    }

    /// Returns how many items it has ever had; a split counts those of the parent.
    ///
    /// # Errors
    /// From the engine.
    pub async fn counted_items(&self) -> Result<u64> {
        let (_, state) = read_state(self.engine.as_ref(), self.id).await?;
        Ok(state.next_number)
    }

    /// Returns the lists of full-text indexes that are kept in memory.
    pub fn ranked_texts(&self) -> &Arc<RankedTexts> {
        &self.shared.ranked
    }

    /// Returns the order of the commits of all partitions.
    pub fn times(&self) -> &Arc<CommitTimes> {
        &self.shared.times
    }

    /// Returns the latest time that was given to a commit, and server time.
    pub fn given_time(&self) -> (CommitTime, UnixMillis) {
        (self.shared.times.given(), self.engine.time().lo)
    }

    /// Sets what writes the ends of documents into the history; `None`: they are not written.
    pub fn set_endings(&self, endings: Option<Arc<dyn Endings>>) {
        *self.shared.endings.write() = endings.map(|endings| (self.settings, endings));
        self.shared.schedule.expect_ending(UnixMillis(i64::MIN));
    }

    /// Lets what writes the ends of documents go on by these settings, which say the same of them.
    pub fn keep_endings(&self) {
        if let Some((settings, _)) = self.shared.endings.write().as_mut() {
            *settings = self.settings;
        }
    }

    /// Returns the time before which no end of a document is to be written into the history, as far as is known.
    pub fn next_ending(&self) -> UnixMillis {
        match self.shared.endings.read().is_some() {
            true => self.shared.schedule.next_ending(),
            false => UnixMillis(i64::MAX),
        }
    }

    /// Writes the ends of documents up to now into the history. Those that follow come after `mark`, also if the clock has not come to it.
    ///
    /// # Errors
    /// From the engine.
    pub async fn tell_endings(&self, mark: CommitTime) -> Result<()> {
        // The worker tells them before every write batch.
        let note = move |batch: &mut WriteBatch<'_>| {
            batch.state.marked = batch.state.marked.max(mark);
            Ok(())
        };
        self.background(note).await
    }

    /// Decides and commits a user's transaction. Returns the result of `decide` once the commit is durable.
    ///
    /// # Errors
    /// The error with which `decide` refused, or the reason why nothing could be committed.
    pub async fn write<T, F>(&self, mut decide: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut WriteBatch<'_>) -> Decision<T> + Send + 'static,
    {
        let decide = move |batch: &mut WriteBatch<'_>, (): &()| decide(batch);
        transact((&self.writes, Queued::Transaction), self.settings, |_| (), decide).await
    }

    /// Like [`Partition::write`], for transactions that write many items. They have a queue of their own, of which each write batch takes only a few,
    /// so that writes of single items do not wait for all of them.
    ///
    /// # Errors
    /// The errors of [`Partition::write`].
    pub async fn write_batch<T, F>(&self, mut decide: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut WriteBatch<'_>) -> Decision<T> + Send + 'static,
    {
        let decide = move |batch: &mut WriteBatch<'_>, (): &()| decide(batch);
        let queued = |transaction| transaction;
        transact((&self.batches, queued), self.settings, |_| (), decide).await
    }

    /// Runs a job that has the partition to itself, commits its writes, and returns the job's output once they are durable. Other writes wait
    /// meanwhile, so the job must limit its own time; reads do not wait. If the returned future is dropped before the commit begins, the job is
    /// cancelled.
    ///
    /// # Errors
    /// The error with which the job was refused, or the reason why nothing could be committed.
    pub async fn run_exclusive<J: ExclusiveJob>(&self, job: J) -> Result<J::Output> {
        let (reply, answer) = oneshot::channel();
        let pending = Box::new(PendingExclusive::new(job, reply));
        send(&self.writes, Queued::Exclusive(self.settings, pending), answer).await
    }

    /// Like [`Partition::write`], for background jobs. A write batch takes at most one of them and decides it first, so it may scan.
    ///
    /// # Errors
    /// The errors of [`Partition::write`].
    pub async fn background<T, F>(&self, mut decide: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut WriteBatch<'_>) -> Decision<T> + Send + 'static,
    {
        self.background_observing(|_| (), move |batch, ()| decide(batch)).await
    }

    /// Like [`Partition::background`], for a decision that also depends on values that are not rows of the partition. `observe` reads these values;
    /// it is called with the server time of the decision.
    ///
    /// # Errors
    /// The errors of [`Partition::write`].
    pub async fn background_observing<I, T, O, F>(&self, observe: O, decide: F) -> Result<T>
    where
        I: Send + 'static,
        T: Send + 'static,
        O: FnMut(UnixMillis) -> I + Send + 'static,
        F: FnMut(&mut WriteBatch<'_>, &I) -> Decision<T> + Send + 'static,
    {
        self.background_beside_users((None, None), observe, decide).await
    }

    /// Like [`Partition::background_observing`], for a transaction that until the end of `patience` waits for a user's write to be committed with, and for
    /// which rows may have been read before ([`Partition::prepare`]).
    ///
    /// # Errors
    /// The errors of [`Partition::write`].
    pub async fn background_beside_users<I, T, O, F>(
        &self,
        (patience, prepared): (Option<BoxFuture<'static, ()>>, Option<Prepared>),
        observe: O,
        decide: F,
    ) -> Result<T>
    where
        I: Send + 'static,
        T: Send + 'static,
        O: FnMut(UnixMillis) -> I + Send + 'static,
        F: FnMut(&mut WriteBatch<'_>, &I) -> Decision<T> + Send + 'static,
    {
        let queued = |transaction| BackgroundWork {
            transaction,
            patience,
            prepared,
        };
        transact((&self.background, queued), self.settings, observe, decide).await
    }

    /// Reads the rows that a decision needs, so that the engine has them in its cache when the worker decides. The result of the decision is
    /// discarded.
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

    /// Returns whether stored documents have deadlines under a date rule.
    ///
    /// # Errors
    /// From the engine.
    pub async fn has_deadlines(&self, rule: RuleId) -> Result<bool> {
        let (from, to) = (DeadlinePosition::first(rule).to_bytes(), DeadlinePosition::end(rule));
        Ok(self.count_rows(Space::Expiry, &from, to.as_ref(), 1).await? > 0)
    }

    /// Starts to record the keys that commits change, beginning with commits that are not visible yet, until the returned [`Recording`] is dropped.
    /// Only one recording may be active.
    ///
    /// # Errors
    /// From the engine.
    pub async fn record_dirty_keys(&self) -> Result<Recording> {
        if self.engine.is_shared() {
            // What others have committed by now is not recorded.
            self.catch_up().await?;
        }
        let recording = Recording::start(&self.shared.dirty_keys);
        // Any commit that was running when the recording began is finished once the worker has decided this empty transaction.
        self.background(|_| Ok(())).await?;
        Ok(recording)
    }

    /// Returns the second before which no item expires, as far as is known.
    pub fn next_expiry(&self) -> i64 {
        self.shared.schedule.next_expiry()
    }

    /// Tells whether there are items of deleted logical partitions that are not removed yet.
    pub fn has_tombstones(&self) -> bool {
        self.shared.tombstones.are_any()
    }

    /// Returns the number of ghosts removed per second, averaged over the last minute.
    pub fn purge_rate(&self, now: UnixSeconds) -> f64 {
        self.shared.purge_rate.per_second(now)
    }

    /// Returns the current server time.
    ///
    /// # Errors
    /// `Unavailable` if the engine's clock is too uncertain.
    pub async fn now(&self) -> Result<UnixMillis> {
        clock::exact_now(self.engine.as_ref()).await
    }

    /// Makes the millisecond durable by which documents were judged under date rules, before the verdict is shown: a crash must not bring back what was
    /// seen to have ended. Usually it is durable already, because the background keeps some time durable in advance.
    pub async fn show_exactly(&self, settings: &Settings, now: UnixMillis) {
        if settings.dates.is_empty() {
            return;
        }
        if clock::is_exact_time_short(self.engine.as_ref(), now) {
            self.shared.schedule.expect_exact_time();
        }
        clock::make_durable(self.engine.as_ref(), now).await;
    }

    /// Records that an item expires at a second, for a reason other than a write, for example because settings have changed.
    pub fn expect_due(&self, second: i64) {
        self.shared.schedule.expect_expiry(second);
    }

    /// Returns the statistics that the newest commit published, from memory. Returns `None` if the ghosts have not been counted since the partition was
    /// opened; then [`Partition::count_ghosts`] returns the counters.
    pub fn statistics(&self) -> Option<Statistics> {
        self.shared.statistics.newest()
    }

    /// Returns the number of counted items that the purge is to remove, from memory.
    pub fn backlog(&self) -> u64 {
        self.shared.statistics.backlog()
    }

    /// Returns the second before which [`Partition::statistics`] are exact, as far as is known: at this second, items must be counted.
    pub fn next_count(&self) -> i64 {
        match self.statistics() {
            Some(statistics) if statistics.is_settled => self.shared.schedule.next_count(),
            _ => i64::MIN,
        }
    }

    /// Returns the second before which the background has nothing to count.
    pub fn next_background_count(&self) -> i64 {
        self.next_count().max(self.shared.schedule.counts_rest_until())
    }

    /// Returns the second before which no item expires or must be counted, and no entry leaves the history, as far as is known.
    pub fn next_background_work(&self) -> i64 {
        if self.has_tombstones() {
            return i64::MIN;
        }
        let items = self.next_expiry().min(self.next_background_count());
        items.min(self.next_trim()).min(self.next_forget())
    }

    /// Returns the second before which no entry leaves the history, as far as is known.
    pub fn next_trim(&self) -> i64 {
        self.shared.schedule.next_trim()
    }

    /// Returns the second before which no session is to be forgotten, as far as is known.
    pub fn next_forget(&self) -> i64 {
        self.shared.schedule.next_forget()
    }

    /// Records that an entry leaves the history at a second, for a reason other than a write.
    pub fn expect_trim(&self, second: i64) {
        self.shared.schedule.expect_trim(second);
    }
}

/// Returns a function that tells whether a queue holds anything. It does not keep the queue open.
fn anything_queued<Q: Send + 'static>(queue: &mpsc::Sender<Q>) -> OthersWait {
    let queue = queue.downgrade();
    Arc::new(move || {
        queue
            .upgrade()
            .is_some_and(|queue| queue.capacity() < queue.max_capacity())
    })
}

#[cfg(test)]
mod tests;
