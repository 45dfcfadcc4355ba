//! The handlers of operations: each reads from the wire, calls the core, and writes to the wire.

pub(crate) mod account_root;
pub(crate) mod batch;
mod change_feed;
mod conflicts;
mod containers;
mod data_plane;
mod databases;
mod encryption_keys;
mod feeds;
pub(crate) mod index_metrics;
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

use crate::operation::{Operation, operations};
use crate::request::Call;
use crate::status::Failure;
use crate::wire::{Reply, headers};
use data_plane::InContainer;

/// Calls a handler: see the table.
macro_rules! response {
    (now $call:ident $handler:path) => {
        $handler($call)
    };
    (later $call:ident $handler:path) => {
        $handler($call).await
    };
    (inside $call:ident $handler:path) => {{
        let inside = InContainer::enter($call)?;
        let answered = match inside.refusal() {
            None => $handler($call, &inside.container).await,
            Some(refusal) => Err(refusal),
        };
        Ok(inside.finish($call, answered))
    }};
}

macro_rules! dispatch {
    ($($name:ident $columns:tt => $how:ident $handler:path;)*) => {
        /// Runs an admitted request.
        pub(crate) async fn run(call: &Call<'_>) -> Result<Reply, Failure> {
            match call.operation {
                $(Operation::$name => response!($how call $handler),)*
            }
        }
    };
}

operations!(dispatch);

/// The entity tag in `If-Match`.
fn if_match(headers: &HeaderMap) -> Result<Option<String>> {
    Ok(headers::non_empty(headers, &IF_MATCH)?.map(str::to_owned))
}

/// The entity tag in `If-None-Match`.
fn if_none_match(headers: &HeaderMap) -> Result<Option<String>> {
    Ok(headers::non_empty(headers, &IF_NONE_MATCH)?.map(str::to_owned))
}
