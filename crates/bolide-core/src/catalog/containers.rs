//! Containers: create, find, replace.

use std::sync::Arc;

use bolide_model::container::ContainerProperties;
use bolide_model::error::{ItemOperation, Resource};
use bolide_model::names::validate_resource_id;
use bolide_model::rid::{ContainerRid, DatabaseRid};
use bolide_model::ttl::Settings;
use bolide_model::{Error, ErrorKind, Reason, Result, epk};
use bolide_storage::PartitionId;
use futures_util::FutureExt as _;
use serde_json::Value;

use super::Catalog;
use super::batch::{CatalogBatch, CommitPoint, check_etag};
use super::centroids;
use super::events::CatalogEvent;
use super::history;
use super::names::Name;
use super::offers::new_offer;
use super::partitions::FIRST_LAYOUT;
use super::rows::{AccountRow, ContainerRow, RowKey, Unknown};
use crate::change_log;
use crate::container::{Container, ContainerInfo, ContainerState, PolicyPeriod, WriteGuard};
use crate::index::PropertyIndexes;
use crate::partition::write_batch::Decision;
use crate::partition::{Placement, SettingsNumber};
use crate::throughput::{OfferType, PacingSettings, Throughput};

impl Catalog {
    pub async fn create_container(
        &self,
        database: DatabaseRid,
        properties: ContainerProperties,
        (throughput, kind): (Option<Throughput>, OfferType),
    ) -> Result<Arc<Container>> {
        validate_resource_id(&properties.id)?;
        properties.partition_key.check_new()?;
        check_computed_properties(&properties)?;
        throughput.map_or(Ok(()), Throughput::validate)?;
        let new = NewContainer {
            database,
            properties: Arc::new(properties),
            throughput,
            kind,
        };
        let rid = self.commit(move |batch| new.create(batch)).await?;
        self.container(rid).await.map_err(|error| match error.kind {
            // Others have deleted it in the meantime.
            ErrorKind::NotFound => error,
            _ => Error {
                kind: ErrorKind::Timeout,
                ..error.context("the container is stored, and could not be opened yet")
            },
        })
    }

    /// Returns the containers of a database, in the order of their creation.
    pub fn list_containers(&self, database: DatabaseRid) -> Result<Vec<Arc<Container>>> {
        let memory = self.memory.read();
        Ok(memory.database(database)?.containers.values().cloned().collect())
    }

    /// Returns all containers of the account.
    pub fn all_containers(&self) -> Vec<Arc<Container>> {
        let memory = self.memory.read();
        let databases = memory.databases.values();
        databases
            .flat_map(|database| database.containers.values().cloned())
            .collect()
    }

    pub fn container_by_name(&self, database: DatabaseRid, id: &str) -> Result<Arc<Container>> {
        let memory = self.memory.read();
        let database = memory.database(database)?;
        let rid = database
            .names
            .get(id)
            .ok_or_else(|| Error::missing(Resource::Container, id))?;
        database
            .containers
            .get(rid)
            .cloned()
            .ok_or_else(|| Error::missing(Resource::Container, id))
    }

    /// Returns the container of this name in the database of this name, if there are both.
    pub fn container_by_names(&self, database: &str, id: &str) -> Option<Arc<Container>> {
        let memory = self.memory.read();
        let rid = memory.names.get(database)?;
        let database = memory.database(*rid).ok()?;
        database.containers.get(database.names.get(id)?).cloned()
    }

    pub fn container_by_rid(&self, rid: ContainerRid) -> Result<Arc<Container>> {
        let memory = self.memory.read();
        let container = memory.container(rid).cloned();
        container.ok_or_else(|| Error::missing(Resource::Container, &rid))
    }

    /// Like [`Catalog::container_by_rid`], but also finds containers that others have created. For use inside changes: it does not wait for a running
    /// change.
    pub(super) async fn container(&self, rid: ContainerRid) -> Result<Arc<Container>> {
        match self.container_by_rid(rid) {
            Err(_) => {
                self.follow().await?;
                self.container_by_rid(rid)
            }
            known => known,
        }
    }

