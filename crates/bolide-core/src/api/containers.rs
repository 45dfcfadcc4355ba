//! Containers: their definitions, their settings, and the throughput that users consume.

use std::sync::Arc;

use bolide_model::container::ContainerProperties;
use bolide_model::error::Resource;
use bolide_model::partition_key::PartitionKey;
use bolide_model::rid::{ContainerRid, DatabaseRid};
use bolide_model::{Error, RequestUnits, Result};
use serde_json::Value;

use super::Account;
use super::collections::sweep_later;
use crate::catalog::Catalog;
use crate::container::{Container, ContainerInfo};
use crate::items::epk_of_key;
use crate::response::RangePosition;
use crate::runtime::{RequestContext, throttled};
use crate::throughput::{OfferType, PacingSettings, Throughput};

/// Operations on containers.
impl Account {
    /// Creates a container, with as many ranges as its throughput implies.
    ///
    /// # Errors
    /// `NotFound` if there is no such database; `Conflict` if it has a container with this name; `BadRequest` for a bad name or throughput.
    pub async fn create_container(
        &self,
        _ctx: &RequestContext,
        database: DatabaseRid,
        properties: ContainerProperties,
        throughput: Option<Throughput>,
    ) -> Result<Arc<Container>> {
        self.create_container_of_type(database, properties, (throughput, OfferType::default()))
            .await
    }

    /// As [`Account::create_container`], with the performance level of its offer.
    ///
    /// # Errors
    /// As [`Account::create_container`].
    pub async fn create_container_of_type(
        &self,
        database: DatabaseRid,
        properties: ContainerProperties,
        offer: (Option<Throughput>, OfferType),
    ) -> Result<Arc<Container>> {
        let create = |catalog: Arc<Catalog>| async move { catalog.create_container(database, properties, offer).await };
        let container = self.catalog().carry_out(create).await?;
        // It may want indexes of vectors, once it has some.
        self.index_signal().notify_one();
        Ok(container)
    }

    /// Returns the position of the range that holds a partition key.
    ///
    /// # Errors
    /// `PartitionKeyMismatch` if the key has the wrong number of components; `NotFound` if the container was deleted.
    pub async fn position(&self, container: &Arc<Container>, key: &PartitionKey) -> Result<RangePosition> {
        let guard = container.enter().await?;
        let partition = guard.state.layout.partition_of(&epk_of_key(&guard.state, key)?)?;
        Ok(RangePosition {
            range: partition.range,
            lsn: partition.newest_lsn().await?,
            charge: RequestUnits::ZERO,
        })
    }

    /// Returns the containers of a database, in the order of their creation, without private collections.
    ///
    /// # Errors
    /// `NotFound` if there is no such database.
    pub fn list_containers(&self, database: DatabaseRid) -> Result<Vec<Arc<Container>>> {
        let mut containers = self.catalog().list_containers(database)?;
        containers.retain(|container| !container.is_private());
        Ok(containers)
    }

    /// Returns the containers of a database, in the order of their creation, with private collections: for copies of a whole store.
    ///
    /// # Errors
    /// `NotFound` if there is no such database.
    pub fn list_all_containers(&self, database: DatabaseRid) -> Result<Vec<Arc<Container>>> {
        self.catalog().list_containers(database)
    }

    /// Returns the container with this name.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn container_by_name(&self, database: DatabaseRid, id: &str) -> Result<Arc<Container>> {
        let found = self.catalog().container_by_name(database, id)?;
        shown(found, id)
    }

    /// Returns the container of this name in the database of this name, if there are both.
    pub fn container_by_names(&self, database: &str, id: &str) -> Option<Arc<Container>> {
        let found = self.catalog().container_by_names(database, id)?;
        shown(found, id).ok()
    }

    /// Returns the container with this resource id.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn container_by_rid(&self, rid: ContainerRid) -> Result<Arc<Container>> {
        shown(self.catalog().container_by_rid(rid)?, &rid)
    }

    /// Returns every container of the account, private collections included: for checks.
    pub fn all_containers(&self) -> Vec<Arc<Container>> {
        self.catalog().all_containers()
    }

    /// Replaces a container's definition with `sent` as a whole: properties that are left out are removed (TTL-231). A changed default ttl applies at
    /// once, also to existing items (TTL-228), and makes no expired item visible again (TTL-226).
    ///
    /// # Errors
    /// `BadRequest` or `Forbidden` for properties that are invalid or cannot change; `PreconditionFailed` if the container has another version.
    pub async fn replace_container(
        &self,
        _ctx: &RequestContext,
        container: &Arc<Container>,
        sent: &Value,
        if_match: Option<&str>,
    ) -> Result<ContainerInfo> {
        let (container, sent, if_match) = (container.clone(), sent.clone(), if_match.map(str::to_owned));
        let replace = |catalog: Arc<Catalog>| async move {
            catalog.replace_container(&container, &sent, if_match.as_deref()).await
        };
        let replaced = self.catalog().carry_out(replace).await;
        // The indexing policy may name other paths.
        self.index_signal().notify_one();
        replaced
    }

    /// Deletes a container. Its purge ends too (TTL-271).
    ///
    /// # Errors
    /// `NotFound`; `PreconditionFailed` if the container has another version.
    pub async fn delete_container(
        &self,
        _ctx: &RequestContext,
        rid: ContainerRid,
        if_match: Option<&str>,
    ) -> Result<()> {
        let if_match = if_match.map(str::to_owned);
        let delete = |catalog: Arc<Catalog>| async move { catalog.delete_container(rid, if_match.as_deref()).await };
        let deleted = self.catalog().carry_out(delete).await;
        sweep_later(self.catalog(), self.monotonic());
        deleted
    }

    /// Sets the pace of a container's purge.
    ///
    /// # Errors
    /// Errors of the engine.
    pub async fn set_pacing(&self, container: &Arc<Container>, pacing: PacingSettings) -> Result<()> {
        let container = container.clone();
        let set = |catalog: Arc<Catalog>| async move { catalog.set_pacing(&container, pacing).await };
        self.catalog().carry_out(set).await
    }

    /// Consumes request units as users would in the current second, evenly over the partitions.
    ///
    /// # Errors
    /// `Throttled` if the throughput does not allow it; then nothing is consumed.
    pub fn consume(&self, container: &Container, units: RequestUnits) -> Result<()> {
        let layout = container.state().layout.clone();
        let share = RequestUnits(units.0 / layout.partitions.len() as f64);
        let now = self.server_time().seconds();
        for (at, partition) in layout.partitions.iter().enumerate() {
            if !partition.meter().lock().try_consume(now, share) {
                for consumed in &layout.partitions[..at] {
                    consumed.meter().lock().consume(now, RequestUnits(-share.0));
                }
                return Err(throttled(1_000));
            }
        }
        Ok(())
    }
}

/// Hides a private collection.
fn shown(container: Arc<Container>, name: &(impl ToString + ?Sized)) -> Result<Arc<Container>> {
    match container.is_private() {
        true => Err(Error::missing(Resource::Container, name)),
        false => Ok(container),
    }
}
