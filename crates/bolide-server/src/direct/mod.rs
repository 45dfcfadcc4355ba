//! Connections in direct mode: frames of the binary protocol, after TLS, on the port of HTTPS.
//!
//! ```text
//!   context request ──▶ context response, once
//!   head ──▶ request ──admitted──▶ its payload is read ──▶ … ──▶ response
//!   head ──▶ …                                  meanwhile; responses are sent as they are made
//! ```
//!
//! A payload is read when its request was admitted, as a body over HTTP, and dropped otherwise. Frames after it wait for that. The requests of all
//! connections are counted together with those of HTTP/2 ([`crate::streams`]), and their heads, where they are large, with those of HTTP/1.1.
//!
//! Source: rntbd.md §2, §3.5.

mod payload;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bolide_cosmos::direct::{self, RefusedFrame};
use bolide_cosmos::{BodyError, Listener, fallback};
use bolide_model::limits;
use bolide_rntbd::context::{self, ContextRequest, ContextResponse};
use bolide_rntbd::frame::{ActivityId, Head, LENGTH_BYTES, head_rest};
use bolide_rntbd::table::{operation, resource};
use bytes::Bytes;
use futures_util::poll;
use http::HeaderValue;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::{Mutex, Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::payload::{PART_BYTES, Part, Payload};
use crate::connection::Shared;
use crate::responding::{refuse_frame, respond_to_frame, respond_with};
use crate::shutdown::Shutdown;
use crate::streams::{Stream, Streams};
use crate::timeouts::Activity;

/// The longest head of a context request.
const CONTEXT_BYTES: usize = 1024;
/// The longest head of another request: more than the headers of a request over HTTP may have; and the longest one from a client that has shown no key, and
/// without a permit.
const HEAD_BYTES: usize = 96 * 1024;
const SMALL_HEAD_BYTES: usize = 16 * 1024;
/// Nearly all heads are shorter.
const USUAL_HEAD_BYTES: usize = 2 * 1024;
/// A payload up to this size is read with its head, if the client has shown a key in any request, and sent with the head of its response.
const SMALL_PAYLOAD_BYTES: usize = 4 * 1024;
/// Requests of a connection at the same time. Clients open another connection at 30.
const UNDER_WAY: u32 = 64;
/// How many of those one counts for while its sender has shown no key.
const WEIGHT_OF_UNKNOWN: u32 = 8;
/// The longest payload that is read and dropped. The connection of a longer one ends.
const DROPPED_BYTES: usize = 4 * limits::ITEM_BYTES;
/// The longest time between checks of an unused connection.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Bytes of a response that must be taken within the timeout of one.
const SENT_BYTES: usize = 256 * 1024;

/// Serves a connection to its end.
pub async fn serve<S>(stream: S, listener: Listener, shared: Arc<Shared>, shutdown: Shutdown, activity: Arc<Activity>)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (reading, writing) = tokio::io::split(stream);
    let streams = Streams::new(activity.clone(), shared.streams());
    let connection = Arc::new(Connection {
        writing: Mutex::new(Some(writing)),
        has_failed: Notify::new(),
        permits: Arc::new(Semaphore::new(UNDER_WAY as usize)),
        streams,
        shared,
        listener,
        activity,
    });
    // Dropped with this future, and with it what is under way: as with connections of HTTP.
    let mut requests = JoinSet::new();
    let work = async {
        let ended = connection.clone().run(reading, &mut requests, shutdown).await;
        if ended.is_ok() {
            // All are answered, and the answers sent.
            while requests.join_next().await.is_some() {}
        }
    };
    tokio::select! {
        () = work => {}
        () = connection.has_failed.notified() => {}
        // For others.
        () = connection.streams.must_end() => {}
    }
    requests.shutdown().await;
    if let Some(mut writing) = connection.writing.lock().await.take() {
        let _ = timeout(connection.shared.limits().request, writing.shutdown()).await;
    }
}

struct Connection<S> {
    /// `None` after a response could not be sent as a whole.
    writing: Mutex<Option<WriteHalf<S>>>,
    /// The same, for whoever reads.
    has_failed: Notify,
    /// For each request until its response is sent.
    permits: Arc<Semaphore>,
    streams: Arc<Streams>,
    shared: Arc<Shared>,
    listener: Listener,
    activity: Arc<Activity>,
}

