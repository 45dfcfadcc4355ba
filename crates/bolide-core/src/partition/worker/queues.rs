//! The queues of a worker, and what it takes from them.

use std::time::Duration;

use bolide_model::{Result, UnixMillis};
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use crate::partition::edition::SettingsNumber;
use crate::partition::exclusive::TakesPartition;
use crate::partition::joint::JointPart;
use crate::partition::pending::closed;
use crate::partition::prepared::Prepared;
use crate::partition::transaction::Transaction;
use crate::partition::write_seal::{SealChange, Sealing};

/// Maximum number of transactions in one write batch, so that a commit stays small and its first transaction does not wait long.
const WRITE_BATCH_TRANSACTIONS: usize = 256;

/// Maximum number of users' batches that are added to a write batch, so that writes of single items wait for a few batches only. The write batch can
/// contain one more, with which it began.
const WRITE_BATCH_BATCHES: usize = 4;

/// An entry of the queue of users' writes.
pub(crate) enum Queued {
    /// A transaction that shares its write batch with others.
    Transaction(Box<dyn Transaction>),
    /// A transaction that needs the partition for itself.
    Exclusive(SettingsNumber, Box<dyn TakesPartition>),
    /// A part of a joint commit, which needs the partition for itself, too.
    Joint(Box<JointPart>),
    /// New settings.
    RaiseSettings(RaiseSettings),
    /// A change of the seal.
    Seal(ChangeSeal),
}

/// A request to raise the number of the settings in the partition's head.
pub(crate) struct RaiseSettings {
    pub settings: SettingsNumber,
    /// Receives the stamp of the head that has it.
    pub reply: oneshot::Sender<Result<UnixMillis>>,
}

/// A request to change the seal, or to look at it.
pub(crate) struct ChangeSeal {
    pub change: SealChange,
    pub reply: oneshot::Sender<Result<Sealing>>,
}

/// A queued transaction that needs the partition for itself.
pub(super) enum Alone {
    Exclusive(SettingsNumber, Box<dyn TakesPartition>),
    Joint(Box<JointPart>),
    RaiseSettings(RaiseSettings),
    Seal(ChangeSeal),
}

/// The queues of a worker. It stops when all of them are closed.
pub(crate) struct Queues {
    /// Users' transactions on single items, and exclusive transactions.
    pub writes: mpsc::Receiver<Queued>,
    /// Where transactions are put back that wait for a version to end.
    again: mpsc::WeakSender<Queued>,
    /// Users' transactions on many items. A write batch takes a few of them, so that writes of single items wait for these few only, however many are
    /// queued.
    pub batches: mpsc::Receiver<Box<dyn Transaction>>,
    /// Transactions of the purge and other background jobs. A write batch takes one of them.
    pub background: mpsc::Receiver<BackgroundWork>,
    /// Background work that waits for a user's write, while a transaction is carried out that needs the partition for itself.
    held: Option<BackgroundWork>,
}

/// A transaction of a background job.
pub(crate) struct BackgroundWork {
    pub transaction: Box<dyn Transaction>,
    /// Until this ends, the transaction waits for a user's write to share its write batch with: in a batch of its own it would cost users one more sync.
    /// `None`: it does not wait.
    pub patience: Option<BoxFuture<'static, ()>>,
    /// The rows that were read for it already.
    pub prepared: Option<Prepared>,
}

/// What a worker carries out next.
#[derive(Default)]
pub(super) struct NextWork {
    /// The transactions of the next write batch. That of background work is decided first, because only the first transaction of a write batch may scan.
    pub(super) transactions: Vec<Box<dyn Transaction>>,
    pub(super) has_background_work: bool,
    /// The rows that were read for the background work.
    pub(super) prepared: Option<Prepared>,
    /// What needs the partition for itself after them.
    pub(super) exclusive: Option<Alone>,
}

impl NextWork {
    fn take(&mut self, queued: Queued) {
        match queued {
            Queued::Transaction(write) => self.transactions.push(write),
            // Transactions that were queued before the exclusive one are committed before it.
            Queued::Exclusive(settings, taker) => self.exclusive = Some(Alone::Exclusive(settings, taker)),
            Queued::Joint(part) => self.exclusive = Some(Alone::Joint(part)),
            Queued::RaiseSettings(raise) => self.exclusive = Some(Alone::RaiseSettings(raise)),
            Queued::Seal(change) => self.exclusive = Some(Alone::Seal(change)),
        }
    }
}

impl Queues {
    /// Puts the queues of a worker together.
    pub fn new(
        (writes, again): (mpsc::Receiver<Queued>, mpsc::WeakSender<Queued>),
        batches: mpsc::Receiver<Box<dyn Transaction>>,
        background: mpsc::Receiver<BackgroundWork>,
    ) -> Queues {
        let held = None;
        Queues {
            writes,
            again,
            batches,
            background,
            held,
        }
    }

    /// Waits for transactions, and takes those that are queued by then. `None`: all queues are closed and empty.
    pub(super) async fn next(&mut self) -> Option<NextWork> {
        let mut next = NextWork::default();
        let background = match self.held.take() {
            Some(held) => self.beside_users(held, &mut next).await,
            None => tokio::select! {
                biased;
                Some(queued) = self.writes.recv() => {
                    next.take(queued);
                    self.background.try_recv().ok()
                }
                Some(write) = self.batches.recv() => {
                    next.transactions.push(write);
                    self.background.try_recv().ok()
                }
                Some(background) = self.background.recv() => self.beside_users(background, &mut next).await,
                else => return None,
            },
        };
        next.has_background_work = background.is_some();
        if let Some(background) = background {
            next.transactions.insert(0, background.transaction);
            next.prepared = background.prepared;
        }
        self.fill(&mut next);
        for _ in 0..WRITE_BATCH_BATCHES {
            let Ok(write) = self.batches.try_recv() else { break };
            next.transactions.push(write);
        }
        Some(next)
    }

    /// Adds the users' writes that are queued by now.
    pub(super) fn fill(&mut self, next: &mut NextWork) {
        while next.exclusive.is_none() && next.transactions.len() < WRITE_BATCH_TRANSACTIONS {
            let Ok(queued) = self.writes.try_recv() else { break };
            next.take(queued);
        }
    }

    /// Waits until background work has a user's write beside it, or waits no longer. `None`: it is held, because what came needs the partition for itself.
    async fn beside_users(&mut self, mut work: BackgroundWork, next: &mut NextWork) -> Option<BackgroundWork> {
        // Other background work does not wait behind it.
        let Some(patience) = work.patience.as_mut().filter(|_| self.background.is_empty()) else {
            return Some(work);
        };
        tokio::select! {
            biased;
            // First, because it must end even if there is always something queued.
            () = patience => work.patience = None,
            Some(queued) = self.writes.recv() => next.take(queued),
            Some(write) = self.batches.recv() => next.transactions.push(write),
        }
        if next.exclusive.is_some() {
            self.held = Some(work);
            return None;
        }
        Some(work)
    }

    /// Queues a transaction again after a pause.
    pub(super) fn put_back(&self, transaction: Box<dyn Transaction>, pause: Duration) {
        let again = self.again.clone();
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            let queued = Queued::Transaction(transaction);
            let refused = match again.upgrade() {
                Some(queue) => queue.send(queued).await.err().map(|refused| refused.0),
                None => Some(queued),
            };
            if let Some(Queued::Transaction(transaction)) = refused {
                transaction.end(&Err(closed()));
            }
        });
    }

    pub(super) fn are_empty(&self) -> bool {
        self.writes.is_empty() && self.batches.is_empty() && self.background.is_empty() && self.held.is_none()
    }
}
