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
mod index_metrics;
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

/// Answers with what a handler gives: see the table.
macro_rules! answer {
    (now $call:ident $handler:path) => {
        $handler($call)
    };
    (later $call:ident $handler:path) => {
        $handler($call).await
    };
    (inside $call:ident $handler:path) => {
        data_plane::run($call, $handler).await
    };
}

macro_rules! dispatch {
    ($($name:ident $columns:tt => $how:ident $handler:path;)*) => {
        /// Runs a request that was let in.
        pub(crate) async fn run(call: &Call<'_>) -> Result<Reply, Failure> {
            match call.operation {
                $(Operation::$name => answer!($how call $handler),)*
            }
        }
    };
}

operations!(dispatch);

/// The entity tag that the caller expects.
fn if_match(headers: &HeaderMap) -> Result<Option<String>> {
    Ok(headers::non_empty(headers, &IF_MATCH)?.map(str::to_owned))
}

/// The entity tag that the caller has seen.
fn if_none_match(headers: &HeaderMap) -> Result<Option<String>> {
    Ok(headers::non_empty(headers, &IF_NONE_MATCH)?.map(str::to_owned))
}
