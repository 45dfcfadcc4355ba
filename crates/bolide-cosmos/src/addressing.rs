//! Finds the resource of a path, by names or by resource ids.
//!
//! The first segment decides (cosmos-rest §3.4): if there is a database with that name, all segments of the path are names; otherwise, if the segment
//! can be a database's resource id, all further segments are resource ids.

use std::sync::Arc;

use bolide_core::{
    Account, Container, DatabaseInfo, EncryptionKeyInfo, ItemTarget, PermissionInfo, ScriptName, UserInfo,
};
use bolide_model::rid::{
    ChildKind, ChildRid, ContainerRid, DatabaseRid, EncryptionKeyRid, ItemRid, PermissionRid, UserRid,
};
use bolide_model::{Error, ErrorKind, Result};

use crate::routes::Route;

/// How a path refers to resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Names,
    Rids,
}

/// Finds the database of a path.
///
/// # Errors
/// `NotFound`.
pub(crate) fn database(account: &Account, route: &Route<'_>) -> Result<DatabaseInfo> {
    resolve_database(account, route).map(|(database, _)| database)
}

/// Finds the database of a resource below it.
///
/// # Errors
/// `OwnerNotFound`: 404 with the sub-status by which clients distinguish a missing parent from a missing resource.
pub(crate) fn parent_database(account: &Account, route: &Route<'_>) -> Result<DatabaseInfo> {
    database(account, route).map_err(owner_not_found)
}

/// Finds the container of a path.
///
/// # Errors
/// - `NotFound`, `OwnerNotFound` when the database is missing.
/// - `BadRequest`: the database is given by resource id and the container by name.
pub(crate) fn container(account: &Account, route: &Route<'_>) -> Result<Arc<Container>> {
    // In one step for nearly all requests; the reason why there is none takes more.
    if let Some(container) = account.container_by_names(&route.database, &route.container) {
        return Ok(container);
    }
    let (database, style) = resolve_database(account, route).map_err(owner_not_found)?;
    match style {
        Style::Names => account.container_by_name(database.rid, &route.container),
        Style::Rids => {
            let rid = container_rid(&route.container)?;
            is_child(rid.database() == database.rid)?;
            account.container_by_rid(rid)
        }
    }
}

/// Returns the container of a path that is in memory, by its name.
pub(crate) fn known_container(account: &Account, route: &Route<'_>) -> Option<ContainerRid> {
    let container = account.container_by_names(&route.database, &route.container)?;
    Some(container.rid())
}

/// Finds the container of a resource below it.
///
/// # Errors
/// As [`container`], with `OwnerNotFound` instead of `NotFound`.
pub(crate) fn parent_container(account: &Account, route: &Route<'_>) -> Result<Arc<Container>> {
    container(account, route).map_err(owner_not_found)
}

/// Finds the user of a path.
///
/// # Errors
/// - `NotFound`, `OwnerNotFound` when the database is missing.
/// - `BadRequest`: the database is given by resource id and the user by name.
pub(crate) fn user(account: &Account, route: &Route<'_>) -> Result<UserInfo> {
    let (database, style) = resolve_database(account, route).map_err(owner_not_found)?;
    match style {
        Style::Names => account.user_by_name(database.rid, &route.user),
        Style::Rids => {
            let rid = UserRid::parse(&route.user).ok_or_else(|| no_rid(&route.user))?;
            is_child(rid.database() == database.rid)?;
            account.user_by_rid(rid)
        }
    }
}

/// Finds the client encryption key of a path.
///
/// # Errors
/// As [`user`].
pub(crate) fn encryption_key(account: &Account, route: &Route<'_>) -> Result<EncryptionKeyInfo> {
    let (database, style) = resolve_database(account, route).map_err(owner_not_found)?;
    match style {
        Style::Names => account.encryption_key_by_name(database.rid, &route.leaf),
        Style::Rids => {
            let rid = EncryptionKeyRid::parse(&route.leaf).ok_or_else(|| no_rid(&route.leaf))?;
            is_child(rid.database == database.rid)?;
            account.encryption_key_by_rid(rid)
        }
    }
}

/// Finds the permission of a path.
///
/// # Errors
/// As [`user`], with `OwnerNotFound` for the user.
pub(crate) fn permission(account: &Account, route: &Route<'_>) -> Result<PermissionInfo> {
    let (_, style) = resolve_database(account, route).map_err(owner_not_found)?;
    let user = user(account, route).map_err(owner_not_found)?;
    match style {
        Style::Names => account.permission_by_name(user.rid, &route.leaf),
        Style::Rids => {
            let rid = PermissionRid::parse(&route.leaf).ok_or_else(|| no_rid(&route.leaf))?;
            is_child(rid.user == user.rid)?;
            account.permission_by_rid(rid)
        }
    }
}

/// The item that the last segment of a path names: by its resource id in this container, or by its id.
///
/// # Errors
/// `NotFound` for an id with an unescaped slash (`TestItemIdEncoding` of .NET).
pub(crate) fn item(container: &Container, leaf: &str) -> Result<ItemTarget> {
    if leaf.is_empty() {
        return Err(Error::not_found(
            "Resource Not Found: the path has more segments than that of an item. A slash in the id has to be sent as `%2F`.",
        ));
    }
    match ItemRid::parse(leaf) {
        Some(rid) if rid.container == container.rid() => Ok(ItemTarget::Rid(rid.number)),
        _ => Ok(ItemTarget::Id(leaf.to_owned())),
    }
}

/// The script that the last segment of a path names: by its resource id in this container and kind, or by its id.
pub(crate) fn script(container: &Container, kind: ChildKind, leaf: &str) -> ScriptName {
    match ChildRid::parse(leaf) {
        Some(rid) if rid.container == container.rid() && rid.kind == kind => ScriptName::Rid(rid.number),
        _ => ScriptName::Id(leaf.to_owned()),
    }
}

fn resolve_database(account: &Account, route: &Route<'_>) -> Result<(DatabaseInfo, Style)> {
    match account.database_by_name(&route.database) {
        Err(error) if error.kind == ErrorKind::NotFound => match DatabaseRid::parse(&route.database) {
            Some(rid) => account.database_by_rid(rid).map(|database| (database, Style::Rids)),
            None => Err(error),
        },
        found => found.map(|database| (database, Style::Names)),
    }
}

fn container_rid(segment: &str) -> Result<ContainerRid> {
    ContainerRid::parse(segment).ok_or_else(|| no_rid(segment))
}

/// Refuses a resource id that does not belong to the parent in the path.
fn is_child(is_child: bool) -> Result<()> {
    if is_child {
        return Ok(());
    }
    Err(Error::not_found(
        "Resource Not Found: there is no such resource under this parent.",
    ))
}

fn no_rid(segment: &str) -> Error {
    Error::bad_request(format!(
        "the value could not be parsed as ResourceId. value=`{segment}`"
    ))
}

pub(crate) fn owner_not_found(error: Error) -> Error {
    match error.kind {
        ErrorKind::NotFound => Error {
            kind: ErrorKind::OwnerNotFound,
            ..error
        },
        _ => error,
    }
}
