//! One connection: its protocol by the first bytes, then requests until it ends.
//!
//!   16            a TLS handshake; HTTP/1.1 or HTTP/2 as ALPN settles
//!   `PRI`         HTTP/2 without TLS, by a client that knows beforehand (the Rust SDK does so)
//!   else          HTTP/1.1

use std::any::Any;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bolide_cosmos::{CosmosService, Listener, Payload, stand_in};
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
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::body::{self, BodyError};
use crate::patience::{Pulse, Seen, Watched};
use crate::shutdown::Shutdown;
use crate::unreadable::Worded;

/// First byte of a TLS handshake; no HTTP request begins with it.
const TLS_HANDSHAKE: u8 = 0x16;
/// How an HTTP/2 connection begins; no verb of ours does.
const HTTP2_PREFACE: &[u8] = b"PRI";
/// Rest between looks at a connection whose first bytes come one by one.
const TRICKLE: Duration = Duration::from_millis(1);
/// Above the service's own limit on headers, so that nearly all oversized ones get an answer in the protocol's shape.
const HEAD_BYTES: usize = 256 * 1024;
/// Concurrent requests of one HTTP/2 connection.
const STREAMS: u32 = 256;

/// What one client may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at a time, of all clients together.
    pub connections: usize,
    /// Time for a request's head, for the next part of its body, and for taking the next part of an answer.
    pub request: Duration,
    /// Time between requests.
    pub idle: Duration,
}

/// What all connections share.
pub struct Shared {
    /// Absent until the store is open.
    service: OnceLock<CosmosService>,
    tls: TlsAcceptor,
    limits: Limits,
}

impl Shared {
    /// Connections that are answered "starting".
    pub fn new(tls: TlsAcceptor, limits: Limits) -> Shared {
        Shared {
            service: OnceLock::new(),
            tls,
            limits,
        }
    }

    /// From now on requests are answered by `service`.
    pub fn start(&self, service: CosmosService) {
        let is_first = self.service.set(service).is_ok();
        debug_assert!(is_first, "a server starts once");
    }

    /// What one client may take.
    pub fn limits(&self) -> Limits {
        self.limits
    }
}

type Body = Either<Full<Bytes>, StreamBody<BoxStream<'static, bolide_model::Result<Frame<Bytes>>>>>;

/// Serves a connection to its end.
pub async fn serve(stream: TcpStream, shared: Arc<Shared>, shutdown: Shutdown) {
    let Ok(local) = stream.local_addr() else { return };
    // Answers are written whole; waiting for more would only delay them.
    let _ = stream.set_nodelay(true);
    let protocol = tokio::select! {
        protocol = timeout(shared.limits.request, protocol(&stream)) => protocol,
        () = shutdown.begun() => return,
    };
    let listener = Listener { is_tls: false, local };
    match protocol {
        Ok(Some(Protocol::Tls)) => serve_tls(stream, local, shared, shutdown).await,
        Ok(Some(Protocol::Http1)) => serve_http1(stream, listener, shared, shutdown).await,
        Ok(Some(Protocol::Http2)) => serve_http2(stream, listener, shared, shutdown).await,
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
    loop {
        let seen = stream.peek(&mut first).await.ok().filter(|seen| *seen > 0)?;
        if let Some(protocol) = Protocol::of(&first[..seen]) {
            return Some(protocol);
        }
        // Readiness is no help here: the bytes already seen keep the stream ready.
        tokio::time::sleep(TRICKLE).await;
    }
}

async fn serve_tls(stream: TcpStream, local: SocketAddr, shared: Arc<Shared>, shutdown: Shutdown) {
    let Ok(Ok(stream)) = timeout(shared.limits.request, shared.tls.accept(stream)).await else {
        return;
    };
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let listener = Listener { is_tls: true, local };
    if is_http2 {
        serve_http2(stream, listener, shared, shutdown).await;
    } else {
        serve_http1(stream, listener, shared, shutdown).await;
    }
}

async fn serve_http1<S>(stream: S, listener: Listener, shared: Arc<Shared>, shutdown: Shutdown)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = shared.limits;
    let pulse = Pulse::new();
    let io = TokioIo::new(Worded::new(Watched::new(stream, pulse.clone()), pulse.clone()));
    let watched = pulse.clone();
    let service = service_fn(move |request| {
        let (shared, pulse) = (shared.clone(), watched.clone());
        async move {
            pulse.begin();
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
    let mut seen = Seen::opened(Instant::now());
    let mut check = tokio::time::interval((limits.request / 4).max(Duration::from_millis(50)));
    loop {
        tokio::select! {
            biased;
            _ = connection.as_mut() => return,
            () = &mut stopping => connection.as_mut().graceful_shutdown(),
            _ = check.tick() => if pulse.is_overdue(&mut seen, Instant::now(), limits.request, limits.idle) {
                return;
            },
        }
    }
}

async fn serve_http2<S>(stream: S, listener: Listener, shared: Arc<Shared>, shutdown: Shutdown)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = shared.limits;
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(respond(&shared, request, listener).await) }
    });
    // Many requests share a connection, so there is no pulse; pings find out whether the client is still there.
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .keep_alive_interval(limits.request)
        .keep_alive_timeout(limits.request)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let mut stopping = pin!(shutdown.begun().fuse());
    loop {
        tokio::select! {
            biased;
            _ = connection.as_mut() => return,
            () = &mut stopping => connection.as_mut().graceful_shutdown(),
        }
    }
}

async fn respond(shared: &Shared, request: Request<Incoming>, listener: Listener) -> Response<Body> {
    let Some(service) = shared.service.get() else {
        return to_body(stand_in::starting(&request));
    };
    let (head, body) = request.into_parts();
    let body = match body::read(body, service.body_limit(&head), shared.limits.request).await {
        Ok(body) => body,
        Err(BodyError::TooSlow) => return to_body(stand_in::too_slow()),
        Err(BodyError::Broken) => return to_body(stand_in::broken_body()),
    };
    let request = Request::from_parts(head, body);
    // A bug that one request meets must not end the others.
    let handled = AssertUnwindSafe(service.handle(request, listener)).catch_unwind().await;
    to_body(handled.unwrap_or_else(|panic| {
        tracing::error!(message = panic_message(panic.as_ref()), "a request panicked");
        stand_in::panicked()
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
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_the_protocol() {
        assert_eq!(Protocol::of(&[0x16, 0x03]), Some(Protocol::Tls));
        assert_eq!(Protocol::of(b"PRI"), Some(Protocol::Http2));
        for verb in ["GET", "POS", "PUT", "PAT", "DEL", "G", "PO"] {
            assert_eq!(Protocol::of(verb.as_bytes()), Some(Protocol::Http1), "{verb}");
        }
        for short in ["", "P", "PR"] {
            assert_eq!(Protocol::of(short.as_bytes()), None, "{short}");
        }
    }
}
