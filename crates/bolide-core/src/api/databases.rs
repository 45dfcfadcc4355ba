//! Databases.

use std::sync::Arc;

use bolide_model::Result;
use bolide_model::rid::DatabaseRid;

use super::Account;
use crate::catalog::{Catalog, DatabaseInfo};
use crate::runtime::RequestContext;
use crate::throughput::Throughput;

/// Operations on databases.
impl Account {
    /// Creates a database.
    ///
    /// # Errors
    /// `Conflict` if there is one with this name; `BadRequest` for a bad name or throughput.
    pub async fn create_database(
        &self,
        _ctx: &RequestContext,
        id: &str,
        throughput: Option<Throughput>,
    ) -> Result<DatabaseInfo> {
        let id = id.to_owned();
        let create = |catalog: Arc<Catalog>| async move { catalog.create_database(&id, throughput).await };
        self.catalog().carry_out(create).await
    }

    /// Returns all databases, in the order of their creation.
    pub fn list_databases(&self) -> Vec<DatabaseInfo> {
        self.catalog().list_databases()
    }

    /// Returns the database with this name.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn database_by_name(&self, id: &str) -> Result<DatabaseInfo> {
        self.catalog().database_by_name(id)
    }

    /// Returns the database with this resource id.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn database_by_rid(&self, rid: DatabaseRid) -> Result<DatabaseInfo> {
        self.catalog().database_by_rid(rid)
    }

    /// Deletes a database with all its containers.
    ///
    /// # Errors
    /// `NotFound`; `PreconditionFailed` if the database has another version.
    pub async fn delete_database(&self, _ctx: &RequestContext, rid: DatabaseRid, if_match: Option<&str>) -> Result<()> {
        let if_match = if_match.map(str::to_owned);
        let delete = |catalog: Arc<Catalog>| async move { catalog.delete_database(rid, if_match.as_deref()).await };
        self.catalog().carry_out(delete).await
    }
}
