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
//! Requests for one item are carried out by the task that reads the connection, as far as they wait for nothing, and their responses are sent when no further
//! frame has come. All others have tasks of their own.
//!
//! Source: rntbd.md §2, §3.5.

mod negotiation;
mod payload;
mod reader;
mod writer;

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use bolide_cosmos::direct::{self, RefusedFrame};
use bolide_cosmos::{BodyError, Listener, fallback};
use bolide_rntbd::frame::{Head, LENGTH_BYTES, head_rest};
use bolide_rntbd::table::{operation, resource};
use bytes::Bytes;
use futures_util::{FutureExt as _, poll};
use http::HeaderValue;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, copy, sink};
use tokio::sync::{Mutex, Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::payload::{Content, Part, Payload};
use self::reader::{Arriving, Reader};
use self::writer::Writer;
use crate::body::{BodyTimeouts, DRAINED_BYTES, DRAINED_BYTES_OF_UNKNOWN};
use crate::connection::Shared;
use crate::rare::Rare;
use crate::responding::{refuse_frame, respond_to_frame};
use crate::shutdown::Shutdown;
use crate::streams::{Stream, Streams};
use crate::timeouts::Activity;

/// The longest head of a context request.
const CONTEXT_BYTES: usize = 1024;
/// The longest head of another request: more than the headers of a request over HTTP may have; and the longest one without a permit.
const HEAD_BYTES: usize = 96 * 1024;
const SMALL_HEAD_BYTES: usize = 16 * 1024;
/// Nearly all heads are shorter.
const USUAL_HEAD_BYTES: usize = 2 * 1024;
/// A payload up to this size is read with its head, if the client has shown a key in any request.
const SMALL_PAYLOAD_BYTES: usize = 4 * 1024;
/// Requests of a connection at the same time. Clients open another connection at 30.
const UNDER_WAY: u32 = 64;
/// How many of those one counts for while its sender has shown no key.
const WEIGHT_OF_UNKNOWN: u32 = 8;

/// Serves a connection to its end.
pub async fn serve<S>(stream: S, listener: Listener, shared: Arc<Shared>, shutdown: Shutdown, activity: Arc<Activity>)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (reading, writing) = tokio::io::split(stream);
    let connection = Arc::new(Connection {
        writing: Mutex::new(Writer::new(writing)),
        has_failed: Notify::new(),
        permits: Arc::new(Semaphore::new(UNDER_WAY as usize)),
        streams: Streams::new(activity.clone(), shared.streams()),
        shared,
        listener,
        activity,
    });
    // Dropped with this future, and with it what is under way: as with connections of HTTP.
    let mut requests = JoinSet::new();
    let work = async {
        let ended = connection.clone().run(reading, &mut requests, shutdown).await;
        // What was made of the last frames.
        connection.flush().await;
        if ended.is_ok() {
            // All are answered, and the answers sent.
            while requests.join_next().await.is_some() {}
        }
    };
    connection.supervise(work).await;
    requests.shutdown().await;
    let mut writing = connection.writing.lock().await;
    let _ = timeout(connection.shared.limits().request, writing.shutdown()).await;
}

struct Connection<S> {
    writing: Mutex<Writer<S>>,
    /// Notified when a response cannot be sent.
    has_failed: Notify,
    /// For each request until its response is sent.
    permits: Arc<Semaphore>,
    streams: Arc<Streams>,
    shared: Arc<Shared>,
    listener: Listener,
    activity: Arc<Activity>,
}

/// A length, and how many of its bytes have come.
type FirstBytes = ([u8; LENGTH_BYTES], usize);

/// Whether a connection goes on after a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    GoOn,
    /// What is under way is answered, and the connection ends.
    End,
}

