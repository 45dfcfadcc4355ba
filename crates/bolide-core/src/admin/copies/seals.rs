//! The seals of a copy: on all partitions, or on none.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bolide_model::{Error, ErrorKind, Result, UnixMillis};
use bolide_storage::{EngineError, Head, PartitionId, ReadRequest};
use futures_util::StreamExt as _;
use futures_util::stream;

use super::running::RunningCopy;
use super::{CopiedStore, of};
use crate::catalog::{Catalog, StoredPartitions};
use crate::partition::write_seal::{CopyId, SealChange, Sealing};
use crate::partition::{Partition, engine_error};

/// Maximum number of partitions whose seals are changed at the same time.
const AT_ONCE: usize = 16;

/// A partition whose seal was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealedPartition {
    /// The partition.
    pub id: PartitionId,
    /// Its newest commit, as it is without the seal.
    pub head: Head,
    /// Number of its stored items; `None` for one that nobody writes, which is not counted.
    pub items: Option<u64>,
}

/// The seal of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealInfo {
    /// The copy that has set it.
    pub copy: CopyId,
    /// The end of its lease; `None`: the store has moved.
    pub until: Option<UnixMillis>,
}

/// The partitions of a sealed store that are written by servers, and those that nobody writes.
struct Sealed {
    written: Vec<Arc<Partition>>,
    kept: Vec<PartitionId>,
}

impl CopiedStore<'_> {
    /// See `Account::seal_for_copy`.
    pub async fn seal(&self, id: CopyId) -> Result<Vec<SealedPartition>> {
        let copy = self.copies.running(id)?;
        let sealed = self
            .carry_out(move |catalog, copies| async move { of(&catalog, &copies).seal_now(&copy).await })
            .await;
        if sealed.is_err() {
            self.settle_pending().await?;
        }
        sealed
    }

    async fn seal_now(&self, copy: &Arc<RunningCopy>) -> Result<Vec<SealedPartition>> {
        let sealed = self.sealed(copy).await;
        if sealed.is_err() {
            self.give_up(copy).await;
        }
        sealed
    }

    async fn sealed(&self, copy: &Arc<RunningCopy>) -> Result<Vec<SealedPartition>> {
        let set = SealChange::Set(copy.id);
        let of_catalog = self.catalog.partition().change_seal(set).await?;
        let stored = self.catalog.stored_partitions().await?;
        if !stored.pending.is_empty() {
            return Err(Error::new(
                ErrorKind::Unavailable,
                "the settings of a container are being changed; try again",
            ));
        }
        let Sealed { written, kept } = open(stored, self.catalog, copy).await?;
        let mut all = vec![sealed(PartitionId::CATALOG, of_catalog)];
        copy.record(self.catalog.partition()).await?;
        for partition in &written {
            copy.record(partition).await?;
        }
        all.extend(change_all(written, set).await?);
        for partition in kept {
            all.extend(unwritten(self.catalog, partition).await?);
        }
        Ok(all)
    }

    /// See `Account::renew_seal`.
    pub async fn renew(&self, id: CopyId) -> Result<()> {
        let copy = self.copies.running(id)?;
        self.change(&copy, SealChange::Renew(id)).await.map(drop)
    }

    /// See `Account::finish_copy`.
    pub async fn finish(&self, id: CopyId, unseal: bool) -> Result<Vec<SealedPartition>> {
        // Also if its request is dropped: some partitions would be sealed for good and others not.
        self.carry_out(move |catalog, copies| async move { of(&catalog, &copies).finish_now(id, unseal).await })
            .await
    }

    async fn finish_now(&self, id: CopyId, unseal: bool) -> Result<Vec<SealedPartition>> {
        let copy = self.copies.running(id)?;
        // Every partition must have stood still until here.
        let renewed = self.change(&copy, SealChange::Renew(id)).await?;
        let change = if unseal {
            SealChange::Lift(id)
        } else {
            SealChange::Keep(id)
        };
        let changed = self.change(&copy, change).await;
        if changed.is_err() {
            copy.may_undo.store(true, Ordering::SeqCst);
            self.give_up(&copy).await;
        }
        let finished = changed?;
        debug_assert_eq!(renewed.len(), finished.len(), "a sealed store has the same partitions");
        self.copies.end(id);
        Ok(finished)
    }

    /// Takes away the seals of a copy that has failed.
    pub(super) async fn give_up(&self, copy: &Arc<RunningCopy>) {
        if let Err(error) = self.lift(copy).await {
            tracing::warn!(%error, "the seal of a copy that has failed could not be taken away everywhere; `bolide unseal` does it");
        }
    }

    /// Ends changes of settings that other servers have left behind: a copy could not end them everywhere.
    async fn settle_pending(&self) -> Result<()> {
        for rid in self.catalog.stored_partitions().await?.pending {
            if let Ok(container) = self.catalog.container_by_rid(rid) {
                self.catalog.settle(&container).await?;
            }
        }
        Ok(())
    }

    /// Takes away the seals of a copy, where they stand.
    pub(super) async fn lift(&self, copy: &Arc<RunningCopy>) -> Result<()> {
        let partitions = partitions(self.catalog, copy).await?;
        let lift = match copy.may_undo.load(Ordering::SeqCst) {
            true => SealChange::Undo(copy.id),
            false => SealChange::Lift(copy.id),
        };
        let mut failed = None;
        for partition in &partitions.written {
            failed = worse(failed, partition.change_seal(lift).await.err());
        }
        failed = worse(failed, self.catalog.partition().change_seal(lift).await.err());
        failed.map_or(Ok(()), Err)
    }

    /// Changes the seals of all partitions: the catalog's first, and last if they are taken away.
    async fn change(&self, copy: &Arc<RunningCopy>, change: SealChange) -> Result<Vec<SealedPartition>> {
        let Sealed { written, kept } = partitions(self.catalog, copy).await?;
        let catalog = self.catalog.partition();
        let is_lifted = matches!(change, SealChange::Lift(_) | SealChange::LiftAny);
        let mut changed = Vec::new();
        if !is_lifted {
            changed.push(sealed(PartitionId::CATALOG, catalog.change_seal(change).await?));
        }
        let written = change_all(written, change).await?;
        if is_lifted {
            changed.push(sealed(PartitionId::CATALOG, catalog.change_seal(change).await?));
        }
        changed.extend(written);
        for partition in kept {
            changed.extend(unwritten(self.catalog, partition).await?);
        }
        Ok(changed)
    }

    /// See `Account::seal`.
    pub async fn info(&self) -> Result<Option<SealInfo>> {
        let look = self.catalog.partition().change_seal(SealChange::Look).await?;
        let now = self.catalog.now().await?;
        let seal = look.seal.filter(|seal| !seal.is_over(now));
        Ok(seal.map(|seal| SealInfo {
            copy: seal.copy,
            until: seal.until,
        }))
    }

    /// See `Account::unseal`.
    pub async fn unseal(&self) -> Result<()> {
        self.carry_out(|catalog, copies| async move { of(&catalog, &copies).unseal_now().await })
            .await
    }

    async fn unseal_now(&self) -> Result<()> {
        // Nothing is recorded for it, but it opens the partitions that other servers have made.
        let copy = Arc::new(RunningCopy::new(self.copies));
        self.change(&copy, SealChange::LiftAny).await.map(drop)
    }
}

