//! One connection: its first bytes determine the [`protocol`](crate::protocol), then it serves requests until it ends: over HTTP/1.1 here, over HTTP/2 in
//! [`http2`], in direct mode in [`direct`]. One of HTTP/1.1 may go on with the
//! requests of another server of the store ([`bolide_cosmos::forwarding`]).

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bolide_cosmos::forwarding::receive;
use bolide_cosmos::{Listener, Purpose, fallback};
use bolide_mongo::service::MongoService;
use futures_util::FutureExt as _;
use http::header::UPGRADE;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SetOnce};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::begun::Begun;
use crate::body::{Drains, Unread};
use crate::clock::ServerClock;
use crate::direct;
use crate::error_rewriter::ErrorRewriter;
use crate::fair::Fair;
use crate::http2;
use crate::protocol::{Protocol, protocol};
use crate::rare::Rare;
use crate::responding::{Body, respond, to_body};
use crate::serving::Serving;
use crate::shutdown::Shutdown;
use crate::slots::Slots;
use crate::streams::OpenStreams;
use crate::timeouts::{Activity, SHORT_TIMEOUT, Seen, Watched};

/// Above the service's own limit on headers, so that nearly all oversized ones get an error in the protocol's format.
const HEAD_BYTES: usize = 128 * 1024;
/// The longest time between checks of a connection.
const MAX_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Number of connections that may have a large head at the same time.
const LARGE_HEADS: usize = 1024;
/// Connections on which other servers of the store send requests.
const PEERS: usize = 64;
/// Limits for clients.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at the same time, of all clients together.
    pub connections: usize,
    /// HTTP/2 requests at the same time, of all clients together.
    pub streams: usize,
    /// Timeout for a request's head, for the next part of its body, and for taking the next part of a response.
    pub request: Duration,
    /// Timeout between requests.
    pub idle: Duration,
}

impl Limits {
    /// Time between checks of a connection.
    pub fn look(&self) -> Duration {
        (self.request / 4).clamp(Duration::from_millis(50), MAX_CHECK_INTERVAL)
    }

    /// Timeout for taking the next part of a response.
    pub fn answer(&self, is_memory_short: bool) -> Duration {
        if is_memory_short {
            self.request.min(SHORT_TIMEOUT)
        } else {
            self.request
        }
    }
}

/// Where requests may come as frames.
#[derive(Debug, Clone, Copy, Default)]
pub struct Frames {
    /// On connections of their own, after TLS.
    pub direct: bool,
    /// As bodies of HTTP/2.
    pub gateway_v2: bool,
}

/// State shared by all connections.
pub struct Shared {
    clock: ServerClock,
    serving: Serving,
    /// Not set until the store is open, if there is a listener for it.
    mongo: SetOnce<MongoService>,
    tls: TlsAcceptor,
    frames: Frames,
    limits: Limits,
    large_heads: Arc<Semaphore>,
    peers: Arc<Semaphore>,
    drains: Arc<Drains>,
    streams: Arc<OpenStreams>,
    slots: Arc<Slots>,
}

impl Shared {
    /// Connections get the response "starting" until the service is set.
    pub fn new(tls: TlsAcceptor, frames: Frames, limits: Limits, clock: ServerClock) -> Shared {
        Shared {
            serving: Serving::default(),
            mongo: SetOnce::new(),
            tls,
            frames,
            limits,
            large_heads: Arc::new(Semaphore::new(LARGE_HEADS)),
            peers: Arc::new(Semaphore::new(PEERS)),
            drains: Arc::new(Drains::new()),
            streams: OpenStreams::new(limits.streams),
            slots: Arc::new(Slots::new(limits.connections, clock.clone())),
            clock,
        }
    }

    /// The service that answers requests.
    pub fn serving(&self) -> &Serving {
        &self.serving
    }

    /// MongoDB's clients are served by `service` from now on.
    pub fn start_mongo(&self, service: MongoService) {
        let is_first = self.mongo.set(service).is_ok();
        debug_assert!(is_first, "a server starts once");
    }

    /// The front end for MongoDB's clients; waits until it is started.
    pub async fn mongo(&self) -> MongoService {
        self.mongo.wait().await.clone()
    }

