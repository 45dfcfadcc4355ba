//! Opens the catalog: reads every row, opens every container, and completes what a crash interrupted.

use std::sync::Arc;

use bolide_model::Result;
use bolide_model::epk::EpkRange;
use bolide_storage::{Engine, Head, PartitionId, Space};
use bytes::Bytes;
use parking_lot::RwLock;
use tokio::sync::Mutex;

use super::Catalog;
use super::batch::CatalogBatch;
use super::budget::DefinitionBudget;
use super::cache::{Followed, Memory, everything};
use super::rows::RowKey;
use crate::clock;
use crate::partition::Wakeup;
use crate::partition::write_batch::{Decision, WriteBatch};
use crate::partition::{Partition, Placement, engine_error};
use crate::throughput::{Meter, PacingSettings};

impl Catalog {
    /// Opens the catalog of a new or existing account whose definitions may take at most `definition_bytes` of memory.
    ///
    /// # Errors
    /// From the engine; `Corrupt` if a row is damaged.
    pub async fn open(engine: Arc<dyn Engine>, definition_bytes: usize) -> Result<Catalog> {
        let now = clock::exact_now(engine.as_ref()).await?;
        let head = Head::first(now);
        engine.create(PartitionId::CATALOG, head).await.map_err(engine_error)?;
        let placement = Placement {
            id: PartitionId::CATALOG,
            range: 0,
            epk: EpkRange::all(),
            parents: vec![],
        };
        let meter = Meter::shared(&PacingSettings::of(None), 1, now.seconds());
        let wakeup = Arc::<Wakeup>::default();
        let partition = Partition::open(engine.clone(), placement, meter, wakeup.clone()).await?;
        let catalog = Catalog {
            engine,
            wakeup,
            partition,
            memory: RwLock::new(Memory::default()),
            following: Mutex::new(()),
            outdated: parking_lot::Mutex::default(),
            budget: Arc::new(parking_lot::Mutex::new(DefinitionBudget::new(definition_bytes))),
            changing: Arc::new(Mutex::new(())),
        };
        let Followed { head, changes, .. } = catalog.partition.background(read_and_mend).await?;
        let dropped = changes.iter().filter_map(|(key, _)| match key {
            RowKey::Dropped(partition) => Some(*partition),
            _ => None,
        });
        let dropped: Vec<PartitionId> = dropped.collect();
        catalog.apply(head, changes).await?;
        // On a shared engine these partitions may belong to a split or an import that another process is running.
        if !dropped.is_empty() && !catalog.engine.is_shared() {
            catalog.remove_dropped(dropped).await?;
        }
        Ok(catalog)
    }
}

/// Reads all rows, and repairs the index of names where it does not agree with them.
fn read_and_mend(write_batch: &mut WriteBatch<'_>) -> Decision<Followed> {
    write_batch.batch(|write_batch| {
        CatalogBatch::read_only(write_batch, &mut |batch| {
            let mut read = everything(batch)?;
            let names = batch.scan(Space::Index, &Bytes::new())?;
            if batch.mend_names(names, &read.changes) {
                read.head = batch.commit_point().lsn;
            }
            Ok(read)
        })
    })
}
