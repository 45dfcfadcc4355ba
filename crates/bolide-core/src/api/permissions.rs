//! Permissions of a user.

use std::sync::Arc;

use bolide_model::Result;
use bolide_model::names::validate_resource_id;
use bolide_model::rid::{PermissionRid, UserRid};

use super::Account;
use crate::catalog::{Catalog, PermissionInfo, PermissionProperties};
use crate::runtime::RequestContext;

/// Operations on permissions.
impl Account {
    /// Creates a permission of a user.
    ///
    /// # Errors
    /// `NotFound` if there is no such user; `Conflict` if it has one with this name or for the same items; `BadRequest` for a bad name.
    pub async fn create_permission(
        &self,
        _ctx: &RequestContext,
        user: UserRid,
        properties: PermissionProperties,
    ) -> Result<PermissionInfo> {
        validate_resource_id(&properties.id)?;
        let create = |catalog: Arc<Catalog>| async move { catalog.create_permission(user, properties).await };
        self.catalog().carry_out(create).await
    }

    /// Creates a permission, or replaces the one with this name. Returns whether it was created.
    ///
    /// # Errors
    /// As [`Account::create_permission`]; `PreconditionFailed` if the permission has another version.
    pub async fn upsert_permission(
        &self,
        _ctx: &RequestContext,
        user: UserRid,
        properties: PermissionProperties,
        if_match: Option<&str>,
    ) -> Result<(PermissionInfo, bool)> {
        validate_resource_id(&properties.id)?;
        let if_match = if_match.map(str::to_owned);
        let upsert = |catalog: Arc<Catalog>| async move { catalog.upsert_permission(user, properties, if_match).await };
        self.catalog().carry_out(upsert).await
    }

    /// Replaces a permission. Tokens made from it before stay valid unchanged.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` if another has the name or is for the same items; `PreconditionFailed` if the permission has another version;
    /// `BadRequest` for a bad name.
    pub async fn replace_permission(
        &self,
        _ctx: &RequestContext,
        rid: PermissionRid,
        properties: PermissionProperties,
        if_match: Option<&str>,
    ) -> Result<PermissionInfo> {
        validate_resource_id(&properties.id)?;
        let if_match = if_match.map(str::to_owned);
        let replace =
            |catalog: Arc<Catalog>| async move { catalog.replace_permission(rid, properties, if_match).await };
        self.catalog().carry_out(replace).await
    }

    /// Deletes a permission. Its tokens stay valid until they expire.
    ///
    /// # Errors
    /// `NotFound`; `PreconditionFailed` if the permission has another version.
    pub async fn delete_permission(
        &self,
        _ctx: &RequestContext,
        rid: PermissionRid,
        if_match: Option<&str>,
    ) -> Result<()> {
        let if_match = if_match.map(str::to_owned);
        let delete = |catalog: Arc<Catalog>| async move { catalog.delete_permission(rid, if_match).await };
        self.catalog().carry_out(delete).await
    }

    /// Returns the permissions of a user, in the order of their creation.
    ///
    /// # Errors
    /// `NotFound` if there is no such user.
    pub fn list_permissions(&self, user: UserRid) -> Result<Vec<PermissionInfo>> {
        self.catalog().list_permissions(user)
    }

    /// Returns the permission with this name.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn permission_by_name(&self, user: UserRid, id: &str) -> Result<PermissionInfo> {
        self.catalog().permission_by_name(user, id)
    }

    /// Returns the permission with this resource id.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn permission_by_rid(&self, rid: PermissionRid) -> Result<PermissionInfo> {
        self.catalog().permission_by_rid(rid)
    }
}
