//! Gateway 2.0: frames as the bodies of HTTP/2 requests, without a context, a frame in each.
//!
//! ```text
//!   POST, without authorization ── head ──▶ request ──admitted──▶ its payload is read ──▶ … ──▶ response, with the frame's status and the frame
//! ```
//!
//! The authorization is a token of the frame, so a request with a frame has none in its headers, and each other one has.
//!
//! Source: rntbd.md §8.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bolide_cosmos::direct;
use bolide_cosmos::{Listener, Payload, Purpose, fallback};
use bolide_rntbd::frame::{Head, LENGTH_BYTES, head_rest};
use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::stream;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::timeout;

use crate::body::Unread;
use crate::connection::Shared;
use crate::responding::{refuse_frame, respond, respond_to_frame};
use crate::streams::Stream;
use crate::timeouts::Activity;

/// What clients ask before they send frames.
const PROBE: &str = "/connectivity-probe";
/// The longest head: as long as the headers of a request over HTTP/2 may be.
const HEAD_BYTES: usize = 16 * 1024;
const VERSION: &str = "x-ms-version";

/// Whether a request has a frame for a body, or asks whether such requests are answered.
pub fn is_one<B>(request: &Request<B>, listener: Listener) -> bool {
    listener.purpose == Purpose::Database
        && request.method() == Method::POST
        && !request.headers().contains_key(AUTHORIZATION)
}

/// Carries out the request of a frame.
pub async fn answer(
    request: Request<Incoming>,
    listener: Listener,
    shared: &Shared,
    activity: Arc<Activity>,
    stream: Arc<Stream>,
) -> Response<Payload> {
    if request.uri().path() == PROBE {
        return Response::new(Payload::Whole(Bytes::new()));
    }
    let (head, mut body) = request.into_parts();
    stream.await_client();
    let limits = shared.limits();
    let read = timeout(limits.request, Incomplete::read(&mut body)).await;
    stream.work();
    let parsed = read.ok().and_then(Result::ok).and_then(|read| {
        let parsed = direct::to_request_of_gateway(&read.frame, &version(&head.headers)).ok()?;
        Some((read, parsed))
    });
    let Some((Incomplete { rest, bytes, .. }, parsed)) = parsed else {
        // A request without authorization, and nothing else.
        let nothing = Unread::new(Empty::new(), activity, limits.request, shared.drains(), Some(stream));
        return respond(shared.serving(), Request::from_parts(head, nothing), listener).await;
    };
    let framed = match parsed.request {
        Ok(request) => {
            let rest = Rest {
                first: rest,
                body,
                left: bytes,
            };
            let body = Unread::new(rest, activity, limits.request, shared.drains(), Some(stream));
            respond_to_frame(shared.serving(), request.carried_by(head), body, listener).await
        }
        Err(refused) => {
            let is_known = activity.is_admitted();
            if !is_known {
                // If there are too many, the stream is reset in the place of an answer.
                stream.refuse();
            }
            refuse_frame(shared.serving(), refused, is_known).await
        }
    };
    match framed {
        Some((frame, payload)) => with_frame(frame, payload),
        None => fallback::panicked(),
    }
}

/// The version of the API, which no token has.
fn version(headers: &HeaderMap) -> HeaderValue {
    headers
        .get(VERSION)
        .cloned()
        .unwrap_or_else(|| HeaderValue::from_static("2020-07-15"))
}

/// A response with a frame. Clients compare the two statuses, and read the frame of each of them: of 204 and 304, too, which have no body otherwise.
fn with_frame(frame: Vec<u8>, payload: Bytes) -> Response<Payload> {
    let status = frame
        .get(LENGTH_BYTES..)
        .and_then(|mut rest| rest.try_get_u32_le().ok());
    let status = status.and_then(|status| StatusCode::from_u16(u16::try_from(status).ok()?).ok());
    let parts = [frame.into(), payload]
        .into_iter()
        .filter(|part| !part.is_empty())
        .map(Ok);
    let mut response = Response::new(Payload::Pages(Box::pin(stream::iter(parts.collect::<Vec<_>>()))));
    *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let binary = HeaderValue::from_static("application/octet-stream");
    response.headers_mut().insert(CONTENT_TYPE, binary);
    response
}

/// A frame whose payload has not been read.
struct Incomplete {
    frame: Head,
    /// The bytes of the payload that have come with the head.
    rest: Bytes,
    /// The length of the payload.
    bytes: usize,
}

impl Incomplete {
    /// # Errors
    /// Why it is no frame.
    async fn read(body: &mut Incoming) -> Result<Incomplete, String> {
        let mut read = BytesMut::new();
        fill(body, &mut read, LENGTH_BYTES).await?;
        let rest = head_rest(read.get_u32_le().to_le_bytes(), HEAD_BYTES).map_err(|error| error.to_string())?;
        fill(body, &mut read, rest).await?;
        let frame = Head::read(read.split_to(rest).freeze()).map_err(|error| error.to_string())?;
        let has_payload = direct::has_payload(&frame).map_err(|error| error.to_string())?;
        let mut bytes = 0;
        if has_payload {
            fill(body, &mut read, LENGTH_BYTES).await?;
            bytes = usize::try_from(read.get_u32_le()).unwrap_or(usize::MAX);
        }
        Ok(Incomplete {
            frame,
            rest: read.freeze(),
            bytes,
        })
    }
}

/// Reads until there are at least so many bytes.
async fn fill(body: &mut Incoming, read: &mut BytesMut, bytes: usize) -> Result<(), String> {
    while read.len() < bytes {
        let part = body.frame().await.ok_or("its body ends before the frame does")?;
        let part = part.map_err(|_| "its body broke off")?;
        if let Ok(data) = part.into_data() {
            read.extend_from_slice(&data);
        }
    }
    Ok(())
}

/// The payload of a frame: what has come with the head, and the rest of the body.
struct Rest {
    first: Bytes,
    body: Incoming,
    /// Bytes that are missing, with those of `first`.
    left: usize,
}

impl Body for Rest {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        loop {
            let data = if self.first.is_empty() {
                match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                    None if self.left == 0 => return Poll::Ready(None),
                    None => return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into()))),
                    Some(Err(error)) => return Poll::Ready(Some(Err(io::Error::other(error)))),
                    Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                }
            } else {
                std::mem::take(&mut self.first)
            };
            let Some(left) = self.left.checked_sub(data.len()) else {
                return Poll::Ready(Some(Err(io::Error::other("bytes follow the payload"))));
            };
            self.left = left;
            if !data.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0 && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}
