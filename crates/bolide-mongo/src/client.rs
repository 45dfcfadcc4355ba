//! The state of one connection: its addresses, its client's metadata, and who has authenticated.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bolide_model::RequestUnits;
use bolide_model::account_key::Access;
use bolide_mql::{Code, Error, Result};
use bson::{RawDocument, RawDocumentBuf};
use parking_lot::Mutex;

use crate::authentication::{Conversation, Credentials, Next, Principal, SaslStart, Step};
use crate::limits;

/// The ends of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// The server's address.
    pub local: SocketAddr,
    /// The client's address.
    pub remote: SocketAddr,
    /// Whether nobody else can read the connection.
    pub is_tls: bool,
}

/// See the module.
#[derive(Debug)]
pub struct Client {
    /// The number of the connection.
    pub connection: i32,
    /// Its addresses.
    pub peer: Peer,
    /// The client's address as text.
    remote: Arc<str>,
    /// What the client tells about itself in its first hello, and the name of its application in it.
    metadata: OnceLock<(RawDocumentBuf, Arc<str>)>,
    authentication: Mutex<Authentication>,
    /// Of a client without a connection: the rights of the key that it has shown elsewhere.
    key: Option<Access>,
    /// What its previous command consumed.
    last_request: Mutex<Option<RequestStatistics>>,
}

/// What a command consumed.
#[derive(Debug, Clone, Copy)]
pub struct RequestStatistics {
    /// Its name.
    pub command: &'static str,
    /// Request units.
    pub charge: RequestUnits,
    /// How long it took.
    pub duration: Duration,
}

#[derive(Debug, Default)]
struct Authentication {
    conversation: Option<(i32, Conversation)>,
    last_conversation: i32,
    failures: u32,
    principal: Option<Arc<Principal>>,
}

/// The server's message in a conversation.
#[derive(Debug)]
pub struct SaslReply {
    /// The number of the conversation.
    pub conversation: i32,
    /// Whether the client is authenticated.
    pub is_done: bool,
    /// The message.
    pub payload: Vec<u8>,
}

impl Client {
    /// A client that has just connected.
    pub fn new(connection: i32, peer: Peer) -> Client {
        Client {
            connection,
            remote: Arc::from(peer.remote.to_string()),
            peer,
            metadata: OnceLock::new(),
            authentication: Mutex::default(),
            key: None,
            last_request: Mutex::default(),
        }
    }

    /// A client without a connection, who has shown an account key elsewhere.
    pub fn of_key(number: i32, peer: Peer, access: Access) -> Client {
        Client {
            key: Some(access),
            ..Client::new(number, peer)
        }
    }

    /// The rights of the key that a client without a connection has shown; `None` of one with a connection.
    pub fn key(&self) -> Option<Access> {
        self.key
    }

    /// Keeps what a command consumed.
    pub fn note_request(&self, statistics: RequestStatistics) {
        *self.last_request.lock() = Some(statistics);
    }

    /// What the previous command of the connection consumed; `None` if there was none.
    pub fn last_request(&self) -> Option<RequestStatistics> {
        *self.last_request.lock()
    }

    /// Keeps what the client tells about itself; later values are ignored.
    ///
    /// # Errors
    /// It is too long, or was told before.
    pub fn set_metadata(&self, metadata: &RawDocument) -> Result<()> {
        if metadata.as_bytes().len() > limits::CLIENT_METADATA_BYTES {
            let text = "The client metadata document must be less then or equal to 512 bytes";
            return Err(Error::new(Code::CLIENT_METADATA_DOCUMENT_TOO_LARGE, text));
        }
        let name = application_of(metadata);
        if name.len() > limits::APPLICATION_NAME_BYTES {
            let text = "The 'client.application.name' field must be less then or equal to 128 bytes";
            return Err(Error::new(Code::CLIENT_METADATA_APP_NAME_TOO_LARGE, text));
        }
        let metadata = (metadata.to_owned(), Arc::from(name));
        self.metadata.set(metadata).map_err(|_| {
            let text = "The client metadata document may only be sent in the first hello";
            Error::new(Code::CLIENT_METADATA_CANNOT_BE_MUTATED, text)
        })
    }

    /// What the client told about itself.
    pub fn metadata(&self) -> Option<&RawDocument> {
        self.metadata.get().map(|(metadata, _)| &**metadata)
    }

    /// The name of the application; empty if it was not told.
    pub fn application(&self) -> &str {
        self.metadata.get().map_or("", |(_, name)| name)
    }

    /// The same, to keep.
    pub fn application_name(&self) -> Arc<str> {
        self.metadata.get().map(|(_, name)| name.clone()).unwrap_or_default()
    }

    /// The client's address, as text.
    pub fn remote(&self) -> Arc<str> {
        self.remote.clone()
    }

    /// Who has authenticated.
    pub fn principal(&self) -> Option<Arc<Principal>> {
        self.authentication.lock().principal.clone()
    }

    /// Whether so many authentications failed that the connection must be closed.
    pub fn has_failed_too_often(&self) -> bool {
        self.authentication.lock().failures >= limits::FAILED_AUTHENTICATIONS
    }

    /// Nobody is authenticated any more.
    pub fn log_out(&self) {
        let mut authentication = self.authentication.lock();
        authentication.principal = None;
        authentication.conversation = None;
    }

    /// Begins a conversation, instead of any earlier one.
    ///
    /// # Errors
    /// As [`Credentials::start`].
    pub fn sasl_start(&self, credentials: &Credentials, start: &SaslStart<'_>) -> Result<SaslReply> {
        let step = credentials.start(start, self.peer.is_tls);
        let mut authentication = self.authentication.lock();
        authentication.conversation = None;
        authentication.last_conversation = authentication.last_conversation.wrapping_add(1) & i32::MAX;
        let id = authentication.last_conversation;
        authentication.advance(id, step)
    }

    /// Goes on with a conversation.
    ///
    /// # Errors
    /// `ProtocolError` if there is no such conversation; as [`Credentials::proceed`].
    pub async fn sasl_continue(&self, credentials: &Credentials, id: i32, payload: &[u8]) -> Result<SaslReply> {
        let conversation = {
            let mut authentication = self.authentication.lock();
            match authentication.conversation.take() {
                Some((current, conversation)) if current == id => conversation,
                Some(_) => return Err(Error::new(Code::PROTOCOL_ERROR, "sasl: Mismatched conversation id")),
                None => return Err(Error::new(Code::PROTOCOL_ERROR, "No SASL session state found")),
            }
        };
        let step = credentials.proceed(conversation, payload).await;
        self.authentication.lock().advance(id, step)
    }
}

/// The name of the application in what a client tells about itself; empty if it does not tell it.
pub fn application_of(metadata: &RawDocument) -> &str {
    let application = metadata.get_document("application").ok();
    let name = application.and_then(|application| application.get_str("name").ok());
    name.unwrap_or_default()
}

impl Authentication {
    /// Records the result of an exchange.
    fn advance(&mut self, id: i32, step: Result<Step>) -> Result<SaslReply> {
        let step = step.inspect_err(|_| self.failures += 1)?;
        let is_done = match step.next {
            Next::Continue(conversation) => {
                self.conversation = Some((id, conversation));
                false
            }
            Next::Done(principal) => {
                self.principal = Some(Arc::new(principal));
                self.failures = 0;
                true
            }
        };
        Ok(SaslReply {
            conversation: id,
            is_done,
            payload: step.payload,
        })
    }
}
