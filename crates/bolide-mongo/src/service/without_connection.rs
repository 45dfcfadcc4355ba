//! Commands that come without a connection, as Extended JSON, from senders who have shown an account key elsewhere.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bolide_core::Account;
use bolide_model::RequestUnits;
use bolide_model::account_key::Access;
use bolide_mql::value::json::{canonical, parse_extended};
use bolide_mql::{Code, Error, Result};
use bson::{RawBsonRef, RawDocumentBuf};
use bytes::Bytes;
use futures_util::FutureExt as _;
use tokio::sync::oneshot;

use super::MongoService;
use crate::client::{Client, Peer};
use crate::commands::dispatch::{self, Answer, CompleteReply, Request};
use crate::limits;
use crate::message::OpMsg;
use crate::state::MongoState;

/// Commands that run at a time: who leaves does not end those that write, so that the number of connections does not limit them.
pub(super) const AT_A_TIME: usize = 100;
/// How long a command waits for others to end, and for memory.
const WAIT: Duration = Duration::from_secs(5);
/// Memory of a value while a command is read, at most: JSON and BSON keep it as an entry of a map each, before it becomes bytes.
const VALUE_BYTES: usize = 512;
/// Bytes of canonical Extended JSON for a byte of BSON, at most: an undefined is three bytes, and `{"$undefined":true},`. Twice, because the text grows by doubling.
const JSON_BYTES_PER_BYTE: usize = 14;

/// The reply to a command without a connection.
#[derive(Debug)]
pub struct JsonReply {
    /// Why there is no result.
    pub failure: Option<Error>,
    /// The whole reply as canonical Extended JSON.
    pub body: Vec<u8>,
    /// What the command has consumed.
    pub charge: RequestUnits,
}

impl MongoService {
    /// Runs a command on a database with the rights of an account key. `command`: Extended JSON, canonical or relaxed. What it refuses is a reply with a
    /// failure.
    ///
    /// A command that writes is carried out to its end even if the future is dropped; one that reads is ended then. Commands about a connection are
    /// refused.
    ///
    /// # Errors
    /// `Throttled`: too many run, or there is no memory for the command, or for the text of its reply; in the last case it has run.
    pub async fn run_without_connection(
        &self,
        database: String,
        command: Bytes,
        access: Access,
    ) -> bolide_model::Result<JsonReply> {
        let turn = self.turns.clone().acquire_owned();
        let monotonic = self.state().monotonic().clone();
        let turn = monotonic.timeout_at(monotonic.now() + WAIT, turn).await;
        let turn = turn.and_then(Result::ok).ok_or_else(too_many)?;
        let state = self.state();
        let (waiting, gone) = oneshot::channel::<()>();
        let work = async move {
            let _turn = turn;
            run(&state, database, command, access, gone.map(|_| ())).await
        };
        let done = tokio::spawn(work).await;
        // Until here: when the sender leaves, this future is dropped, and with it what the command listens to.
        drop(waiting);
        done.unwrap_or_else(|_| Err(bolide_model::Error::internal("the command has not ended")))
    }
}

fn too_many() -> bolide_model::Error {
    let kind = bolide_model::ErrorKind::Throttled { retry_after: WAIT };
    bolide_model::Error::new(
        kind,
        format!("too many commands without a connection run. limit={AT_A_TIME}"),
    )
}

/// Reads a command, runs it, and writes its reply. All of it has its memory until it is done, whoever waits for it.
async fn run(
    state: &Arc<MongoState>,
    database: String,
    command: Bytes,
    access: Access,
    gone: impl Future<Output = ()> + Send,
) -> bolide_model::Result<JsonReply> {
    let refused = |error| JsonReply {
        failure: Some(error),
        body: Vec::new(),
        charge: RequestUnits(0.0),
    };
    let values = 1 + command.iter().filter(|byte| b",[{".contains(byte)).count();
    let memory = state.account.memory();
    let mut share = memory.take(command.len() + values * VALUE_BYTES, WAIT).await?;
    let command = match read(command).await {
        Ok(command) => command,
        Err(error) => return Ok(refused(error)),
    };
    share.shrink_to(2 * command.as_bytes().len());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, state.options.host.port));
    let peer = Peer {
        local: address,
        remote: address,
        is_tls: false,
    };
    let client = Client::of_key(state.next_connection(), peer, access);
    let message = OpMsg::of_document(&command);
    let request = Request {
        message: &message,
        database: Some(&database),
    };
    let answer = dispatch::dispatch(state, &client, request, gone).await;
    let charge = client.last_request().map(|request| request.charge);
    match answer {
        Answer::Reply(reply) => Ok(JsonReply {
            failure: error_of(&reply),
            body: write(&state.account, reply).await?,
            charge: charge.unwrap_or(RequestUnits(0.0)),
        }),
        Answer::Close => {
            let error = Error::new(Code::INTERRUPTED, "a fail point closes the connection");
            Ok(refused(error))
        }
    }
}

/// Reads a command; a long one on a thread of its own.
async fn read(text: Bytes) -> Result<RawDocumentBuf> {
    let command = match text.len() < limits::LONG_MESSAGE_BYTES {
        true => parse_extended(&text),
        false => {
            let read = tokio::task::spawn_blocking(move || parse_extended(&text)).await;
            read.map_err(|_| Error::new(Code::INTERNAL_ERROR, "the command cannot be read"))?
        }
    }?;
    match command.get("$db") {
        Ok(None) => Ok(command),
        _ => Err(Error::bad_value("the path names the database: $db is not for this")),
    }
}

/// Writes a reply; a long one on a thread of its own.
async fn write(account: &Account, reply: CompleteReply) -> bolide_model::Result<Vec<u8>> {
    let text = |reply: &CompleteReply| canonical(RawBsonRef::Document(&reply.body)).into_bytes();
    let bytes = reply.body.as_bytes().len();
    let needed = bytes.saturating_mul(JSON_BYTES_PER_BYTE);
    let needed = needed.min(account.memory().longest_share());
    let _share = account.memory().take(needed, WAIT).await?;
    if bytes < limits::LONG_MESSAGE_BYTES {
        return Ok(text(&reply));
    }
    let written = tokio::task::spawn_blocking(move || text(&reply)).await;
    written.map_err(|_| bolide_model::Error::internal("the reply cannot be written"))
}

/// The error in a reply.
fn error_of(reply: &CompleteReply) -> Option<Error> {
    let body = &reply.body;
    if body.get_f64("ok").is_ok_and(|ok| ok == 1.0) {
        return None;
    }
    let code = body.get_i32("code").unwrap_or(Code::INTERNAL_ERROR.0);
    Some(Error::new(code, body.get_str("errmsg").unwrap_or_default()))
}

#[cfg(test)]
mod tests;
