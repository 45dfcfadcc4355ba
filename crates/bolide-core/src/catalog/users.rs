//! Users of a database: whom permissions are granted to. They sign nothing themselves; a permission's token does.

use bolide_model::rid::{DatabaseRid, UserRid};
use bolide_model::{Error, Result, UnixSeconds};
use bolide_storage::Space;

use super::Catalog;
use super::batch::{CatalogBatch, check_etag, taken};
use super::names::{self, Name};
use super::rows::{RowKey, Unknown, UserRow};
use crate::format::etag::Etag;
use crate::partition::write_batch::Decision;

/// What a user is and is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserInfo {
    /// Its resource id.
    pub rid: UserRid,
    /// Its name.
    pub id: String,
    /// Its version.
    pub etag: Etag,
    /// When it was last written.
    pub last_modified: UnixSeconds,
}

impl UserRow {
    fn info(&self, rid: UserRid) -> UserInfo {
        UserInfo {
            rid,
            id: self.id.clone(),
            etag: self.etag,
            last_modified: self.last_modified,
        }
    }
}

impl Catalog {
    pub async fn create_user(&self, database: DatabaseRid, id: String) -> Result<UserInfo> {
        self.commit(move |batch| {
            batch.database(database)?;
            if batch.named(Name::User(database, &id))?.is_some() {
                return Err(user_taken(&id).into());
            }
            create(batch, database, &id)
        })
        .await
    }

    pub async fn replace_user(&self, rid: UserRid, id: String, if_match: Option<String>) -> Result<UserInfo> {
        self.commit(move |batch| replace(batch, rid, &id, if_match.as_deref()))
            .await
    }

    pub async fn upsert_user(
        &self,
        database: DatabaseRid,
        id: String,
        if_match: Option<String>,
    ) -> Result<(UserInfo, bool)> {
        self.commit(move |batch| match batch.named(Name::User(database, &id))? {
            Some(RowKey::User(rid)) => Ok((replace(batch, rid, &id, if_match.as_deref())?, false)),
            _ => Ok((create(batch, database, &id)?, true)),
        })
        .await
    }

    pub async fn delete_user(&self, rid: UserRid, if_match: Option<String>) -> Result<()> {
        self.commit(move |batch| {
            check_etag(batch.user(rid)?.etag, if_match.as_deref())?;
            let rows = batch.scan_keys(Space::Meta, &RowKey::permissions_of(rid))?;
            let mut named = Vec::new();
            for prefix in names::permissions_of(rid) {
                named.extend(batch.scan_keys(Space::Index, &prefix)?);
            }
            batch.remove_all(&rows, named)?;
            batch.remove(RowKey::User(rid))
        })
        .await
    }

    /// The users of a database, in the order of their creation.
    pub fn list_users(&self, database: DatabaseRid) -> Result<Vec<UserInfo>> {
        let memory = self.memory.read();
        let users = &memory.database(database)?.users;
        Ok(users.iter().map(|(rid, user)| user.row.info(*rid)).collect())
    }

    pub fn user_by_name(&self, database: DatabaseRid, id: &str) -> Result<UserInfo> {
        let memory = self.memory.read();
        let database = memory.database(database)?;
        let rid = database.user_names.get(id).ok_or_else(|| not_found(id))?;
        let user = database.users.get(rid).ok_or_else(|| not_found(id))?;
        Ok(user.row.info(*rid))
    }

    pub fn user_by_rid(&self, rid: UserRid) -> Result<UserInfo> {
        self.memory.read().user(rid).map(|user| user.row.info(rid))
    }
}

/// A user whose name is free.
fn create(batch: &mut CatalogBatch<'_, '_>, database: DatabaseRid, id: &str) -> Decision<UserInfo> {
    let mut owner = batch.database(database)?;
    let rid = UserRid::new(database, owner.next_user);
    owner.next_user += 1;
    let commit_point = batch.commit_point();
    let row = UserRow {
        id: id.to_owned(),
        etag: commit_point.etag(),
        last_modified: commit_point.now,
        next_permission: 1,
        unknown: Unknown::default(),
    };
    let info = row.info(rid);
    batch.replace(RowKey::Database(database), owner)?;
    batch.create(RowKey::User(rid), row)?;
    Ok(info)
}

fn replace(batch: &mut CatalogBatch<'_, '_>, rid: UserRid, id: &str, if_match: Option<&str>) -> Decision<UserInfo> {
    let mut row = batch.user(rid)?;
    check_etag(row.etag, if_match)?;
    let holder = batch.named(Name::User(rid.database(), id))?;
    if holder.is_some_and(|holder| holder != RowKey::User(rid)) {
        return Err(user_taken(id).into());
    }
    let commit_point = batch.commit_point();
    id.clone_into(&mut row.id);
    (row.etag, row.last_modified) = (commit_point.etag(), commit_point.now);
    let info = row.info(rid);
    batch.replace(RowKey::User(rid), row)?;
    Ok(info)
}

fn user_taken(id: &str) -> Error {
    taken(&format!("user '{id}'"))
}

pub(super) fn not_found(name: &str) -> Error {
    Error::not_found(format!("Resource Not Found: there is no user '{name}'."))
}