    /// Returns the row of a container as it is stored now.
    pub(crate) async fn container_row(&self, rid: ContainerRid) -> Result<Option<ContainerRow>> {
        self.read(move |batch| batch.container_if_there(rid)).await
    }

    /// Replaces a container's definition. If the default ttl changes, the policy period before it ends at the server time of the commit (TTL-227);
    /// otherwise no new period begins (TTL-231). No item is rewritten (TTL-234).
    pub async fn replace_container(
        &self,
        container: &Arc<Container>,
        sent: &Value,
        if_match: Option<&str>,
    ) -> Result<ContainerInfo> {
        container.state().check_is_not_collection(ItemOperation::Definition)?;
        let properties = ContainerProperties::from_json(sent)?;
        check_computed_properties(&properties)?;
        let change = container.lock().await;
        let replaced = self.replace_locked(container, &change, (properties, sent), if_match);
        let after = self.sealed(container, &change, replaced.boxed()).await?;
        for partition in &after.layout.partitions {
            partition.expect_due(i64::MIN);
            partition.expect_trim(i64::MIN);
        }
        Ok(container.info())
    }

    async fn replace_locked(
        &self,
        container: &Arc<Container>,
        change: &WriteGuard<'_>,
        (properties, sent): (ContainerProperties, &Value),
        if_match: Option<&str>,
    ) -> Result<Arc<ContainerState>> {
        loop {
            let state = self.current_state(container, change).await?;
            check_etag(state.etag, if_match)?;
            let after = state.properties.replace(properties.clone(), sent)?;
            if state.retention().is_none() && change_log::retention(&after, state.keeps_all_versions).is_some() {
                history::begin(&state).await?;
            }
            let replaced = self.change_known(container, change, &state, move |commit_point, row| {
                row.replace_properties(after.clone(), commit_point.now);
                (row.etag, row.last_modified) = (commit_point.etag(), commit_point.now);
            });
            if let Some(after) = replaced.await? {
                return Ok(after);
            }
        }
    }

    /// Sets how a container's purge is paced.
    pub async fn set_pacing(&self, container: &Arc<Container>, pacing: PacingSettings) -> Result<()> {
        let set = move |_: CommitPoint, row: &mut ContainerRow| {
            row.pacing = pacing;
            Ok(())
        };
        self.change_container(container, set).await.map(drop)
    }

    /// Changes a container's row, and paces its purge by the new row.
    pub(super) async fn change_container<F>(
        &self,
        container: &Arc<Container>,
        mut change_row: F,
    ) -> Result<Arc<ContainerState>>
    where
        F: FnMut(CommitPoint, &mut ContainerRow) -> Result<()> + Send + 'static,
    {
        let change = container.lock().await;
        let now = self.now().await?.seconds();
        let decide =
            move |commit_point: CommitPoint, row: &mut ContainerRow| change_row(commit_point, row).map(|()| true);
        let after = self.commit_state(container, &change, decide).await?;
        let after = after.ok_or_else(|| Error::internal("a change of a container was not made"))?;
        after.pace_meters(now);
        Ok(after)
    }

    /// Changes a container's row if it still is the one from which `state` was made. Returns `None` if it is not.
    pub(super) async fn change_known<F>(
        &self,
        container: &Arc<Container>,
        change: &WriteGuard<'_>,
        state: &Arc<ContainerState>,
        mut change_row: F,
    ) -> Result<Option<Arc<ContainerState>>>
    where
        F: FnMut(CommitPoint, &mut ContainerRow) + Send + 'static,
    {
        let state = state.clone();
        self.commit_state(container, change, move |commit_point, row| {
            let is_known = state.shows(row);
            if is_known {
                change_row(commit_point, row);
            }
            Ok(is_known)
        })
        .await
    }

