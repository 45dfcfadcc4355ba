//! Users of a database.

use std::sync::Arc;

use bolide_model::Result;
use bolide_model::names::validate_resource_id;
use bolide_model::rid::{DatabaseRid, UserRid};

use super::Account;
use crate::catalog::{Catalog, UserInfo};
use crate::runtime::RequestContext;

/// Operations on users.
impl Account {
    /// Creates a user of a database.
    ///
    /// # Errors
    /// `NotFound` if there is no such database; `Conflict` if it has a user with this name; `BadRequest` for a bad name.
    pub async fn create_user(&self, _ctx: &RequestContext, database: DatabaseRid, id: &str) -> Result<UserInfo> {
        validate_resource_id(id)?;
        let id = id.to_owned();
        let create = |catalog: Arc<Catalog>| async move { catalog.create_user(database, id).await };
        self.catalog().carry_out(create).await
    }

    /// Creates a user, or writes the one with this name again. Returns whether it was created.
    ///
    /// # Errors
    /// As [`Account::create_user`], except for `Conflict`; `PreconditionFailed` if the user has another version.
    pub async fn upsert_user(
        &self,
        _ctx: &RequestContext,
        database: DatabaseRid,
        id: &str,
        if_match: Option<&str>,
    ) -> Result<(UserInfo, bool)> {
        validate_resource_id(id)?;
        let (id, if_match) = (id.to_owned(), if_match.map(str::to_owned));
        let upsert = |catalog: Arc<Catalog>| async move { catalog.upsert_user(database, id, if_match).await };
        self.catalog().carry_out(upsert).await
    }

    /// Replaces a user: changes its name to `id`.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` if another has the name; `PreconditionFailed` if the user has another version; `BadRequest` for a bad name.
    pub async fn replace_user(
        &self,
        _ctx: &RequestContext,
        rid: UserRid,
        id: &str,
        if_match: Option<&str>,
    ) -> Result<UserInfo> {
        validate_resource_id(id)?;
        let (id, if_match) = (id.to_owned(), if_match.map(str::to_owned));
        let replace = |catalog: Arc<Catalog>| async move { catalog.replace_user(rid, id, if_match).await };
        self.catalog().carry_out(replace).await
    }

    /// Deletes a user with its permissions. Their tokens stay valid until they expire.
    ///
    /// # Errors
    /// `NotFound`; `PreconditionFailed` if the user has another version.
    pub async fn delete_user(&self, _ctx: &RequestContext, rid: UserRid, if_match: Option<&str>) -> Result<()> {
        let if_match = if_match.map(str::to_owned);
        let delete = |catalog: Arc<Catalog>| async move { catalog.delete_user(rid, if_match).await };
        self.catalog().carry_out(delete).await
    }

    /// Returns the users of a database, in the order of their creation.
    ///
    /// # Errors
    /// `NotFound` if there is no such database.
    pub fn list_users(&self, database: DatabaseRid) -> Result<Vec<UserInfo>> {
        self.catalog().list_users(database)
    }

    /// Returns the user with this name.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn user_by_name(&self, database: DatabaseRid, id: &str) -> Result<UserInfo> {
        self.catalog().user_by_name(database, id)
    }

    /// Returns the user with this resource id.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn user_by_rid(&self, rid: UserRid) -> Result<UserInfo> {
        self.catalog().user_by_rid(rid)
    }
}
