//! Client encryption keys of a database: stored for clients, and never deleted, since what they encrypted could not be read any more.

use std::sync::Arc;

use bolide_model::encryption_key::EncryptionKeyProperties;
use bolide_model::rid::{DatabaseRid, EncryptionKeyRid};
use bolide_model::{Error, Result, UnixSeconds};
use bolide_storage::Space;

use super::Catalog;
use super::batch::{CatalogBatch, check_etag, taken};
use super::names::{self, Name};
use super::rows::{EncryptionKeyRow, RowKey};
use crate::format::etag::Etag;
use crate::partition::write_batch::Decision;

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
            created: row.created(),
            etag: row.etag,
            last_modified: row.last_modified,
        }
    }
}

impl Catalog {
    pub async fn create_encryption_key(
        &self,
        database: DatabaseRid,
        properties: EncryptionKeyProperties,
    ) -> Result<EncryptionKeyInfo> {
        let properties = Arc::new(properties);
        self.commit(move |batch| create(batch, database, &properties)).await
    }

    pub async fn replace_encryption_key(
        &self,
        rid: EncryptionKeyRid,
        properties: EncryptionKeyProperties,
        if_match: Option<String>,
    ) -> Result<EncryptionKeyInfo> {
        let properties = Arc::new(properties);
        self.commit(move |batch| {
            let row = batch.encryption_key(rid)?;
            check_etag(row.etag, if_match.as_deref())?;
            if row.properties.id != properties.id {
                return Err(Error::bad_request(format!(
                    "The 'id' of a client encryption key cannot be changed from '{}' to '{}'.",
                    row.properties.id, properties.id
                ))
                .into());
            }
            let commit_point = batch.commit_point();
            let row = row.replaced(properties.clone(), commit_point.etag(), commit_point.now);
            let info = EncryptionKeyInfo::new(rid, &row);
            batch.replace(RowKey::EncryptionKey(rid), row)?;
            Ok(info)
        })
        .await
    }

    /// The keys of a database, in the order of their creation.
    pub fn list_encryption_keys(&self, database: DatabaseRid) -> Result<Vec<EncryptionKeyInfo>> {
        let memory = self.memory.read();
        let keys = memory.database(database)?.encryption_keys.iter();
        Ok(keys.map(|(rid, row)| EncryptionKeyInfo::new(*rid, row)).collect())
    }

    pub fn encryption_key_by_name(&self, database: DatabaseRid, id: &str) -> Result<EncryptionKeyInfo> {
        let memory = self.memory.read();
        let mut keys = memory.database(database)?.encryption_keys.iter();
        let found = keys.find(|(_, row)| row.properties.id == id);
        found
            .map(|(rid, row)| EncryptionKeyInfo::new(*rid, row))
            .ok_or_else(|| not_found(id))
    }

    pub fn encryption_key_by_rid(&self, rid: EncryptionKeyRid) -> Result<EncryptionKeyInfo> {
        let memory = self.memory.read();
        let row = memory.database(rid.database)?.encryption_keys.get(&rid);
        row.map(|row| EncryptionKeyInfo::new(rid, row))
            .ok_or_else(|| not_found(&rid.to_string()))
    }
}

fn create(
    batch: &mut CatalogBatch<'_, '_>,
    database: DatabaseRid,
    properties: &Arc<EncryptionKeyProperties>,
) -> Decision<EncryptionKeyInfo> {
    batch.database(database)?;
    if batch.named(Name::EncryptionKey(database, &properties.id))?.is_some() {
        return Err(taken(&format!("client encryption key '{}'", properties.id)).into());
    }
    // None is ever deleted, so the highest number is the last one given.
    let mut last = 0;
    for (name, value) in batch.scan(Space::Index, &names::encryption_keys_of(database))? {
        if let RowKey::EncryptionKey(rid) = names::target(&name, &value)? {
            last = last.max(rid.number);
        }
    }
    let rid = EncryptionKeyRid {
        database,
        number: last + 1,
    };
    let commit_point = batch.commit_point();
    let row = EncryptionKeyRow::new(properties.clone(), commit_point.etag(), commit_point.now);
    let info = EncryptionKeyInfo::new(rid, &row);
    batch.create(RowKey::EncryptionKey(rid), row)?;
    Ok(info)
}

pub(super) fn not_found(name: &str) -> Error {
    Error::not_found(format!(
        "Resource Not Found: there is no client encryption key '{name}'."
    ))
}
