//! What each operation reads from the wire, asks the core, and writes to the wire.

mod account_root;
pub(crate) mod batch;
mod change_feed;
mod conflicts;
mod containers;
mod data_plane;
mod databases;
mod encryption_keys;
mod feeds;
mod items;
mod metadata;
mod offers;
mod permissions;
mod pkranges;
mod query;
mod scripts;
mod users;

use bolide_model::Result;
use http::HeaderMap;
use http::header::{IF_MATCH, IF_NONE_MATCH};

use crate::operation::Operation;
use crate::service::Call;
use crate::status::Failure;
use crate::wire::{Reply, headers};

/// Runs a request that was let in.
pub(crate) async fn run(call: &Call<'_>) -> Result<Reply, Failure> {
    match call.operation {
        Operation::ReadAccount => Ok(account_root::read(call)),
        Operation::CreateDatabase => databases::create(call).await,
        Operation::ListDatabases => databases::list(call).await,
        Operation::QueryDatabases => databases::query(call).await,
        Operation::ReadDatabase => databases::read(call),
        Operation::DeleteDatabase => databases::delete(call).await,
        Operation::CreateContainer => containers::create(call).await,
        Operation::ListContainers => containers::list(call).await,
        Operation::QueryContainers => containers::query(call).await,
        Operation::ReadContainer => containers::read(call).await,
        Operation::ReplaceContainer => containers::replace(call).await,
        Operation::DeleteContainer => containers::delete(call).await,
        Operation::ListPartitionKeyRanges => pkranges::list(call),
        Operation::ListOffers => offers::list(call).await,
        Operation::QueryOffers => offers::query(call).await,
        Operation::ReadOffer => offers::read(call),
        Operation::ReplaceOffer => offers::replace(call).await,
        Operation::ListConflicts => conflicts::list(call),
        Operation::QueryConflicts => conflicts::query(call),
        Operation::ReadConflict | Operation::DeleteConflict => conflicts::point(call),
        Operation::CreateEncryptionKey => encryption_keys::create(call).await,
        Operation::ListEncryptionKeys => encryption_keys::list(call).await,
        Operation::QueryEncryptionKeys => encryption_keys::query(call).await,
        Operation::ReadEncryptionKey => encryption_keys::read(call),
        Operation::ReplaceEncryptionKey => encryption_keys::replace(call).await,
        Operation::CreateUser => users::create(call).await,
        Operation::UpsertUser => users::upsert(call).await,
        Operation::ListUsers => users::list(call).await,
        Operation::QueryUsers => users::query(call).await,
        Operation::ReadUser => users::read(call),
        Operation::ReplaceUser => users::replace(call).await,
        Operation::DeleteUser => users::delete(call).await,
        Operation::CreatePermission => permissions::create(call).await,
        Operation::UpsertPermission => permissions::upsert(call).await,
        Operation::ListPermissions => permissions::list(call).await,
        Operation::QueryPermissions => permissions::query(call).await,
        Operation::ReadPermission => permissions::read(call),
        Operation::ReplacePermission => permissions::replace(call).await,
        Operation::DeletePermission => permissions::delete(call).await,
        Operation::CreateScript => scripts::create(call).await,
        Operation::ListScripts => scripts::list(call).await,
        Operation::QueryScripts => scripts::query(call).await,
        Operation::ReadScript => scripts::read(call),
        Operation::ReplaceScript => scripts::replace(call).await,
        Operation::DeleteScript => scripts::delete(call).await,
        Operation::CreateItem
        | Operation::UpsertItem
        | Operation::ReadItem
        | Operation::ReplaceItem
        | Operation::PatchItem
        | Operation::DeleteItem
        | Operation::DeletePartitionKey
        | Operation::Batch
        | Operation::ReadFeed
        | Operation::QueryItems
        | Operation::QueryPlan
        | Operation::ReadChanges
        | Operation::ExecuteProcedure => data_plane::run(call).await,
    }
}

/// The entity tag that the caller expects.
fn if_match(headers: &HeaderMap) -> Result<Option<String>> {
    Ok(headers::non_empty(headers, &IF_MATCH)?.map(str::to_owned))
}

/// The entity tag that the caller has seen.
fn if_none_match(headers: &HeaderMap) -> Result<Option<String>> {
    Ok(headers::non_empty(headers, &IF_NONE_MATCH)?.map(str::to_owned))
}
