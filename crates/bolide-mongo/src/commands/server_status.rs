//! `serverStatus`.

use bolide_mql::Result;
use bson::raw::cstr;
use bson::{DateTime, RawDocumentBuf, rawdoc};

use super::arguments::Arguments;
use super::build_info::VERSION;
use super::context::{CommandContext, Reply};
use super::data::views;
use super::hello;
use crate::codes;
use crate::metrics::Counter;
use crate::state::MongoState;

/// `{serverStatus: 1}` → what is counted. Sections that a client includes or excludes by name are ignored: all are shown.
pub async fn run(context: &CommandContext<'_>, _: Arguments<'_>) -> Result<Reply> {
    let state = context.state;
    let uptime = state.monotonic().since(state.started());
    let millis = i64::try_from(uptime.as_millis()).unwrap_or(i64::MAX);
    let host = &state.options.host;
    let mut reply = rawdoc! {
        "host": format!("{}:{}", host.name, host.port),
        "version": VERSION,
        "process": "mongod",
        "service": ["mongod"],
        "pid": i64::from(std::process::id()),
        "uptime": millis / 1000,
        "uptimeMillis": millis,
        "uptimeEstimate": millis / 1000,
        "localTime": DateTime::from_millis(state.account.shown_time().await.0),
    };
    append_counters(&mut reply, state);
    reply.append(cstr!("catalogStats"), catalog(state));
    let open = i64::try_from(state.cursors.count()).unwrap_or(i64::MAX);
    reply.append(cstr!("metrics"), rawdoc! {
        "cursor": { "timedOut": Counter::default().get(), "open": { "noTimeout": 0_i64, "pinned": 0_i64, "total": open } },
        "ttl": time_to_live(state).await?,
    });
    reply.append(
        cstr!("repl"),
        rawdoc! {
            "setName": state.options.set_name.as_str(),
            "setVersion": hello::SET_VERSION,
            "isWritablePrimary": true,
            "secondary": false,
            "primary": hello::address(state, context.client),
            "me": hello::address(state, context.client),
            "hosts": [hello::address(state, context.client)],
        },
    );
    let is_persistent = state.account.engine_name() != "memory";
    reply.append(
        cstr!("storageEngine"),
        rawdoc! {
            "name": state.account.engine_name(),
            "supportsCommittedReads": true,
            "supportsPendingDrops": false,
            "readOnly": false,
            "persistent": is_persistent,
        },
    );
    Ok(reply.into())
}

/// The number of collections of each kind.
fn catalog(state: &MongoState) -> RawDocumentBuf {
    let (mut collections, mut view_count) = (0, 0);
    for database in state.account.list_databases() {
        for container in state.account.list_collections(&database.id) {
            match container.collection() {
                Some(definition) if views::is_view(&definition) => view_count += 1,
                _ => collections += 1,
            }
        }
    }
    rawdoc! {
        "collections": collections,
        "capped": 0,
        "clustered": 0,
        "timeseries": 0,
        "views": view_count,
        "internalCollections": 0,
        "internalViews": 0,
    }
}

fn append_counters(reply: &mut RawDocumentBuf, state: &MongoState) {
    let metrics = &state.metrics;
    let operations = &metrics.operations;
    let current = metrics.connections.get();
    let available = i64::try_from(state.options.max_connections)
        .unwrap_or(i64::MAX)
        .saturating_sub(current)
        .max(0);
    let int = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    reply.append(
        cstr!("connections"),
        rawdoc! {
            "current": current,
            "available": available,
            "totalCreated": metrics.connections_created.get(),
            "active": metrics.active.get(),
        },
    );
    reply.append(
        cstr!("opcounters"),
        rawdoc! {
            "insert": operations.insert.get(),
            "query": operations.query.get(),
            "update": operations.update.get(),
            "delete": operations.delete.get(),
            "getmore": operations.get_more.get(),
            "command": operations.command.get(),
        },
    );
    reply.append(
        cstr!("network"),
        rawdoc! {
            "bytesIn": metrics.bytes_in.get(),
            "bytesOut": metrics.bytes_out.get(),
            "numRequests": metrics.requests.get(),
        },
    );
    reply.append(cstr!("mem"), rawdoc! { "bits": 64, "supported": false });
    reply.append(
        cstr!("logicalSessionRecordCache"),
        rawdoc! { "activeSessionsCount": int(state.sessions.count()) },
    );
}

/// What the purge has removed from the collections that exist. It works all the time and not in passes, and documents end without it.
async fn time_to_live(state: &MongoState) -> Result<RawDocumentBuf> {
    let figures = state.account.container_figures().await;
    let mut deleted = 0_u64;
    for container in figures.map_err(|error| codes::error(&error))? {
        let is_collection = state.account.find_collection(&container.database_id, &container.id);
        deleted = deleted.saturating_add(is_collection.map_or(0, |_| container.purged_total));
    }
    Ok(rawdoc! {
        "deletedDocuments": i64::try_from(deleted).unwrap_or(i64::MAX),
        "deletedKeys": 0_i64,
        "passes": 0_i64,
        "subPasses": 0_i64,
        "invalidTTLIndexSkips": 0_i64,
    })
}

#[cfg(test)]
mod tests;
