//! One connection: its protocol by the first bytes, then requests until it ends.
//!
//!   16            a TLS handshake; HTTP/1.1 or HTTP/2 as ALPN settles
//!   `PRI`         HTTP/2 without TLS, by a client that knows beforehand (the Rust SDK does so)
//!   else          HTTP/1.1

use std::any::Any;
use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bolide_cosmos::{CosmosService, Listener, Payload, Refused, RequestBody as _, fallback};
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt as _, StreamExt as _};
use http::{Request, Response};
use http_body_util::{Either, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::body::{Drains, Unread};
use crate::clock::ServerClock;
use crate::error_rewriter::ErrorRewriter;
use crate::fair::Fair;
use crate::shutdown::Shutdown;
use crate::slots::Slots;
use crate::streams::{InParts, OpenStreams, Stream, Streams};
use crate::timeouts::{Pulse, SHORT_PATIENCE, Seen, Watched};

/// First byte of a TLS handshake; no HTTP request begins with it.
const TLS_HANDSHAKE: u8 = 0x16;
/// How an HTTP/2 connection begins; no verb of ours does.
const HTTP2_PREFACE: &[u8] = b"PRI";
/// Rest between looks at a connection whose first bytes come one by one: at first, and at most.
const TRICKLE: Duration = Duration::from_millis(1);
const SLOW_TRICKLE: Duration = Duration::from_millis(500);
/// Above the service's own limit on headers, so that nearly all oversized ones get an answer in the protocol's shape.
const HEAD_BYTES: usize = 128 * 1024;
/// Most time between looks at what a connection is doing.
const LONGEST_LOOK: Duration = Duration::from_secs(1);
/// Connections that may hold a large head at a time.
const LARGE_HEADS: usize = 1024;
/// Concurrent requests of one HTTP/2 connection.
const STREAMS: u32 = 128;
/// What a client may send of bodies before anybody has asked for them: on one stream, and on one connection.
const STREAM_WINDOW_BYTES: u32 = 32 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 64 * 1024;
/// What is held of an answer that is ready to be sent, besides what counts as memory of the request.
const SEND_BUFFER_BYTES: usize = 64 * 1024;
/// Headers of one HTTP/2 request.
const HEADER_LIST_BYTES: u32 = 16 * 1024;
/// Streams that a client has reset and we have not seen yet, and that we have reset; beyond, the connection ends (rapid reset,
/// CVE-2023-44487).
const PENDING_RESETS: usize = 20;
const OWN_RESETS: usize = 1024;

/// What one client may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at a time, of all clients together.
    pub connections: usize,
    /// Requests over HTTP/2 at a time, of all clients together.
    pub streams: usize,
    /// Time for a request's head, for the next part of its body, and for taking the next part of an answer.
    pub request: Duration,
    /// Time between requests.
    pub idle: Duration,
}

impl Limits {
    /// Time between looks at what a connection is doing.
    fn look(&self) -> Duration {
        (self.request / 4).clamp(Duration::from_millis(50), LONGEST_LOOK)
    }

    /// Time for taking the next part of an answer.
    fn answer(&self, is_memory_short: bool) -> Duration {
        if is_memory_short {
            self.request.min(SHORT_PATIENCE)
        } else {
            self.request
        }
    }
}

/// What all connections share.
pub struct Shared {
    clock: ServerClock,
    /// Absent until the store is open.
    service: OnceLock<CosmosService>,
    tls: TlsAcceptor,
    limits: Limits,
    large_heads: Arc<Semaphore>,
    drains: Drains,
    streams: Arc<OpenStreams>,
    slots: Arc<Slots>,
}

impl Shared {
    /// Connections that are answered "starting".
    pub fn new(tls: TlsAcceptor, limits: Limits, clock: ServerClock) -> Shared {
        Shared {
            service: OnceLock::new(),
            tls,
            limits,
            large_heads: Arc::new(Semaphore::new(LARGE_HEADS)),
            drains: Drains::new(),
            streams: OpenStreams::new(limits.streams),
            slots: Arc::new(Slots::new(limits.connections, clock.clone())),
            clock,
        }
    }

    /// From now on requests are answered by `service`.
    pub fn start(&self, service: CosmosService) {
        let is_first = self.service.set(service).is_ok();
        debug_assert!(is_first, "a server starts once");
    }

    /// Whether requests wait for memory.
    fn is_memory_short(&self) -> bool {
        self.service.get().is_some_and(CosmosService::is_memory_short)
    }

    /// The clock by which connections are timed.
    pub fn clock(&self) -> &ServerClock {
        &self.clock
    }

