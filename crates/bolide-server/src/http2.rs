//! A connection of HTTP/2: its requests run at the same time, each on a stream.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use bolide_cosmos::Listener;
use futures_util::FutureExt as _;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::body::Unread;
use crate::connection::Shared;
use crate::fair::Fair;
use crate::gateway_v2;
use crate::rare::Rare;
use crate::responding::{Body, respond, to_body};
use crate::shutdown::Shutdown;
use crate::streams::{InParts, Stream, Streams};
use crate::timeouts::Activity;

/// Concurrent requests of one HTTP/2 connection.
const STREAMS: u32 = 128;
/// Bytes of bodies that a client may send before the server reads them: per stream, and per connection.
const STREAM_WINDOW_BYTES: u32 = 32 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 64 * 1024;
/// Bytes of a response that are buffered for sending, in addition to the memory counted for the request.
const SEND_BUFFER_BYTES: usize = 64 * 1024;
/// Headers of one HTTP/2 request.
const HEADER_LIST_BYTES: u32 = 16 * 1024;
/// Number of streams that a client has reset but which are not processed yet, and of streams that the server has reset; above this, the connection
/// ends (rapid reset, CVE-2023-44487).
const PENDING_RESETS: usize = 20;
const OWN_RESETS: usize = 1024;

/// Serves a connection to its end.
pub async fn serve<S>(stream: S, listener: Listener, shared: Arc<Shared>, shutdown: Shutdown, activity: Arc<Activity>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = shared.limits();
    let all = shared.clone();
    let streams = Streams::new(activity.clone(), shared.streams());
    let opened = streams.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        answer_stream(request, listener, shared.clone(), activity.clone(), opened.clone())
    });
    // Many requests share a connection, so each response has its own timeout; pings check that the client is still there.
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
    let mut stopping = Rare::new(|cx| stopping.as_mut().poll(cx));
    let mut must_end = pin!(streams.must_end());
    let mut must_end = Rare::new(|cx| must_end.as_mut().poll(cx));
    let mut checks = tokio::time::interval(limits.look());
    let mut check = Rare::new(|cx| checks.poll_tick(cx));
    let mut goes_away_since = None;
    loop {
        tokio::select! {
            biased;
            _ = connection.as_mut() => return,
            () = stopping.happens() => connection.as_mut().graceful_shutdown(),
            () = must_end.happens() => return,
            _ = check.happens() => {
                let now = all.clock().now();
                if streams.is_overdue(now, limits.answer(all.is_memory_short()))
                    || goes_away_since.is_some_and(|since| now.duration_since(since) > limits.request)
                {
                    return;
                }
                if goes_away_since.is_none() && streams.is_idle_too_long(now, limits.request, limits.idle) {
                    connection.as_mut().graceful_shutdown();
                    goes_away_since = Some(now);
                }
            }
        }
    }
}

/// Serves a request on an HTTP/2 stream, or resets the stream.
async fn answer_stream(
    request: Request<Incoming>,
    listener: Listener,
    shared: Arc<Shared>,
    activity: Arc<Activity>,
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
    // Boxed, so that thousands of requests that were sent together use little memory while they wait to be processed.
    let response = if shared.frames().gateway_v2 && gateway_v2::is_one(&request, listener) {
        Box::pin(gateway_v2::answer(request, listener, &shared, activity, stream.clone())).await
    } else {
        let (timeout, drains) = (shared.limits().request, shared.drains());
        let request = request.map(|body| Unread::new(body, activity, timeout, drains, Some(stream.clone())));
        Box::pin(respond(shared.serving(), request, listener)).await
    };
    let response = response.map(to_body);
    let answer = answer_on(stream, response);
    if answer.is_err() {
        streams.reset();
    }
    answer
}

/// Why a stream of HTTP/2 is reset.
#[derive(Debug)]
enum Reset {
    /// Too many error responses wait for a client that has not shown a key and does not read them.
    TooManyRefusals,
    /// There are too many requests on all connections. This one was not started, as the reset reason says, so the client may retry it.
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

/// Sends a response on a stream of HTTP/2; an error resets the stream.
fn answer_on(stream: Arc<Stream>, response: Response<Body>) -> Result<Response<InParts<Body>>, Reset> {
    if stream.is_one_refused_too_many() {
        return Err(Reset::TooManyRefusals);
    }
    Ok(response.map(|body| InParts::new(body, stream)))
}
