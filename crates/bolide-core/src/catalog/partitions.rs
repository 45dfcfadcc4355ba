//! The partitions of containers: opened from rows, listed for removal, removed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bolide_model::rid::ContainerRid;
use bolide_model::{Error, ErrorKind, Result};
use bolide_storage::{Head, PartitionId, Space};

use super::Catalog;
use super::batch::CatalogBatch;
use super::containers::committed_but;
use super::rows::{ContainerRow, Row, RowKey};
use crate::container::{Container, ContainerState, Layout, WriteGuard};
use crate::index::PropertyIndexes;
use crate::partition::write_batch::Decision;
use crate::partition::{Partition, Placement, engine_error};
use crate::throughput::Meter;

/// The version of the ranges with which a container begins.
pub(super) const FIRST_LAYOUT: u64 = 1;

/// Interval between two attempts to find out the outcome of a commit.
const TRY_AGAIN: Duration = Duration::from_millis(50);

impl Catalog {
    /// Opens the partitions of a container, and creates those of a new container that do not exist yet, or because of a crash. Partitions that are open in
    /// `before` are kept.
    ///
    /// # Errors
    /// From the engine; [`Reason::SettingsChanged`](bolide_model::Reason::SettingsChanged) if a partition was replaced since the row was read.
    pub(crate) async fn open_layout(&self, row: &ContainerRow, before: Option<&Layout>) -> Result<Layout> {
        let now = self.now().await?;
        let known = |id: PartitionId| before?.partitions.iter().find(|partition| partition.id == id).cloned();
        let mut partitions = Vec::with_capacity(row.placements.len());
        for placement in &row.placements {
            if let Some(partition) = known(placement.id) {
                partitions.push(partition);
                continue;
            }
            let head = Head {
                edition: row.settings_number.edition(),
                ..Head::first(now)
            };
            // A split makes its partitions before the row names them: one that is missing has been split again by another server, since the row was read,
            // and what would be written to it would be lost.
            if row.layout_version == FIRST_LAYOUT {
                self.engine.create(placement.id, head).await.map_err(engine_error)?;
            }
            let meter = Meter::shared(&row.pacing, row.placements.len(), now.seconds());
            partitions
                .push(Partition::open(self.engine.clone(), placement.clone(), meter, self.signals.clone()).await?);
        }
        Ok(Layout {
            version: row.layout_version,
            partitions,
        })
    }

    /// Removes the partitions of a container whose row does not exist any more.
    pub(super) async fn remove_partitions(&self, placements: &[Placement]) -> Result<()> {
        for placement in placements {
            self.engine.remove(placement.id).await.map_err(engine_error)?;
        }
        Ok(())
    }

    /// Takes `count` new partition ids and returns the first. They are listed for removal until [`Catalog::commit_split`] takes them off the list or
    /// they are removed, so a crash in between leaves no partition behind.
    pub async fn take_partition_ids(&self, count: u64) -> Result<u64> {
        self.commit(move |batch| {
            let mut account = batch.account()?;
            let first = account.next_partition;
            account.next_partition += count;
            batch.replace(RowKey::Account, account)?;
            for id in first..first + count {
                batch.create(RowKey::Dropped(PartitionId(id)), Row::Dropped(None))?;
            }
            Ok(first)
        })
        .await
    }

    /// Puts a container's new ranges into force, which have the entries of the property indexes `copied`, and lists the partition that they replace for removal. If the outcome of the commit is unknown,
    /// waits until it is known, or until `is_closing`, because anything written to the wrong ranges would be lost.
    ///
    /// # Errors
    /// `Unavailable` if others have changed the ranges meanwhile; `Timeout` if the outcome is unknown. After all other errors nothing has changed.
    pub async fn commit_split(
        &self,
        container: &Arc<Container>,
        change: &WriteGuard<'_>,
        (after, copied): (ContainerState, Arc<PropertyIndexes>),
        parent: PartitionId,
        is_closing: impl Fn() -> bool,
    ) -> Result<()> {
        let rid = container.rid();
        let (layout, next_range, sealed) = (after.layout.clone(), after.next_range, change.sealed());
        let committed = self
            .commit_unseen(move |batch| {
                let mut row = batch.container(rid)?;
                let children = check_split(batch, &row, &layout, parent)?;
                if let Some(sealed) = sealed {
                    sealed.check(&row, batch.commit_point().millis)?;
                    row.end_pending();
                }
                row.layout_version = layout.version;
                row.next_range = next_range;
                row.placements = layout.placements();
                Arc::make_mut(&mut row.indexes).split(&copied);
                batch.is_exempt();
                batch.replace(RowKey::Container(rid), row.clone())?;
                for child in children {
                    batch.remove_alone(child);
                }
                batch.create(RowKey::Dropped(parent), Row::Dropped(None))?;
                Ok(row)
            })
            .await;
        let (row, committed) = match committed {
            Err(error) if error.kind == ErrorKind::Timeout => {
                let row = self.row_for_sure(rid, is_closing).await?;
                let row = row.filter(|row| row.layout_version == after.layout.version);
                (row.ok_or_else(overtaken)?, None)
            }
            committed => committed?,
        };
        change.seal(None);
        let loaded = self.load_centroids(rid, &row.indexes, Some(&after.indexes)).await;
        loaded.map_err(committed_but)?;
        change.replace(ContainerState::of(&row, &after.layout, after.database_meter));
        self.remember(committed).await;
        Ok(())
    }