    /// Places for connections.
    pub fn slots(&self) -> Arc<Slots> {
        self.slots.clone()
    }
}

type Body = Either<Full<Bytes>, StreamBody<BoxStream<'static, bolide_model::Result<Frame<Bytes>>>>>;

/// Serves a connection to its end. `pulse` tells what it is doing.
pub async fn serve(stream: TcpStream, shared: Arc<Shared>, shutdown: Shutdown, pulse: Arc<Pulse>) {
    let Ok(local) = stream.local_addr() else { return };
    // Answers are written whole; waiting for more would only delay them.
    let _ = stream.set_nodelay(true);
    let protocol = tokio::select! {
        protocol = timeout(shared.limits.request, protocol(&stream)) => protocol,
        () = shutdown.begun() => return,
    };
    let listener = Listener { is_tls: false, local };
    match protocol {
        Ok(Some(Protocol::Tls)) => serve_tls(stream, local, shared, shutdown, pulse).await,
        Ok(Some(Protocol::Http1)) => serve_http1(stream, listener, shared, shutdown, pulse).await,
        Ok(Some(Protocol::Http2)) => serve_http2(stream, listener, shared, shutdown, pulse).await,
        Ok(None) | Err(_) => {}
    }
}

/// What a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Tls,
    Http1,
    Http2,
}

impl Protocol {
    /// Tells by the first bytes of a connection; `None` while they could be more than one.
    fn of(first: &[u8]) -> Option<Protocol> {
        match first {
            [] => None,
            [TLS_HANDSHAKE, ..] => Some(Protocol::Tls),
            first if first.starts_with(HTTP2_PREFACE) => Some(Protocol::Http2),
            first if HTTP2_PREFACE.starts_with(first) => None,
            _ => Some(Protocol::Http1),
        }
    }
}

/// Looks at the first bytes and leaves them for whoever serves the connection; `None` if it ends before.
async fn protocol(stream: &TcpStream) -> Option<Protocol> {
    let mut first = [0; HTTP2_PREFACE.len()];
    let mut rest = TRICKLE;
    loop {
        let seen = stream.peek(&mut first).await.ok().filter(|seen| *seen > 0)?;
        if let Some(protocol) = Protocol::of(&first[..seen]) {
            return Some(protocol);
        }
        // Readiness is no help here: the bytes already seen keep the stream ready.
        tokio::time::sleep(rest).await;
        // Thousands of clients who say no more must not keep the processors busy.
        rest = (2 * rest).min(SLOW_TRICKLE);
    }
}

async fn serve_tls(stream: TcpStream, local: SocketAddr, shared: Arc<Shared>, shutdown: Shutdown, pulse: Arc<Pulse>) {
    let Ok(Ok(stream)) = timeout(shared.limits.request, shared.tls.accept(stream)).await else {
        return;
    };
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let listener = Listener { is_tls: true, local };
    if is_http2 {
        serve_http2(stream, listener, shared, shutdown, pulse).await;
    } else {
        serve_http1(stream, listener, shared, shutdown, pulse).await;
    }
}

async fn serve_http1<S>(stream: S, listener: Listener, shared: Arc<Shared>, shutdown: Shutdown, pulse: Arc<Pulse>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = shared.limits;
    let all = shared.clone();
    let watched = Watched::new(Fair::new(stream), pulse.clone(), shared.large_heads.clone());
    let io = TokioIo::new(ErrorRewriter::new(watched, pulse.clone()));
    let watched = pulse.clone();
    let service = service_fn(move |request| {
        let (shared, pulse) = (shared.clone(), watched.clone());
        async move {
            pulse.begin();
            let patience = shared.limits.request;
            let request = request.map(|body| Unread::new(body, pulse.clone(), patience, shared.drains.clone(), None));
            let response = respond(&shared, request, listener).await;
            pulse.answer();
            Ok::<_, Infallible>(response)
        }
    });
    // Time limits are the pulse's: hyper's own would end resting connections as fast as slow ones.
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(io, service);
    let mut connection = pin!(connection);
    let mut stopping = pin!(shutdown.begun().fuse());
    let mut seen = Seen::opened(pulse.clock().now());
    let mut check = tokio::time::interval(limits.look());
    loop {
        tokio::select! {
            biased;
            _ = connection.as_mut() => return,
            () = &mut stopping => connection.as_mut().graceful_shutdown(),
            _ = check.tick() => {
                let request = if pulse.is_answering() { limits.answer(all.is_memory_short()) } else { limits.request };
                if pulse.is_overdue(&mut seen, pulse.clock().now(), request, limits.idle) {
                    return;
                }
            }
        }
    }
}

