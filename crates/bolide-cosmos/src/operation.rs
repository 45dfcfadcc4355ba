//! The table of operations: what a verb means at a place.

use bolide_core::ScriptKind;
use http::{HeaderMap, Method};

use crate::keys::Access;
use crate::rights;
use crate::routes::{Place, Route};
use crate::status::{Failure, METHOD_NOT_ALLOWED, NOT_FOUND};
use crate::wire::headers;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    ReadAccount,
    CreateDatabase,
    ListDatabases,
    QueryDatabases,
    ReadDatabase,
    DeleteDatabase,
    CreateContainer,
    ListContainers,
    QueryContainers,
    ReadContainer,
    ReplaceContainer,
    DeleteContainer,
    CreateItem,
    UpsertItem,
    ReadItem,
    ReplaceItem,
    PatchItem,
    DeleteItem,
    Batch,
    ReadFeed,
    QueryItems,
    QueryPlan,
    ReadChanges,
    ListPartitionKeyRanges,
    ListOffers,
    QueryOffers,
    ReadOffer,
    ReplaceOffer,
    ListConflicts,
    QueryConflicts,
    ReadConflict,
    DeleteConflict,
    CreateEncryptionKey,
    ListEncryptionKeys,
    QueryEncryptionKeys,
    ReadEncryptionKey,
    ReplaceEncryptionKey,
    CreateUser,
    UpsertUser,
    ListUsers,
    QueryUsers,
    ReadUser,
    ReplaceUser,
    DeleteUser,
    CreatePermission,
    UpsertPermission,
    ListPermissions,
    QueryPermissions,
    ReadPermission,
    ReplacePermission,
    DeletePermission,
    DeletePartitionKey,
    CreateScript,
    ListScripts,
    QueryScripts,
    ReadScript,
    ReplaceScript,
    DeleteScript,
    ExecuteProcedure,
}

