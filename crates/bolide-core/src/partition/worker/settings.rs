//! The worker and the settings of the container, which another server may change.

use std::sync::atomic::Ordering;

use bolide_model::{ErrorKind, Result, UnixMillis};
use bolide_storage::Edition;

use super::Worker;
use super::queues::RaiseSettings;
use crate::clock;
use crate::partition::edition::{self, SettingsNumber, settings_changed};
use crate::partition::state::PartitionState;
use crate::partition::write_batch::Changes;

impl Worker {
    /// Checks that the partition has the settings that requests of this process use.
    ///
    /// # Errors
    /// [`bolide_model::Reason::SettingsChanged`]; from the engine.
    pub(super) async fn check_settings(&mut self) -> Result<()> {
        let used = SettingsNumber(self.shared.settings.load(Ordering::Acquire));
        if SettingsNumber::of(self.head.edition) < used {
            // Another server has raised it, and the catalog has told this process already.
            self.refresh().await?;
        }
        match SettingsNumber::of(self.head.edition) == used {
            true => Ok(()),
            false => Err(settings_changed()),
        }
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
        while SettingsNumber::of(self.head.edition) < settings {
            let now = clock::exact_now(self.engine.as_ref()).await?.max(self.head.stamp);
            let changes = Changes {
                next: self.head.lsn.next(),
                puts: Vec::new(),
                deletes: Vec::new(),
            };
            let edition = edition::with_settings(self.head.edition, settings);
            let committed = self.commit_changes(changes, (now, edition)).await;
            match committed {
                Ok(Some(head)) => {
                    let state = self.state.clone();
                    self.shared.ranked.apply(self.head.lsn, head.lsn, Vec::new());
                    self.advance(head, state);
                }
                Ok(None) => self.refresh().await?,
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
