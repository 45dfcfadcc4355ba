//! The catalog: databases, containers and their offers, users and their permissions, client encryption keys, scripts.
//!
//! Partition 0 keeps it ([`rows`] has the rows). Every change is one commit there, decided from rows that were read in its write batch ([`batch`]): it
//! stays right whoever else writes to the store. What requests need is in memory too: a [`cache`] that follows the log sequence number of partition 0 and reads what
//! others changed. In one process changes come one after the other ([`Catalog::carry_out`]); that keeps them in order and is not what
//! makes them right.
//!
//! ```text
//!   change ──▶ batch: read rows, decide, write rows ──commit──▶ partition 0
//!                 ▲ Stale: again, on new rows                      │ lsn, changed rows
//!                                                                  ▼
//!   requests ◀── names, definitions, open containers ──────── cache ◀── what others committed
//! ```
//!
//! A crash between the commit of a container and the creation of its partitions is mended by whoever opens it next; partitions of deleted containers are
//! named in the same commit that deletes them, and removed from there.

mod account;
mod batch;
mod budget;
mod cache;
mod changes;
mod containers;
mod databases;
mod encryption_keys;
mod names;
mod offers;
mod open;
mod partitions;
mod permissions;
pub(crate) mod rows;
mod scripts;
mod state;
mod users;

use std::future::Future;
use std::sync::Arc;

use bolide_model::{Error, Result};
use bolide_storage::Engine;
use parking_lot::RwLock;
use tokio::sync::Mutex;

use batch::{CatalogBatch, Committed};
use budget::DefinitionBudget;
pub use budget::DefinitionUsage;
pub(crate) use budget::limit_of as definition_limit;
use cache::Memory;
pub use databases::DatabaseInfo;
pub use encryption_keys::EncryptionKeyInfo;
pub use offers::{Offer, OfferResource};
pub use permissions::{PermissionInfo, PermissionMode, PermissionProperties};
pub use users::UserInfo;

use crate::container::Container;
use crate::partition::Partition;
use crate::partition::Wakeup;
use crate::partition::write_batch::{Decision, WriteBatch};

/// See the module.
pub(crate) struct Catalog {
    engine: Arc<dyn Engine>,
    /// Rings when something will be due early.
    wakeup: Arc<Wakeup>,
    /// Partition 0.
    partition: Arc<Partition>,
    memory: RwLock<Memory>,
    /// Held while memory follows what was committed.
    following: Mutex<()>,
    /// Containers whose rows others changed: what is open of them is to follow.
    outdated: parking_lot::Mutex<Vec<Arc<Container>>>,
    budget: Arc<parking_lot::Mutex<DefinitionBudget>>,
    /// Held while this process changes the catalog.
    changing: Arc<Mutex<()>>,
}

impl Catalog {
    /// Carries a change out, one at a time and to its end: its request may be dropped meanwhile, and memory still follows what was committed.
    /// Everything that changes the catalog of an open account goes through here.
    ///
    /// # Errors
    /// Those of the change; `Internal` if it panicked.
    pub async fn carry_out<T, F>(self: &Arc<Self>, change: impl FnOnce(Arc<Catalog>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        // Who waits still leaves with its request: no more than one change at a time outlives it.
        let changing = self.changing.clone().lock_owned().await;
        let change = change(self.clone());
        let catalog = self.clone();
        let carried_out = tokio::spawn(async move {
            let _changing = changing;
            let changed = change.await;
            // Not before the change has let go of its container.
            catalog.reload_outdated().await;
            changed
        });
        carried_out
            .await
            .unwrap_or_else(|_| Err(Error::internal("a change of the catalog panicked")))
    }

    /// Commits one change, and lets memory follow.
    ///
    /// # Errors
    /// Those of `decide`; `QuotaExceeded` if definitions would take more than they may.
    async fn commit<T, F>(&self, decide: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut CatalogBatch<'_, '_>) -> Decision<T> + Send + 'static,
    {
        let (value, committed) = self.commit_unseen(decide).await?;
        self.remember(committed).await;
        Ok(value)
    }

    /// Commits one change, which memory does not show before [`Catalog::remember`].
    ///
    /// # Errors
    /// As [`Catalog::commit`].
    async fn commit_unseen<T, F>(&self, mut decide: F) -> Result<(T, Option<Committed>)>
    where
        T: Send + 'static,
        F: FnMut(&mut CatalogBatch<'_, '_>) -> Decision<T> + Send + 'static,
    {
        let budget = self.budget.clone();
        let draft = move |batch: &mut WriteBatch<'_>| CatalogBatch::draft(batch, &budget.lock(), &mut decide);
        // First in its write batch: only the first decision may scan.
        self.partition.background(draft).await
    }

    /// Reads rows, all from one snapshot.
    ///
    /// # Errors
    /// Those of `read`; from the engine.
    async fn read<T, F>(&self, mut read: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut CatalogBatch<'_, '_>) -> Decision<T> + Send + 'static,
    {
        self.partition
            .background(move |batch| CatalogBatch::read_only(batch, &mut read))
            .await
    }
}

fn database_not_found(name: &str) -> Error {
    Error::not_found(format!("Resource Not Found: there is no database '{name}'."))
}

fn container_not_found(name: &str) -> Error {
    Error::not_found(format!("Resource Not Found: there is no container '{name}'."))
}

#[cfg(test)]
mod tests;