    /// The same, if it is started.
    pub fn started_mongo(&self) -> Option<&MongoService> {
        self.mongo.get()
    }

    /// The limits for clients.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Accepts TLS connections.
    pub fn tls(&self) -> &TlsAcceptor {
        &self.tls
    }

    /// Whether requests wait for memory.
    pub fn is_memory_short(&self) -> bool {
        self.serving.is_memory_short()
    }

    /// Timeout for taking the next part of a response.
    pub fn answer_timeout(&self) -> Duration {
        self.limits.answer(self.is_memory_short())
    }

    /// The requests of all connections that carry many.
    pub fn streams(&self) -> Arc<OpenStreams> {
        self.streams.clone()
    }

    /// Where requests may come as frames.
    pub fn frames(&self) -> Frames {
        self.frames
    }

    /// The permits for bodies that are dropped.
    pub fn drains(&self) -> Arc<Drains> {
        self.drains.clone()
    }

    /// One permit for each large head at the same time.
    pub fn large_heads(&self) -> Arc<Semaphore> {
        self.large_heads.clone()
    }

    /// The clock for the timeouts of connections.
    pub fn clock(&self) -> &ServerClock {
        &self.clock
    }

    /// The slots for connections.
    pub fn slots(&self) -> Arc<Slots> {
        self.slots.clone()
    }
}

/// What the connections of a port may ask, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Door {
    /// What they may ask.
    pub purpose: Purpose,
    /// Whether they are encrypted.
    pub encryption: Encryption,
}

/// Whether the connections of a port are encrypted. Others than these are closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    /// As the client likes.
    Both,
    /// HTTPS only.
    Always,
    /// HTTP only.
    Never,
}

impl Door {
    /// The port of the database.
    pub const DATABASE: Door = Door {
        purpose: Purpose::Database,
        encryption: Encryption::Both,
    };

    fn admits(self, protocol: Protocol) -> bool {
        match self.encryption {
            Encryption::Both => true,
            Encryption::Always => protocol == Protocol::Tls,
            Encryption::Never => protocol != Protocol::Tls,
        }
    }
}

/// Serves a connection to its end, and records its state in `activity`.
pub async fn serve(stream: TcpStream, door: Door, shared: Arc<Shared>, shutdown: Shutdown, activity: Arc<Activity>) {
    let Ok(local) = stream.local_addr() else { return };
    // Responses are written completely; waiting for more data would only delay them.
    let _ = stream.set_nodelay(true);
    let protocol = tokio::select! {
        protocol = timeout(shared.limits.request, protocol(&stream)) => protocol,
        () = shutdown.begun() => return,
    };
    let Ok(Some(protocol)) = protocol else { return };
    if !door.admits(protocol) {
        return;
    }
    let listener = Listener {
        purpose: door.purpose,
        is_tls: protocol == Protocol::Tls,
        local,
    };
    match protocol {
        Protocol::Tls => serve_tls(stream, listener, shared, shutdown, activity).await,
        Protocol::Http1 => serve_http1(stream, listener, shared, shutdown, activity).await,
        Protocol::Http2 => http2::serve(stream, listener, shared, shutdown, activity).await,
    }
}

async fn serve_tls(
    stream: TcpStream,
    listener: Listener,
    shared: Arc<Shared>,
    shutdown: Shutdown,
    activity: Arc<Activity>,
) {
    let Ok(Ok(stream)) = timeout(shared.limits.request, shared.tls.accept(stream)).await else {
        return;
    };
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    if is_http2 {
        return http2::serve(stream, listener, shared, shutdown, activity).await;
    }
    if !shared.frames.direct || listener.purpose != Purpose::Database {
        return serve_http1(stream, listener, shared, shutdown, activity).await;
    }
    // The client speaks first in both protocols.
    let begun = tokio::select! {
        begun = timeout(shared.limits.request, Begun::read(stream)) => begun,
        () = shutdown.begun() => return,
    };
    let Ok(Ok(stream)) = begun else { return };
    if stream.is_direct() {
        Box::pin(direct::serve(stream, listener, shared, shutdown, activity)).await;
    } else {
        serve_http1(stream, listener, shared, shutdown, activity).await;
    }
}