    /// Commits a container's row as `change_row` changes it, and puts it into force. Returns `None` if `change_row` returns `false`.
    pub(super) async fn commit_state<F>(
        &self,
        container: &Arc<Container>,
        change: &WriteGuard<'_>,
        mut change_row: F,
    ) -> Result<Option<Arc<ContainerState>>>
    where
        F: FnMut(CommitPoint, &mut ContainerRow) -> Result<bool> + Send + 'static,
    {
        let change_row = move |commit_point: CommitPoint, row: &mut ContainerRow| {
            let is_changed = change_row(commit_point, row)?;
            Ok(is_changed.then(Vec::new))
        };
        self.commit_state_with_events(container, change, change_row).await
    }

    /// Like [`Catalog::commit_state`]; `change_row` also returns what change streams are told, or `None` if it changes nothing.
    pub(super) async fn commit_state_with_events<F>(
        &self,
        container: &Arc<Container>,
        change: &WriteGuard<'_>,
        mut change_row: F,
    ) -> Result<Option<Arc<ContainerState>>>
    where
        F: FnMut(CommitPoint, &mut ContainerRow) -> Result<Option<Vec<CatalogEvent>>> + Send + 'static,
    {
        let rid = container.rid();
        let sealed = change.sealed();
        let commit = self.commit_unseen(move |batch| {
            let mut row = batch.container(rid)?;
            let commit_point = batch.commit_point();
            if let Some(sealed) = sealed {
                sealed.check(&row, commit_point.millis)?;
            }
            let indexes = row.indexes.clone();
            let Some(events) = change_row(commit_point, &mut row)? else {
                return Ok(None);
            };
            centroids::follow(batch, rid, (&indexes, &row.indexes))?;
            events.into_iter().for_each(|event| batch.event(event));
            if sealed.is_some() {
                row.end_pending();
            }
            batch.replace(RowKey::Container(rid), row.clone())?;
            Ok(Some(row))
        });
        let (row, committed) = commit.await?;
        let Some(row) = row else { return Ok(None) };
        change.seal(None);
        let after = self.put_into_force(rid, change, &row).await;
        let after = after.map_err(committed_but)?;
        self.remember(committed).await;
        Ok(Some(after))
    }

    /// Replaces the state of an open container by that of its row, which others may have written.
    pub(super) async fn put_into_force(
        &self,
        rid: ContainerRid,
        change: &WriteGuard<'_>,
        row: &ContainerRow,
    ) -> Result<Arc<ContainerState>> {
        let before = change.state();
        self.load_centroids(rid, &row.indexes, Some(&before.indexes)).await?;
        let layout = if row.layout_version == before.layout.version {
            before.layout.clone()
        } else {
            Arc::new(self.open_layout(row, Some(&before.layout)).await?)
        };
        change.replace(ContainerState::of(row, &layout, before.database_meter.clone()));
        Ok(change.state())
    }

    /// Returns the container's state by its stored row.
    ///
    /// # Errors
    /// `NotFound` if the container was deleted.
    pub(super) async fn current_state(
        &self,
        container: &Container,
        change: &WriteGuard<'_>,
    ) -> Result<Arc<ContainerState>> {
        let state = self.newest_state(container, change).await?;
        if state.is_deleted {
            return Err(Error::missing(Resource::Container, &state.properties.id));
        }
        Ok(state)
    }

    /// Like [`Catalog::current_state`], but also returns the state of a deleted container.
    pub(super) async fn newest_state(
        &self,
        container: &Container,
        change: &WriteGuard<'_>,
    ) -> Result<Arc<ContainerState>> {
        let before = change.state();
        let Some(row) = self.settled_row(container.rid(), change).await? else {
            change.mark_deleted();
            return Ok(change.state());
        };
        if before.shows(&row) {
            return Ok(before);
        }
        let after = self.put_into_force(container.rid(), change, &row).await?;
        after.pace_meters(self.now().await?.seconds());
        for partition in &after.layout.partitions {
            partition.expect_due(i64::MIN);
            partition.expect_trim(i64::MIN);
        }
        Ok(after)
    }
}

