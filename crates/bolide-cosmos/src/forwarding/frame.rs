//! What goes over a connection between two servers.
//!
//! ```text
//!   frame     length of the rest u32 · number u64 · request or response
//!   request   method · path and query · headers · body
//!   response  status u16 · headers · body
//!   headers   count u8 · (name · value)*
//! ```
//!
//! Numbers are little-endian; method, path, names and values begin with their length (u16). A body is what is left. The number of a request is that of its
//! response. Number 0 has nothing else: its sender is about to stop. Another number with nothing else is that of a request that was carried out, and whose response
//! is too large.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};

use crate::wire::headers;

/// Largest frame: a request's head is at most 128 KiB, and its body 64.
pub(super) const FRAME_BYTES: usize = 256 * 1024;
/// Says that its sender is about to stop.
pub(super) const STOPS: u64 = 0;

const LENGTH_BYTES: usize = 4;
const NUMBER_BYTES: usize = 8;

/// Headers about a connection, and not about the request or response.
const OF_THE_CONNECTION: [HeaderName; 7] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::EXPECT,
    header::TE,
    header::UPGRADE,
];

/// A frame has no request or response in it, or does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// A client's request that is sent on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent<'r> {
    /// Without the authority that HTTP/2 has in its address: the client's is another one.
    pub head: &'r Parts,
    /// In the place of the client's.
    pub activity_id: &'r str,
    pub body: &'r [u8],
}

/// Appends a request.
///
/// # Errors
/// It is too large; nothing is appended.
pub(super) fn put_request(to: &mut BytesMut, number: u64, sent: Sent<'_>) -> Result<(), Malformed> {
    let Sent {
        head,
        activity_id,
        body,
    } = sent;
    let path = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    put(to, number, body, |to| {
        put_text(to, head.method.as_str().as_bytes())?;
        put_text(to, path.as_bytes())?;
        put_headers(to, &head.headers, Some((&headers::ACTIVITY_ID, activity_id)))
    })
}

/// Appends a response.
///
/// # Errors
/// As [`put_request`].
pub(super) fn put_response(to: &mut BytesMut, number: u64, response: &Response<Bytes>) -> Result<(), Malformed> {
    put(to, number, response.body(), |to| {
        to.put_u16_le(response.status().as_u16());
        put_headers(to, response.headers(), None)
    })
}

/// Appends a number with nothing else: [`STOPS`], or that of a request whose response cannot be sent.
pub(super) fn put_number(to: &mut BytesMut, number: u64) {
    to.put_u32_le(NUMBER_BYTES as u32);
    to.put_u64_le(number);
}

fn put(
    to: &mut BytesMut,
    number: u64,
    body: &[u8],
    head: impl FnOnce(&mut BytesMut) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let start = to.len();
    to.put_u32_le(0);
    to.put_u64_le(number);
    let put = head(to);
    let length = to.len() - start - LENGTH_BYTES + body.len();
    if put.is_err() || length > FRAME_BYTES {
        to.truncate(start);
        return Err(Malformed);
    }
    to.put_slice(body);
    to[start..start + LENGTH_BYTES].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(())
}

/// Appends headers; `other`: one with another value.
fn put_headers(to: &mut BytesMut, headers: &HeaderMap, other: Option<(&HeaderName, &str)>) -> Result<(), Malformed> {
    let count_at = to.len();
    to.put_u8(0);
    let kept = headers
        .iter()
        .filter(|(name, _)| !OF_THE_CONNECTION.contains(name) && other.is_none_or(|(other, _)| other != *name));
    let kept = kept.map(|(name, value)| (name, value.as_bytes()));
    let mut count = 0_u8;
    for (name, value) in kept.chain(other.map(|(name, value)| (name, value.as_bytes()))) {
        count = count.checked_add(1).ok_or(Malformed)?;
        put_text(to, name.as_str().as_bytes())?;
        put_text(to, value)?;
    }
    to[count_at] = count;
    Ok(())
}

fn put_text(to: &mut BytesMut, text: &[u8]) -> Result<(), Malformed> {
    to.put_u16_le(u16::try_from(text.len()).map_err(|_| Malformed)?);
    to.put_slice(text);
    Ok(())
}

/// Takes the next frame of what has arrived, if it is complete: its number and the rest.
///
/// # Errors
/// It is larger than any that is sent, or too short for its number.
pub(super) fn take(arrived: &mut BytesMut) -> Result<Option<(u64, Bytes)>, Malformed> {
    let Some(length) = arrived.first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(*length) as usize;
    if !(NUMBER_BYTES..=FRAME_BYTES).contains(&length) {
        return Err(Malformed);
    }
    if arrived.len() < LENGTH_BYTES + length {
        arrived.reserve(LENGTH_BYTES + length - arrived.len());
        return Ok(None);
    }
    // A copy: what a request or response keeps of its frame would keep all that arrived with it.
    let mut frame = Bytes::copy_from_slice(&arrived[LENGTH_BYTES..LENGTH_BYTES + length]);
    arrived.advance(LENGTH_BYTES + length);
    Ok(Some((frame.get_u64_le(), frame)))
}

/// The request in a frame.
///
/// # Errors
/// There is none.
pub(super) fn request(mut frame: Bytes) -> Result<Request<Bytes>, Malformed> {
    let method = Method::from_bytes(&take_text(&mut frame)?).map_err(|_| Malformed)?;
    let path = PathAndQuery::from_maybe_shared(take_text(&mut frame)?).map_err(|_| Malformed)?;
    let headers = take_headers(&mut frame)?;
    let mut request = Request::new(frame);
    *request.method_mut() = method;
    *request.uri_mut() = Uri::from(path);
    *request.headers_mut() = headers;
    Ok(request)
}

/// The response in a frame.
///
/// # Errors
/// There is none.
pub(super) fn response(mut frame: Bytes) -> Result<Response<Bytes>, Malformed> {
    let status = frame.try_get_u16_le().map_err(|_| Malformed)?;
    let status = StatusCode::from_u16(status).map_err(|_| Malformed)?;
    let headers = take_headers(&mut frame)?;
    let mut response = Response::new(frame);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

fn take_headers(frame: &mut Bytes) -> Result<HeaderMap, Malformed> {
    let count = frame.try_get_u8().map_err(|_| Malformed)?;
    let mut headers = HeaderMap::with_capacity(usize::from(count));
    for _ in 0..count {
        let name = HeaderName::from_bytes(&take_text(frame)?).map_err(|_| Malformed)?;
        let value = HeaderValue::from_maybe_shared(take_text(frame)?).map_err(|_| Malformed)?;
        headers.append(name, value);
    }
    Ok(headers)
}

fn take_text(frame: &mut Bytes) -> Result<Bytes, Malformed> {
    let length = usize::from(frame.try_get_u16_le().map_err(|_| Malformed)?);
    if frame.len() < length {
        return Err(Malformed);
    }
    Ok(frame.split_to(length))
}

#[cfg(test)]
mod tests;
