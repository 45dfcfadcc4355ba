//! The worker and the settings of the container, which another server may change.

use bolide_model::{ErrorKind, Result, UnixMillis};
use bolide_storage::Edition;

use super::queues::RaiseSettings;
use super::{Committed, Worker};
use crate::clock;
use crate::partition::edition::{self, SettingsNumber, settings_changed};
use crate::partition::state::PartitionState;
use crate::partition::transaction::Transaction;
use crate::partition::write_batch::Changes;

impl Worker {
    /// Checks that the partition has the settings of a request.
    ///
    /// # Errors
    /// [`bolide_model::Reason::SettingsChanged`]; from the engine.
    pub(super) async fn check_settings(&mut self, used: SettingsNumber) -> Result<()> {
        self.follow_seal().await?;
        self.reach_settings(used).await?;
        match SettingsNumber::of(self.head.edition) == used {
            true => Ok(()),
            false => Err(settings_changed()),
        }
    }

    /// Reads the head, if a request knows later settings than the worker.
    ///
    /// # Errors
    /// From the engine; `Unavailable` if the store has lost commits.
    pub(super) async fn reach_settings(&mut self, used: SettingsNumber) -> Result<()> {
        self.shared.lost.check()?;
        if SettingsNumber::of(self.head.edition) < used {
            // Another server has raised it, and the catalog has told this process already.
            self.refresh().await?;
        }
        Ok(())
    }

    /// Returns the edition of the next commit, after which the partition has this state.
    pub(super) fn next_edition(&self, state: &PartitionState) -> Edition {
        match state.tombstones.newest() > Some(self.head.lsn) {
            true => edition::after_deletion(self.head.edition),
            false => self.head.edition,
        }
    }

    /// Raises the number of the settings in the partition's head.
    pub(super) async fn raise_settings(&mut self, raise: RaiseSettings) {
        let raised = self.raise(raise.settings).await;
        // Whoever has asked may be gone.
        let _ = raise.reply.send(raised);
    }

    async fn raise(&mut self, settings: SettingsNumber) -> Result<UnixMillis> {
        self.follow_seal().await?;
        while SettingsNumber::of(self.head.edition) < settings {
            let now = clock::exact_now(self.engine.as_ref()).await?.max(self.head.stamp);
            let changes = Changes {
                new_keys: Vec::new(),
                next: self.head.lsn.next(),
                puts: Vec::new(),
                deletes: Vec::new(),
            };
            let edition = edition::with_settings(self.head.edition, settings);
            let committed = self.commit_changes(changes, (now, edition)).await;
            match committed {
                Ok(Committed::Done(head)) => {
                    let state = self.state.clone();
                    self.shared.ranked.apply(self.head.lsn, head.lsn, Vec::new());
                    self.advance(head, state);
                }
                Ok(Committed::Stale | Committed::Exists) => self.refresh().await?,
                Err(error) => {
                    if error.kind == ErrorKind::Timeout {
                        self.shared.schedule.expect_count(i64::MIN);
                    }
                    return Err(error);
                }
            }
        }
        Ok(self.head.stamp)
    }
}

/// Returns the newest settings of transactions.
pub(super) fn newest_settings(transactions: &[Box<dyn Transaction>]) -> SettingsNumber {
    let numbers = transactions.iter().map(|transaction| transaction.settings());
    numbers.max().unwrap_or_default()
}
