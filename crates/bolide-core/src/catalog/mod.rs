//! The catalog: databases, containers and their offers, users and their permissions.
//!
//! Partition 0 keeps it ([`records`] has the rows), and all of it is in memory while the account is open. Changes are rare and come
//! one after the other ([`Catalog::carry_out`]); each is one commit in partition 0, after which memory follows. A crash between the commit of a container
//! and the creation of its partitions is mended at the next start; partitions of deleted containers are named in the same commit that
//! deletes them, and removed from there.

mod account;
mod budget;
mod containers;
mod databases;
mod encryption_keys;
mod offers;
mod open;
mod permissions;
pub(crate) mod records;
mod scripts;
mod users;

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::Arc;

use bolide_model::rid::{ContainerRid, DatabaseRid, EncryptionKeyRid, UserRid};
use bolide_model::{Error, Lsn, Result, UnixSeconds};
use bolide_storage::Engine;
use parking_lot::RwLock;
use tokio::sync::Mutex;

pub use budget::DefinitionUsage;
pub(crate) use budget::limit_of as definition_limit;
use budget::{CatalogRound, DefinitionBudget};
pub use databases::DatabaseInfo;
pub use encryption_keys::EncryptionKeyInfo;
pub use offers::{Offer, OfferResource};
pub use permissions::{PermissionInfo, PermissionMode, PermissionProperties};
pub(crate) use scripts::Scripts;
pub use users::UserInfo;

use crate::container::Container;
use crate::format::etag::Etag;
use crate::partition::Alarm;
use crate::partition::Partition;
use crate::partition::round::{Round, Step};
use crate::throughput::SharedMeter;
use records::{AccountRow, DatabaseRow, EncryptionKeyRow};
use users::User;

/// See the module.
pub(crate) struct Catalog {
    engine: Arc<dyn Engine>,
    /// Rings when something will be due early.
    alarm: Arc<Alarm>,
    /// Partition 0.
    partition: Arc<Partition>,
    memory: RwLock<Memory>,
    budget: Arc<parking_lot::Mutex<DefinitionBudget>>,
    /// Held while the catalog changes.
    changing: Arc<Mutex<()>>,
}

/// The catalog as the last commit left it.
#[derive(Default)]
struct Memory {
    account: AccountRow,
    /// By number, so in the order of creation.
    databases: BTreeMap<u32, Database>,
    names: HashMap<String, DatabaseRid>,
}

struct Database {
    rid: DatabaseRid,
    row: DatabaseRow,
    /// What its containers consume together, if it has throughput (TTL-264).
    meter: Option<SharedMeter>,
    containers: BTreeMap<ContainerRid, Arc<Container>>,
    names: HashMap<String, ContainerRid>,
    users: BTreeMap<UserRid, User>,
    user_names: HashMap<String, UserRid>,
    encryption_keys: BTreeMap<EncryptionKeyRid, EncryptionKeyRow>,
}

/// When a change of the catalog committed: what the changed resource's `_etag` and `_ts` are made of.
#[derive(Debug, Clone, Copy)]
struct Moment {
    lsn: Lsn,
    now: UnixSeconds,
}

impl Moment {
    /// Begins a change in the draft of a commit.
    fn begin(round: &mut CatalogRound<'_, '_>) -> Moment {
        Moment {
            lsn: round.next_lsn(),
            now: round.seconds(),
        }
    }

    fn etag(self) -> Etag {
        Etag::of_write(0, self.lsn, 0)
    }
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
        let carried_out = tokio::spawn(async move {
            let _changing = changing;
            change.await
        });
        carried_out
            .await
            .unwrap_or_else(|_| Err(Error::internal("a change of the catalog panicked")))
    }

    /// Commits one change: `decide` drafts it and gives back what memory needs.
    ///
    /// # Errors
    /// Those of `decide`; `QuotaExceeded` if definitions would take more than they may.
    async fn commit<T, F>(&self, mut decide: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut CatalogRound<'_, '_>) -> Step<T> + Send + 'static,
    {
        let budget = self.budget.clone();
        let draft = move |round: &mut Round<'_>| CatalogRound::draft(round, &budget.lock(), &mut decide);
        let (value, resizing) = self.partition.write(draft).await?;
        self.budget.lock().apply(resizing);
        Ok(value)
    }

    /// Every container of the account.
    pub fn all_containers(&self) -> Vec<Arc<Container>> {
        let memory = self.memory.read();
        memory
            .databases
            .values()
            .flat_map(|database| database.containers.values().cloned())
            .collect()
    }
}

impl Memory {
    fn database(&self, rid: DatabaseRid) -> Result<&Database> {
        self.databases
            .get(&number_of(rid))
            .ok_or_else(|| database_not_found(&rid.to_string()))
    }

    fn database_mut(&mut self, rid: DatabaseRid) -> Result<&mut Database> {
        self.databases
            .get_mut(&number_of(rid))
            .ok_or_else(|| database_not_found(&rid.to_string()))
    }
}

fn number_of(rid: DatabaseRid) -> u32 {
    u32::from_le_bytes(rid.bytes())
}

fn database_not_found(name: &str) -> Error {
    Error::not_found(format!("Resource Not Found: there is no database '{name}'."))
}

fn container_not_found(name: &str) -> Error {
    Error::not_found(format!("Resource Not Found: there is no container '{name}'."))
}

fn check_etag(etag: Etag, if_match: Option<&str>) -> Result<()> {
    etag.check(if_match)
}
