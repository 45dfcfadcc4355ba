//! Users of a database: whom permissions are granted to. They sign nothing themselves; a permission's token does.

use std::collections::BTreeMap;
use std::sync::Arc;

use bolide_model::names::validate_resource_id;
use bolide_model::rid::{DatabaseRid, PermissionRid, UserRid};
use bolide_model::{Error, Result, UnixSeconds};
use bolide_storage::Key;

use super::budget::Definition;
use super::records::{PermissionRow, UserRow, database_key, encryption_key_key, permission_key, user_key};
use super::{Catalog, Database, Memory, Moment, check_etag};
use crate::account::{Account, RequestContext};
use crate::format::etag::Etag;

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

/// A user with its permissions, as memory has it.
pub(super) struct User {
    pub row: UserRow,
    pub permissions: BTreeMap<PermissionRid, PermissionRow>,
}

impl User {
    fn info(&self, rid: UserRid) -> UserInfo {
        UserInfo {
            rid,
            id: self.row.id.clone(),
            etag: self.row.etag,
            last_modified: self.row.last_modified,
        }
    }

    /// The rows of a user and of all its permissions.
    fn keys(&self, rid: UserRid) -> Vec<Key> {
        let permissions = self.permissions.keys().map(|permission| permission_key(*permission));
        permissions.chain([user_key(rid)]).collect()
    }
}

impl Database {
    /// The rows of all users, their permissions, and all client encryption keys.
    pub(super) fn child_keys(&self) -> Vec<Key> {
        let of_users = self.users.iter().flat_map(|(rid, user)| user.keys(*rid));
        let encryption_keys = self.encryption_keys.keys().map(|rid| encryption_key_key(*rid));
        of_users.chain(encryption_keys).collect()
    }

    fn user_named(&self, id: &str) -> Option<(UserRid, &User)> {
        let rid = *self.user_names.get(id)?;
        Some((rid, self.users.get(&rid)?))
    }

    /// Adds a user that is not there yet.
    pub(super) fn insert_user(&mut self, rid: UserRid, user: User) {
        self.user_names.insert(user.row.id.clone(), rid);
        self.users.insert(rid, user);
    }

    fn remove_user(&mut self, rid: UserRid) {
        if let Some(user) = self.users.remove(&rid) {
            self.user_names.remove(&user.row.id);
        }
    }

    /// Gives a user a row of another name, perhaps.
    fn rename_user(&mut self, rid: UserRid, row: UserRow) -> Result<UserInfo> {
        let user = self
            .users
            .get_mut(&rid)
            .ok_or_else(|| user_not_found(&rid.to_string()))?;
        self.user_names.remove(&user.row.id);
        self.user_names.insert(row.id.clone(), rid);
        user.row = row;
        Ok(user.info(rid))
    }
}

impl Memory {
    pub(super) fn user(&self, rid: UserRid) -> Result<&User> {
        let not_found = || user_not_found(&rid.to_string());
        let database = self.database(rid.database()).map_err(|_| not_found())?;
        database.users.get(&rid).ok_or_else(not_found)
    }

    pub(super) fn user_mut(&mut self, rid: UserRid) -> Result<&mut User> {
        let not_found = || user_not_found(&rid.to_string());
        let database = self.database_mut(rid.database()).map_err(|_| not_found())?;
        database.users.get_mut(&rid).ok_or_else(not_found)
    }
}

impl Catalog {
    async fn create_user(&self, database: DatabaseRid, id: &str) -> Result<UserInfo> {
        let mut database_row = {
            let memory = self.memory.read();
            let database = memory.database(database)?;
            if database.user_named(id).is_some() {
                return Err(taken(id));
            }
            database.row.clone()
        };
        let rid = UserRid::new(database, database_row.next_user);
        database_row.next_user += 1;
        let (row_after, name) = (database_row.clone(), id.to_owned());
        let row = self
            .commit(move |round| {
                let row = written(Moment::begin(round), &name, 1);
                round.define(database_key(database), Definition::Database(&database_row));
                round.define(user_key(rid), Definition::User(&row));
                Ok(row)
            })
            .await?;
        let permissions = BTreeMap::new();
        let user = User { row, permissions };
        let info = user.info(rid);
        let mut memory = self.memory.write();
        let database = memory.database_mut(database)?;
        database.row = row_after;
        database.insert_user(rid, user);
        Ok(info)
    }

    async fn replace_user(&self, rid: UserRid, id: &str, if_match: Option<&str>) -> Result<UserInfo> {
        let row = {
            let memory = self.memory.read();
            let row = memory.user(rid)?.row.clone();
            check_etag(row.etag, if_match)?;
            let holder = memory.database(rid.database())?.user_named(id);
            if holder.is_some_and(|(holder, _)| holder != rid) {
                return Err(taken(id));
            }
            row
        };
        let name = id.to_owned();
        let row = self
            .commit(move |round| {
                let row = written(Moment::begin(round), &name, row.next_permission);
                round.define(user_key(rid), Definition::User(&row));
                Ok(row)
            })
            .await?;
        let mut memory = self.memory.write();
        memory.database_mut(rid.database())?.rename_user(rid, row)
    }

