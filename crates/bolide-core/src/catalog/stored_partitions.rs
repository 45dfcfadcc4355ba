//! What a copy of the store asks the catalog: which partitions there are.

use bolide_model::rid::ContainerRid;
use bolide_model::{Reason, Result};
use bolide_storage::{Engine, PartitionId, ReadRequest, Space};

use super::Catalog;
use super::rows::{Row, RowKey};
use crate::format::keys;
use crate::partition::write_seal::SealChange;
use crate::partition::{Placement, engine_error};

/// The partitions of a store, besides that of the catalog.
#[derive(Debug, Default)]
pub(crate) struct StoredPartitions {
    /// Those of containers.
    pub placements: Vec<Placement>,
    /// Those of dropped collections whose history is kept for a while. Nobody writes them.
    pub kept: Vec<PartitionId>,
    /// The containers whose settings a server is changing.
    pub pending: Vec<ContainerRid>,
}

impl Catalog {
    /// Returns the partitions of the store. Those that are only listed for removal are left out.
    ///
    /// # Errors
    /// From the engine.
    pub async fn stored_partitions(&self) -> Result<StoredPartitions> {
        self.read(|batch| {
            let mut stored = StoredPartitions::default();
            for prefix in [RowKey::containers(), RowKey::dropped()] {
                for (key, value) in batch.scan(Space::Meta, &prefix)? {
                    let key = RowKey::parse(&key)?;
                    match (key, Row::decode(key, &value)?) {
                        (RowKey::Container(rid), Row::Container(row)) => {
                            stored.pending.extend(row.pending.map(|_| rid));
                            stored.placements.extend(row.placements.iter().cloned());
                        }
                        (RowKey::Dropped(partition), Row::Dropped(Some(row))) if !row.is_unpublished => {
                            stored.kept.push(partition);
                        }
                        _ => {}
                    }
                }
            }
            Ok(stored)
        })
        .await
    }

    /// Checks that the store has no seal.
    ///
    /// # Errors
    /// [`Reason::WritesSealed`], [`Reason::StoreMoved`]; from the engine.
    pub async fn check_unsealed(&self) -> Result<()> {
        let sealing = self.partition.change_seal(SealChange::Look).await?;
        let now = self.now().await?;
        match sealing.seal.filter(|seal| !seal.is_over(now)) {
            Some(seal) => Err(seal.refusal()),
            None => Ok(()),
        }
    }
}

/// Returns the result of what completes an interrupted operation. In a sealed store it stays interrupted, and its data can be read all the same.
///
/// # Errors
/// All but that the store is sealed.
pub(crate) fn unless_sealed(completed: Result<()>) -> Result<()> {
    match completed {
        Err(error) if error.is_of_sealed_store() => {
            tracing::info!(%error, "what was interrupted is completed at the next start at which the store is written");
            Ok(())
        }
        completed => completed,
    }
}

/// Checks that a store is not the target of a copy that was not finished.
///
/// # Errors
/// [`Reason::UnfinishedCopy`]; from the engine.
pub(super) async fn check_finished(engine: &dyn Engine) -> Result<()> {
    let request = ReadRequest::of_keys(vec![keys::unfinished_copy()]);
    let read = engine.read(PartitionId::CATALOG, request).await;
    match read.map_err(engine_error)?.gets.pop().flatten() {
        Some(_) => Err(Reason::UnfinishedCopy.into()),
        None => Ok(()),
    }
}