impl<S: AsyncRead + AsyncWrite + Send + 'static> Connection<S> {
    async fn run(
        self: Arc<Self>,
        mut reading: ReadHalf<S>,
        requests: &mut JoinSet<()>,
        shutdown: Shutdown,
    ) -> io::Result<()> {
        let version = tokio::select! {
            version = self.negotiate(&mut reading) => version?,
            () = shutdown.begun() => return Ok(()),
        };
        let Some(version) = version else { return Ok(()) };
        loop {
            let first = tokio::select! {
                first = self.first_byte(&mut reading) => first?,
                () = shutdown.begun() => return Ok(()),
            };
            let Some(first) = first else { return Ok(()) };
            let is_known = self.activity.is_admitted();
            let most = if is_known { HEAD_BYTES } else { SMALL_HEAD_BYTES };
            let head = tokio::select! {
                head = self.head(&mut reading, first, most) => head?,
                () = shutdown.begun(), if self.streams.is_unused() => return Ok(()),
            };
            let weight = if is_known { 1 } else { WEIGHT_OF_UNKNOWN };
            let permit = self.permits.clone().acquire_many_owned(weight);
            let permit = permit.await.map_err(io::Error::other)?;
            while requests.try_join_next().is_some() {}
            self.clone()
                .begin(head, &version, permit, &mut reading, requests)
                .await?;
        }
    }

    /// Answers the first frame; returns the version of the API. `None`: it was refused.
    async fn negotiate(&self, reading: &mut ReadHalf<S>) -> io::Result<Option<HeaderValue>> {
        let first = self.in_time(reading.read_u8()).await?;
        let (head, _) = self.head(reading, first, CONTEXT_BYTES).await?;
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

    /// The first byte of the next frame; `None` at the end of the connection, or when it was unused for too long.
    async fn first_byte(&self, reading: &mut ReadHalf<S>) -> io::Result<Option<u8>> {
        let limits = self.shared.limits();
        loop {
            let patience = match self.activity.is_admitted() {
                true => limits.idle,
                false => limits.request,
            };
            if self
                .streams
                .is_idle_too_long(self.shared.clock().now(), limits.request, patience)
            {
                return Ok(None);
            }
            // Short, because what it depends on changes: whether a key was shown, and whether requests are under way.
            let read = timeout(patience.min(CHECK_INTERVAL), reading.read_u8()).await;
            match read {
                Ok(Ok(byte)) => return Ok(Some(byte)),
                Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                Ok(Err(error)) => return Err(error),
                Err(_) => {}
            }
        }
    }

    /// The rest of a head after its first byte, with a permit if it is a large one.
    async fn head(
        &self,
        reading: &mut ReadHalf<S>,
        first: u8,
        most: usize,
    ) -> io::Result<(Head, Option<OwnedSemaphorePermit>)> {
        let read = async {
            let mut length = [first, 0, 0, 0];
            reading.read_exact(&mut length[1..]).await?;
            let rest = head_rest(length, most).map_err(io::Error::other)?;
            let permit = match rest > SMALL_HEAD_BYTES {
                true => Some(
                    self.shared
                        .large_heads()
                        .acquire_owned()
                        .await
                        .map_err(io::Error::other)?,
                ),
                false => None,
            };
            let mut bytes = Vec::new();
            if rest <= USUAL_HEAD_BYTES {
                bytes.resize(rest, 0);
                reading.read_exact(&mut bytes).await?;
            } else {
                // Memory as bytes arrive: a length alone takes none.
                let limit = u64::try_from(rest).unwrap_or(u64::MAX);
                (&mut *reading).take(limit).read_to_end(&mut bytes).await?;
            }
            match bytes.len() == rest {
                true => Ok((Head::read(Bytes::from(bytes)).map_err(io::Error::other)?, permit)),
                false => Err(io::ErrorKind::UnexpectedEof.into()),
            }
        };
        self.in_time(read).await
    }

    /// Begins a request, and reads or drops its payload.
    async fn begin(
        self: Arc<Self>,
        (head, large): (Head, Option<OwnedSemaphorePermit>),
        version: &HeaderValue,
        permit: OwnedSemaphorePermit,
        reading: &mut ReadHalf<S>,
        requests: &mut JoinSet<()>,
    ) -> io::Result<()> {
        let direct::Parsed {
            transport_request_id: number,
            has_payload,
            request,
        } = direct::to_request(&head, version).map_err(io::Error::other)?;
        let mut payload = [0; LENGTH_BYTES];
        if has_payload {
            self.in_time(reading.read_exact(&mut payload)).await?;
        }
        let bytes = usize::try_from(u32::from_le_bytes(payload)).unwrap_or(usize::MAX);
        let activity_id = head.activity_id;
        let Some(stream) = self.streams.open() else {
            self.refuse_one_too_many(activity_id, number).await?;
            return self.drop_payload(reading, bytes).await;
        };
        let request = request.map_err(|why| RefusedFrame {
            why,
            operation: head.operation(),
            activity_id,
            transport_request_id: number,
        });
        let is_point = is_point(head.operation());
        drop(head);
        let small = self.small_payload(reading, bytes, &stream).await?;
        let is_here = bytes == small.len();
        let (ask, asked) = oneshot::channel();
        let body = Payload {
            bytes,
            small,
            ask,
            activity: self.activity.clone(),
            stream: stream.clone(),
        };
        let (connection, answered) = (self.clone(), stream.clone());
        let mut answer = Box::pin(async move {
            connection.answer(request, activity_id, body, &answered).await;
            drop((answered, large, permit));
        });
        // Most of these are answered at once. Handing one to another thread would cost as much as carrying it out.
        if is_here && is_point && poll!(answer.as_mut()).is_ready() {
            return Ok(());
        }
        requests.spawn(answer);
        if is_here {
            return Ok(());
        }
        match asked.await {
            Ok(give) => self.give_payload(reading, bytes, give, &stream).await,
            // It was refused.
            Err(_) => self.drop_payload(reading, bytes).await,
        }
    }

    /// Answers a request that is not begun. Nothing is read meanwhile, so that there is one such answer at a time.
    async fn refuse_one_too_many(&self, activity_id: ActivityId, number: u32) -> io::Result<()> {
        let frame = respond_with(fallback::too_many_requests(), activity_id, number);
        let (head, payload) = frame.ok_or_else(too_long)?;
        self.send(&head, &payload).await
    }

    /// Reads a payload that may be read before its request is admitted; nothing of others.
    async fn small_payload(&self, reading: &mut ReadHalf<S>, bytes: usize, stream: &Stream) -> io::Result<Bytes> {
        if bytes == 0 || bytes > SMALL_PAYLOAD_BYTES || !self.activity.is_admitted() {
            return Ok(Bytes::new());
        }
        let mut read = vec![0; bytes];
        stream.await_client();
        self.in_time(reading.read_exact(&mut read)).await?;
        stream.work();
        Ok(read.into())
    }

    /// Reads a payload part by part, for a request that waits for it.
    async fn give_payload(
        &self,
        reading: &mut ReadHalf<S>,
        bytes: usize,
        give: mpsc::Sender<Part>,
        stream: &Stream,
    ) -> io::Result<()> {
        let mut left = bytes;
        while left > 0 {
            let mut part = vec![0; left.min(PART_BYTES)];
            stream.await_client();
            let read = self.in_time(reading.read_exact(&mut part)).await;
            let given = match &read {
                Ok(_) => Ok(Bytes::from(part)),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(BodyError::TooSlow),
                Err(_) => Err(BodyError::Broken),
            };
            left -= left.min(PART_BYTES);
            stream.progress();
            stream.work();
            let is_wanted = give.send(given).await.is_ok();
            read?;
            if !is_wanted {
                return self.drop_payload(reading, left).await;
            }
        }
        Ok(())
    }

    async fn answer(
        &self,
        request: Result<direct::FrameRequest, RefusedFrame>,
        activity_id: ActivityId,
        body: Payload,
        stream: &Stream,
    ) {
        let serving = self.shared.serving();
        let frame = match request {
            Ok(request) => respond_to_frame(serving, request, activity_id, body, self.listener).await,
            Err(refused) => {
                drop(body);
                refuse_frame(serving, refused, self.activity.is_admitted()).await
            }
        };
        stream.await_client();
        // Of errors the connection learns by what it notes itself.
        let _ = match frame {
            Some((head, payload)) => self.send(&head, &payload).await,
            None => Err(too_long()),
        };
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

    /// Sends a frame as a whole, or ends the connection: nothing may follow a part of one.
    async fn send(&self, head: &[u8], payload: &[u8]) -> io::Result<()> {
        let mut writing = self.writing.lock().await;
        let Some(mut stream) = writing.take() else {
            return Err(too_slow());
        };
        let sent = self.send_to(&mut stream, head, payload).await;
        match sent {
            Ok(()) => *writing = Some(stream),
            Err(_) => self.has_failed.notify_one(),
        }
        sent
    }

    async fn send_to(&self, stream: &mut WriteHalf<S>, head: &[u8], payload: &[u8]) -> io::Result<()> {
        let together;
        let (head, payload) = match payload.len() {
            1..=SMALL_PAYLOAD_BYTES => {
                together = [head, payload].concat();
                (&together[..], &[][..])
            }
            _ => (head, payload),
        };
        for part in [head].into_iter().chain(payload.chunks(SENT_BYTES)) {
            within(self.shared.answer_timeout(), stream.write_all(part)).await?;
        }
        within(self.shared.answer_timeout(), stream.flush()).await
    }

    async fn in_time<T>(&self, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        within(self.shared.limits().request, work).await
    }
}

async fn within<T>(patience: Duration, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let done = timeout(patience, work).await;
    done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Whether a request is for one item.
fn is_point((resource, operation): (u16, u16)) -> bool {
    use operation::{CREATE, DELETE, PATCH, READ, REPLACE, UPSERT};
    resource == resource::DOCUMENT && matches!(operation, CREATE | DELETE | PATCH | READ | REPLACE | UPSERT)
}

fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

fn too_slow() -> io::Error {
    io::Error::other("the client takes no responses")
}

fn too_long() -> io::Error {
    io::Error::other("a frame is too long")
}
