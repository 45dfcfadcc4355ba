//! Databases.

use bolide_model::names::validate_resource_id;
use bolide_model::rid::DatabaseRid;
use bolide_model::{Error, Result, UnixSeconds};

use super::budget::Definition;
use super::records::{DatabaseRow, OfferRow, account_key, database_key};
use super::{Catalog, Database, Moment, check_etag, database_not_found, number_of};
use crate::format::etag::Etag;
use crate::throughput::{Meter, OfferType, PacingSettings, SharedMeter, Throughput};

/// What a database is and is called.
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
    /// The meter of what the database's containers consume together; `None` without throughput.
    pub(super) fn meter(&self, now: UnixSeconds) -> Option<SharedMeter> {
        let settings = PacingSettings::of(self.offer?.throughput);
        Some(Meter::shared(&settings, 1, now))
    }
}

impl Database {
    fn info(&self) -> DatabaseInfo {
        DatabaseInfo {
            rid: self.rid,
            id: self.row.id.clone(),
            etag: self.row.etag,
            last_modified: self.row.last_modified,
        }
    }
}

impl Catalog {
    pub async fn create_database(&self, id: &str, throughput: Option<Throughput>) -> Result<DatabaseInfo> {
        validate_resource_id(id)?;
        throughput.map_or(Ok(()), Throughput::validate)?;
        let now = self.now().await?.seconds();
        let mut account = {
            let memory = self.memory.read();
            if memory.names.contains_key(id) {
                return Err(Error::conflict(format!(
                    "Resource with specified id, name, or unique index already exists: database '{id}'."
                )));
            }
            memory.account.clone()
        };
        let rid = DatabaseRid::new(account.next_database);
        account.next_database += 1;
        let offer_number = account.next_offer;
        if throughput.is_some() {
            account.next_offer += 1;
        }
        let committed = account.clone();
        let name = id.to_owned();
        let row = self
            .commit(move |round| {
                let moment = Moment::begin(round);
                let offer = throughput.map(|throughput| OfferRow {
                    number: offer_number,
                    throughput: Some(throughput),
                    kind: OfferType::default(),
                    etag: moment.etag(),
                    last_modified: moment.now,
                });
                let (etag, last_modified) = (moment.etag(), moment.now);
                let row = DatabaseRow {
                    id: name.clone(),
                    etag,
                    last_modified,
                    next_container: 1,
                    next_user: 1,
                    offer,
                };
                round.put(account_key(), account.encode());
                round.define(database_key(rid), Definition::Database(&row));
                Ok(row)
            })
            .await?;
        let database = Database {
            rid,
            meter: row.meter(now),
            row,
            containers: Default::default(),
            names: Default::default(),
            users: Default::default(),
            user_names: Default::default(),
            encryption_keys: Default::default(),
        };
        let info = database.info();
        let mut memory = self.memory.write();
        memory.account = committed;
        memory.names.insert(info.id.clone(), rid);
        memory.databases.insert(number_of(rid), database);
        Ok(info)
    }

    /// All databases, in the order of their creation.
    pub fn list_databases(&self) -> Vec<DatabaseInfo> {
        self.memory.read().databases.values().map(Database::info).collect()
    }

    pub fn database_by_name(&self, id: &str) -> Result<DatabaseInfo> {
        let memory = self.memory.read();
        let rid = memory.names.get(id).ok_or_else(|| database_not_found(id))?;
        memory.database(*rid).map(Database::info)
    }

    pub fn database_by_rid(&self, rid: DatabaseRid) -> Result<DatabaseInfo> {
        self.memory.read().database(rid).map(Database::info)
    }

    /// Deletes a database with all its containers and users.
    pub async fn delete_database(&self, rid: DatabaseRid, if_match: Option<&str>) -> Result<()> {
        let containers: Vec<_> = {
            let memory = self.memory.read();
            let database = memory.database(rid)?;
            check_etag(database.row.etag, if_match)?;
            database.containers.values().cloned().collect()
        };
        for container in containers {
            self.drop_container(&container).await?;
        }
        let children = self.memory.read().database(rid)?.child_keys();
        self.commit(move |round| {
            Moment::begin(round);
            round.delete(database_key(rid));
            for key in &children {
                round.delete(key.clone());
            }
            Ok(())
        })
        .await?;
        let mut memory = self.memory.write();
        if let Some(database) = memory.databases.remove(&number_of(rid)) {
            memory.names.remove(&database.row.id);
        }
        Ok(())
    }
}
