//! The rows of the centroids of vector indexes: written and removed with the index, read before the container's state comes into force.

use bolide_model::rid::ContainerRid;
use bolide_model::{Error, ErrorKind, Result};

use super::Catalog;
use super::batch::CatalogBatch;
use super::rows::{Row, RowKey};
use crate::index::PropertyIndexes;
use crate::partition::write_batch::Decision;

impl Catalog {
    /// Loads the centroids of vector indexes that a row names: from the indexes `known` before, or from their rows.
    ///
    /// # Errors
    /// From the engine; `Unavailable` if others have dropped the index meanwhile.
    pub(super) async fn load_centroids(
        &self,
        container: ContainerRid,
        indexes: &PropertyIndexes,
        known: Option<&PropertyIndexes>,
    ) -> Result<()> {
        for index in &indexes.list {
            let Some(vector) = index.vector().filter(|vector| vector.loaded().is_none()) else {
                continue;
            };
            let known = known.and_then(|known| known.list.iter().find(|known| known.id == index.id));
            if let Some(centroids) = known.and_then(|known| known.vector()?.loaded()) {
                vector.load(centroids.clone());
                continue;
            }
            let key = RowKey::Centroids(container, index.id);
            match self.read(move |batch| batch.row(key)).await? {
                Some(Row::Centroids(centroids)) => vector.load(centroids),
                _ => {
                    let text = format!("the centroids of a vector index are not stored. container={container}");
                    return Err(Error::new(ErrorKind::Unavailable, text));
                }
            }
        }
        Ok(())
    }
}

/// Writes the centroids of vector indexes that were added, and removes those of indexes that were dropped.
pub(super) fn follow(
    batch: &mut CatalogBatch<'_, '_>,
    container: ContainerRid,
    (before, after): (&PropertyIndexes, &PropertyIndexes),
) -> Decision<()> {
    let has = |indexes: &PropertyIndexes, id: u32| indexes.list.iter().any(|index| index.id == id);
    for index in after.list.iter().filter(|index| !has(before, index.id)) {
        if let Some(centroids) = index.vector().and_then(|vector| vector.loaded()) {
            batch.create(
                RowKey::Centroids(container, index.id),
                Row::Centroids(centroids.clone()),
            )?;
        }
    }
    for index in before.list.iter().filter(|index| !has(after, index.id)) {
        if index.vector().is_some() {
            batch.remove_alone(RowKey::Centroids(container, index.id));
        }
    }
    Ok(())
}
