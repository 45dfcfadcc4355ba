//! Permissions of a user: what a token made of one opens. What that means for a request is the front end's business.

use std::sync::Arc;

use bolide_model::partition_key::PartitionKey;
use bolide_model::rid::{PermissionRid, UserRid};
use bolide_model::{Error, Result, UnixSeconds};

use super::Catalog;
use super::batch::{CatalogBatch, check_etag, taken};
use super::names::Name;
use super::rows::{PermissionRow, RowKey, Unknown};
use crate::format::etag::Etag;
use crate::partition::write_batch::Decision;

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

impl Catalog {
    pub async fn create_permission(&self, user: UserRid, grant: PermissionProperties) -> Result<PermissionInfo> {
        let grant = Arc::new(grant);
        self.commit(move |batch| create(batch, user, &grant)).await
    }

    pub async fn replace_permission(
        &self,
        rid: PermissionRid,
        grant: PermissionProperties,
        if_match: Option<String>,
    ) -> Result<PermissionInfo> {
        let grant = Arc::new(grant);
        self.commit(move |batch| replace(batch, rid, &grant, if_match.as_deref()))
            .await
    }

    pub async fn upsert_permission(
        &self,
        user: UserRid,
        grant: PermissionProperties,
        if_match: Option<String>,
    ) -> Result<(PermissionInfo, bool)> {
        let grant = Arc::new(grant);
        self.commit(move |batch| match batch.named(Name::Permission(user, &grant.id))? {
            Some(RowKey::Permission(rid)) => Ok((replace(batch, rid, &grant, if_match.as_deref())?, false)),
            _ => Ok((create(batch, user, &grant)?, true)),
        })
        .await
    }

    pub async fn delete_permission(&self, rid: PermissionRid, if_match: Option<String>) -> Result<()> {
        self.commit(move |batch| {
            check_etag(batch.permission(rid)?.etag, if_match.as_deref())?;
            batch.remove(RowKey::Permission(rid))
        })
        .await
    }

    /// The permissions of a user, in the order of their creation.
    pub fn list_permissions(&self, user: UserRid) -> Result<Vec<PermissionInfo>> {
        let memory = self.memory.read();
        let permissions = &memory.user(user)?.permissions;
        Ok(permissions.iter().map(|(rid, row)| row.info(*rid)).collect())
    }

    pub fn permission_by_name(&self, user: UserRid, id: &str) -> Result<PermissionInfo> {
        let memory = self.memory.read();
        let mut permissions = memory.user(user)?.permissions.iter();
        let found = permissions.find(|(_, row)| row.grant.id == id);
        found.map(|(rid, row)| row.info(*rid)).ok_or_else(|| not_found(id))
    }

    pub fn permission_by_rid(&self, rid: PermissionRid) -> Result<PermissionInfo> {
        let memory = self.memory.read();
        let found = memory.user(rid.user)?.permissions.get(&rid);
        found
            .map(|row| row.info(rid))
            .ok_or_else(|| not_found(&rid.to_string()))
    }
}

fn create(
    batch: &mut CatalogBatch<'_, '_>,
    user: UserRid,
    grant: &Arc<PermissionProperties>,
) -> Decision<PermissionInfo> {
    let mut owner = batch.user(user)?;
    check_free(batch, user, grant, None)?;
    let rid = PermissionRid {
        user,
        number: owner.next_permission,
    };
    owner.next_permission += 1;
    let commit_point = batch.commit_point();
    let row = PermissionRow {
        grant: grant.clone(),
        etag: commit_point.etag(),
        last_modified: commit_point.now,
        unknown: Unknown::default(),
    };
    let info = row.info(rid);
    batch.replace(RowKey::User(user), owner)?;
    batch.create(RowKey::Permission(rid), row)?;
    Ok(info)
}

fn replace(
    batch: &mut CatalogBatch<'_, '_>,
    rid: PermissionRid,
    grant: &Arc<PermissionProperties>,
    if_match: Option<&str>,
) -> Decision<PermissionInfo> {
    let mut row = batch.permission(rid)?;
    check_etag(row.etag, if_match)?;
    check_free(batch, rid.user, grant, Some(rid))?;
    let commit_point = batch.commit_point();
    row.grant = grant.clone();
    (row.etag, row.last_modified) = (commit_point.etag(), commit_point.now);
    let info = row.info(rid);
    batch.replace(RowKey::Permission(rid), row)?;
    Ok(info)
}

/// Refuses a second permission of the same name, or for the same items; `except` is about to be replaced.
fn check_free(
    batch: &mut CatalogBatch<'_, '_>,
    user: UserRid,
    grant: &PermissionProperties,
    except: Option<PermissionRid>,
) -> Decision<()> {
    let except = except.map(RowKey::Permission);
    let holder = batch.named(Name::Permission(user, &grant.id))?;
    if holder.is_some() && holder != except {
        return Err(taken(&format!("permission '{}'", grant.id)).into());
    }
    match batch.named(Name::Grant(user, grant))? {
        Some(RowKey::Permission(holder)) if Some(RowKey::Permission(holder)) != except => {
            let id = &batch.permission(holder)?.grant.id;
            Err(taken(&format!("permission '{id}' for this resource")).into())
        }
        _ => Ok(()),
    }
}

pub(super) fn not_found(name: &str) -> Error {
    Error::not_found(format!("Resource Not Found: there is no permission '{name}'."))
}
