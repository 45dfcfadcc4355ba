//! Containers: delete.

use std::sync::atomic::Ordering;

use bolide_model::rid::ContainerRid;
use bolide_model::{Result, UnixSeconds};
use bolide_storage::{PartitionId, Space};
use futures_util::FutureExt as _;

use super::Catalog;
use super::batch::{CatalogBatch, check_etag};
use super::events::{CatalogEvent, CatalogEventKind};
use super::rows::{DroppedRow, Row, RowKey};
use super::{history, names};
use crate::container::WriteGuard;
use crate::partition::write_batch::Decision;

/// How long the history of a dropped collection is kept for change streams that are behind, in seconds. Its documents take space as long.
pub(crate) const RETIRED_SECONDS: i64 = 600;

impl Catalog {
    /// Deletes a container. Once no request is running in it, one commit removes its row and lists its partitions for removal. A write batch of the
    /// purge is committed before that, or not at all (TTL-271).
    pub async fn delete_container(&self, rid: ContainerRid, if_match: Option<&str>) -> Result<()> {
        let container = self.container(rid).await?;
        let if_match = if_match.map(str::to_owned);
        // Checked here first, so that a deletion that will be refused does not interrupt readers.
        let condition = if_match.clone();
        self.read(move |batch| Ok(check_etag(batch.container(rid)?.etag, condition.as_deref())?))
            .await?;
        let change = container.lock().await;
        let deleted = self.delete_locked(&change, rid, if_match);
        match self.sealed(&container, &change, deleted.boxed()).await? {
            Dropped::AtOnce(partitions) => self.remove_named(partitions).await,
            // They are removed by [`Catalog::remove_overdue`].
            Dropped::Later => self.has_retired.store(true, Ordering::SeqCst),
        }
        Ok(())
    }

    async fn delete_locked(
        &self,
        change: &WriteGuard<'_>,
        rid: ContainerRid,
        if_match: Option<String>,
    ) -> Result<Dropped> {
        history::tell_endings(&change.state()).await?;
        let sealed = change.sealed();
        let deleted = self.commit_unseen(move |batch| {
            let (row, now) = (batch.container(rid)?, batch.commit_point().millis);
            if let Some(sealed) = sealed {
                sealed.check(&row, now)?;
            }
            delete(batch, rid, if_match.as_deref(), false)
        });
        let (dropped, committed) = deleted.await?;
        change.seal(None);
        change.mark_deleted();
        self.remember(committed).await;
        Ok(dropped)
    }
}

/// The partitions of a deleted container.
pub(super) enum Dropped {
    /// To be removed.
    AtOnce(Vec<PartitionId>),
    /// Kept for a while, for change streams.
    Later,
}

/// Removes a container's row and its scripts, and lists its partitions for removal: at once, unless change streams may still read their history.
/// `is_replaced`: another collection gets its name in this commit, and that change tells change streams.
pub(super) fn delete(
    batch: &mut CatalogBatch<'_, '_>,
    rid: ContainerRid,
    if_match: Option<&str>,
    is_replaced: bool,
) -> Decision<Dropped> {
    let row = batch.container(rid)?;
    check_etag(row.etag, if_match)?;
    let scripts = batch.scan_keys(Space::Meta, &RowKey::scripts_of(rid))?;
    let named = batch.scan_keys(Space::Index, &names::scripts_of(rid))?;
    let centroids = batch.scan_keys(Space::Meta, &RowKey::centroids_of(rid))?;
    batch.remove_all(&scripts, named)?;
    batch.remove_all(&centroids, Vec::new())?;
    batch.remove(RowKey::Container(rid))?;
    let dropped: Vec<PartitionId> = row.placements.iter().map(|placement| placement.id).collect();
    let is_kept = row.collection.is_some() && row.keeps_all_versions;
    let now = batch.commit_point().now;
    for partition in &dropped {
        let until = UnixSeconds(now.0.saturating_add(RETIRED_SECONDS));
        let until = is_kept.then_some(DroppedRow::until(until));
        batch.create(RowKey::Dropped(*partition), Row::Dropped(until))?;
    }
    if let Some(collection) = &row.collection {
        let database = batch.database(rid.database())?.id;
        let names = (&database[..], &row.properties.id[..]);
        let event = CatalogEvent::of_collection(CatalogEventKind::Drop, names, rid, Some(collection.uuid));
        batch.event(CatalogEvent {
            is_silent: is_replaced,
            shard_key: collection.shard_key.as_ref().map(|shard_key| shard_key.path()),
            ..event.retiring(if is_kept { &dropped } else { &[] })
        });
    }
    Ok(match is_kept {
        true => Dropped::Later,
        false => Dropped::AtOnce(dropped),
    })
}
