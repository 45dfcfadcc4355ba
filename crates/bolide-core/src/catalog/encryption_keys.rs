//! Client encryption keys of a database: stored for clients, and never deleted, since what they encrypted could not be read any more.

use std::sync::Arc;

use bolide_model::encryption_key::EncryptionKeyProperties;
use bolide_model::rid::{DatabaseRid, EncryptionKeyRid};
use bolide_model::{Error, Result, UnixSeconds};

use super::budget::Definition;
use super::records::{EncryptionKeyRow, encryption_key_key};
use super::{Catalog, Moment, check_etag};
use crate::account::{Account, RequestContext};
use crate::format::etag::Etag;

/// A client encryption key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncryptionKeyInfo {
    /// Its resource id.
    pub rid: EncryptionKeyRid,
    /// Its definition.
    pub properties: Arc<EncryptionKeyProperties>,
    /// When it was created.
    pub created: UnixSeconds,
    /// Its version.
    pub etag: Etag,
    /// When it was last written.
    pub last_modified: UnixSeconds,
}

impl EncryptionKeyInfo {
    fn new(rid: EncryptionKeyRid, row: &EncryptionKeyRow) -> EncryptionKeyInfo {
        EncryptionKeyInfo {
            rid,
            properties: row.properties.clone(),
            created: row.created,
            etag: row.etag,
            last_modified: row.last_modified,
        }
    }
}

impl Catalog {
    async fn create_encryption_key(
        &self,
        database: DatabaseRid,
        properties: EncryptionKeyProperties,
    ) -> Result<EncryptionKeyInfo> {
        let number = {
            let memory = self.memory.read();
            let keys = &memory.database(database)?.encryption_keys;
            if keys.values().any(|row| row.properties.id == properties.id) {
                return Err(Error::conflict(format!(
                    "Resource with specified id, name, or unique index already exists: client encryption key '{}'.",
                    properties.id
                )));
            }
            keys.last_key_value().map_or(0, |(last, _)| last.number) + 1
        };
        self.write_encryption_key(EncryptionKeyRid { database, number }, properties, None)
            .await
    }

    async fn replace_encryption_key(
        &self,
        rid: EncryptionKeyRid,
        properties: EncryptionKeyProperties,
        if_match: Option<&str>,
    ) -> Result<EncryptionKeyInfo> {
        let known = self.encryption_key_by_rid(rid)?;
        check_etag(known.etag, if_match)?;
        if known.properties.id != properties.id {
            return Err(Error::bad_request(format!(
                "The 'id' of a client encryption key cannot be changed from '{}' to '{}'.",
                known.properties.id, properties.id
            )));
        }
        self.write_encryption_key(rid, properties, Some(known.created)).await
    }

    async fn write_encryption_key(
        &self,
        rid: EncryptionKeyRid,
        properties: EncryptionKeyProperties,
        created: Option<UnixSeconds>,
    ) -> Result<EncryptionKeyInfo> {
        let properties = Arc::new(properties);
        let row = self
            .commit(move |round| {
                let moment = Moment::begin(round);
                let row = EncryptionKeyRow {
                    properties: properties.clone(),
                    created: created.unwrap_or(moment.now),
                    etag: moment.etag(),
                    last_modified: moment.now,
                };
                round.define(encryption_key_key(rid), Definition::EncryptionKey(&row));
                Ok(row)
            })
            .await?;
        let info = EncryptionKeyInfo::new(rid, &row);
        let mut memory = self.memory.write();
        memory.database_mut(rid.database)?.encryption_keys.insert(rid, row);
        Ok(info)
    }

    fn encryption_key_by_rid(&self, rid: EncryptionKeyRid) -> Result<EncryptionKeyInfo> {
        let memory = self.memory.read();
        let row = memory.database(rid.database)?.encryption_keys.get(&rid);
        row.map(|row| EncryptionKeyInfo::new(rid, row))
            .ok_or_else(|| not_found(&rid.to_string()))
    }
}

/// Client encryption keys.
impl Account {
    /// Creates a key.
    ///
    /// # Errors
    /// `NotFound` without the database; `Conflict` if it has a key of this name.
    pub async fn create_encryption_key(
        &self,
        _ctx: &RequestContext,
        database: DatabaseRid,
        properties: EncryptionKeyProperties,
    ) -> Result<EncryptionKeyInfo> {
        let create = |catalog: Arc<Catalog>| async move { catalog.create_encryption_key(database, properties).await };
        self.catalog().carry_out(create).await
    }

    /// Replaces a key: wraps it in another way.
    ///
    /// # Errors
    /// `NotFound`; `BadRequest` if the name is another; `PreconditionFailed` if it is another version.
    pub async fn replace_encryption_key(
        &self,
        _ctx: &RequestContext,
        rid: EncryptionKeyRid,
        properties: EncryptionKeyProperties,
        if_match: Option<&str>,
    ) -> Result<EncryptionKeyInfo> {
        let if_match = if_match.map(str::to_owned);
        let replace = |catalog: Arc<Catalog>| async move {
            catalog
                .replace_encryption_key(rid, properties, if_match.as_deref())
                .await
        };
        self.catalog().carry_out(replace).await
    }

    /// The keys of a database, in the order of their creation.
    ///
    /// # Errors
    /// `NotFound` without the database.
    pub fn list_encryption_keys(&self, database: DatabaseRid) -> Result<Vec<EncryptionKeyInfo>> {
        let memory = self.catalog().memory.read();
        let keys = memory.database(database)?.encryption_keys.iter();
        Ok(keys.map(|(rid, row)| EncryptionKeyInfo::new(*rid, row)).collect())
    }

    /// The key of this name.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn encryption_key_by_name(&self, database: DatabaseRid, id: &str) -> Result<EncryptionKeyInfo> {
        let memory = self.catalog().memory.read();
        let mut keys = memory.database(database)?.encryption_keys.iter();
        let found = keys.find(|(_, row)| row.properties.id == id);
        found
            .map(|(rid, row)| EncryptionKeyInfo::new(*rid, row))
            .ok_or_else(|| not_found(id))
    }

    /// The key with this resource id.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn encryption_key_by_rid(&self, rid: EncryptionKeyRid) -> Result<EncryptionKeyInfo> {
        self.catalog().encryption_key_by_rid(rid)
    }
}

fn not_found(name: &str) -> Error {
    Error::not_found(format!(
        "Resource Not Found: there is no client encryption key '{name}'."
    ))
}
