//! The table of rights: who may do what.
//!
//! One row for each operation says which account key it needs, and for each kind of resource token the mode it needs, or that no such token
//! opens it. [`crate::service`] and [`crate::resource_token`] ask this table; `docs/security.md` shows it, made by a test below from the
//! same rows, and a test of the server walks all operations and senders against what the page says.
//!
//! What a row cannot say is checked where it is known: that the item, script or partition key of a request is the token's own, in
//! [`crate::resource_token`]; the partition key of each operation of a bulk, in [`crate::operations`].
//!
//! Scripts are on the safe side: all users of a container run the same ones, so only a token for the whole container may change or show them, and a
//! token for one script executes or reads it but never replaces it.

use bolide_core::PermissionMode;

use crate::keys::Access;
use crate::operation::Operation;

/// What a resource token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    /// A container.
    Container,
    /// A container, but only the items of one partition key, or below a prefix of one.
    PartitionKey,
    /// One item.
    Item,
    /// One stored procedure, trigger or user-defined function.
    Script,
}

/// Who may do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rights {
    /// The least account key.
    pub key: Access,
    /// The least mode of a token for a container, a partition key, an item, a script.
    tokens: [Option<PermissionMode>; 4],
}

impl Rights {
    /// The least mode of such a token; `None`: no such token will do.
    pub(crate) fn token(self, bound: Bound) -> Option<PermissionMode> {
        self.tokens[bound as usize]
    }
}

const READ: Option<PermissionMode> = Some(PermissionMode::Read);
const ALL: Option<PermissionMode> = Some(PermissionMode::All);
const NONE: Option<PermissionMode> = None;

const fn keys_only(key: Access) -> Rights {
    Rights { key, tokens: [NONE; 4] }
}

const fn rights(key: Access, tokens: [Option<PermissionMode>; 4]) -> Rights {
    Rights { key, tokens }
}

/// The row of an operation.
#[rustfmt::skip]
pub(crate) const fn of(operation: Operation) -> Rights {
    use Access::{Full, ReadOnly};
    match operation {
        // Every client begins with these, whatever it may do afterwards.
        Operation::ReadAccount
        | Operation::ReadContainer
        | Operation::ListPartitionKeyRanges => rights(ReadOnly, [READ, READ, READ, READ]),

        //                                                container  key   item  script
        Operation::ReadItem => rights(ReadOnly,          [READ,      READ, READ, NONE]),
        Operation::ReadFeed
        | Operation::QueryItems
        | Operation::QueryPlan
        | Operation::ReadChanges => rights(ReadOnly,     [READ,      READ, NONE, NONE]),
        Operation::ReplaceItem
        | Operation::PatchItem
        | Operation::DeleteItem => rights(Full,          [ALL,       ALL,  ALL,  NONE]),
        Operation::CreateItem
        | Operation::UpsertItem
        | Operation::Batch
        | Operation::DeletePartitionKey => rights(Full,  [ALL,       ALL,  NONE, NONE]),
        Operation::ExecuteProcedure => rights(Full,      [ALL,       ALL,  NONE, ALL]),
        Operation::ReadScript => rights(ReadOnly,        [READ,      NONE, NONE, READ]),
        Operation::ListScripts
        | Operation::QueryScripts => rights(ReadOnly,    [READ,      NONE, NONE, NONE]),
        Operation::CreateScript
        | Operation::ReplaceScript
        | Operation::DeleteScript => rights(Full,        [ALL,       NONE, NONE, NONE]),
        Operation::ListConflicts
        | Operation::QueryConflicts
        | Operation::ReadConflict => rights(ReadOnly,    [READ,      NONE, NONE, NONE]),
        Operation::DeleteConflict => rights(Full,        [ALL,       NONE, NONE, NONE]),

        Operation::ListDatabases
        | Operation::QueryDatabases
        | Operation::ReadDatabase
        | Operation::ListContainers
        | Operation::QueryContainers
        | Operation::ListOffers
        | Operation::QueryOffers
        | Operation::ReadOffer
        | Operation::ListEncryptionKeys
        | Operation::QueryEncryptionKeys
        | Operation::ReadEncryptionKey
        | Operation::ListUsers
        | Operation::QueryUsers
        | Operation::ReadUser => keys_only(ReadOnly),
        Operation::CreateDatabase
        | Operation::DeleteDatabase
        | Operation::CreateContainer
        | Operation::ReplaceContainer
        | Operation::DeleteContainer
        | Operation::ReplaceOffer
        | Operation::CreateEncryptionKey
        | Operation::ReplaceEncryptionKey
        | Operation::CreateUser
        | Operation::UpsertUser
        | Operation::ReplaceUser
        | Operation::DeleteUser
        | Operation::CreatePermission
        | Operation::UpsertPermission
        | Operation::ReplacePermission
        | Operation::DeletePermission => keys_only(Full),
        // Who reads a permission gets a token, which may open more than a read-only key does.
        Operation::ListPermissions
        | Operation::QueryPermissions
        | Operation::ReadPermission => keys_only(Full),
    }
}

