//! The catalog: databases, containers and their offers, users and their permissions, client encryption keys, scripts.
//!
//! It is stored in partition 0, in the rows that [`rows`] describes. Every change is one commit there, decided from rows that were read in its write
//! batch ([`batch`]), so it is correct whoever else writes to the store. What requests need is also in memory: a [`cache`] that follows the log
//! sequence number of partition 0 and reads what others changed. Within one process, changes run one after the other ([`Catalog::carry_out`]); that
//! keeps them in order, but their correctness does not depend on it.
//!
//! ```text
//!   change ──▶ batch: read rows, decide, write rows ──commit──▶ partition 0
//!                 ▲ Stale: again, on new rows                      │ lsn, changed rows
//!                                                                  ▼
//!   requests ◀── names, definitions, open containers ──────── cache ◀── what others committed
//! ```
//!
//! If the server crashes between the commit of a container and the creation of its partitions, the next process that opens the container creates
//! them. The commit that deletes a container lists its partitions for removal, so they are removed even after a crash. Collections that a transaction
//! creates are published after its commit ([`unpublished`]).

mod account;
mod batch;
mod budget;
mod cache;
mod centroids;
mod changes;
mod collections;
mod containers;
mod databases;
mod encryption_keys;
mod events;
mod history;
mod indexes;
mod names;
mod offers;
mod open;
mod partitions;
mod permissions;
mod removal;
pub(crate) mod rows;
mod scripts;
mod seal;
mod state;
mod stored_partitions;
pub(crate) mod unpublished;
mod users;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bolide_model::{Error, Result};
use bolide_storage::Engine;
use futures_util::FutureExt as _;
use parking_lot::RwLock;
use tokio::sync::Mutex;

pub use account::NextNumbers;
use batch::{CatalogBatch, Committed};
use budget::DefinitionBudget;
pub use budget::DefinitionUsage;
pub(crate) use budget::limit_of as definition_limit;
use cache::Memory;
pub use collections::CollectionChange;
pub use databases::DatabaseInfo;
pub use encryption_keys::EncryptionKeyInfo;
pub use events::{CatalogEvent, CatalogEventKind};
pub(crate) use indexes::Waits;
pub use offers::{Offer, OfferResource};
pub use permissions::{PermissionInfo, PermissionMode, PermissionProperties};
pub(crate) use removal::RETIRED_SECONDS;
pub(crate) use stored_partitions::{StoredPartitions, unless_sealed};
use unpublished::Unpublished;
pub use users::UserInfo;

use crate::container::Container;
use crate::partition::Partition;
use crate::partition::Signals;
use crate::partition::write_batch::{Decision, WriteBatch};

/// See the module.
pub(crate) struct Catalog {
    engine: Arc<dyn Engine>,
    /// What all partitions share.
    signals: Signals,
    /// Partition 0.
    partition: Arc<Partition>,
    memory: RwLock<Memory>,
    /// Held while `memory` is brought up to date with commits.
    following: Mutex<()>,
    /// Open containers whose rows were changed by others. Their state is to be replaced.
    outdated: parking_lot::Mutex<Vec<Arc<Container>>>,
    /// Held while their state is replaced, so that whoever waits for it finds it in force afterwards.
    reloading: Mutex<()>,
    budget: Arc<parking_lot::Mutex<DefinitionBudget>>,
    /// Whether there are partitions of dropped collections to remove later.
    pub has_retired: AtomicBool,
    /// Whether a task waits to remove them.
    pub is_sweeping: AtomicBool,
    /// Held while this process changes the catalog.
    changing: Arc<Mutex<()>>,
    /// The collections that open transactions have created.
    unpublished: Unpublished,
}

/// A decision on the catalog's rows. Boxed, so that the partition's code is compiled once for each result and not for each decision.
type BoxedDecision<T> = Box<dyn FnMut(&mut CatalogBatch<'_, '_>) -> Decision<T> + Send>;

impl Catalog {
    /// Carries out one change at a time, to its end: even if its request is dropped meanwhile, memory follows what was committed. Everything that
    /// changes the catalog of an open account is called through this function.
    ///
    /// # Errors
    /// The errors of the change; `Internal` if it panicked.
    pub async fn carry_out<T, F>(self: &Arc<Self>, change: impl FnOnce(Arc<Catalog>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        // A request that is dropped while it waits here starts no change. So at most one change outlives its request.
        let changing = self.changing.clone().lock_owned().await;
        // Boxed: the task below is compiled once for each result, and not for each change.
        let change = change(self.clone()).boxed();
        let catalog = self.clone();
        let carried_out = tokio::spawn(async move {
            let _changing = changing;
            let changed = change.await;
            // Only after the change has released its container.
            catalog.reload_outdated().await;
            changed
        });
        carried_out
            .await
            .unwrap_or_else(|_| Err(Error::internal("a change of the catalog panicked")))
    }

    /// Commits one change and updates memory.
    ///
    /// # Errors
    /// The errors of `decide`; `QuotaExceeded` if definitions would exceed their limit.
    async fn commit<T, F>(&self, decide: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut CatalogBatch<'_, '_>) -> Decision<T> + Send + 'static,
    {
        let (value, committed) = self.commit_unseen(decide).await?;
        self.remember(committed).await;
        Ok(value)
    }

    /// Commits one change. Memory does not show it before [`Catalog::remember`] is called.
    ///
    /// # Errors
    /// The errors of [`Catalog::commit`].
    async fn commit_unseen<T, F>(&self, decide: F) -> Result<(T, Option<Committed>)>
    where
        T: Send + 'static,
        F: FnMut(&mut CatalogBatch<'_, '_>) -> Decision<T> + Send + 'static,
    {
        let budget = self.budget.clone();
        let mut decide: BoxedDecision<T> = Box::new(decide);
        let draft = move |batch: &mut WriteBatch<'_>| CatalogBatch::draft(batch, &budget.lock(), &mut decide);
        // Queued as background work, so that it is the first in its write batch: only the first decision may scan.
        self.partition.background(draft).await
    }

    /// Reads rows, all from one snapshot.
    ///
    /// # Errors
    /// The errors of `read` and of the engine.
    async fn read<T, F>(&self, read: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut CatalogBatch<'_, '_>) -> Decision<T> + Send + 'static,
    {
        let mut read: BoxedDecision<T> = Box::new(read);
        self.partition
            .background(move |batch| CatalogBatch::read_only(batch, &mut read))
            .await
    }
}

#[cfg(test)]
mod tests;
