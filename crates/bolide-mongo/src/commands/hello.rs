//! `hello` and its old form `isMaster`.
//!
//! A client may ask for the next change of what hello says: it sends the `topologyVersion` that it knows, and `maxAwaitTimeMS`. The one change that
//! can happen here is the end of the server, so such a hello usually waits. If the client allows it, the connection answers it again and again; see
//! [`crate::connection`].
//!
//! Source: mongo.md §2, §3.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bolide_model::UnixMillis;
use bolide_mql::{Error, Result};
use bson::raw::{CStr, RawBsonRef, cstr};
use bson::{DateTime, RawArray, RawArrayBuf, RawDocument, RawDocumentBuf, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::sasl;
use crate::authentication::Mechanism;
use crate::client::Client;
use crate::limits;
use crate::message::Compressor;
use crate::operations;
use crate::state::MongoState;
use crate::users::User;

/// The newest version of the protocol: that of MongoDB 7.0.
const MAX_WIRE_VERSION: i32 = 21;
/// The version of the replica set's configuration.
pub const SET_VERSION: i32 = 1;
/// The term of the replica set's only election.
pub const TERM: i64 = 1;
/// MongoDB's codes of awaitable hellos.
const AWAIT_INCOMPLETE: i32 = 31368;
const COUNTER_NEGATIVE: i32 = 31372;
const AWAIT_NEGATIVE: i32 = 31373;
const COUNTER_TOO_LARGE: i32 = 31382;

/// `{hello: 1, …}`.
pub async fn hello(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    answer(context, arguments, cstr!("isWritablePrimary")).await
}

/// `{isMaster: 1, …}`.
pub async fn is_master(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    answer(context, arguments, cstr!("ismaster")).await
}

async fn answer(context: &CommandContext<'_>, mut arguments: Arguments<'_>, primary: &CStr) -> Result<Reply> {
    let (state, client) = (context.state, context.client);
    let hello_ok = arguments.boolean("helloOk")? == Some(true);
    if let Some(metadata) = arguments.document("client")? {
        client.set_metadata(metadata)?;
    }
    let compression = arguments.array("compression")?;
    let asked_user = arguments.string("saslSupportedMechs")?;
    let speculation = arguments.document("speculativeAuthenticate")?;
    let waits = wait_for_change(state, &mut arguments).await?;

    let mut reply = RawDocumentBuf::new();
    if hello_ok {
        reply.append(cstr!("helloOk"), true);
    }
    reply.append(primary, true);
    let now = state.account.shown_time().await;
    append_member(&mut reply, state, client, now);
    append_limits(&mut reply, client, now);
    if let Some(names) = compression.map(common_compressors).filter(|names| !names.is_empty()) {
        reply.append(cstr!("compression"), names);
    }
    if let Some(asked) = asked_user
        && let Some(mechanisms) = mechanisms_of(state, asked).await?
    {
        let mut names = RawArrayBuf::new();
        for mechanism in mechanisms {
            names.push(mechanism.name());
        }
        reply.append(cstr!("saslSupportedMechs"), names);
    }
    if let Some(command) = speculation
        && let Some(begun) = sasl::speculate(state, client, command).await
    {
        reply.append(cstr!("speculativeAuthenticate"), begun);
    }
    Ok(Reply {
        may_repeat: waits,
        ..reply.into()
    })
}

/// Waits as the client asks; returns whether it asked.
async fn wait_for_change(state: &MongoState, arguments: &mut Arguments<'_>) -> Result<bool> {
    let known = arguments.document("topologyVersion")?;
    let limit = arguments.integer("maxAwaitTimeMS")?;
    let (known, limit) = match (known, limit) {
        (None, None) => return Ok(false),
        (Some(known), Some(limit)) => (known, limit),
        (Some(_), None) => {
            let text = "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'";
            return Err(Error::new(AWAIT_INCOMPLETE, text));
        }
        (None, Some(_)) => {
            let text = "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'";
            return Err(Error::new(AWAIT_INCOMPLETE, text));
        }
    };
    let limit = u64::try_from(limit)
        .map_err(|_| Error::new(AWAIT_NEGATIVE, "maxAwaitTimeMS must be a non-negative integer"))?;
    if is_current(state, known)? {
        let limit = Duration::from_millis(limit).min(limits::MAX_AWAIT);
        tokio::select! {
            () = state.monotonic().sleep(limit) => {}
            () = state.stopped() => {
                if state.is_stopping() {
                    return Err(operations::shutting_down());
                }
            }
        }
    }
    Ok(true)
}

/// Whether a client knows the current state of this process.
fn is_current(state: &MongoState, known: &RawDocument) -> Result<bool> {
    let mut fields = Arguments::of_document("topologyVersion", known)?;
    let process = fields.value("processId").and_then(|id| id.as_object_id());
    let process = fields.required("processId", process)?;
    let counter = fields.integer("counter")?;
    let counter = fields.required("counter", counter)?;
    if counter < 0 {
        let text = "topologyVersion must have a non-negative counter";
        return Err(Error::new(COUNTER_NEGATIVE, text));
    }
    let current = state.topology_version();
    if process != current.process_id {
        return Ok(false);
    }
    if counter > current.counter {
        let text = format!(
            "Received a topology version with counter: {counter} which is greater than the server topology version counter: {}",
            current.counter
        );
        return Err(Error::new(COUNTER_TOO_LARGE, text));
    }
    Ok(counter == current.counter)
}

/// What hello says of the replica set.
fn append_member(reply: &mut RawDocumentBuf, state: &MongoState, client: &Client, now: UnixMillis) {
    let address = address(state, client);
    let op_time = rawdoc! { "ts": state.operation_time(now), "t": TERM };
    let date = DateTime::from_millis(now.0);
    let last_write = rawdoc! {
        "opTime": op_time.clone(),
        "lastWriteDate": date,
        "majorityOpTime": op_time,
        "majorityWriteDate": date,
    };
    reply.append(cstr!("topologyVersion"), state.topology_version().to_document());
    let mut hosts = RawArrayBuf::new();
    hosts.push(address.as_str());
    reply.append(cstr!("hosts"), hosts);
    reply.append(cstr!("setName"), state.options.set_name.as_str());
    reply.append(cstr!("setVersion"), SET_VERSION);
    reply.append(cstr!("secondary"), false);
    reply.append(cstr!("primary"), address.as_str());
    reply.append(cstr!("me"), address.as_str());
    reply.append(cstr!("electionId"), state.process_id);
    reply.append(cstr!("lastWrite"), last_write);
}

/// What hello says of limits and versions.
fn append_limits(reply: &mut RawDocumentBuf, client: &Client, now: UnixMillis) {
    let int = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let minutes = i32::try_from(limits::SESSION_IDLE.as_secs() / 60).unwrap_or(i32::MAX);
    reply.append(cstr!("maxBsonObjectSize"), int(limits::DOCUMENT_BYTES));
    reply.append(cstr!("maxMessageSizeBytes"), int(limits::REPORTED_MESSAGE_BYTES));
    reply.append(cstr!("maxWriteBatchSize"), int(limits::WRITE_BATCH));
    reply.append(cstr!("localTime"), DateTime::from_millis(now.0));
    reply.append(cstr!("logicalSessionTimeoutMinutes"), minutes);
    reply.append(cstr!("connectionId"), client.connection);
    reply.append(cstr!("minWireVersion"), 0);
    reply.append(cstr!("maxWireVersion"), MAX_WIRE_VERSION);
    reply.append(cstr!("readOnly"), false);
}

/// The server's address for clients: the advertised one, or the one that this client has reached.
pub fn address(state: &MongoState, client: &Client) -> String {
    match &state.options.advertised {
        Some(advertised) => advertised.clone(),
        // An IPv4 client of an IPv6 socket has dialled an IPv4 address.
        None => SocketAddr::new(client.peer.local.ip().to_canonical(), client.peer.local.port()).to_string(),
    }
}

/// The compressors of a client that the server has too, in the client's order.
fn common_compressors(names: &RawArray) -> RawArrayBuf {
    let mut common = RawArrayBuf::new();
    let mut known: Vec<Compressor> = Vec::new();
    for name in names {
        if let Ok(RawBsonRef::String(name)) = name
            && let Some(compressor) = Compressor::named(name)
            && !known.contains(&compressor)
        {
            known.push(compressor);
            common.push(name);
        }
    }
    common
}

/// The mechanisms of the user in `database.user`; `None` if there is no such user.
async fn mechanisms_of(state: &MongoState, asked: &str) -> Result<Option<Vec<Mechanism>>> {
    let (database, user) = asked
        .split_once('.')
        .ok_or_else(|| Error::bad_value("UserName must contain a '.' separated database.user pair"))?;
    if state.options.credentials.knows(user) {
        return Ok(Some(Mechanism::ALL.to_vec()));
    }
    let found = state.users.find(&state.account, database, user).await?;
    let mechanisms = |user: Arc<User>| {
        let verifiers = user.credentials.verifiers.iter();
        verifiers.map(|verifier| verifier.mechanism).collect()
    };
    Ok(found.map(mechanisms))
}

#[cfg(test)]
mod tests;