/// Whether an operation is about items, so that a token for a partition key opens it for items of that key only.
///
/// A plan of a query tells nothing of what the container holds, and a script's text belongs to no key.
pub(crate) const fn is_about_items(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::ReadItem
            | Operation::ReadFeed
            | Operation::QueryItems
            | Operation::ReadChanges
            | Operation::CreateItem
            | Operation::UpsertItem
            | Operation::ReplaceItem
            | Operation::PatchItem
            | Operation::DeleteItem
            | Operation::Batch
            | Operation::DeletePartitionKey
            | Operation::ExecuteProcedure
    )
}

/// A route that is no operation of the protocol: the admin API, and what is open to everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AdminRoute {
    pub method: &'static str,
    /// The segments behind `/_bolide/`; `{db}` and `{c}` stand for any one.
    pub path: &'static str,
    /// The least account key; `None`: open to everybody.
    pub key: Option<Access>,
}

const fn admin(method: &'static str, path: &'static str, key: Access) -> AdminRoute {
    AdminRoute {
        method,
        path,
        key: Some(key),
    }
}

/// All routes of the admin API. No resource token opens any.
pub(crate) const ADMIN: [AdminRoute; 18] = [
    AdminRoute {
        method: "GET",
        path: "health",
        key: None,
    },
    admin("GET", "metrics", Access::ReadOnly),
    admin("GET", "clock", Access::ReadOnly),
    admin("PUT", "clock", Access::Full),
    admin("PUT", "settings", Access::Full),
    admin("PUT", "faults", Access::Full),
    admin("PUT", "faults/rules", Access::Full),
    admin("POST", "dbs/{db}/colls/{c}/query", Access::ReadOnly),
    admin("GET", "dbs/{db}/colls/{c}/export", Access::ReadOnly),
    admin("GET", "dbs/{db}/colls/{c}/ttl", Access::ReadOnly),
    admin("GET", "dbs/{db}/colls/{c}/ttl/preview", Access::ReadOnly),
    admin("GET", "dbs/{db}/colls/{c}/ttl/why", Access::ReadOnly),
    admin("POST", "dbs/{db}/colls/{c}/purge", Access::Full),
    admin("POST", "dbs/{db}/colls/{c}/verify", Access::Full),
    admin("POST", "dbs/{db}/colls/{c}/import", Access::Full),
    admin("POST", "dbs/{db}/colls/{c}/load", Access::Full),
    admin("POST", "dbs/{db}/colls/{c}/split", Access::Full),
    admin("PUT", "dbs/{db}/colls/{c}/throughput", Access::Full),
];

/// The key that a request to the admin API needs: what is not in the table needs one that opens everything, even to be told so.
pub(crate) fn of_admin(method: &http::Method, segments: &[&str]) -> Option<Access> {
    let is_at = |route: &&AdminRoute| {
        let mut named = route.path.split('/');
        let fits = segments.iter().all(|segment| {
            named
                .next()
                .is_some_and(|name| name.starts_with('{') || name == *segment)
        });
        method == route.method && fits && named.next().is_none()
    };
    let route = ADMIN.iter().find(is_at);
    route.map_or(Some(Access::Full), |route| route.key)
}

#[cfg(test)]
mod tests;
