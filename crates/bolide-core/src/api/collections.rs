//! MongoDB collections: their definitions.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bolide_model::Result;
use bolide_model::rid::DatabaseRid;
use bolide_model::time::Monotonic;
use bolide_model::ttl::Policy;

use super::Account;
use crate::catalog::{Catalog, CollectionChange, RETIRED_SECONDS};
use crate::container::{CollectionDefinition, Container};
use crate::throughput::Throughput;

/// Time after which the partitions of dropped collections are looked at again.
const SWEEP: Duration = Duration::from_secs(RETIRED_SECONDS.unsigned_abs() + 1);

/// Operations on collections.
impl Account {
    /// Creates a collection, and its database if there is none.
    ///
    /// # Errors
    /// `Conflict` if the database has a collection or a container with this name.
    pub async fn create_collection(
        &self,
        database: &str,
        name: &str,
        definition: CollectionDefinition,
        policy: Policy,
    ) -> Result<Arc<Container>> {
        self.create_collection_with_throughput(database, name, (definition, policy), None)
            .await
    }

    /// As [`Account::create_collection`], with throughput of its own.
    ///
    /// # Errors
    /// As [`Account::create_collection`]; `BadRequest` for a bad throughput, or one that needs several ranges.
    pub async fn create_collection_with_throughput(
        &self,
        database: &str,
        name: &str,
        collection: (CollectionDefinition, Policy),
        throughput: Option<Throughput>,
    ) -> Result<Arc<Container>> {
        let (database, name) = (database.to_owned(), name.to_owned());
        let create = |catalog: Arc<Catalog>| async move {
            catalog
                .create_collection(&database, &name, collection, throughput)
                .await
        };
        self.catalog().carry_out(create).await
    }

    /// Returns the collection with a name; `None` if there is none, or if the name is that of a container of items.
    pub fn find_collection(&self, database: &str, name: &str) -> Option<Arc<Container>> {
        self.any_collection(database, name).filter(|found| !found.is_private())
    }

    /// Returns the private collection of a front end with this name; `None` if there is none.
    pub fn private_collection(&self, database: &str, name: &str) -> Option<Arc<Container>> {
        self.any_collection(database, name).filter(|found| found.is_private())
    }

    fn any_collection(&self, database: &str, name: &str) -> Option<Arc<Container>> {
        let database = self.catalog().database_by_name(database).ok()?;
        self.catalog().collection_by_name(database.rid, name).ok()
    }

    /// Returns the collections of a database in the order of their creation, without private ones; none if there is no such database.
    pub fn list_collections(&self, database: &str) -> Vec<Arc<Container>> {
        let Ok(database) = self.catalog().database_by_name(database) else {
            return Vec::new();
        };
        let mut collections = self.catalog().list_containers(database.rid).unwrap_or_default();
        collections.retain(|container| container.collection().is_some() && !container.is_private());
        collections
    }

    /// Gives a collection another name inside its database. A collection that has the name is removed if `replaces`.
    ///
    /// # Errors
    /// `Conflict` if the name is taken; `NotFound` if the collection was removed.
    pub async fn rename_collection(&self, container: &Arc<Container>, name: &str, replaces: bool) -> Result<()> {
        let (container, name) = (container.clone(), name.to_owned());
        let rename =
            |catalog: Arc<Catalog>| async move { catalog.rename_collection(&container, &name, replaces).await };
        let renamed = self.catalog().carry_out(rename).await;
        sweep_later(self.catalog(), self.monotonic());
        renamed
    }

    /// Removes a collection.
    ///
    /// # Errors
    /// `NotFound` if it was removed already.
    pub async fn drop_collection(&self, container: &Arc<Container>) -> Result<()> {
        let rid = container.rid();
        let remove = |catalog: Arc<Catalog>| async move { catalog.delete_container(rid, None).await };
        let removed = self.catalog().carry_out(remove).await;
        sweep_later(self.catalog(), self.monotonic());
        removed
    }

    /// Removes the collections of a database, and the database itself if nothing else is in it. Does nothing if there is no such database.
    ///
    /// # Errors
    /// From the engine.
    pub async fn drop_collections_of(&self, database: &str) -> Result<()> {
        let Ok(info) = self.catalog().database_by_name(database) else {
            return Ok(());
        };
        let collections = self.list_collections(database);
        for collection in collections {
            self.drop_collection(&collection).await?;
        }
        let remove = move |catalog: Arc<Catalog>| async move { catalog.end_drop_of_collections(info.rid).await };
        self.catalog().carry_out(remove).await
    }

    /// Changes a collection's definition: every request sees either the definition before or the one after it. What expired under the old definition
    /// stays expired.
    ///
    /// # Errors
    /// The errors of `decide`; `NotFound` if the collection was removed.
    pub async fn change_collection<T, F>(&self, container: &Arc<Container>, decide: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut CollectionChange<'_>) -> Result<T> + Send + 'static,
    {
        let container = container.clone();
        let changed = container.clone();
        let change = |catalog: Arc<Catalog>| async move { catalog.change_collection(&changed, decide).await };
        let result = self.catalog().carry_out(change).await;
        if container.state().indexes.has_work() {
            self.index_signal().notify_one();
        }
        result
    }

    /// Returns the names of the databases, and whether each has anything in it, in the order of their creation.
    pub fn database_names(&self) -> Vec<(String, bool)> {
        let databases = self.catalog().list_databases().into_iter();
        let has_any = |rid: DatabaseRid| !self.catalog().list_containers(rid).unwrap_or_default().is_empty();
        databases.map(|database| (database.id, has_any(database.rid))).collect()
    }
}

/// Removes the partitions of dropped collections once change streams may no longer read their history, in a task of which there is at most one.
pub(super) fn sweep_later(catalog: &Arc<Catalog>, monotonic: &Monotonic) {
    if !catalog.has_retired.load(Ordering::SeqCst) || catalog.is_sweeping.swap(true, Ordering::SeqCst) {
        return;
    }
    let (catalog, monotonic) = (Arc::downgrade(catalog), monotonic.clone());
    tokio::spawn(async move {
        loop {
            monotonic.sleep(SWEEP).await;
            // The account was closed.
            let Some(catalog) = catalog.upgrade() else { return };
            catalog.is_sweeping.store(false, Ordering::SeqCst);
            let sweep = |catalog: Arc<Catalog>| async move { Ok(catalog.remove_overdue().await) };
            let has_others = catalog.carry_out(sweep).await.unwrap_or(true);
            if !has_others || catalog.is_sweeping.swap(true, Ordering::SeqCst) {
                return;
            }
        }
    });
}
