//! Changes of a container's settings on an engine that several servers share: all requests of all servers see them at one instant (TTL-233).
//!
//! ```text
//!   1  pending   the container's row says which number the new settings will have
//!   2  raise     every partition's head gets this number: from there on, commits and reads by earlier settings end with `SettingsChanged`
//!   3  commit    the row gets the settings, at a time that is not before any raised head. This is the instant.
//! ```
//!
//! Between 1 and 3 the container is sealed: only the server that changes it reads and writes its partitions. One that meets a number which it does not
//! know reads the row. If the change is pending, it waits. If the change does not go on, because its server has died, it takes over: it raises all
//! partitions to a higher number and commits the row as it was, so that the earlier change never takes effect.

use std::sync::Arc;
use std::time::Duration;

use bolide_model::error::Resource;
use bolide_model::rid::ContainerRid;
use bolide_model::{Error, ErrorKind, Reason, Result, UnixMillis};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Either, select, try_join_all};

use super::Catalog;
use super::batch::CatalogBatch;
use super::rows::{ContainerRow, PendingSettings, RowKey};
use crate::container::{Container, Layout, Sealed, WriteGuard};
use crate::partition::SettingsNumber;
use crate::partition::write_batch::Decision;

/// Interval between two looks at a pending change.
const POLL: Duration = Duration::from_millis(5);
/// Number of looks that find no progress before the change is taken over: a tenth of a second.
const PATIENCE: usize = 20;
/// Maximum number of looks: about ten seconds.
const LOOKS: usize = 2_000;
/// Interval at which a change that takes long shows that it goes on.
const BEAT: Duration = Duration::from_millis(25);
/// Maximum number of attempts to seal a container that others change at the same time.
const TRIES: usize = 10;
/// Maximum number of partitions whose heads are raised at the same time.
const RAISED_AT_ONCE: usize = 16;

impl Catalog {
    /// Carries out `work`, which changes a container, while other servers neither read nor write it. `work` commits the container's row, or nothing.
    /// On an engine that only this process uses, the caller's lock is enough.
    ///
    /// # Errors
    /// Those of `work`; `NotFound` if the container was deleted; [`Reason::SettingsChanged`] if it took so long to go on that another server has taken
    /// over; from the engine.
    pub async fn sealed<T>(
        &self,
        container: &Arc<Container>,
        change: &WriteGuard<'_>,
        work: BoxFuture<'_, Result<T>>,
    ) -> Result<T> {
        if !self.engine.is_shared() {
            return work.await;
        }
        self.begin_sealing(container, change).await?;
        let work = async {
            self.raise(change).await?;
            work.await
        }
        .boxed();
        let beats = Box::pin(self.show_progress(container.rid(), change));
        let worked = match select(work, beats).await {
            Either::Left((worked, _)) => worked,
            Either::Right(((), work)) => work.await,
        };
        // What was refused, or failed before its commit.
        if change.sealed().is_some()
            && let Err(error) = self.release(container, change).await
        {
            tracing::debug!(%error, "a change of a container is left to be ended by others");
        }
        worked
    }

    /// Commits that a change is pending.
    async fn begin_sealing(&self, container: &Arc<Container>, change: &WriteGuard<'_>) -> Result<()> {
        let rid = container.rid();
        for _ in 0..TRIES {
            let state = self.newest_state(container, change).await?;
            if state.is_deleted {
                return Err(Error::missing(Resource::Container, &state.properties.id));
            }
            let version = state.layout.version;
            let begun = self.commit(move |batch| {
                let mut row = batch.container(rid)?;
                if row.pending.is_some() || row.layout_version != version {
                    return Ok(None);
                }
                let number = row.settings_number.next();
                row.pending = Some(PendingSettings { number, beat: 0 });
                replace(batch, rid, row)?;
                Ok(Some(number))
            });
            if let Some(number) = begun.await? {
                let stamp = UnixMillis(i64::MIN);
                change.seal(Some(Sealed { number, stamp }));
                return Ok(());
            }
        }
        Err(Error::new(
            ErrorKind::Unavailable,
            "others change the container at the same time",
        ))
    }

