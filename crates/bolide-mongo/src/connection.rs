//! One connection, from its first message to its end: reads a message, runs its command, sends the reply.
//!
//! Limits protect the server from clients that have not shown a key, send slowly, or do not take their replies; see [`limits`]. A client that has
//! sent its first message may be idle as long as others, whether or not it authenticates: the connections with which drivers watch the server never
//! do. When there are too many connections, those without a key end first. When the server stops, a connection that waits for its client is closed at once; a command that runs may end, and one that arrives gets the error 91.
//!
//! When the account's content is replaced by a snapshot, connections stay open: they go on with the state of the new content.
//!
//! An awaitable hello may be answered by a chain of replies (`exhaustAllowed`): each has the flag `moreToCome` and answers the previous one, until
//! the client closes the connection or the server stops.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_core::MemoryShare;
use bolide_mql::{Code, Error};
use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;

mod content;
mod progress;

use crate::client::{Client, Peer};
use crate::codes;
use crate::commands::dispatch::{self, Answer, CompleteReply, Request};
use crate::commands::table::Command;
use crate::limits;
use crate::message::{
    self, Compressed, Compressor, EXHAUST_ALLOWED, Header, MORE_TO_COME, MessageError, OpCode, OpMsg, OpQuery,
};
use crate::metrics::Metrics;
use crate::state::MongoState;
use content::{Content, compressed, flags_of};

/// Bytes that are read at once.
const READ_BYTES: usize = 8 * 1024;
/// A buffer that has become larger than this is not kept for the next message.
const KEPT_BUFFER_BYTES: usize = 2 * READ_BYTES;
/// The commands that a client may send as OP_QUERY: those with which old drivers begin a connection.
const OP_QUERY_COMMANDS: [&str; 4] = ["hello", "isMaster", "saslContinue", "saslStart"];

/// Learns what a connection does, to choose which one is ended when there are too many.
pub trait Activity: Send + Sync {
    /// It waits for a message.
    fn idle(&self);
    /// A part of a message has arrived.
    fn reading(&self);
    /// A command runs.
    fn running(&self);
    /// A reply is being sent.
    fn answering(&self);
    /// Its client has a key, or needs none.
    fn admitted(&self);
}

/// Timeouts of connections.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// For a message after its first byte, and for a reply; longer for large ones.
    pub request: Duration,
    /// Between messages.
    pub idle: Duration,
}

/// Serves a connection to its end. `states` has the state in use, and later those that take its place.
pub async fn serve<S>(
    states: watch::Receiver<Arc<MongoState>>,
    stream: S,
    peer: Peer,
    timeouts: Timeouts,
    activity: Arc<dyn Activity>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let state = states.borrow().clone();
    state.metrics.connections.add(1);
    state.metrics.connections_created.add(1);
    let _counted = Counted(state.metrics.clone());
    let client = Client::new(state.next_connection(), peer);
    if !state.options.requires_authentication {
        activity.admitted();
    }
    let mut connection = Connection {
        opened: state.monotonic().now(),
        client,
        stream,
        buffer: BytesMut::new(),
        has_sent: false,
        timeouts,
        activity,
        state,
        states,
    };
    while let Some(received) = connection.receive().await {
        if connection.handle(received).await.is_none() {
            break;
        }
    }
    // For TLS: tells the client that the end is not an attack. It may be gone already.
    let _ = connection.stream.shutdown().await;
}

/// Counts a connection until it ends.
struct Counted(Arc<Metrics>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.add(-1);
    }
}

struct Connection<S> {
    state: Arc<MongoState>,
    states: watch::Receiver<Arc<MongoState>>,
    client: Client,
    stream: S,
    /// What has arrived and was not used yet.
    buffer: BytesMut,
    opened: Instant,
    /// Whether a message has arrived.
    has_sent: bool,
    timeouts: Timeouts,
    activity: Arc<dyn Activity>,
}

