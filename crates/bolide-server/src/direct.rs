//! Connections in direct mode: frames of the binary protocol, after TLS, on the port of HTTPS.
//!
//! ```text
//!   context request ──▶ context response, once
//!   head ──▶ request ──admitted──▶ its payload is read ──▶ … ──▶ response
//!   head ──▶ …                                  meanwhile; responses are sent as they are made
//! ```
//!
//! A payload is read when its request was admitted, as a body over HTTP, and dropped otherwise. Frames after it wait for that.
//!
//! Source: rntbd.md §2, §3.5.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bolide_cosmos::direct::{self, Refusal};
use bolide_cosmos::{BodyError, Counted, Listener, Received, Refused, RequestBody};
use bolide_model::limits;
use bolide_rntbd::context::{self, ContextRequest, ContextResponse};
use bolide_rntbd::frame::{ActivityId, Head, LENGTH_BYTES, head_rest};
use bytes::Bytes;
use futures_util::{Stream, stream};
use http::HeaderValue;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::{Mutex, Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;

use crate::connection::Shared;
use crate::responding::{respond_to_frame, respond_with};
use crate::shutdown::Shutdown;
use crate::timeouts::Activity;

/// The longest head of a context request.
const CONTEXT_BYTES: usize = 1024;
/// The longest head of another request: more than the headers of a request over HTTP may have.
const HEAD_BYTES: usize = 96 * 1024;
/// Requests of a connection at the same time. Clients open another connection at 30.
const UNDER_WAY: usize = 64;
/// The longest payload that is read and dropped. The connection of a longer one ends.
const DROPPED_BYTES: usize = 4 * limits::ITEM_BYTES;
/// Bytes that are dropped at a time.
const PART_BYTES: usize = 16 * 1024;

/// Serves a connection to its end.
pub async fn serve<S>(stream: S, listener: Listener, shared: Arc<Shared>, shutdown: Shutdown, activity: Arc<Activity>)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (reading, writing) = tokio::io::split(stream);
    let connection = Arc::new(Connection {
        writing: Mutex::new(writing),
        has_failed: Notify::new(),
        permits: Arc::new(Semaphore::new(UNDER_WAY)),
        shared,
        listener,
        activity,
    });
    // How it ended is of no use to anybody: the client sees it.
    let _ = connection.clone().run(reading, shutdown).await;
    let mut writing = connection.writing.lock().await;
    let _ = timeout(connection.shared.limits().request, writing.shutdown()).await;
}

struct Connection<S> {
    writing: Mutex<WriteHalf<S>>,
    /// A response could not be sent.
    has_failed: Notify,
    /// One for each request until its response is sent.
    permits: Arc<Semaphore>,
    shared: Arc<Shared>,
    listener: Listener,
    activity: Arc<Activity>,
}

