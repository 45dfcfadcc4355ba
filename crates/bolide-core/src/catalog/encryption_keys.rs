//! Client encryption keys of a database: stored for clients, and never deleted, since what they encrypted could not be read any more.

use bolide_model::encryption_key::EncryptionKeyProperties;
use bolide_model::rid::{DatabaseRid, EncryptionKeyRid};
use bolide_model::{Error, Result, UnixSeconds};

use super::records::{EncryptionKeyRow, encryption_key_key};
use super::{Moment, check_etag};
use crate::account::{Account, RequestContext};
use crate::etag::Etag;

/// A client encryption key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncryptionKeyInfo {
    /// Its resource id.
    pub rid: EncryptionKeyRid,
    /// Its definition.
    pub properties: EncryptionKeyProperties,
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
            etag: row.etag,
            last_modified: row.last_modified,
        }
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
        let _changing = self.catalog().changing.lock().await;
        let keys = self.list_encryption_keys(database)?;
        if keys.iter().any(|key| key.properties.id == properties.id) {
            return Err(Error::conflict(format!(
                "Resource with specified id, name, or unique index already exists: client encryption key '{}'.",
                properties.id
            )));
        }
        let number = keys.last().map_or(0, |last| last.rid.number) + 1;
        self.write_key(EncryptionKeyRid { database, number }, properties).await
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
        let _changing = self.catalog().changing.lock().await;
        let known = self.encryption_key_by_rid(rid)?;
        check_etag(known.etag, if_match)?;
        if known.properties.id != properties.id {
            return Err(Error::bad_request(format!(
                "The 'id' of a client encryption key cannot be changed from '{}' to '{}'.",
                known.properties.id, properties.id
            )));
        }
        self.write_key(rid, properties).await
    }

    async fn write_key(&self, rid: EncryptionKeyRid, properties: EncryptionKeyProperties) -> Result<EncryptionKeyInfo> {
        let catalog = self.catalog();
        let row = catalog
            .commit(move |round| {
                let moment = Moment::begin(round);
                let row = EncryptionKeyRow {
                    properties: properties.clone(),
                    etag: moment.etag(),
                    last_modified: moment.now,
                };
                round.put(encryption_key_key(rid), row.encode());
                Ok(row)
            })
            .await?;
        let info = EncryptionKeyInfo::new(rid, &row);
        let mut memory = catalog.memory.write();
        memory.database_mut(rid.database)?.encryption_keys.insert(rid, row);
        Ok(info)
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
        let keys = self.list_encryption_keys(database)?;
        let found = keys.into_iter().find(|key| key.properties.id == id);
        found.ok_or_else(|| not_found(id))
    }

    /// The key with this resource id.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn encryption_key_by_rid(&self, rid: EncryptionKeyRid) -> Result<EncryptionKeyInfo> {
        let keys = self.list_encryption_keys(rid.database)?;
        let found = keys.into_iter().find(|key| key.rid == rid);
        found.ok_or_else(|| not_found(&rid.to_string()))
    }
}

fn not_found(name: &str) -> Error {
    Error::not_found(format!(
        "Resource Not Found: there is no client encryption key '{name}'."
    ))
}
