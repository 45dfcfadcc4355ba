//! Permissions of a user: what a token made of one opens. What that means for a request is the front end's business.

use std::sync::Arc;

use bolide_model::names::validate_resource_id;
use bolide_model::partition_key::PartitionKey;
use bolide_model::rid::{PermissionRid, UserRid};
use bolide_model::{Error, Result, UnixSeconds};

use super::budget::Definition;
use super::records::{PermissionRow, permission_key, user_key};
use super::users::User;
use super::{Catalog, Moment, check_etag};
use crate::account::{Account, RequestContext};
use crate::format::etag::Etag;

/// What a permission lets its holder do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionMode {
    /// Read, write and delete.
    All,
    /// Read.
    Read,
}

impl PermissionMode {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            PermissionMode::All => "All",
            PermissionMode::Read => "Read",
        }
    }

    /// Reads the name, in any case.
    pub fn parse(name: &str) -> Option<PermissionMode> {
        [PermissionMode::All, PermissionMode::Read]
            .into_iter()
            .find(|mode| mode.as_str().eq_ignore_ascii_case(name))
    }
}

/// A permission as its owner defines it.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionProperties {
    /// Its name.
    pub id: String,
    /// What may be done.
    pub mode: PermissionMode,
    /// The mode as its owner spelled it: clients compare what comes back.
    pub mode_text: String,
    /// Link of a container or of something in it, by names or resource ids. It need not exist.
    pub resource: String,
    /// Restricts it to the items of one partition key.
    pub partition_key: Option<PartitionKey>,
}

/// What a permission is and is called.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionInfo {
    /// Its resource id.
    pub rid: PermissionRid,
    /// What it grants.
    pub properties: Arc<PermissionProperties>,
    /// Its version.
    pub etag: Etag,
    /// When it was last written.
    pub last_modified: UnixSeconds,
}

impl PermissionRow {
    fn info(&self, rid: PermissionRid) -> PermissionInfo {
        PermissionInfo {
            rid,
            properties: self.grant.clone(),
            etag: self.etag,
            last_modified: self.last_modified,
        }
    }
}

impl User {
    fn permission_named(&self, id: &str) -> Option<(PermissionRid, &PermissionRow)> {
        let mut named = self.permissions.iter().filter(|(_, row)| row.grant.id == id);
        named.next().map(|(rid, row)| (*rid, row))
    }

    /// Refuses a second permission of the same name, or for the same items; `except` is about to be replaced.
    fn check_free(&self, grant: &PermissionProperties, except: Option<PermissionRid>) -> Result<()> {
        fn resource(grant: &PermissionProperties) -> &str {
            grant.resource.trim_matches('/')
        }
        for (rid, row) in &self.permissions {
            if Some(*rid) == except {
                continue;
            }
            if row.grant.id == grant.id {
                return Err(taken(&format!("permission '{}'", grant.id)));
            }
            if resource(&row.grant) == resource(grant) && row.grant.partition_key == grant.partition_key {
                return Err(taken(&format!("permission '{}' for this resource", row.grant.id)));
            }
        }
        Ok(())
    }
}

impl Catalog {
    async fn create_permission(&self, user: UserRid, grant: PermissionProperties) -> Result<PermissionInfo> {
        let mut user_row = {
            let memory = self.memory.read();
            let user = memory.user(user)?;
            user.check_free(&grant, None)?;
            user.row.clone()
        };
        let rid = PermissionRid {
            user,
            number: user_row.next_permission,
        };
        user_row.next_permission += 1;
        let (row_after, grant) = (user_row.clone(), Arc::new(grant));
        let row = self
            .commit(move |round| {
                let row = written(Moment::begin(round), &grant);
                round.define(user_key(user), Definition::User(&user_row));
                round.define(permission_key(rid), Definition::Permission(&row));
                Ok(row)
            })
            .await?;
        let info = row.info(rid);
        let mut memory = self.memory.write();
        let user = memory.user_mut(user)?;
        user.row = row_after;
        user.permissions.insert(rid, row);
        Ok(info)
    }

    async fn replace_permission(
        &self,
        rid: PermissionRid,
        grant: PermissionProperties,
        if_match: Option<&str>,
    ) -> Result<PermissionInfo> {
        {
            let memory = self.memory.read();
            let user = memory.user(rid.user)?;
            let row = user.permissions.get(&rid).ok_or_else(|| not_found(&rid.to_string()))?;
            check_etag(row.etag, if_match)?;
            user.check_free(&grant, Some(rid))?;
        }
        let grant = Arc::new(grant);
        let row = self
            .commit(move |round| {
                let row = written(Moment::begin(round), &grant);
                round.define(permission_key(rid), Definition::Permission(&row));
                Ok(row)
            })
            .await?;
        let info = row.info(rid);
        let mut memory = self.memory.write();
        memory.user_mut(rid.user)?.permissions.insert(rid, row);
        Ok(info)
    }