impl Operation {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Operation; 59] = [
        Operation::ReadAccount,
        Operation::CreateDatabase,
        Operation::ListDatabases,
        Operation::QueryDatabases,
        Operation::ReadDatabase,
        Operation::DeleteDatabase,
        Operation::CreateContainer,
        Operation::ListContainers,
        Operation::QueryContainers,
        Operation::ReadContainer,
        Operation::ReplaceContainer,
        Operation::DeleteContainer,
        Operation::CreateItem,
        Operation::UpsertItem,
        Operation::ReadItem,
        Operation::ReplaceItem,
        Operation::PatchItem,
        Operation::DeleteItem,
        Operation::Batch,
        Operation::ReadFeed,
        Operation::QueryItems,
        Operation::QueryPlan,
        Operation::ReadChanges,
        Operation::ListPartitionKeyRanges,
        Operation::ListOffers,
        Operation::QueryOffers,
        Operation::ReadOffer,
        Operation::ReplaceOffer,
        Operation::ListConflicts,
        Operation::QueryConflicts,
        Operation::ReadConflict,
        Operation::DeleteConflict,
        Operation::CreateEncryptionKey,
        Operation::ListEncryptionKeys,
        Operation::QueryEncryptionKeys,
        Operation::ReadEncryptionKey,
        Operation::ReplaceEncryptionKey,
        Operation::CreateUser,
        Operation::UpsertUser,
        Operation::ListUsers,
        Operation::QueryUsers,
        Operation::ReadUser,
        Operation::ReplaceUser,
        Operation::DeleteUser,
        Operation::CreatePermission,
        Operation::UpsertPermission,
        Operation::ListPermissions,
        Operation::QueryPermissions,
        Operation::ReadPermission,
        Operation::ReplacePermission,
        Operation::DeletePermission,
        Operation::DeletePartitionKey,
        Operation::CreateScript,
        Operation::ListScripts,
        Operation::QueryScripts,
        Operation::ReadScript,
        Operation::ReplaceScript,
        Operation::DeleteScript,
        Operation::ExecuteProcedure,
    ];

    /// Its name in metrics and fault rules.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Operation::ReadAccount => "ReadAccount",
            Operation::CreateDatabase => "CreateDatabase",
            Operation::ListDatabases => "ListDatabases",
            Operation::QueryDatabases => "QueryDatabases",
            Operation::ReadDatabase => "ReadDatabase",
            Operation::DeleteDatabase => "DeleteDatabase",
            Operation::CreateContainer => "CreateContainer",
            Operation::ListContainers => "ListContainers",
            Operation::QueryContainers => "QueryContainers",
            Operation::ReadContainer => "ReadContainer",
            Operation::ReplaceContainer => "ReplaceContainer",
            Operation::DeleteContainer => "DeleteContainer",
            Operation::CreateItem => "CreateItem",
            Operation::UpsertItem => "UpsertItem",
            Operation::ReadItem => "ReadItem",
            Operation::ReplaceItem => "ReplaceItem",
            Operation::PatchItem => "PatchItem",
            Operation::DeleteItem => "DeleteItem",
            Operation::Batch => "Batch",
            Operation::ReadFeed => "ReadFeed",
            Operation::QueryItems => "QueryItems",
            Operation::QueryPlan => "QueryPlan",
            Operation::ReadChanges => "ReadChanges",
            Operation::ListPartitionKeyRanges => "ListPartitionKeyRanges",
            Operation::ListOffers => "ListOffers",
            Operation::QueryOffers => "QueryOffers",
            Operation::ReadOffer => "ReadOffer",
            Operation::ReplaceOffer => "ReplaceOffer",
            Operation::ListConflicts => "ListConflicts",
            Operation::QueryConflicts => "QueryConflicts",
            Operation::ReadConflict => "ReadConflict",
            Operation::DeleteConflict => "DeleteConflict",
            Operation::CreateUser => "CreateUser",
            Operation::UpsertUser => "UpsertUser",
            Operation::ListUsers => "ListUsers",
            Operation::QueryUsers => "QueryUsers",
            Operation::ReadUser => "ReadUser",
            Operation::ReplaceUser => "ReplaceUser",
            Operation::DeleteUser => "DeleteUser",
            Operation::CreatePermission => "CreatePermission",
            Operation::UpsertPermission => "UpsertPermission",
            Operation::ListPermissions => "ListPermissions",
            Operation::QueryPermissions => "QueryPermissions",
            Operation::ReadPermission => "ReadPermission",
            Operation::ReplacePermission => "ReplacePermission",
            Operation::DeletePermission => "DeletePermission",
            Operation::CreateEncryptionKey => "CreateEncryptionKey",
            Operation::ListEncryptionKeys => "ListEncryptionKeys",
            Operation::QueryEncryptionKeys => "QueryEncryptionKeys",
            Operation::ReadEncryptionKey => "ReadEncryptionKey",
            Operation::ReplaceEncryptionKey => "ReplaceEncryptionKey",
            Operation::DeletePartitionKey => "DeletePartitionKey",
            Operation::CreateScript => "CreateScript",
            Operation::ListScripts => "ListScripts",
            Operation::QueryScripts => "QueryScripts",
            Operation::ReadScript => "ReadScript",
            Operation::ReplaceScript => "ReplaceScript",
            Operation::DeleteScript => "DeleteScript",
            Operation::ExecuteProcedure => "ExecuteProcedure",
        }
    }

    /// Whether it changes nothing and gives nothing away that does: what read-only keys may do, and what a session token is checked against.
    pub(crate) fn is_read(self) -> bool {
        rights::of(self).key == Access::ReadOnly
    }

    /// Whether its body defines a resource that is no item and no script.
    pub(crate) fn is_of_definition(self) -> bool {
        matches!(
            self,
            Operation::CreateDatabase
                | Operation::CreateContainer
                | Operation::ReplaceContainer
                | Operation::ReplaceOffer
                | Operation::CreateEncryptionKey
                | Operation::ReplaceEncryptionKey
                | Operation::CreateUser
                | Operation::UpsertUser
                | Operation::ReplaceUser
                | Operation::CreatePermission
                | Operation::UpsertPermission
                | Operation::ReplacePermission
        )
    }

    /// Finds the operation that a request asks for.
    ///
    /// # Errors
    /// 404 for paths that lead nowhere, 405 for verbs without meaning there, 400 for direct mode and unknown feeds.
    pub(crate) fn of(route: &Route<'_>, method: &Method, headers: &HeaderMap) -> Result<Operation, Failure> {
        let verb = Verb::of(method).ok_or_else(|| not_allowed(method, route))?;
        let operation = match (route.place, verb) {
            (Place::Account, Verb::Get) => Operation::ReadAccount,
            (Place::Databases, Verb::Get) => Operation::ListDatabases,
            (Place::Databases, Verb::Post) => if_query(headers, Operation::QueryDatabases, Operation::CreateDatabase),
            (Place::Database, Verb::Get) => Operation::ReadDatabase,
            (Place::Database, Verb::Delete) => Operation::DeleteDatabase,
            (Place::Containers, Verb::Get) => Operation::ListContainers,
            (Place::Containers, Verb::Post) => {
                if_query(headers, Operation::QueryContainers, Operation::CreateContainer)
            }
            (Place::Container, Verb::Get) => Operation::ReadContainer,
            (Place::Container, Verb::Put) => Operation::ReplaceContainer,
            (Place::Container, Verb::Delete) => Operation::DeleteContainer,
            (Place::Items, Verb::Get) => feed(headers)?,
            (Place::Items, Verb::Post) => posted_item(headers)?,
            (Place::Item, Verb::Get) => Operation::ReadItem,
            (Place::Item, Verb::Put) => Operation::ReplaceItem,
            (Place::Item, Verb::Patch) => Operation::PatchItem,
            (Place::Item, Verb::Delete) => Operation::DeleteItem,
            (Place::PartitionKeyRanges, Verb::Get) => Operation::ListPartitionKeyRanges,
            (Place::Users, Verb::Get) => Operation::ListUsers,
            (Place::Users, Verb::Post) => posted(
                headers,
                Operation::QueryUsers,
                Operation::UpsertUser,
                Operation::CreateUser,
            ),
            (Place::User, Verb::Get) => Operation::ReadUser,
            (Place::User, Verb::Put) => Operation::ReplaceUser,
            (Place::User, Verb::Delete) => Operation::DeleteUser,
            (Place::Permissions, Verb::Get) => Operation::ListPermissions,
            (Place::Permissions, Verb::Post) => posted(
                headers,
                Operation::QueryPermissions,
                Operation::UpsertPermission,
                Operation::CreatePermission,
            ),
            (Place::Permission, Verb::Get) => Operation::ReadPermission,
            (Place::Permission, Verb::Put) => Operation::ReplacePermission,
            (Place::Permission, Verb::Delete) => Operation::DeletePermission,
            (Place::EncryptionKeys, Verb::Get) => Operation::ListEncryptionKeys,
            (Place::EncryptionKeys, Verb::Post) => {
                if_query(headers, Operation::QueryEncryptionKeys, Operation::CreateEncryptionKey)
            }
            (Place::EncryptionKey, Verb::Get) => Operation::ReadEncryptionKey,
            (Place::EncryptionKey, Verb::Put) => Operation::ReplaceEncryptionKey,
            (Place::Offers, Verb::Get) => Operation::ListOffers,
            (Place::Offers, Verb::Post) if headers::is_query(headers) => Operation::QueryOffers,
            (Place::Offer, Verb::Get) => Operation::ReadOffer,
            (Place::Offer, Verb::Put) => Operation::ReplaceOffer,
            (Place::Conflicts, Verb::Get) => Operation::ListConflicts,
            (Place::Conflicts, Verb::Post) if headers::is_query(headers) => Operation::QueryConflicts,
            (Place::Conflict, Verb::Get) => Operation::ReadConflict,
            (Place::Conflict, Verb::Delete) => Operation::DeleteConflict,
            (Place::PartitionKeyDelete, Verb::Post) => Operation::DeletePartitionKey,
            (Place::Scripts(_), Verb::Get) => Operation::ListScripts,
            (Place::Scripts(_), Verb::Post) => if_query(headers, Operation::QueryScripts, Operation::CreateScript),
            (Place::Script(_), Verb::Get) => Operation::ReadScript,
            (Place::Script(_), Verb::Put) => Operation::ReplaceScript,
            (Place::Script(_), Verb::Delete) => Operation::DeleteScript,
            (Place::Script(ScriptKind::StoredProcedure), Verb::Post) => Operation::ExecuteProcedure,
            (Place::Unknown | Place::Admin | Place::Certificate | Place::Explorer | Place::Addresses, _) => {
                return Err(Failure::new(
                    NOT_FOUND,
                    format!("no such resource path. path=`/{}`", route.path),
                ));
            }
            _ => return Err(not_allowed(method, route)),
        };
        Ok(operation)
    }
}