async fn serve_http2<S>(stream: S, listener: Listener, shared: Arc<Shared>, shutdown: Shutdown, pulse: Arc<Pulse>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = shared.limits;
    let all = shared.clone();
    let streams = Streams::new(pulse.clone(), shared.streams.clone());
    let opened = streams.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        answer_stream(request, listener, shared.clone(), pulse.clone(), opened.clone())
    });
    // Many requests share a connection, so each answer is watched by itself; pings find out whether the client is still there.
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .max_header_list_size(HEADER_LIST_BYTES)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .max_local_error_reset_streams(OWN_RESETS)
        .keep_alive_interval(limits.request)
        .keep_alive_timeout(limits.request)
        .serve_connection(TokioIo::new(Fair::new(stream)), service);
    let mut connection = pin!(connection);
    let mut stopping = pin!(shutdown.begun().fuse());
    let mut check = tokio::time::interval(limits.look());
    let mut goes_away_since = None;
    loop {
        tokio::select! {
            biased;
            _ = connection.as_mut() => return,
            () = &mut stopping => connection.as_mut().graceful_shutdown(),
            () = streams.must_end() => return,
            _ = check.tick() => {
                let now = all.clock.now();
                if streams.is_overdue(now, limits.answer(all.is_memory_short()))
                    || goes_away_since.is_some_and(|since| now.duration_since(since) > limits.request)
                {
                    return;
                }
                if goes_away_since.is_none() && streams.is_resting_too_long(now, limits.request, limits.idle) {
                    connection.as_mut().graceful_shutdown();
                    goes_away_since = Some(now);
                }
            }
        }
    }
}

/// Answers a request of a connection that many share, or resets its stream.
async fn answer_stream(
    request: Request<Incoming>,
    listener: Listener,
    shared: Arc<Shared>,
    pulse: Arc<Pulse>,
    streams: Arc<Streams>,
) -> Result<Response<InParts<Body>>, Reset> {
    if streams.only_refuses() {
        streams.reset();
        return Err(Reset::TooManyRefusals);
    }
    let Some(stream) = streams.open() else {
        streams.reset();
        return Err(Reset::TooManyRequests(h2::Reason::REFUSED_STREAM.into()));
    };
    let patience = shared.limits.request;
    let request = request.map(|body| Unread::new(body, pulse, patience, shared.drains.clone(), Some(stream.clone())));
    // In a box, so that thousands of requests that were sent at once take little while they wait to be looked at.
    let response = Box::pin(respond(&shared, request, listener)).await;
    let answer = answer_on(stream, response);
    if answer.is_err() {
        streams.reset();
    }
    answer
}

/// Why a stream of HTTP/2 is reset.
#[derive(Debug)]
enum Reset {
    /// Too many refusals lie there for somebody who has not shown a key and does not take them.
    TooManyRefusals,
    /// There are too many requests on all connections. This one was not begun, as the reason tells the client, and may be sent again.
    TooManyRequests(h2::Error),
}

impl fmt::Display for Reset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reset::TooManyRefusals => f.write_str("too many refusals were not taken"),
            Reset::TooManyRequests(_) => f.write_str("too many requests are open"),
        }
    }
}

impl std::error::Error for Reset {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Reset::TooManyRefusals => None,
            Reset::TooManyRequests(reason) => Some(reason),
        }
    }
}

/// Sends an answer on a stream of HTTP/2; an error resets the stream.
fn answer_on(stream: Arc<Stream>, response: Response<Body>) -> Result<Response<InParts<Body>>, Reset> {
    if stream.is_one_refused_too_many() {
        return Err(Reset::TooManyRefusals);
    }
    Ok(response.map(|body| InParts::new(body, stream)))
}

async fn respond(shared: &Shared, request: Request<Unread>, listener: Listener) -> Response<Body> {
    let Some(service) = shared.service.get() else {
        let response = fallback::starting(&request);
        request.into_body().dismiss(Refused::Unknown);
        return to_body(response);
    };
    // A bug that one request meets must not end the others.
    let handled = AssertUnwindSafe(service.handle(request, listener)).catch_unwind().await;
    to_body(handled.unwrap_or_else(|panic| {
        tracing::error!(message = panic_message(panic.as_ref()), "a request panicked");
        fallback::panicked()
    }))
}

fn to_body(response: Response<Payload>) -> Response<Body> {
    response.map(|payload| match payload {
        Payload::Whole(bytes) => Either::Left(Full::new(bytes)),
        Payload::Pages(pages) => Either::Right(StreamBody::new(pages.map(|page| page.map(Frame::data)).boxed())),
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
}

#[cfg(test)]
mod tests;