impl<S: AsyncRead + AsyncWrite + Send + 'static> Connection<S> {
    /// Runs the work on a connection to its end, or until it must end: for others, because its client takes no responses, or because it is not used.
    async fn supervise(&self, work: impl Future<Output = ()>) {
        let limits = self.shared.limits();
        let mut work = pin!(work);
        let mut failed = pin!(self.has_failed.notified());
        let mut failed = Rare::new(|cx| failed.as_mut().poll(cx));
        let mut must_end = pin!(self.streams.must_end());
        let mut must_end = Rare::new(|cx| must_end.as_mut().poll(cx));
        let mut checks = tokio::time::interval(limits.look());
        let mut check = Rare::new(|cx| checks.poll_tick(cx));
        loop {
            tokio::select! {
                biased;
                () = work.as_mut() => return,
                () = failed.happens() => return,
                () = must_end.happens() => return,
                _ = check.happens() => {
                    let now = self.shared.clock().now();
                    let idle = if self.activity.is_admitted() { limits.idle } else { limits.request };
                    if self.streams.is_overdue(now, self.shared.answer_timeout())
                        || self.streams.is_idle_too_long(now, limits.request, idle)
                    {
                        return;
                    }
                }
            }
        }
    }

    /// # Errors
    /// The connection ends at once.
    async fn run(
        self: Arc<Self>,
        reading: tokio::io::ReadHalf<S>,
        requests: &mut JoinSet<()>,
        shutdown: Shutdown,
    ) -> io::Result<()> {
        let mut reading = Reader::new(reading);
        let mut stopping = pin!(shutdown.begun().fuse());
        let mut stopping = Rare::new(|cx| stopping.as_mut().poll(cx));
        let version = tokio::select! {
            version = self.negotiate(&mut reading) => version?,
            () = stopping.happens() => return Ok(()),
        };
        let Some(version) = version else { return Ok(()) };
        loop {
            if poll!(pin!(stopping.happens())).is_ready() {
                return Ok(());
            }
            let first = tokio::select! {
                biased;
                first = self.first_bytes(&mut reading) => first?,
                () = stopping.happens() => return Ok(()),
            };
            let head = tokio::select! {
                biased;
                head = self.head(&mut reading, first, HEAD_BYTES) => head?,
                () = stopping.happens() => return Ok(()),
            };
            let permit = self.permit(&mut reading).await?;
            while requests.try_join_next().is_some() {}
            let then = self.clone().begin(head, &version, permit, &mut reading, requests);
            if then.await? == Then::End {
                return Ok(());
            }
        }
    }

    /// Answers the first frame; returns the version of the API. `None`: it was refused.
    async fn negotiate(&self, reading: &mut Reader<S>) -> io::Result<Option<HeaderValue>> {
        let first = self.in_time(self.first_bytes(reading)).await?;
        let head = self.head(reading, first, CONTEXT_BYTES).await?;
        let (answer, version) = negotiation::answer(&head, self.shared.limits());
        let answer = answer.map(|frame| (frame, Bytes::new()));
        self.send(answer, &AtomicBool::new(false)).await;
        Ok(version)
    }

    /// The first bytes of the next frame, one at least. What was made for the last ones is sent before they are waited for.
    async fn first_bytes(&self, reading: &mut Reader<S>) -> io::Result<FirstBytes> {
        let mut length = [0; LENGTH_BYTES];
        let there = poll!(pin!(reading.read(&mut length)));
        let bytes = match there {
            Poll::Ready(read) => read?,
            Poll::Pending => {
                self.flush().await;
                reading.read(&mut length).await?
            }
        };
        match bytes {
            0 => Err(gone()),
            bytes => Ok((length, bytes)),
        }
    }

    /// The rest of a head after its first bytes.
    async fn head(&self, reading: &mut Reader<S>, (mut length, there): FirstBytes, most: usize) -> io::Result<Head> {
        let read = async {
            reading.read_exact(&mut length[there..]).await?;
            let rest = head_rest(length, most).map_err(io::Error::other)?;
            let mut bytes = Vec::new();
            if rest <= USUAL_HEAD_BYTES {
                bytes.resize(rest, 0);
                reading.read_exact(&mut bytes).await?;
            } else {
                let permit = (rest > SMALL_HEAD_BYTES).then(|| self.shared.large_heads().try_acquire_owned());
                let _permit = permit.transpose().map_err(io::Error::other)?;
                // Memory as bytes arrive: a length alone takes none.
                let limit = u64::try_from(rest).unwrap_or(u64::MAX);
                (&mut *reading).take(limit).read_to_end(&mut bytes).await?;
            }
            match bytes.len() == rest {
                true => Head::read(Bytes::from(bytes)).map_err(io::Error::other),
                false => Err(io::ErrorKind::UnexpectedEof.into()),
            }
        };
        self.arrives(read).await
    }

    /// Waits until another request may be under way, or the client has left.
    async fn permit(&self, reading: &mut Reader<S>) -> io::Result<OwnedSemaphorePermit> {
        let weight = if self.activity.is_admitted() {
            1
        } else {
            WEIGHT_OF_UNKNOWN
        };
        if let Ok(permit) = self.permits.clone().try_acquire_many_owned(weight) {
            return Ok(permit);
        }
        self.flush().await;
        tokio::select! {
            permit = self.permits.clone().acquire_many_owned(weight) => permit.map_err(io::Error::other),
            left = reading.left() => Err(left),
        }
    }

    /// Begins a request, and reads or drops its payload.
    async fn begin(
        self: Arc<Self>,
        head: Head,
        version: &HeaderValue,
        permit: OwnedSemaphorePermit,
        reading: &mut Reader<S>,
        requests: &mut JoinSet<()>,
    ) -> io::Result<Then> {
        let direct::Parsed {
            reply_to,
            has_payload,
            request,
        } = direct::to_request(&head, version).map_err(io::Error::other)?;
        let bytes = match has_payload {
            true => self.payload_length(reading).await?,
            false => 0,
        };
        let Some(stream) = self.streams.open() else {
            // Nothing is read meanwhile, so that there is one such answer at a time.
            let frame = direct::to_frame(fallback::too_many_requests(), reply_to);
            self.send(frame, &AtomicBool::new(false)).await;
            return self.drop_payload(reading, bytes).await;
        };
        let is_point = is_point(head.operation());
        drop(head);
        let here = match self.small_payload(reading, bytes, &stream).await {
            // The frames after it cannot be found any more.
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(Then::End),
            here => here?,
        };
        let (content, asked) = match here {
            Some(all) => (Content::Here(all), None),
            None => {
                let (ask, asked) = oneshot::channel();
                (Content::Coming { bytes, ask }, Some(asked))
            }
        };
        let body = Payload {
            content,
            activity: self.activity.clone(),
            stream: stream.clone(),
        };
        let (connection, answered) = (self.clone(), stream.clone());
        let is_first = Arc::new(AtomicBool::new(asked.is_none() && is_point));
        let is_polled_here = is_first.clone();
        let mut answer = Box::pin(async move {
            connection.answer(request, body, &answered, &is_polled_here).await;
            drop((answered, permit));
        });
        // Most of these are answered at once. Handing one to another thread would cost as much as carrying it out.
        if is_first.load(Ordering::Relaxed) && poll!(answer.as_mut()).is_ready() {
            return Ok(Then::GoOn);
        }
        is_first.store(false, Ordering::Relaxed);
        requests.spawn(answer);
        match asked {
            Some(asked) => self.payload(reading, bytes, asked, &stream).await,
            None => Ok(Then::GoOn),
        }
    }

    /// Reads a payload when it is asked for, and drops one that is not wanted.
    async fn payload(
        &self,
        reading: &mut Reader<S>,
        bytes: usize,
        asked: oneshot::Receiver<mpsc::Sender<Part>>,
        stream: &Stream,
    ) -> io::Result<Then> {
        self.flush().await;
        let asked = tokio::select! {
            asked = asked => asked,
            left = reading.left() => return Err(left),
        };
        match asked {
            Ok(give) => self.give_payload(reading, bytes, give, stream).await,
            // It was refused.
            Err(_) => {
                stream.await_client();
                self.drop_payload(reading, bytes).await
            }
        }
    }

    /// The bytes of the payload that follows.
    async fn payload_length(&self, reading: &mut Reader<S>) -> io::Result<usize> {
        let mut length = [0; LENGTH_BYTES];
        self.arrives(reading.read_exact(&mut length)).await?;
        Ok(usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX))
    }

    /// Reads a payload that may be read before its request is admitted. `None`: it may not.
    async fn small_payload(&self, reading: &mut Reader<S>, bytes: usize, stream: &Stream) -> io::Result<Option<Bytes>> {
        if bytes == 0 {
            return Ok(Some(Bytes::new()));
        }
        if bytes > SMALL_PAYLOAD_BYTES || !self.activity.is_admitted() {
            return Ok(None);
        }
        let mut read = vec![0; bytes];
        stream.await_client();
        self.arrives(reading.read_exact(&mut read)).await?;
        stream.work();
        Ok(Some(read.into()))
    }

    /// Reads a payload part by part, for a request that waits for it.
    async fn give_payload(
        &self,
        reading: &mut Reader<S>,
        bytes: usize,
        give: mpsc::Sender<Part>,
        stream: &Stream,
    ) -> io::Result<Then> {
        let clock = self.shared.clock().monotonic();
        let mut timeouts = BodyTimeouts::begin(self.shared.limits().request, clock);
        let mut arriving = Arriving::new(reading, bytes);
        loop {
            stream.await_client();
            let part = match timeouts.next(&mut arriving, || self.shared.is_memory_short()).await {
                Ok(Some(part)) => part,
                Ok(None) => return Ok(Then::GoOn),
                Err(why) => {
                    // The frames after it cannot be found any more.
                    let end = if why == BodyError::TooSlow {
                        Ok(Then::End)
                    } else {
                        Err(gone())
                    };
                    stream.work();
                    let _ = give.send(Err(why)).await;
                    return end;
                }
            };
            if timeouts.arrived(bytes - arriving.left()) {
                stream.progress();
            }
            stream.work();
            if give.send(Ok(part)).await.is_err() {
                stream.await_client();
                let left = arriving.left();
                return self.drop_payload(reading, left).await;
            }
            if arriving.left() == 0 {
                return Ok(Then::GoOn);
            }
            timeouts.wait_ended();
        }
    }

    /// `is_polled_here`: the task that reads the connection runs this, and sends the response.
    async fn answer(
        &self,
        request: Result<direct::FrameRequest, RefusedFrame>,
        body: Payload,
        stream: &Stream,
        is_polled_here: &AtomicBool,
    ) {
        let serving = self.shared.serving();
        let frame = match request {
            Ok(request) => respond_to_frame(serving, request, body, self.listener).await,
            Err(refused) => {
                let is_known = self.activity.is_admitted();
                if !is_known && !stream.refuse() {
                    stream.end_connection();
                }
                drop(body);
                refuse_frame(serving, refused, is_known).await
            }
        };
        stream.await_client();
        self.send(frame, is_polled_here).await;
    }

    /// Reads bytes that nobody wants, so that the frames after them are found, as far as HTTP does.
    async fn drop_payload(&self, reading: &mut Reader<S>, bytes: usize) -> io::Result<Then> {
        let most = match self.activity.is_admitted() {
            true => DRAINED_BYTES,
            false => DRAINED_BYTES_OF_UNKNOWN,
        };
        if bytes > most {
            return Ok(Then::End);
        }
        let length = u64::try_from(bytes).unwrap_or(u64::MAX);
        let (mut unwanted, mut nowhere) = (reading.take(length), sink());
        match self.in_time(copy(&mut unwanted, &mut nowhere)).await {
            Ok(dropped) if dropped == length => Ok(Then::GoOn),
            Ok(_) => Err(gone()),
            Err(_) => Ok(Then::End),
        }
    }

    /// Sends a frame as a whole, or ends the connection: nothing may follow a part of one. `is_later`: the task that reads the connection sends it.
    async fn send(&self, frame: Option<(Vec<u8>, Bytes)>, is_later: &AtomicBool) {
        let Some((head, payload)) = frame else {
            // It is longer than a frame can be.
            return self.has_failed.notify_one();
        };
        let mut writing = self.writing.lock().await;
        let added = writing.add(&head, &payload, &self.streams).await;
        let sent = match added {
            // Asked now, with the lock: that task may have handed this one over, and will not look again.
            Ok(()) if !is_later.load(Ordering::Relaxed) => writing.flush(&self.streams).await,
            added => added,
        };
        if sent.is_err() {
            self.has_failed.notify_one();
        }
    }

    /// Sends what was left for later.
    async fn flush(&self) {
        if self.writing.lock().await.flush(&self.streams).await.is_err() {
            self.has_failed.notify_one();
        }
    }

    /// Waits for bytes of the client. What was left for later is sent before, unless they are there.
    async fn arrives<T>(&self, read: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let mut read = pin!(read);
        if let Poll::Ready(read) = poll!(read.as_mut()) {
            return read;
        }
        self.flush().await;
        self.in_time(read).await
    }

    async fn in_time<T>(&self, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let done = timeout(self.shared.limits().request, work).await;
        done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Whether a request is for one item.
fn is_point((resource, operation): (u16, u16)) -> bool {
    use operation::{CREATE, DELETE, PATCH, READ, REPLACE, UPSERT};
    resource == resource::DOCUMENT && matches!(operation, CREATE | DELETE | PATCH | READ | REPLACE | UPSERT)
}

fn gone() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}