/// A message that has arrived.
struct Received {
    header: Header,
    bytes: Bytes,
    /// The memory of the message.
    memory: MemoryShare,
}

/// A command to answer.
struct Question {
    message: OpMsg,
    request_id: i32,
    compressor: Option<Compressor>,
    /// The memory of the message.
    _memory: MemoryShare,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Connection<S> {
    /// Waits for a message. `None`: the connection is closed.
    async fn receive(&mut self) -> Option<Received> {
        loop {
            let header = self.receive_header().await?;
            let memory = match self.take_memory(header.length).await {
                Ok(memory) => memory,
                Err(error) => {
                    self.refuse_unread(header, &error).await?;
                    continue;
                }
            };
            let deadline = self.deadline_of_message(header.length);
            self.fill(header.length, deadline).await?;
            self.has_sent = true;
            let bytes = self.buffer.split_to(header.length).freeze();
            self.state
                .metrics
                .bytes_in
                .add(i64::try_from(header.length).unwrap_or(i64::MAX));
            self.state.metrics.requests.add(1);
            return Some(Received { header, bytes, memory });
        }
    }

    /// Waits for the header of a message, which stays in the buffer. `None`: the connection is closed.
    async fn receive_header(&mut self) -> Option<Header> {
        if self.buffer.is_empty() {
            self.activity.idle();
            if self.buffer.capacity() > KEPT_BUFFER_BYTES {
                self.buffer = BytesMut::new();
            }
            let deadline = self.deadline_of_next();
            loop {
                let state = self.state.clone();
                tokio::select! {
                    filled = self.fill(1, deadline) => {
                        filled?;
                        break;
                    }
                    () = state.stopped() => {}
                }
                drop(state);
                if !self.follow().await {
                    return None;
                }
            }
        }
        self.activity.reading();
        let deadline = self.deadline_of_message(Header::BYTES);
        self.fill(Header::BYTES, deadline).await?;
        Header::parse(&self.buffer, self.max_message_bytes()).ok()
    }

    /// Waits for the state that takes the place of the current one, if one does. Returns whether there is one: else the server stops.
    async fn follow(&mut self) -> bool {
        let monotonic = self.state.monotonic().clone();
        let until = monotonic.now() + limits::REPLACEMENT;
        while self.state.is_replaced() {
            match monotonic.timeout_at(until, self.states.changed()).await {
                Some(Ok(())) => self.state = self.states.borrow_and_update().clone(),
                // Still none: commands get the error of one that was interrupted.
                None => break,
                // The server has ended.
                Some(Err(_)) => return false,
            }
        }
        !self.state.is_stopping()
    }

    /// When a message must begin to arrive.
    fn deadline_of_next(&self) -> Instant {
        if self.has_sent {
            self.state.monotonic().now() + self.timeouts.idle
        } else {
            self.opened + limits::FIRST_MESSAGE
        }
    }

    /// When a message must have arrived.
    fn deadline_of_message(&self, bytes: usize) -> Instant {
        if self.has_sent {
            self.deadline(bytes)
        } else {
            self.opened + limits::FIRST_MESSAGE
        }
    }

    /// When so many bytes must have been sent or taken.
    fn deadline(&self, bytes: usize) -> Instant {
        let seconds = bytes / limits::SLOWEST_BYTES_PER_SECOND;
        let more = Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX));
        self.state.monotonic().now() + self.timeouts.request + more
    }

    fn max_message_bytes(&self) -> usize {
        if self.is_admitted() {
            limits::MESSAGE_BYTES
        } else {
            limits::UNAUTHENTICATED_MESSAGE_BYTES
        }
    }

    fn is_admitted(&self) -> bool {
        !self.state.options.requires_authentication || self.client.principal().is_some()
    }

    /// Reads until the buffer has this many bytes. `None`: the client is gone or too slow.
    async fn fill(&mut self, bytes: usize, deadline: Instant) -> Option<()> {
        let monotonic = self.state.monotonic().clone();
        while self.buffer.len() < bytes {
            let missing = bytes - self.buffer.len();
            self.buffer.reserve(missing.max(READ_BYTES));
            // In the middle of a message, none of it may be missing for longer than a whole short one.
            let stalled = monotonic.now() + self.timeouts.request;
            let until = if self.buffer.is_empty() {
                deadline
            } else {
                deadline.min(stalled)
            };
            let read = monotonic.timeout_at(until, self.stream.read_buf(&mut self.buffer));
            match read.await {
                Some(Ok(1..)) => {}
                _ => return None,
            }
        }
        Some(())
    }

    async fn take_memory(&self, bytes: usize) -> Result<MemoryShare, Error> {
        let memory = self.state.account.memory();
        let taken = if bytes <= limits::SMALL_MESSAGE_BYTES {
            memory.take(bytes, self.timeouts.request).await
        } else {
            memory.take_for_arriving(bytes, self.timeouts.request).await
        };
        taken.map_err(|error| codes::error(&error))
    }

    /// Reads over a message for which there is no memory, and answers with the error.
    async fn refuse_unread(&mut self, header: Header, error: &Error) -> Option<()> {
        let deadline = self.deadline_of_message(header.length);
        // The flags of an OP_MSG tell whether a reply is due.
        let head = header.length.min(Header::BYTES + 4);
        self.fill(head, deadline).await?;
        let is_msg = header.op_code == OpCode::Msg.number();
        let is_answered = !is_msg || flags_of(&self.buffer[..head]) & MORE_TO_COME == 0;
        let mut rest = header.length;
        while rest > 0 {
            self.fill(1, deadline).await?;
            let part = self.buffer.len().min(rest);
            self.buffer.advance(part);
            rest -= part;
        }
        if !is_answered {
            return Some(());
        }
        self.send_error(header.request_id, error).await
    }

    /// Answers a message. `None`: the connection must be closed.
    async fn handle(&mut self, mut received: Received) -> Option<()> {
        let request_id = received.header.request_id;
        received.memory.arrived();
        match self.read(received).await {
            Ok(Incoming::Command(question)) => self.answer(*question).await?,
            Ok(Incoming::Hello { bytes, .. }) => self.answer_query(request_id, &bytes).await?,
            Ok(Incoming::Unsupported) => return None,
            Err(refusal) => {
                if refusal.is_answered {
                    self.send_error(request_id, &refusal.error.0).await?;
                }
                return None;
            }
        }
        if self.is_admitted() {
            self.activity.admitted();
        }
        (!self.client.has_failed_too_often()).then_some(())
    }

    async fn read(&self, received: Received) -> Result<Incoming, Refusal> {
        let Received {
            header,
            bytes,
            mut memory,
        } = received;
        let (content, compressor) = match OpCode::of(header.op_code) {
            Some(OpCode::Msg) => (Content::Plain(bytes), None),
            Some(OpCode::Query) => return Ok(Incoming::Hello { bytes, _memory: memory }),
            Some(OpCode::Compressed) => {
                let compressed = Compressed::parse(header, bytes, self.max_message_bytes())?;
                let more = self.take_memory(compressed.length).await;
                memory.merge(more.map_err(MessageError)?);
                memory.arrived();
                let compressor = compressed.compressor;
                (Content::Compressed(compressed), Some(compressor))
            }
            Some(OpCode::Reply) | None => return Ok(Incoming::Unsupported),
        };
        let message = content.parse().await?;
        Ok(Incoming::Command(Box::new(Question {
            message,
            request_id: header.request_id,
            compressor,
            _memory: memory,
        })))
    }

    async fn answer(&mut self, question: Question) -> Option<()> {
        let Question {
            message,
            compressor,
            request_id: mut response_to,
            ..
        } = question;
        loop {
            let request = Request {
                message: &message,
                database: None,
            };
            let reply = self.run(request).await?;
            if message.has(MORE_TO_COME) {
                return Some(());
            }
            let repeats = reply.may_repeat && message.has(EXHAUST_ALLOWED);
            let flags = if repeats { MORE_TO_COME } else { 0 };
            let request_id = self.state.next_request_id();
            let bytes = message::op_msg(request_id, response_to, flags, &reply.body);
            let bytes = compressed(bytes, compressor).await?;
            self.send(&bytes).await?;
            if !repeats {
                return Some(());
            }
            response_to = request_id;
        }
    }

    /// Answers the first hello of a client that speaks the old form.
    async fn answer_query(&mut self, request_id: i32, bytes: &Bytes) -> Option<()> {
        let query = match OpQuery::parse(bytes) {
            Ok(query) => query,
            Err(error) => {
                self.send_reply(request_id, &dispatch::refuse(&self.state, &error.0).await)
                    .await?;
                return None;
            }
        };
        let name = query
            .command
            .iter()
            .next()
            .and_then(Result::ok)
            .map(|(name, _)| name.as_str());
        let name = name.unwrap_or_default();
        if !Command::named(name).is_some_and(|command| OP_QUERY_COMMANDS.contains(&command.name)) {
            let text = format!("Unsupported OP_QUERY command: {name}. The client driver may require an upgrade.");
            let error = Error::new(Code::UNSUPPORTED_OP_QUERY_COMMAND, text);
            return self
                .send_reply(request_id, &dispatch::refuse(&self.state, &error).await)
                .await;
        }
        let message = OpMsg::of_document(query.command);
        let request = Request {
            message: &message,
            database: Some(query.database),
        };
        let reply = self.run(request).await?;
        self.send_reply(request_id, &reply.body).await
    }

    /// Runs a command. `None`: the connection must be closed.
    async fn run(&mut self, request: Request<'_>) -> Option<CompleteReply> {
        self.activity.running();
        // If the server stops, the command gets the error that says so.
        self.follow().await;
        self.state.metrics.active.add(1);
        let gone = progress::gone(&mut self.stream, &mut self.buffer);
        let answer = dispatch::dispatch(&self.state, &self.client, request, gone).await;
        self.state.metrics.active.add(-1);
        match answer {
            Answer::Reply(reply) => Some(reply),
            Answer::Close => None,
        }
    }

    async fn send_error(&mut self, response_to: i32, error: &Error) -> Option<()> {
        let body = dispatch::refuse(&self.state, error).await;
        let bytes = message::op_msg(self.state.next_request_id(), response_to, 0, &body);
        self.send(&bytes).await
    }

    async fn send_reply(&mut self, response_to: i32, body: &bson::RawDocument) -> Option<()> {
        let bytes = message::op_reply(self.state.next_request_id(), response_to, body);
        self.send(&bytes).await
    }

    /// Sends bytes. `None`: the client is gone or too slow.
    async fn send(&mut self, bytes: &[u8]) -> Option<()> {
        self.activity.answering();
        let deadline = self.deadline(bytes.len());
        let monotonic = self.state.monotonic();
        let sent = progress::write_all(&mut self.stream, bytes, monotonic, deadline, self.timeouts.request).await;
        self.state
            .metrics
            .bytes_out
            .add(i64::try_from(bytes.len()).unwrap_or(i64::MAX));
        sent
    }
}

/// A message that could be read.
enum Incoming {
    Command(Box<Question>),
    /// In the old form.
    Hello {
        bytes: Bytes,
        _memory: MemoryShare,
    },
    /// Of a kind that servers before 5.1 had.
    Unsupported,
}

/// Why a message cannot be used; the connection is closed.
struct Refusal {
    error: MessageError,
    /// Whether the client waits for a reply.
    is_answered: bool,
}

impl From<MessageError> for Refusal {
    fn from(error: MessageError) -> Refusal {
        Refusal {
            error,
            is_answered: true,
        }
    }
}

#[cfg(test)]
mod tests;