async fn serve_http1<S>(stream: S, listener: Listener, shared: Arc<Shared>, shutdown: Shutdown, activity: Arc<Activity>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = shared.limits;
    let watched = Watched::new(Fair::new(stream), activity.clone(), shared.large_heads.clone());
    let io = TokioIo::new(ErrorRewriter::new(watched, activity.clone()));
    let connected = Arc::new(Http1 {
        // Of this connection alone: all connections would count their requests in the same place.
        drains: Arc::new(Drains::clone(&shared.drains)),
        shared,
        listener,
        activity,
        upgrade: Mutex::new(None),
    });
    let answering = connected.clone();
    let service = service_fn(move |request| {
        let connected = answering.clone();
        async move { Ok::<_, Infallible>(connected.answer(request).await) }
    });
    // The timeouts are checked through `activity`: those of hyper would end idle connections as fast as slow ones.
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(io, service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let mut stopping = pin!(shutdown.begun().fuse());
    let mut stopping = Rare::new(|cx| stopping.as_mut().poll(cx));
    let activity = &connected.activity;
    let mut seen = Seen::opened(activity.clock().now());
    let mut checks = tokio::time::interval(limits.look());
    let mut check = Rare::new(|cx| checks.poll_tick(cx));
    loop {
        tokio::select! {
            biased;
            // After an error nobody would ever say that it is upgraded.
            ended = connection.as_mut() => match ended {
                Ok(()) => break,
                Err(_) => return,
            },
            () = stopping.happens() => connection.as_mut().graceful_shutdown(),
            _ = check.happens() => {
                let is_memory_short = connected.shared.is_memory_short();
                let request = if activity.is_answering() { limits.answer(is_memory_short) } else { limits.request };
                if activity.is_overdue(&mut seen, activity.clock().now(), request, limits.idle) {
                    return;
                }
            }
        }
    }
    // Boxed: nearly all connections stay as small as they are without.
    Box::pin(connected.receive_from_peer(shutdown)).await;
}

/// A connection of HTTP/1.1.
struct Http1 {
    shared: Arc<Shared>,
    listener: Listener,
    activity: Arc<Activity>,
    drains: Arc<Drains>,
    /// Set when the service has switched to the protocol for which a request has asked.
    upgrade: Mutex<Option<(OnUpgrade, OwnedSemaphorePermit)>>,
}

impl Http1 {
    async fn answer(&self, mut request: Request<Incoming>) -> Response<Body> {
        let Http1 { shared, activity, .. } = self;
        activity.begin();
        let asks = request.headers().contains_key(UPGRADE);
        let upgrade = asks.then(|| hyper::upgrade::on(&mut request));
        let (timeout, drains) = (shared.limits.request, &self.drains);
        let request = request.map(|body| Unread::new(body, activity.clone(), timeout, drains.clone(), None));
        let response = respond(&shared.serving, request, self.listener).await;
        activity.answer();
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return response.map(to_body);
        }
        let permit = shared.peers.clone().try_acquire_owned().ok();
        let Some(upgrade) = upgrade.zip(permit) else {
            return fallback::too_many_servers().map(to_body);
        };
        activity.admit();
        *self.upgrade.lock() = Some(upgrade);
        response.map(to_body)
    }

    /// Goes on with the requests of another server of the store, if the connection is one for them.
    async fn receive_from_peer(&self, shutdown: Shutdown) {
        let upgrade = self.upgrade.lock().take();
        let Some((upgrade, permit)) = upgrade else { return };
        let Ok(stream) = upgrade.await else { return };
        // It has timeouts of its own, and is not ended for others.
        self.activity.begin();
        // Requests that are still carried out when the connection has ended hold the permit.
        let (shared, permit, listener) = (self.shared.clone(), Arc::new(permit), self.listener);
        let handle = move |request| {
            let (shared, held) = (shared.clone(), permit.clone());
            async move {
                let response = respond(&shared.serving, request, listener).await;
                drop(held);
                response
            }
        };
        let clock = self.shared.clock.monotonic().clone();
        receive(TokioIo::new(stream), clock, shutdown.begun(), handle).await;
    }
}
