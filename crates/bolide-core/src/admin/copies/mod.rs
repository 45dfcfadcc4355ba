//! Copies of the whole store, row by row, while it is in use: what the process that copies asks this one.
//!
//! ```text
//!   begin      keys that commits change are recorded (`partition::copied`)
//!   pages      all rows of all partitions, each page at the current head
//!   changes    the rows of changed keys, until few are left
//!   seal       the catalog, then all other partitions: commits are refused (`partition::write_seal`); the last changes
//!   finish     the seal stays for good: the store has moved. Or it is taken away, and this store is written on
//! ```
//!
//! What was committed before the seals is in the copy, and after a seal nothing is committed; so the copy has the state in which a crash of all servers at the
//! last seal would have left the store, and opening it completes what was interrupted. If the process that copies dies, the lease of its seals ends.
//!
//! The target has the row [`unfinished_copy`](crate::format::keys::unfinished_copy) in its catalog until its last commit, and cannot be opened before.

mod page;
mod running;
mod seals;

use std::sync::Arc;

use bolide_model::{Error, Result, UnixMillis};
use bolide_storage::{Engine, EngineError, Key, PartitionId, ReadRequest, Scan, Space};
use bytes::Bytes;

use crate::catalog::Catalog;
use crate::format::keys;
use crate::partition::engine_error;
use crate::partition::write_seal::CopyId;
pub use page::{CopyPage, PagePosition};
pub(crate) use running::Copies;
pub use seals::{SealInfo, SealedPartition};

/// Maximum number of rows and of bytes of one page, besides its last row.
const PAGE_ROWS: usize = 4_096;
const PAGE_BYTES: usize = 1024 * 1024;

/// Maximum number of changed keys that are read at once.
const CHANGED_ROWS: usize = 1_024;

/// A copy that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyBegun {
    /// Its id, for all other calls.
    pub id: CopyId,
    /// Server time: the target must not begin with a later one.
    pub time: UnixMillis,
}

/// The store, as copies use it.
pub(crate) struct CopiedStore<'a> {
    pub engine: &'a Arc<dyn Engine>,
    pub catalog: &'a Arc<Catalog>,
    pub copies: &'a Arc<Copies>,
}

