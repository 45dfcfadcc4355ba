//! Transactions that are queued at a worker, and the requests that wait for them.

use std::time::Duration;

use bolide_model::{Error, ErrorKind, Lsn, Result, UnixMillis};
use tokio::sync::{mpsc, oneshot};

use super::edition::SettingsNumber;
use super::transaction::Transaction;
use super::visibility::LONGEST_WAIT;
use super::write_batch::{Decision, Stop, WriteBatch};

/// Queues a transaction, and returns what it decided once it is committed.
///
/// # Errors
/// The errors of [`Partition::write`](super::Partition::write).
pub(super) async fn transact<I, T, O, F, Q>(
    (queue, queued): (&mpsc::Sender<Q>, impl FnOnce(Box<dyn Transaction>) -> Q),
    settings: SettingsNumber,
    observe: O,
    decide: F,
) -> Result<T>
where
    I: Send + 'static,
    T: Send + 'static,
    O: FnMut(UnixMillis) -> I + Send + 'static,
    F: FnMut(&mut WriteBatch<'_>, &I) -> Decision<T> + Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    let pending = Pending {
        settings,
        observe,
        observed: None,
        decide,
        decided: None,
        waits: None,
        waited: Duration::ZERO,
        rests_on_others: false,
        reply,
    };
    send(queue, queued(Box::new(pending)), answer).await
}

/// Queues something, and waits for its answer.
///
/// # Errors
/// `Unavailable` if the partition is closed; the error of the answer.
pub(super) async fn send<T, Q>(queue: &mpsc::Sender<Q>, queued: Q, answer: oneshot::Receiver<Result<T>>) -> Result<T> {
    queue.send(queued).await.map_err(|_| closed())?;
    answer.await.map_err(|_| closed())?
}

/// Returns the error of a partition whose worker has ended.
pub(super) fn closed() -> Error {
    Error::new(ErrorKind::Unavailable, "the partition is closed")
}

/// Returns the error for a commit that the engine refused.
pub(crate) fn refused(why: String) -> Error {
    Error::new(ErrorKind::StorageFull, why)
}

/// A transaction queued at a worker: what it observes besides rows, its result, and the channel to the request that waits for it.
struct Pending<I, T, O, F> {
    settings: SettingsNumber,
    observe: O,
    observed: Option<I>,
    decide: F,
    decided: Option<Result<T>>,
    /// How long it waits for a version to end.
    waits: Option<Duration>,
    /// How long it has waited: not for one version after the other.
    waited: Duration,
    /// Whether earlier transactions of the same write batch had effects, which this transaction saw.
    rests_on_others: bool,
    reply: oneshot::Sender<Result<T>>,
}

impl<I, T, O, F> Transaction for Pending<I, T, O, F>
where
    I: Send,
    T: Send,
    O: FnMut(UnixMillis) -> I + Send,
    F: FnMut(&mut WriteBatch<'_>, &I) -> Decision<T> + Send,
{
    fn settings(&self) -> SettingsNumber {
        self.settings
    }

    fn refuse(&mut self, why: Error) {
        (self.rests_on_others, self.waits) = (false, None);
        self.decided = Some(Err(why));
    }

    fn observe(&mut self, now: UnixMillis) {
        self.observed = Some((self.observe)(now));
    }

    fn decide(&mut self, batch: &mut WriteBatch<'_>) -> std::result::Result<(), ()> {
        self.rests_on_others = batch.has_effects();
        let waits_out = batch.waits_out;
        batch.waits_out &= self.waited < LONGEST_WAIT;
        let observed = self.observed.as_ref().expect("a worker lets it observe first");
        let decided = (self.decide)(batch, observed);
        batch.waits_out = waits_out;
        self.decided = match decided {
            Ok(value) => Some(Ok(value)),
            Err(Stop::Refused(error) | Stop::Unprepared(error)) => Some(Err(error)),
            Err(Stop::NeedsRead) => None,
            Err(Stop::EndsSoon(pause)) => {
                (self.decided, self.waits) = (None, Some(pause));
                return Ok(());
            }
        };
        self.decided.as_ref().map(|_| ()).ok_or(())
    }

    fn waits(&self) -> bool {
        self.waits.is_some()
    }

    fn take_wait(&mut self) -> Option<Duration> {
        let pause = self.waits.take()?;
        self.waited += pause;
        Some(pause)
    }

    fn end(self: Box<Self>, ended: &Result<Lsn>) {
        let result = match (ended, self.decided) {
            // The refusal may depend on effects of earlier transactions, which were not committed or perhaps were not.
            (Err(error), Some(Err(_))) if self.rests_on_others => Err(error.clone()),
            (_, Some(Err(refusal))) => Err(refusal),
            (Ok(_), Some(Ok(value))) => Ok(value),
            (Err(error), _) => Err(error.clone()),
            (Ok(_), None) => Err(Error::internal("a write batch ended before it was decided")),
        };
        // The request may have been cancelled; its write stays committed.
        let _ = self.reply.send(result);
    }
}