impl<S: AsyncRead + AsyncWrite + Send + 'static> Connection<S> {
    async fn run(self: Arc<Self>, mut reading: ReadHalf<S>, shutdown: Shutdown) -> io::Result<()> {
        let Some(version) = self.negotiate(&mut reading).await? else {
            return Ok(());
        };
        loop {
            self.rest();
            let length = tokio::select! {
                length = self.next_length(&mut reading) => length?,
                () = shutdown.begun() => break,
                () = self.has_failed.notified() => return Ok(()),
            };
            let Some(length) = length else { break };
            let head = self.head(&mut reading, length, HEAD_BYTES).await?;
            let permit = self.permits.clone().acquire_owned().await.map_err(io::Error::other)?;
            self.activity.begin();
            self.begin(head, &version, permit, &mut reading).await?;
        }
        // All are answered, and the answers sent.
        let _ = self.permits.acquire_many(UNDER_WAY as u32).await;
        Ok(())
    }

    /// Answers the first frame; returns the version of the API. `None`: it was refused.
    async fn negotiate(&self, reading: &mut ReadHalf<S>) -> io::Result<Option<HeaderValue>> {
        let Some(length) = self.in_time(read_length(reading)).await? else {
            return Ok(None);
        };
        let head = self.head(reading, length, CONTEXT_BYTES).await?;
        let request = ContextRequest::of(&head).map_err(|error| error.to_string());
        let version = request.and_then(|request| {
            let version = HeaderValue::from_str(&request.client_version).map_err(|error| error.to_string())?;
            match request.protocol_version {
                context::PROTOCOL_VERSION => Ok((request, version)),
                other => Err(format!("version {other} of the frames is not served")),
            }
        });
        let (answer, version) = match version {
            Ok((request, version)) => {
                let limits = self.shared.limits();
                let response = ContextResponse {
                    server_agent: "bolide",
                    server_version: env!("CARGO_PKG_VERSION"),
                    idle_seconds: seconds(limits.idle),
                    unauthenticated_seconds: seconds(limits.request),
                };
                (response.write(&request), Some(version))
            }
            Err(why) => {
                let error = direct::error_body("BadRequest", &why);
                (context::refusal(400, head.activity_id, &error), None)
            }
        };
        let answer = answer.ok_or_else(too_long)?;
        self.send(&answer, &[]).await?;
        Ok(version)
    }

    /// The length of the next head; `None` at the end of the connection, or when it was unused for too long.
    async fn next_length(&self, reading: &mut ReadHalf<S>) -> io::Result<Option<[u8; LENGTH_BYTES]>> {
        let limits = self.shared.limits();
        let patience = if self.activity.is_admitted() {
            limits.idle
        } else {
            limits.request
        };
        loop {
            match timeout(patience, read_length(reading)).await {
                Ok(length) => return length,
                // Requests are under way: the client waits for them.
                Err(_) if self.permits.available_permits() < UNDER_WAY => {}
                Err(_) => return Ok(None),
            }
        }
    }

    async fn head(&self, reading: &mut ReadHalf<S>, length: [u8; LENGTH_BYTES], most: usize) -> io::Result<Head> {
        let rest = head_rest(length, most).map_err(io::Error::other)?;
        let mut bytes = vec![0; rest];
        self.in_time(reading.read_exact(&mut bytes)).await?;
        Head::read(Bytes::from(bytes)).map_err(io::Error::other)
    }

    /// Begins a request, and reads or drops its payload.
    async fn begin(
        self: &Arc<Self>,
        head: Head,
        version: &HeaderValue,
        permit: OwnedSemaphorePermit,
        reading: &mut ReadHalf<S>,
    ) -> io::Result<()> {
        let (number, has_payload, request) = direct::to_request(&head, version).map_err(io::Error::other)?;
        let payload = match has_payload {
            true => self
                .in_time(read_length(reading))
                .await?
                .ok_or(io::ErrorKind::UnexpectedEof)?,
            false => [0; LENGTH_BYTES],
        };
        let bytes = usize::try_from(u32::from_le_bytes(payload)).unwrap_or(usize::MAX);
        let (ask, asked) = oneshot::channel();
        let body = Payload {
            bytes,
            ask,
            activity: self.activity.clone(),
        };
        let (connection, activity_id) = (self.clone(), head.activity_id);
        tokio::spawn(async move {
            connection.answer(request, number, activity_id, body).await;
            drop(permit);
            connection.rest();
        });
        if bytes == 0 {
            return Ok(());
        }
        match asked.await {
            Ok(give) => {
                let mut payload = vec![0; bytes];
                let read = self.in_time(reading.read_exact(&mut payload)).await;
                let given = match &read {
                    Ok(_) => Ok(payload.into()),
                    Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(BodyError::TooSlow),
                    Err(_) => Err(BodyError::Broken),
                };
                // Nobody may wait for it any more.
                let _ = give.send(given);
                read.map(|_| ())
            }
            // It was refused.
            Err(_) => self.drop_payload(reading, bytes).await,
        }
    }

    async fn answer(
        &self,
        request: Result<direct::FrameRequest, Refusal>,
        number: u32,
        activity_id: ActivityId,
        body: Payload,
    ) {
        let frame = match request {
            Ok(request) => respond_to_frame(self.shared.serving(), request, activity_id, body, self.listener).await,
            Err(Refusal(why)) => {
                drop(body);
                respond_with(direct::refusal(&why), activity_id, number)
            }
        };
        let sent = match frame {
            Some((head, payload)) => self.send(&head, &payload).await,
            None => Err(too_long()),
        };
        if sent.is_err() {
            self.has_failed.notify_one();
        }
    }

    /// Reads bytes that nobody wants, so that the frames after them are found.
    async fn drop_payload(&self, reading: &mut ReadHalf<S>, bytes: usize) -> io::Result<()> {
        if bytes > DROPPED_BYTES {
            return Err(too_long());
        }
        let mut buffer = vec![0; bytes.min(PART_BYTES)];
        let mut left = bytes;
        while left > 0 {
            let part = left.min(PART_BYTES);
            self.in_time(reading.read_exact(&mut buffer[..part])).await?;
            left -= part;
        }
        Ok(())
    }

    async fn send(&self, head: &[u8], payload: &[u8]) -> io::Result<()> {
        let mut writing = self.writing.lock().await;
        let write = async {
            writing.write_all(head).await?;
            writing.write_all(payload).await?;
            writing.flush().await
        };
        self.in_time(write).await
    }

    /// No request is under way.
    fn rest(&self) {
        if self.permits.available_permits() == UNDER_WAY {
            self.activity.idle();
        }
    }

    async fn in_time<T>(&self, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let done = timeout(self.shared.limits().request, work).await;
        done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Reads a length; `None` at the end of the connection.
async fn read_length<R: AsyncRead + Unpin>(reading: &mut R) -> io::Result<Option<[u8; LENGTH_BYTES]>> {
    let mut length = [0; LENGTH_BYTES];
    match reading.read_exact(&mut length).await {
        Ok(_) => Ok(Some(length)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

fn too_long() -> io::Error {
    io::Error::other("a frame is too long")
}

/// The payload of a frame that has not been read yet. Dropped: nobody wants it.
struct Payload {
    bytes: usize,
    /// Asks the connection for it.
    ask: oneshot::Sender<oneshot::Sender<Result<Bytes, BodyError>>>,
    activity: Arc<Activity>,
}

impl RequestBody for Payload {
    fn declared_bytes(&self) -> Option<u64> {
        u64::try_from(self.bytes).ok()
    }

    async fn read(self, limit: usize, memory: Counted<'_>) -> Result<Received, BodyError> {
        self.activity.admit();
        if self.bytes == 0 {
            return Ok(Received::default());
        }
        if self.bytes > limit {
            return Err(BodyError::TooLarge {
                bytes: self.bytes,
                limit,
            });
        }
        let mut share = None;
        memory.expect(&mut share, self.bytes, true).await?;
        let (give, given) = oneshot::channel();
        self.ask.send(give).map_err(|_| BodyError::Broken)?;
        let bytes = given.await.map_err(|_| BodyError::Broken)??;
        Ok(Received { bytes, share })
    }

    fn parts(self, _: Counted<'_>) -> impl Stream<Item = Result<Bytes, BodyError>> + Send {
        // Nothing that a frame can ask for is read part by part.
        stream::iter([Err(BodyError::Broken)])
    }

    fn dismiss(self, _: Refused) -> bool {
        true
    }
}