    async fn upsert_permission(
        &self,
        user: UserRid,
        grant: PermissionProperties,
        if_match: Option<&str>,
    ) -> Result<(PermissionInfo, bool)> {
        match self.permission_by_name(user, &grant.id) {
            Ok(found) => Ok((self.replace_permission(found.rid, grant, if_match).await?, false)),
            Err(_) => Ok((self.create_permission(user, grant).await?, true)),
        }
    }

    async fn delete_permission(&self, rid: PermissionRid, if_match: Option<&str>) -> Result<()> {
        check_etag(self.permission_by_rid(rid)?.etag, if_match)?;
        self.commit(move |round| {
            Moment::begin(round);
            round.delete(permission_key(rid));
            Ok(())
        })
        .await?;
        let mut memory = self.memory.write();
        memory.user_mut(rid.user)?.permissions.remove(&rid);
        Ok(())
    }

    fn permission_by_name(&self, user: UserRid, id: &str) -> Result<PermissionInfo> {
        let memory = self.memory.read();
        let found = memory.user(user)?.permission_named(id);
        found.map(|(rid, row)| row.info(rid)).ok_or_else(|| not_found(id))
    }

    fn permission_by_rid(&self, rid: PermissionRid) -> Result<PermissionInfo> {
        let memory = self.memory.read();
        let found = memory.user(rid.user)?.permissions.get(&rid);
        found
            .map(|row| row.info(rid))
            .ok_or_else(|| not_found(&rid.to_string()))
    }
}

fn written(moment: Moment, grant: &Arc<PermissionProperties>) -> PermissionRow {
    PermissionRow {
        grant: grant.clone(),
        etag: moment.etag(),
        last_modified: moment.now,
    }
}

/// Permissions.
impl Account {
    /// Creates a permission of a user.
    ///
    /// # Errors
    /// `NotFound` without the user; `Conflict` if it has one of this name or for the same items; `BadRequest` for a bad name.
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

    /// Creates a permission, or replaces the one of this name. Tells whether it was created.
    ///
    /// # Errors
    /// As [`Account::create_permission`]; `PreconditionFailed` if there is another version.
    pub async fn upsert_permission(
        &self,
        _ctx: &RequestContext,
        user: UserRid,
        properties: PermissionProperties,
        if_match: Option<&str>,
    ) -> Result<(PermissionInfo, bool)> {
        validate_resource_id(&properties.id)?;
        let if_match = if_match.map(str::to_owned);
        let upsert = |catalog: Arc<Catalog>| async move {
            catalog.upsert_permission(user, properties, if_match.as_deref()).await
        };
        self.catalog().carry_out(upsert).await
    }

    /// Replaces a permission. Tokens made of it before hold as they were made.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` if another has the name or is for the same items; `PreconditionFailed` if it is another version;
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
        let replace = |catalog: Arc<Catalog>| async move {
            catalog.replace_permission(rid, properties, if_match.as_deref()).await
        };
        self.catalog().carry_out(replace).await
    }

    /// Deletes a permission. Its tokens hold until they expire.
    ///
    /// # Errors
    /// `NotFound`; `PreconditionFailed` if it is another version.
    pub async fn delete_permission(
        &self,
        _ctx: &RequestContext,
        rid: PermissionRid,
        if_match: Option<&str>,
    ) -> Result<()> {
        let if_match = if_match.map(str::to_owned);
        let delete = |catalog: Arc<Catalog>| async move { catalog.delete_permission(rid, if_match.as_deref()).await };
        self.catalog().carry_out(delete).await
    }

    /// The permissions of a user, in the order of their creation.
    ///
    /// # Errors
    /// `NotFound` without the user.
    pub fn list_permissions(&self, user: UserRid) -> Result<Vec<PermissionInfo>> {
        let memory = self.catalog().memory.read();
        let permissions = &memory.user(user)?.permissions;
        Ok(permissions.iter().map(|(rid, row)| row.info(*rid)).collect())
    }

    /// The permission of this name.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn permission_by_name(&self, user: UserRid, id: &str) -> Result<PermissionInfo> {
        self.catalog().permission_by_name(user, id)
    }

    /// The permission with this resource id.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn permission_by_rid(&self, rid: PermissionRid) -> Result<PermissionInfo> {
        self.catalog().permission_by_rid(rid)
    }
}

fn taken(what: &str) -> Error {
    Error::conflict(format!(
        "Resource with specified id, name, or unique index already exists: {what}."
    ))
}

fn not_found(name: &str) -> Error {
    Error::not_found(format!("Resource Not Found: there is no permission '{name}'."))
}
