//! How a worker decides a write batch: it reads what the transactions lack until they lack nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bolide_model::time::CommitTime;
use bolide_model::{Error, Result, UnixMillis};

use super::{TRANSACTION_BYTES, Worker, error_of, settings};
use crate::partition::commit_times::InProgress;
use crate::partition::edition::{SettingsNumber, settings_changed};
use crate::partition::prepared::Prepared;
use crate::partition::transaction::Transaction;
use crate::partition::write_batch::{Decided, Loaded, WriteBatch};

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
    /// Reads rows and decides, in a loop, until no row is missing. If the rows are more than one write batch reads, the write batch keeps fewer
    /// transactions: the first ones that need no more rows, or, if there are none, the first transaction alone.
    pub(super) async fn decide(
        &mut self,
        mut transactions: &mut [Box<dyn Transaction>],
        taken: &mut usize,
        prepared: Option<Prepared>,
    ) -> Result<(Decided, InProgress)> {
        let prepared = prepared.and_then(|prepared| prepared.at(self.head, &self.recent_writes));
        let mut loaded = prepared.unwrap_or_else(|| Loaded::up_to(TRANSACTION_BYTES));
        let mut takes_as_new = self.new_entries.next();
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
            } = self.decide_on(transactions, (now, begun.time()), (&loaded, takes_as_new))?;
            *taken = decided;
            let missing = batch.missing();
            if waits {
                // What it has written in the batch before it came to the version is not to be committed.
                continue;
            }
            if missing.is_empty() && batch.has_unchecked_entries() {
                takes_as_new = false;
                continue;
            }
            if missing.is_empty() {
                #[cfg(debug_assertions)]
                self.decide_again(transactions, (now, begun.time()), (&loaded, takes_as_new), &batch)?;
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
            let read = self.engine.read(self.partition, loaded.read_request(&missing)).await;
            let reply = read.map_err(|error| error_of(self.engine.as_ref(), error))?;
            if reply.head == self.head {
                loaded.take(missing, reply);
            } else {
                self.refresh().await?;
                loaded = Loaded::up_to(TRANSACTION_BYTES);
            }
        }
    }

    /// Decides a second time: a decision is a function of what was read.
    #[cfg(debug_assertions)]
    fn decide_again(
        &self,
        transactions: &mut [Box<dyn Transaction>],
        now: (UnixMillis, CommitTime),
        loaded: (&Loaded, bool),
        first: &WriteBatch<'_>,
    ) -> Result<()> {
        if !first.is_like(&self.decide_on(transactions, now, loaded)?.batch) {
            return Err(Error::internal("a decision is no function of what was read"));
        }
        Ok(())
    }

    /// Lets transactions decide on the rows that were read so far.
    fn decide_on<'l>(
        &self,
        transactions: &mut [Box<dyn Transaction>],
        (now, time): (UnixMillis, CommitTime),
        (loaded, takes_as_new): (&'l Loaded, bool),
    ) -> Result<Attempt<'l>> {
        let batch = WriteBatch::new(now, self.head.lsn, self.state.clone(), loaded).at(time);
        let mut batch = batch.taking_entries_as_new(takes_as_new);
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