impl CopiedStore<'_> {
    /// Carries out a step of a copy to its end, also if its request is dropped meanwhile. No change of the catalog of this process is half done then, and no
    /// other of these steps: a copy that begins or ends does not take away seals that another one is making permanent.
    async fn carry_out<T, F>(&self, step: impl FnOnce(Arc<Catalog>, Arc<Copies>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let copies = self.copies.clone();
        self.catalog.carry_out(|catalog| step(catalog, copies)).await
    }

    /// See `Account::begin_copy`.
    pub async fn begin(&self) -> Result<CopyBegun> {
        self.carry_out(|catalog, copies| async move { of(&catalog, &copies).begin_now().await })
            .await
    }

    async fn begin_now(&self) -> Result<CopyBegun> {
        if let Some(before) = self.copies.current() {
            self.give_up(&before).await;
        }
        self.catalog.check_unsealed().await?;
        let id = self.copies.begin();
        let time = self.catalog.now().await?;
        Ok(CopyBegun { id, time })
    }

    /// See `Account::copied_partitions`.
    pub async fn partitions(&self, id: CopyId) -> Result<Vec<PartitionId>> {
        // No container is half made or half removed meanwhile.
        self.carry_out(move |catalog, copies| async move { of(&catalog, &copies).partitions_now(id).await })
            .await
    }

    async fn partitions_now(&self, id: CopyId) -> Result<Vec<PartitionId>> {
        let copy = self.copies.running(id)?;
        let stored = self.catalog.stored_partitions().await?;
        let mut partitions = vec![PartitionId::CATALOG];
        copy.record(self.catalog.partition()).await?;
        for partition in copy.open(self.catalog, stored.placements).await? {
            copy.record(&partition).await?;
            partitions.push(partition.id);
        }
        partitions.extend(stored.kept);
        copy.keep_only(&partitions).await;
        Ok(partitions)
    }

    /// See `Account::copied_rows`.
    pub async fn rows(&self, id: CopyId, partition: PartitionId, position: PagePosition) -> Result<CopyPage> {
        self.copies.running(id)?;
        let scan = Scan {
            space: position.space,
            from: position.from,
            to: None,
            reverse: false,
            max_rows: PAGE_ROWS,
            max_bytes: PAGE_BYTES,
            keys_only: false,
        };
        let request = ReadRequest {
            scans: vec![scan],
            ..ReadRequest::default()
        };
        let mut reply = match self.engine.read(partition, request).await {
            Err(EngineError::NoPartition(_)) => return Ok(CopyPage::of_no_partition()),
            reply => reply.map_err(engine_error)?,
        };
        let page = reply.pages.pop().unwrap_or_default();
        let seal = keys::write_seal();
        let rows = page
            .rows
            .into_iter()
            .map(|(key, value)| (Key::new(position.space, key), Some(value)));
        let last = rows.clone().next_back().map(|(key, _)| key.bytes);
        Ok(CopyPage {
            rows: rows.filter(|(key, _)| *key != seal).collect(),
            next: last.filter(|_| page.more).map(|last| keys::after(&last)),
            ..CopyPage::default()
        })
    }

    /// See `Account::copied_changes`.
    pub async fn changes(&self, id: CopyId, partition: PartitionId) -> Result<CopyPage> {
        let copy = self.copies.running(id)?;
        let Some(taken) = copy.take(partition, CHANGED_ROWS).await else {
            // Nobody writes it.
            return Ok(CopyPage::default());
        };
        if taken.keys.is_empty() {
            return Ok(CopyPage {
                is_lost: taken.is_lost,
                ..CopyPage::default()
            });
        }
        let request = ReadRequest {
            gets: taken.keys.clone(),
            max_bytes: PAGE_BYTES,
            ..ReadRequest::default()
        };
        let values = match self.engine.read(partition, request).await {
            Ok(reply) => reply.gets,
            // It was written and then removed.
            Err(EngineError::NoPartition(_)) => return Ok(CopyPage::of_no_partition()),
            Err(error) => {
                copy.lose_track(partition).await;
                return Err(engine_error(error));
            }
        };
        let (read, later) = taken.keys.split_at(values.len().min(taken.keys.len()));
        copy.put_back(partition, later).await;
        Ok(CopyPage {
            rows: read.iter().cloned().zip(values).collect(),
            left: (later.len() + taken.left) as u64,
            is_lost: taken.is_lost,
            ..CopyPage::default()
        })
    }

    /// See `Account::end_copy`.
    pub async fn end(&self, id: CopyId) -> Result<()> {
        self.carry_out(move |catalog, copies| async move { of(&catalog, &copies).end_now(id).await })
            .await
    }

    async fn end_now(&self, id: CopyId) -> Result<()> {
        let copy = self.copies.running(id)?;
        let lifted = self.lift(&copy).await;
        self.copies.end(id);
        lifted
    }
}

/// The store of a step that may outlive its request.
fn of<'a>(catalog: &'a Arc<Catalog>, copies: &'a Arc<Copies>) -> CopiedStore<'a> {
    CopiedStore {
        engine: catalog.engine(),
        catalog,
        copies,
    }
}

/// The row that the catalog of a target has until the copy is finished.
pub fn unfinished_copy() -> (Key, Bytes) {
    (keys::unfinished_copy(), Bytes::new())
}

/// Every space of a partition, in the order in which a copy reads them.
pub const COPIED_SPACES: [Space; 5] = Space::ALL;

fn no_copy() -> Error {
    Error::not_found("there is no such copy: it has ended, another one has begun, or the server was started again")
}

#[cfg(test)]
mod tests;
