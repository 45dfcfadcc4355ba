//! Copies of the whole store, row by row, while it is in use; see `crate::admin::copies`.

use bolide_model::Result;
use bolide_storage::PartitionId;

use super::Account;
use crate::admin::{CopyBegun, CopyPage, PagePosition, SealInfo, SealedPartition};
use crate::partition::write_seal::CopyId;

impl Account {
    /// Begins a copy of the store; one before it ends. It ends by itself if it asks for nothing for a minute.
    ///
    /// # Errors
    /// [`Reason::WritesSealed`](bolide_model::Reason::WritesSealed),
    /// [`Reason::StoreMoved`](bolide_model::Reason::StoreMoved); from the engine.
    pub async fn begin_copy(&self) -> Result<CopyBegun> {
        self.copied_store().begin().await
    }

    /// Returns the partitions to copy, and records from now on which of their rows are changed.
    ///
    /// # Errors
    /// `NotFound` if there is no such copy; from the engine.
    pub async fn copied_partitions(&self, id: CopyId) -> Result<Vec<PartitionId>> {
        self.refresh_catalog().await?;
        self.copied_store().partitions(id).await
    }

    /// Returns a page of all rows of a partition.
    ///
    /// # Errors
    /// `NotFound` if there is no such copy; from the engine.
    pub async fn copied_rows(&self, id: CopyId, partition: PartitionId, position: PagePosition) -> Result<CopyPage> {
        self.copied_store().rows(id, partition, position).await
    }

    /// Returns rows of a partition that were changed since this was asked last: each is told once. A caller that does not get the answer must compare the
    /// whole partition.
    ///
    /// # Errors
    /// `NotFound` if there is no such copy; from the engine.
    pub async fn copied_changes(&self, id: CopyId, partition: PartitionId) -> Result<CopyPage> {
        self.copied_store().changes(id, partition).await
    }

    /// Refuses writes of all servers for the length of a lease. Returns all partitions.
    ///
    /// # Errors
    /// `NotFound` if there is no such copy; `Unavailable` if the settings of a container are being changed; from the engine. Afterwards there is no seal.
    pub async fn seal_for_copy(&self, id: CopyId) -> Result<Vec<SealedPartition>> {
        self.copied_store().seal(id).await
    }

    /// Lengthens the lease, if nothing was written since the store was sealed.
    ///
    /// # Errors
    /// `NotFound` if there is no such copy; `Conflict` if the seal does not stand any more; from the engine.
    pub async fn renew_seal(&self, id: CopyId) -> Result<()> {
        self.copied_store().renew(id).await
    }

    /// Ends a copy of a store that is sealed and in which nothing was written since: it is sealed for good from here on, or, with `unseal`, written again.
    /// Returns all partitions as they are without a seal.
    ///
    /// # Errors
    /// `NotFound` if there is no such copy; `Conflict` if the seal does not stand any more; from the engine.
    pub async fn finish_copy(&self, id: CopyId, unseal: bool) -> Result<Vec<SealedPartition>> {
        self.copied_store().finish(id, unseal).await
    }

    /// Ends a copy that is not to be finished, and takes away its seal.
    ///
    /// # Errors
    /// `NotFound` if there is no such copy; from the engine.
    pub async fn end_copy(&self, id: CopyId) -> Result<()> {
        self.copied_store().end(id).await
    }

    /// Returns the seal of the store.
    ///
    /// # Errors
    /// From the engine.
    pub async fn seal(&self) -> Result<Option<SealInfo>> {
        self.copied_store().info().await
    }

    /// Takes away the seal of the store, so that it is written again.
    ///
    /// # Errors
    /// From the engine; then some partitions may still be sealed.
    pub async fn unseal(&self) -> Result<()> {
        self.copied_store().unseal().await
    }

    /// Checks that the store has no seal: for what replaces its content without writing it.
    ///
    /// # Errors
    /// [`Reason::WritesSealed`](bolide_model::Reason::WritesSealed), [`Reason::StoreMoved`](bolide_model::Reason::StoreMoved); from the engine.
    pub async fn check_unsealed(&self) -> Result<()> {
        self.catalog().check_unsealed().await
    }
}
