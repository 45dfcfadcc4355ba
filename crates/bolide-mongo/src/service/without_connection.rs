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

/// Bytes of canonical Extended JSON for one byte of BSON, at most in what people store: an int is an element of seven bytes, and `{"$numberInt":"7"},`.
const JSON_BYTES_PER_BYTE: usize = 4;
/// How long a reply waits for the memory for its text.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(5);

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

/// A reply, and what its command has consumed.
type Answered = (CompleteReply, RequestUnits);

impl MongoService {
    /// Runs a command on a database with the rights of an account key. `command`: Extended JSON, canonical or relaxed. What it refuses is a reply with a
    /// failure.
    ///
    /// A command that writes is carried out to its end even if the future is dropped; one that reads is ended then. Commands about a connection are
    /// refused.
    ///
    /// # Errors
    /// No memory for the text of the reply; the command has run then.
    pub async fn run_without_connection(
        &self,
        database: String,
        command: Bytes,
        access: Access,
    ) -> bolide_model::Result<JsonReply> {
        let state = self.state();
        let refused = |error| JsonReply {
            failure: Some(error),
            body: Vec::new(),
            charge: RequestUnits(0.0),
        };
        let command = match read(command).await {
            Ok(command) => command,
            Err(error) => return Ok(refused(error)),
        };
        let (reply, charge) = match run(&state, database, command, access).await {
            Ok(answered) => answered,
            Err(error) => return Ok(refused(error)),
        };
        let failure = error_of(&reply);
        Ok(JsonReply {
            failure,
            body: write(&state.account, reply).await?,
            charge,
        })
    }
}

async fn run(state: &Arc<MongoState>, database: String, command: RawDocumentBuf, access: Access) -> Result<Answered> {
    let (waiting, gone) = oneshot::channel::<()>();
    let state = state.clone();
    let work = async move {
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
        let answer = dispatch::dispatch(&state, &client, request, gone.map(|_| ())).await;
        let charge = client.last_request().map(|request| request.charge);
        (answer, charge.unwrap_or(RequestUnits(0.0)))
    };
    let done = tokio::spawn(work).await;
    // Until here: when the sender leaves, this future is dropped, and with it what the command listens to.
    drop(waiting);
    match done {
        Ok((Answer::Reply(reply), charge)) => Ok((reply, charge)),
        Ok((Answer::Close, _)) => Err(Error::new(Code::INTERRUPTED, "a fail point closes the connection")),
        Err(_) => Err(Error::new(Code::INTERNAL_ERROR, "the command has not ended")),
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
    if bytes < limits::LONG_MESSAGE_BYTES {
        return Ok(text(&reply));
    }
    let needed = bytes.saturating_mul(JSON_BYTES_PER_BYTE);
    let needed = needed.min(account.memory().longest_share());
    let _share = account.memory().take(needed, MEMORY_TIMEOUT).await?;
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