/// Returns the error of a change that is committed, and that this process could not put into force: requests do that when they meet it. The client must
/// not take it for undone.
pub(super) fn committed_but(error: Error) -> Error {
    // Without its reason, which would let the request be made again.
    Error::new(ErrorKind::Timeout, error.to_string())
}

/// A container to create.
struct NewContainer {
    database: DatabaseRid,
    properties: Arc<ContainerProperties>,
    throughput: Option<Throughput>,
    kind: OfferType,
}

impl NewContainer {
    /// Writes its row, with the next numbers of the account and the database.
    fn create(&self, batch: &mut CatalogBatch<'_, '_>) -> Decision<ContainerRid> {
        let mut database = batch.database(self.database)?;
        check_encryption_keys(batch, self.database, &self.properties)?;
        if batch
            .named(Name::Container(self.database, &self.properties.id))?
            .is_some()
        {
            return Err(Error::name_taken(Resource::Container, &self.properties.id).into());
        }
        let mut account = batch.account()?;
        let rid = ContainerRid::new(self.database, database.next_container);
        database.next_container += 1;
        // If the database has throughput of its own, a container without throughput shares it.
        let has_offer = self.throughput.is_some() || database.offer.is_none();
        let row = self.row(batch.commit_point(), &mut account, has_offer);
        batch.replace(RowKey::Account, account)?;
        batch.replace(RowKey::Database(self.database), database)?;
        batch.create(RowKey::Container(rid), row)?;
        Ok(rid)
    }

    fn row(&self, commit_point: CommitPoint, account: &mut AccountRow, has_offer: bool) -> ContainerRow {
        let properties = self.properties.clone();
        let count = self.throughput.map_or(1, Throughput::initial_ranges);
        let first = account.next_partition;
        let epks = epk::boundaries(&properties.partition_key, count);
        let placements: Vec<Placement> = (0..)
            .zip(epks)
            .map(|(range, epk)| Placement {
                id: PartitionId(first + u64::from(range)),
                range,
                epk,
                parents: vec![],
            })
            .collect();
        account.next_partition += placements.len() as u64;
        ContainerRow {
            etag: commit_point.etag(),
            last_modified: commit_point.now,
            floors: Settings::new(properties.policy).floors,
            history: vec![PolicyPeriod {
                start: commit_point.now,
                policy: properties.policy,
            }],
            properties,
            offer: has_offer.then(|| new_offer(account, self.throughput, self.kind, commit_point)),
            pacing: PacingSettings::of(self.throughput),
            keeps_all_versions: false,
            settings_number: SettingsNumber::default(),
            pending: None,
            collection: None,
            indexes: Arc::new(PropertyIndexes::of_new(&self.properties)),
            layout_version: FIRST_LAYOUT,
            next_range: placements.len() as u32,
            placements,
            unknown: Unknown::default(),
        }
    }
}

/// Checks the queries of computed properties, which the definition itself cannot check.
fn check_computed_properties(properties: &ContainerProperties) -> Result<()> {
    for computed in &properties.computed_properties {
        bolide_query::check_computed(&computed.query).map_err(|error| {
            Error::bad_request(format!(
                "The computed property '{}' is invalid: {}",
                computed.name,
                error.message()
            ))
        })?;
    }
    Ok(())
}

/// Refuses an encryption policy that names keys which do not exist in the database. Clients look for these words. Source: .NET's suite.
fn check_encryption_keys(
    batch: &mut CatalogBatch<'_, '_>,
    database: DatabaseRid,
    properties: &ContainerProperties,
) -> Decision<()> {
    let policies = properties.client_encryption_policy.iter();
    for path in policies.flat_map(|policy| &policy.paths) {
        let id = &path.key_id;
        if batch.named(Name::EncryptionKey(database, id))?.is_none() {
            return Err(Reason::EncryptionKeyUnknown { id: id.clone() }.into());
        }
    }
    Ok(())
}
