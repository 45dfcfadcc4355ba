//! Databases.

use bolide_model::error::Resource;
use bolide_model::names::validate_resource_id;
use bolide_model::rid::{ContainerRid, DatabaseRid};
use bolide_model::{Error, ErrorKind, Result, UnixSeconds};
use bolide_storage::Space;

use super::Catalog;
use super::batch::{CatalogBatch, CommitPoint, check_etag};
use super::cache::Database;
use super::events::{CatalogEvent, CatalogEventKind};
use super::names::{self, Name};
use super::offers::new_offer;
use super::rows::{DatabaseRow, RowKey, Unknown};
use crate::format::etag::Etag;
use crate::partition::write_batch::Decision;
use crate::throughput::{Meter, OfferType, PacingSettings, SharedMeter, Throughput};

/// Identity and version of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseInfo {
    /// Its resource id.
    pub rid: DatabaseRid,
    /// Its name.
    pub id: String,
    /// Its version.
    pub etag: Etag,
    /// When it was last written.
    pub last_modified: UnixSeconds,
}

impl DatabaseRow {
    /// Returns the meter for the request units that the database's containers consume together; `None` if the database has no throughput.
    pub(super) fn meter(&self, now: UnixSeconds) -> Option<SharedMeter> {
        let settings = PacingSettings::of(self.offer.as_ref()?.throughput);
        Some(Meter::shared(&settings, 1, now))
    }

    fn info(&self, rid: DatabaseRid) -> DatabaseInfo {
        DatabaseInfo {
            rid,
            id: self.id.clone(),
            etag: self.etag,
            last_modified: self.last_modified,
        }
    }
}

impl Database {
    fn info(&self) -> DatabaseInfo {
        self.row.info(self.rid)
    }
}

impl Catalog {
    pub async fn create_database(&self, id: &str, throughput: Option<Throughput>) -> Result<DatabaseInfo> {
        validate_resource_id(id)?;
        throughput.map_or(Ok(()), Throughput::validate)?;
        let id = id.to_owned();
        self.commit(move |batch| create(batch, &id, throughput)).await
    }

    /// Returns all databases, in the order of their creation.
    pub fn list_databases(&self) -> Vec<DatabaseInfo> {
        self.memory.read().databases.values().map(Database::info).collect()
    }

    pub fn database_by_name(&self, id: &str) -> Result<DatabaseInfo> {
        let memory = self.memory.read();
        let rid = memory
            .names
            .get(id)
            .ok_or_else(|| Error::missing(Resource::Database, id))?;
        memory.database(*rid).map(Database::info)
    }

    pub fn database_by_rid(&self, rid: DatabaseRid) -> Result<DatabaseInfo> {
        self.memory.read().database(rid).map(Database::info)
    }

    /// Deletes a database with all its containers and users.
    pub async fn delete_database(&self, rid: DatabaseRid, if_match: Option<&str>) -> Result<()> {
        let if_match = if_match.map(str::to_owned);
        self.read(move |batch| Ok(check_etag(batch.database(rid)?.etag, if_match.as_deref())?))
            .await?;
        loop {
            for container in self.read(move |batch| containers_of(batch, rid)).await? {
                match self.delete_container(container, None).await {
                    // Another request has deleted it in the meantime.
                    Err(error) if error.kind == ErrorKind::NotFound => {}
                    deleted => deleted?,
                }
            }
            if self.commit(move |batch| delete(batch, rid)).await? {
                return Ok(());
            }
        }
    }

    /// Ends the removal of a database's collections: deletes the database if it has no containers. Does nothing if it does not exist.
    pub async fn end_drop_of_collections(&self, rid: DatabaseRid) -> Result<()> {
        let end = move |batch: &mut CatalogBatch<'_, '_>| {
            let database = batch.database(rid)?.id;
            let is_deleted = delete(batch, rid)?;
            batch.event(CatalogEvent::of_database(CatalogEventKind::DropDatabase, &database));
            Ok(is_deleted)
        };
        match self.commit(end).await {
            Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
            deleted => deleted.map(drop),
        }
    }
}

pub(super) fn create(
    batch: &mut CatalogBatch<'_, '_>,
    id: &str,
    throughput: Option<Throughput>,
) -> Decision<DatabaseInfo> {
    if batch.named(Name::Database(id))?.is_some() {
        return Err(Error::name_taken(Resource::Database, id).into());
    }
    let mut account = batch.account()?;
    let rid = DatabaseRid::new(account.next_database);
    account.next_database += 1;
    let commit_point = batch.commit_point();
    let offer =
        throughput.map(|throughput| new_offer(&mut account, Some(throughput), OfferType::default(), commit_point));
    let row = DatabaseRow {
        offer,
        ..new_row(id, commit_point)
    };
    let info = row.info(rid);
    batch.replace(RowKey::Account, account)?;
    batch.create(RowKey::Database(rid), row)?;
    Ok(info)
}

/// Returns the row of a new database without throughput.
pub(super) fn new_row(id: &str, commit_point: CommitPoint) -> DatabaseRow {
    DatabaseRow {
        id: id.to_owned(),
        etag: commit_point.etag(),
        last_modified: commit_point.now,
        next_container: 1,
        next_user: 1,
        offer: None,
        home: None,
        unknown: Unknown::default(),
    }
}

fn containers_of(batch: &mut CatalogBatch<'_, '_>, rid: DatabaseRid) -> Decision<Vec<ContainerRid>> {
    let mut containers = Vec::new();
    for (name, value) in batch.scan(Space::Index, &names::containers_of(rid))? {
        if let RowKey::Container(container) = names::target(&name, &value)? {
            containers.push(container);
        }
    }
    Ok(containers)
}

/// Removes a database, its users, permissions and client encryption keys. Returns `false`, and removes nothing, if the database has containers.
fn delete(batch: &mut CatalogBatch<'_, '_>, rid: DatabaseRid) -> Decision<bool> {
    batch.database(rid)?;
    if !containers_of(batch, rid)?.is_empty() {
        return Ok(false);
    }
    let (mut rows, mut named) = (Vec::new(), Vec::new());
    for prefix in RowKey::access_of(rid) {
        rows.extend(batch.scan_keys(Space::Meta, &prefix)?);
    }
    for prefix in names::access_of(rid) {
        named.extend(batch.scan_keys(Space::Index, &prefix)?);
    }
    batch.remove_all(&rows, named)?;
    batch.remove(RowKey::Database(rid))?;
    Ok(true)
}