    /// Returns a container's row after a commit of unknown outcome. Makes another commit first: after it, the earlier one has been applied or never
    /// will be.
    async fn row_for_sure(&self, rid: ContainerRid, is_closing: impl Fn() -> bool) -> Result<Option<ContainerRow>> {
        loop {
            let fenced = self.commit(move |batch| {
                let account = batch.account()?;
                batch.replace(RowKey::Account, account)?;
                batch.container_if_there(rid)
            });
            match fenced.await {
                Ok(row) => return Ok(row),
                Err(error) if is_closing() => {
                    return Err(Error {
                        kind: ErrorKind::Timeout,
                        ..error
                    });
                }
                Err(_) => tokio::time::sleep(TRY_AGAIN).await,
            }
        }
    }

    /// Removes partitions that a commit has listed for removal. If that fails, the next start removes them; the commit itself is already in force.
    pub async fn remove_named(&self, partitions: Vec<PartitionId>) {
        if let Err(error) = self.remove_dropped(partitions).await {
            tracing::warn!(%error, "the partitions of what was deleted are removed at the next start");
        }
    }

    /// Removes the partitions of dropped collections whose history is no longer kept. If that fails, the next call removes them. Returns whether there
    /// are others.
    pub async fn remove_overdue(&self) -> bool {
        self.try_remove_overdue().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the partitions of collections that were dropped are removed later");
            true
        })
    }

    async fn try_remove_overdue(&self) -> Result<bool> {
        let now = self.now().await?.seconds();
        let listed = self.read(|batch| {
            let rows = batch.scan(Space::Meta, &RowKey::dropped())?;
            let parsed = rows.iter().map(|(key, value)| {
                let key = RowKey::parse(key)?;
                Ok((key, Row::decode(key, value)?))
            });
            Ok(parsed.collect::<Result<Vec<_>>>()?)
        });
        let (mut overdue, mut has_others) = (Vec::new(), false);
        for (key, row) in listed.await? {
            match (key, row) {
                (RowKey::Dropped(partition), Row::Dropped(Some(row))) if row.until <= now => overdue.push(partition),
                (_, Row::Dropped(Some(row))) => has_others |= !row.is_unpublished,
                _ => {}
            }
        }
        if !overdue.is_empty() {
            self.remove_dropped(overdue).await?;
        }
        self.has_retired.store(has_others, Ordering::SeqCst);
        Ok(has_others)
    }

    /// Removes partitions that a commit has listed for removal; also used after a restart.
    pub async fn remove_dropped(&self, partitions: Vec<PartitionId>) -> Result<()> {
        if partitions.is_empty() {
            return Ok(());
        }
        for partition in &partitions {
            self.engine.remove(*partition).await.map_err(engine_error)?;
        }
        self.commit(move |batch| {
            for partition in &partitions {
                batch.remove_alone(RowKey::Dropped(*partition));
            }
            Ok(())
        })
        .await
    }
}

/// Checks that a split may still replace the ranges with which it began. Returns the row keys that list the new partitions for removal.
fn check_split(
    batch: &mut CatalogBatch<'_, '_>,
    row: &ContainerRow,
    layout: &Layout,
    parent: PartitionId,
) -> Decision<Vec<RowKey>> {
    let had: Vec<PartitionId> = row.placements.iter().map(|placement| placement.id).collect();
    let children = layout.partitions.iter().map(|partition| partition.id);
    let children: Vec<RowKey> = children.filter(|id| !had.contains(id)).map(RowKey::Dropped).collect();
    let are_there = batch.rows(&children)?.iter().all(|(_, row)| row.is_some());
    if row.layout_version + 1 != layout.version || !had.contains(&parent) || !are_there {
        return Err(overtaken().into());
    }
    Ok(children)
}

fn overtaken() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "the ranges of the container were changed by others; the split was not carried out",
    )
}