    async fn upsert_user(&self, database: DatabaseRid, id: &str, if_match: Option<&str>) -> Result<(UserInfo, bool)> {
        match self.user_by_name(database, id) {
            Ok(user) => Ok((self.replace_user(user.rid, id, if_match).await?, false)),
            Err(_) => Ok((self.create_user(database, id).await?, true)),
        }
    }

    async fn delete_user(&self, rid: UserRid, if_match: Option<&str>) -> Result<()> {
        let keys = {
            let memory = self.memory.read();
            let user = memory.user(rid)?;
            check_etag(user.row.etag, if_match)?;
            user.keys(rid)
        };
        self.commit(move |round| {
            Moment::begin(round);
            for key in &keys {
                round.delete(key.clone());
            }
            Ok(())
        })
        .await?;
        let mut memory = self.memory.write();
        memory.database_mut(rid.database())?.remove_user(rid);
        Ok(())
    }

    fn user_by_name(&self, database: DatabaseRid, id: &str) -> Result<UserInfo> {
        let memory = self.memory.read();
        let user = memory.database(database)?.user_named(id);
        user.map(|(rid, user)| user.info(rid)).ok_or_else(|| user_not_found(id))
    }
}

/// A user's row as a write at this moment leaves it.
fn written(moment: Moment, id: &str, next_permission: u64) -> UserRow {
    UserRow {
        id: id.to_owned(),
        etag: moment.etag(),
        last_modified: moment.now,
        next_permission,
    }
}

/// Users.
impl Account {
    /// Creates a user of a database.
    ///
    /// # Errors
    /// `NotFound` without the database; `Conflict` if it has a user of this name; `BadRequest` for a bad name.
    pub async fn create_user(&self, _ctx: &RequestContext, database: DatabaseRid, id: &str) -> Result<UserInfo> {
        validate_resource_id(id)?;
        let id = id.to_owned();
        let create = |catalog: Arc<Catalog>| async move { catalog.create_user(database, &id).await };
        self.catalog().carry_out(create).await
    }

    /// Creates a user, or writes the one of this name again. Tells whether it was created.
    ///
    /// # Errors
    /// As [`Account::create_user`], but for `Conflict`; `PreconditionFailed` if there is another version.
    pub async fn upsert_user(
        &self,
        _ctx: &RequestContext,
        database: DatabaseRid,
        id: &str,
        if_match: Option<&str>,
    ) -> Result<(UserInfo, bool)> {
        validate_resource_id(id)?;
        let (id, if_match) = (id.to_owned(), if_match.map(str::to_owned));
        let upsert =
            |catalog: Arc<Catalog>| async move { catalog.upsert_user(database, &id, if_match.as_deref()).await };
        self.catalog().carry_out(upsert).await
    }

    /// Replaces a user: gives it the name `id`.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` if another has the name; `PreconditionFailed` if it is another version; `BadRequest` for a bad name.
    pub async fn replace_user(
        &self,
        _ctx: &RequestContext,
        rid: UserRid,
        id: &str,
        if_match: Option<&str>,
    ) -> Result<UserInfo> {
        validate_resource_id(id)?;
        let (id, if_match) = (id.to_owned(), if_match.map(str::to_owned));
        let replace = |catalog: Arc<Catalog>| async move { catalog.replace_user(rid, &id, if_match.as_deref()).await };
        self.catalog().carry_out(replace).await
    }

    /// Deletes a user with its permissions. Their tokens hold until they expire.
    ///
    /// # Errors
    /// `NotFound`; `PreconditionFailed` if it is another version.
    pub async fn delete_user(&self, _ctx: &RequestContext, rid: UserRid, if_match: Option<&str>) -> Result<()> {
        let if_match = if_match.map(str::to_owned);
        let delete = |catalog: Arc<Catalog>| async move { catalog.delete_user(rid, if_match.as_deref()).await };
        self.catalog().carry_out(delete).await
    }

    /// The users of a database, in the order of their creation.
    ///
    /// # Errors
    /// `NotFound` without the database.
    pub fn list_users(&self, database: DatabaseRid) -> Result<Vec<UserInfo>> {
        let memory = self.catalog().memory.read();
        let users = &memory.database(database)?.users;
        Ok(users.iter().map(|(rid, user)| user.info(*rid)).collect())
    }

    /// The user of this name.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn user_by_name(&self, database: DatabaseRid, id: &str) -> Result<UserInfo> {
        self.catalog().user_by_name(database, id)
    }

    /// The user with this resource id.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn user_by_rid(&self, rid: UserRid) -> Result<UserInfo> {
        self.catalog().memory.read().user(rid).map(|user| user.info(rid))
    }
}

fn taken(id: &str) -> Error {
    Error::conflict(format!(
        "Resource with specified id, name, or unique index already exists: user '{id}'."
    ))
}

fn user_not_found(name: &str) -> Error {
    Error::not_found(format!("Resource Not Found: there is no user '{name}'."))
}
