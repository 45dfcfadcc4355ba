//! The first frame each way: the client says which versions it speaks, the server who it is. No other request is sent before the answer.
//!
//! Source: rntbd.md §3.3.

use bytes::Bytes;

use crate::frame::{ActivityId, Head, Outgoing};
use crate::table::{self, operation, resource};
use crate::token::{Kind, Malformed, TokenWriter};

/// The version of the protocol, the only one.
pub const PROTOCOL_VERSION: u32 = 1;

/// What a client says first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextRequest {
    /// See [`ActivityId`].
    pub activity_id: ActivityId,
    /// The version of the frames.
    pub protocol_version: u32,
    /// The version of the API, which counts for all requests of the connection.
    pub client_version: String,
    /// The client's name for itself.
    pub user_agent: String,
}

/// Whether the first eight bytes of a connection begin a context request: a length that is small, and two types that are 0. Those of HTTP are letters.
pub fn begins(first: [u8; 8]) -> bool {
    let [_, _, l2, l3, types @ ..] = first;
    [l2, l3] == [0, 0] && types == [0, 0, 0, 0]
}

impl ContextRequest {
    /// Reads the head of the first frame.
    ///
    /// # Errors
    /// [`Malformed::Missing`] also for a frame that is no context request.
    pub fn of(head: &Head) -> Result<ContextRequest, Malformed> {
        if head.operation() != (resource::CONNECTION, operation::CONNECTION) {
            return Err(Malformed::Missing(table::context_request::PROTOCOL_VERSION));
        }
        let tokens = &head.tokens;
        let version = tokens.required(table::context_request::PROTOCOL_VERSION)?;
        let text = |id| -> Result<String, Malformed> { Ok(tokens.required(id)?.text()?.to_owned()) };
        Ok(ContextRequest {
            activity_id: head.activity_id,
            protocol_version: u32::try_from(version.whole()?).map_err(|_| Malformed::Other(version.id))?,
            client_version: text(table::context_request::CLIENT_VERSION)?,
            user_agent: text(table::context_request::USER_AGENT)?,
        })
    }

    /// The frame, as clients send it. `None`: a text is too long.
    pub fn write(&self) -> Option<Vec<u8>> {
        let mut tokens = TokenWriter::default();
        tokens.u_long(table::context_request::PROTOCOL_VERSION, self.protocol_version);
        let texts = [
            (table::context_request::CLIENT_VERSION, &self.client_version),
            (table::context_request::USER_AGENT, &self.user_agent),
        ];
        for (id, text) in texts {
            tokens.counted(id, Kind::SmallString, text.as_bytes()).then_some(())?;
        }
        Outgoing::request(resource::CONNECTION, operation::CONNECTION, self.activity_id, &tokens).write()
    }
}

/// What the server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextResponse<'a> {
    /// The name of the server.
    pub server_agent: &'a str,
    /// Its version, which clients show as that of each response.
    pub server_version: &'a str,
    /// How long a connection may be unused.
    pub idle_seconds: u32,
    /// How long it may be without an authorized request.
    pub unauthenticated_seconds: u32,
}

impl ContextResponse<'_> {
    /// The frame that accepts a request.
    pub fn write(&self, to: &ContextRequest) -> Option<Vec<u8>> {
        use table::context_response as id;
        let mut tokens = TokenWriter::default();
        tokens.u_long(id::PROTOCOL_VERSION, PROTOCOL_VERSION);
        let texts = [
            (id::CLIENT_VERSION, to.client_version.as_str()),
            (id::SERVER_AGENT, self.server_agent),
            (id::SERVER_VERSION, self.server_version),
        ];
        for (id, text) in texts {
            tokens.counted(id, Kind::SmallString, text.as_bytes()).then_some(())?;
        }
        tokens.u_long(id::IDLE_TIMEOUT_SECONDS, self.idle_seconds);
        tokens.u_long(id::UNAUTHENTICATED_TIMEOUT_SECONDS, self.unauthenticated_seconds);
        Outgoing::response(200, to.activity_id, &tokens).write()
    }
}

/// The frame that refuses a context request, with the payload that clients need then. The connection ends after it.
pub fn refusal(status: u32, activity_id: ActivityId, error: &Bytes) -> Option<Vec<u8>> {
    let tokens = TokenWriter::default();
    let mut bytes = Outgoing::response(status, activity_id, &tokens)
        .with_payload(error.len())
        .write()?;
    bytes.extend_from_slice(error);
    Some(bytes)
}

#[cfg(test)]
mod tests;
