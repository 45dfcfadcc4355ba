//! Opens the catalog: reads every row, opens every container, and completes what a crash interrupted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bolide_model::{Lsn, Result};
use bolide_storage::{Engine, PartitionId, Space};
use bytes::Bytes;
use parking_lot::RwLock;
use tokio::sync::Mutex;

use super::Catalog;
use super::batch::{CatalogBatch, Changes};
use super::budget::DefinitionBudget;
use super::cache::{Followed, Memory, everything};
use super::changes;
use super::rows::{Row, RowKey};
use super::stored_partitions::{check_finished, unless_sealed};
use super::unpublished::Unpublished;
use crate::clock;
use crate::partition::Partition;
use crate::partition::Signals;
use crate::partition::write_batch::{Decision, WriteBatch};

impl Catalog {
    /// Opens the catalog of a new or existing account whose definitions may take at most `definition_bytes` of memory. A virtual clock may stand still
    /// from one process to the next.
    ///
    /// # Errors
    /// From the engine; `Corrupt` if a row is damaged.
    // Long: the steps of opening, in order.
    pub async fn open(engine: Arc<dyn Engine>, definition_bytes: usize, has_virtual_clock: bool) -> Result<Catalog> {
        let now = clock::exact_now(engine.as_ref()).await?;
        let signals = Signals::default();
        // A clock that stands still comes to no end meanwhile.
        let waits_out = engine.is_shared() && !has_virtual_clock;
        signals.waits_out.store(waits_out, Ordering::Relaxed);
        let partition = Partition::open_whole(engine.clone(), PartitionId::CATALOG, now, signals.clone()).await?;
        // The clock may stand still since an earlier process gave out times, some of which only clients have stored.
        signals.times.begin_process(TIMES_OF_PROCESS, now);
        let catalog = Catalog {
            engine,
            signals,
            partition,
            memory: RwLock::new(Memory::default()),
            following: Mutex::new(()),
            outdated: parking_lot::Mutex::default(),
            reloading: Mutex::new(()),
            budget: Arc::new(parking_lot::Mutex::new(DefinitionBudget::new(definition_bytes))),
            has_retired: AtomicBool::new(false),
            is_sweeping: AtomicBool::new(false),
            changing: Arc::new(Mutex::new(())),
            unpublished: Unpublished::default(),
        };
        check_finished(catalog.engine.as_ref()).await?;
        let Followed { mut head, changes, .. } = catalog.partition.background(read_and_mend).await?;
        let keeps_changes = changes.iter().any(|(_, row)| match row {
            Some(Row::Account(account)) => account.keeps_changes,
            _ => false,
        });
        if keeps_changes || has_virtual_clock {
            match catalog.partition.background(store_time).await {
                Ok(lsn) => head = lsn,
                // A full disk must not stop reads.
                Err(error) => tracing::warn!(%error, "the first time of this process could not be stored"),
            }
        }
        let unpublished = unpublished_in(&changes);
        let dropped = changes.iter().filter_map(|(key, row)| match (key, row) {
            (RowKey::Dropped(_), Some(Row::Dropped(Some(row)))) if row.is_unpublished => None,
            // The history of a dropped collection is kept for a while.
            (RowKey::Dropped(_), Some(Row::Dropped(Some(kept)))) if kept.until > now.seconds() => {
                catalog.has_retired.store(true, Ordering::SeqCst);
                None
            }
            (RowKey::Dropped(partition), _) => Some(*partition),
            _ => None,
        });
        let dropped: Vec<PartitionId> = dropped.collect();
        catalog.apply(head, changes).await?;
        // On a shared engine these partitions may belong to a split, an import or a transaction that another process is running.
        if !catalog.engine.is_shared() {
            unless_sealed(catalog.remove_dropped(dropped).await)?;
            unless_sealed(catalog.end_interrupted(unpublished).await)?;
        }
        Ok(catalog)
    }
}

/// Returns the partitions of collections that open transactions have created.
fn unpublished_in(rows: &Changes) -> Vec<PartitionId> {
    let partitions = rows.iter().filter_map(|(key, row)| match (key, row) {
        (RowKey::Dropped(partition), Some(Row::Dropped(Some(row)))) if row.is_unpublished => Some(*partition),
        _ => None,
    });
    partitions.collect()
}

/// Times of commits that a process may give out while the clock stands still, beyond those that it stores: enough for hours.
const TIMES_OF_PROCESS: u64 = 1 << 24;

/// Stores the time of this commit, so that all times of later processes are behind those of this one. Returns its log sequence number.
fn store_time(write_batch: &mut WriteBatch<'_>) -> Decision<Lsn> {
    write_batch.batch(|write_batch| {
        let lsn = write_batch.next_lsn();
        write_batch.put(changes::key(lsn), changes::encode(std::iter::empty()));
        write_batch.state.history_last = write_batch.time;
        Ok(lsn)
    })
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
