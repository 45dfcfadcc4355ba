//! Client encryption keys of a database.

use std::sync::Arc;

use bolide_model::Result;
use bolide_model::encryption_key::EncryptionKeyProperties;
use bolide_model::rid::{DatabaseRid, EncryptionKeyRid};

use super::Account;
use crate::catalog::{Catalog, EncryptionKeyInfo};
use crate::runtime::RequestContext;

/// Operations on client encryption keys.
impl Account {
    /// Creates a key.
    ///
    /// # Errors
    /// `NotFound` if there is no such database; `Conflict` if it has a key with this name.
    pub async fn create_encryption_key(
        &self,
        _ctx: &RequestContext,
        database: DatabaseRid,
        properties: EncryptionKeyProperties,
    ) -> Result<EncryptionKeyInfo> {
        let create = |catalog: Arc<Catalog>| async move { catalog.create_encryption_key(database, properties).await };
        self.catalog().carry_out(create).await
    }

    /// Replaces a key, which is then wrapped in another way.
    ///
    /// # Errors
    /// `NotFound`; `BadRequest` if the name differs; `PreconditionFailed` if the key has another version.
    pub async fn replace_encryption_key(
        &self,
        _ctx: &RequestContext,
        rid: EncryptionKeyRid,
        properties: EncryptionKeyProperties,
        if_match: Option<&str>,
    ) -> Result<EncryptionKeyInfo> {
        let if_match = if_match.map(str::to_owned);
        let replace =
            |catalog: Arc<Catalog>| async move { catalog.replace_encryption_key(rid, properties, if_match).await };
        self.catalog().carry_out(replace).await
    }

    /// Returns the keys of a database, in the order of their creation.
    ///
    /// # Errors
    /// `NotFound` if there is no such database.
    pub fn list_encryption_keys(&self, database: DatabaseRid) -> Result<Vec<EncryptionKeyInfo>> {
        self.catalog().list_encryption_keys(database)
    }

    /// Returns the key with this name.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn encryption_key_by_name(&self, database: DatabaseRid, id: &str) -> Result<EncryptionKeyInfo> {
        self.catalog().encryption_key_by_name(database, id)
    }

    /// Returns the key with this resource id.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn encryption_key_by_rid(&self, rid: EncryptionKeyRid) -> Result<EncryptionKeyInfo> {
        self.catalog().encryption_key_by_rid(rid)
    }
}