/// The verbs of the protocol. `http::Method` cannot be matched against constants.
#[derive(Clone, Copy)]
enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Verb {
    fn of(method: &Method) -> Option<Verb> {
        match method.as_str() {
            // `HEAD /` is a health probe of some clients; its body is dropped on the way out.
            "GET" | "HEAD" => Some(Verb::Get),
            "POST" => Some(Verb::Post),
            "PUT" => Some(Verb::Put),
            "PATCH" => Some(Verb::Patch),
            "DELETE" => Some(Verb::Delete),
            _ => None,
        }
    }
}

fn not_allowed(method: &Method, route: &Route<'_>) -> Failure {
    Failure::new(
        METHOD_NOT_ALLOWED,
        format!("`{method}` means nothing here. path=`/{}`", route.path),
    )
}

fn if_query(headers: &HeaderMap, query: Operation, other: Operation) -> Operation {
    if headers::is_query(headers) { query } else { other }
}

/// A `POST` to a feed whose resources can be upserted.
fn posted(headers: &HeaderMap, query: Operation, upsert: Operation, create: Operation) -> Operation {
    if headers::is_query(headers) {
        query
    } else if headers::flag(headers, &headers::IS_UPSERT) {
        upsert
    } else {
        create
    }
}

/// `POST …/docs`, decided in the order of cosmos-rest §0.2.
fn posted_item(headers: &HeaderMap) -> Result<Operation, Failure> {
    if headers::flag(headers, &headers::IS_BATCH) {
        return Ok(Operation::Batch);
    }
    if headers::flag(headers, &headers::IS_QUERY_PLAN) {
        return Ok(Operation::QueryPlan);
    }
    if headers::is_query(headers) {
        return Ok(Operation::QueryItems);
    }
    let is_upsert = headers::flag(headers, &headers::IS_UPSERT);
    Ok(if is_upsert {
        Operation::UpsertItem
    } else {
        Operation::CreateItem
    })
}

/// `GET …/docs`: a plain feed, or the change feed by its `A-IM` mode.
fn feed(headers: &HeaderMap) -> Result<Operation, Failure> {
    let Some(mode) = headers::non_empty(headers, &headers::A_IM)? else {
        return Ok(Operation::ReadFeed);
    };
    if mode.eq_ignore_ascii_case(headers::LATEST_VERSIONS) || mode.eq_ignore_ascii_case(headers::ALL_VERSIONS) {
        return Ok(Operation::ReadChanges);
    }
    Err(Failure::bad_request(format!(
        "unknown change feed mode in header `A-IM`. value=`{mode}`"
    )))
}

#[cfg(test)]
mod tests;