/// Returns the partitions of the store, besides that of the catalog.
async fn partitions(catalog: &Catalog, copy: &RunningCopy) -> Result<Sealed> {
    open(catalog.stored_partitions().await?, catalog, copy).await
}

async fn open(stored: StoredPartitions, catalog: &Catalog, copy: &RunningCopy) -> Result<Sealed> {
    Ok(Sealed {
        written: copy.open(catalog, stored.placements).await?,
        kept: stored.kept,
    })
}

async fn change_all(partitions: Vec<Arc<Partition>>, change: SealChange) -> Result<Vec<SealedPartition>> {
    let changes = partitions.into_iter().map(|partition| async move {
        let sealing = partition.change_seal(change).await?;
        Ok(sealed(partition.id, sealing))
    });
    let changed: Vec<Result<SealedPartition>> = stream::iter(changes).buffered(AT_ONCE).collect().await;
    changed.into_iter().collect()
}

fn sealed(id: PartitionId, sealing: Sealing) -> SealedPartition {
    SealedPartition {
        id,
        head: sealing.head,
        items: Some(sealing.items),
    }
}

/// Returns a partition that nobody writes; `None` if it was removed meanwhile.
async fn unwritten(catalog: &Catalog, id: PartitionId) -> Result<Option<SealedPartition>> {
    match catalog.engine().read(id, ReadRequest::default()).await {
        Err(EngineError::NoPartition(_)) => Ok(None),
        reply => {
            let head = reply.map_err(engine_error)?.head;
            let items = None;
            Ok(Some(SealedPartition { id, head, items }))
        }
    }
}

/// Returns an error of two: one that a seal does not stand says the least.
fn worse(known: Option<Error>, other: Option<Error>) -> Option<Error> {
    known.or(other.filter(|error| error.kind != ErrorKind::Conflict))
}