    /// Raises the number in all partitions, which the change then uses.
    async fn raise(&self, change: &WriteGuard<'_>) -> Result<()> {
        let (state, Some(sealed)) = (change.state(), change.sealed()) else {
            return Err(Error::internal("a change without its number"));
        };
        let stamp = raise(&state.layout, sealed.number).await?;
        change.seal(Some(Sealed { stamp, ..sealed }));
        while self.now().await? < stamp {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    /// Commits progress from time to time, until the change is not pending any more.
    async fn show_progress(&self, rid: ContainerRid, change: &WriteGuard<'_>) {
        loop {
            tokio::time::sleep(BEAT).await;
            let Some(sealed) = change.sealed() else { return };
            let shown = self.commit(move |batch| {
                let mut row = batch.container(rid)?;
                let Some(pending) = row.pending.as_mut().filter(|pending| pending.number == sealed.number) else {
                    return Ok(false);
                };
                pending.beat += 1;
                replace(batch, rid, row)?;
                Ok(true)
            });
            if matches!(shown.await, Ok(false)) {
                return;
            }
        }
    }

    /// Ends a change that has changed nothing.
    async fn release(&self, container: &Arc<Container>, change: &WriteGuard<'_>) -> Result<()> {
        let Some(sealed) = change.sealed() else { return Ok(()) };
        change.seal(None);
        // The row gets the number, so all partitions must have it: requests refuse one that was not raised, because the store failed meanwhile.
        raise(&change.state().layout, sealed.number).await?;
        let row = self.end_pending(container.rid(), sealed.number).await?;
        if let Some(row) = row {
            self.put_into_force(container.rid(), change, &row).await?;
        }
        Ok(())
    }

    /// Commits a container's row without the pending change of this number, if it is still pending.
    async fn end_pending(&self, rid: ContainerRid, number: SettingsNumber) -> Result<Option<ContainerRow>> {
        self.commit(move |batch| {
            let Some(mut row) = batch.container_if_there(rid)? else {
                return Ok(None);
            };
            if row.pending.is_none_or(|pending| pending.number != number) {
                return Ok(None);
            }
            row.end_pending();
            replace(batch, rid, row.clone())?;
            Ok(Some(row))
        })
        .await
    }

    /// Returns a container's row without a pending change of others: waits for it, or takes it over.
    pub(super) async fn settled_row(&self, rid: ContainerRid, change: &WriteGuard<'_>) -> Result<Option<ContainerRow>> {
        let own = change.sealed().map(|sealed| sealed.number);
        let (mut seen, mut looks) = (None, 0);
        for _ in 0..LOOKS {
            let Some(row) = self.container_row(rid).await? else {
                return Ok(None);
            };
            let Some(pending) = row.pending.filter(|pending| Some(pending.number) != own) else {
                return Ok(Some(row));
            };
            if seen != Some(pending) {
                (seen, looks) = (Some(pending), 0);
            } else if looks < PATIENCE {
                looks += 1;
            } else {
                self.take_over(rid, pending, change).await?;
            }
            tokio::time::sleep(POLL).await;
        }
        Err(Error::new(
            ErrorKind::Unavailable,
            "another server is changing the container",
        ))
    }

    async fn take_over(&self, rid: ContainerRid, left: PendingSettings, change: &WriteGuard<'_>) -> Result<()> {
        let taken = self.commit(move |batch| {
            let Some(mut row) = batch.container_if_there(rid)?.filter(|row| row.pending == Some(left)) else {
                return Ok(None);
            };
            row.pending = Some(PendingSettings {
                number: left.number.next(),
                beat: 0,
            });
            replace(batch, rid, row.clone())?;
            Ok(Some(row))
        });
        let Some(row) = taken.await? else { return Ok(()) };
        tracing::info!(container = %rid, "a change of a container that another server has left behind is cancelled");
        let layout = self.open_layout(&row, Some(&change.state().layout)).await?;
        let number = left.number.next();
        raise(&layout, number).await?;
        self.end_pending(rid, number).await.map(drop)
    }

    /// Puts into force what other servers have changed of a container, after a request has met it. Must not be called by a request that runs in the
    /// container.
    ///
    /// # Errors
    /// From the engine.
    pub async fn settle(&self, container: &Container) -> Result<()> {
        self.follow().await?;
        self.reload(container).await
    }
}

/// Raises the number of the settings in all partitions. Returns the latest stamp of their heads.
async fn raise(layout: &Layout, number: SettingsNumber) -> Result<UnixMillis> {
    let mut latest = UnixMillis(i64::MIN);
    for partitions in layout.partitions.chunks(RAISED_AT_ONCE) {
        let raised = partitions.iter().map(|partition| partition.raise_settings(number));
        let stamps = try_join_all(raised).await?;
        latest = stamps.into_iter().fold(latest, UnixMillis::max);
    }
    Ok(latest)
}

fn replace(batch: &mut CatalogBatch<'_, '_>, rid: ContainerRid, row: ContainerRow) -> Decision<()> {
    // It adds nothing that a definition says.
    batch.is_exempt();
    batch.replace(RowKey::Container(rid), row)
}

impl Sealed {
    /// Checks that the change may commit a row: that no other server has taken over, and that the time of the commit is not before a raised head.
    ///
    /// # Errors
    /// [`Reason::SettingsChanged`].
    pub(super) fn check(self, row: &ContainerRow, now: UnixMillis) -> Result<()> {
        let is_pending = row.pending.is_some_and(|pending| pending.number == self.number);
        match is_pending && now >= self.stamp {
            true => Ok(()),
            false => Err(Reason::SettingsChanged.into()),
        }
    }
}
