//! Headers of every response, including errors (cosmos-rest §10).

use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use crate::listener::Listener;
use crate::wire::{Reply, headers};

/// Longest activity id that is echoed.
const ACTIVITY_ID_BYTES: usize = 64;

/// Adds the headers of every response.
pub(crate) fn add(reply: &mut Reply, head: &Parts, listener: Listener, activity_id: HeaderValue, duration: Duration) {
    reply.header(&headers::ACTIVITY_ID, activity_id);
    match head.headers.get(&headers::VERSION) {
        Some(version) => reply.header(&headers::VERSION, version.clone()),
        None => reply.fixed(&headers::VERSION, "2020-07-15"),
    }
    reply.fixed(&headers::GATEWAY_VERSION, "version=2.14.0");
    reply.fixed(&headers::SERVICE_VERSION, "version=2.14.0.0");
    add_for_frame(reply, duration);
    add_content_location(reply, head, listener);
}

/// Adds those of them that frames have (rntbd.md §5).
pub(crate) fn add_for_frame(reply: &mut Reply, duration: Duration) {
    reply.fixed(&headers::SCHEMA_VERSION, "1.19");
    reply.header(&headers::REQUEST_DURATION, milliseconds(duration));
}

/// Adds the location of the resource that was read, as the service does.
fn add_content_location(reply: &mut Reply, head: &Parts, listener: Listener) {
    if head.method != Method::GET || reply.status != StatusCode::OK {
        return;
    }
    // Python ends every path with a slash.
    let path = head.uri.path().trim_end_matches('/');
    reply.text(&headers::CONTENT_LOCATION, listener.url(head, path));
}

/// A duration in milliseconds, with three decimal places.
fn milliseconds(duration: Duration) -> HeaderValue {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    // Digits from the last to the first: at least four, with a point before the last three.
    let mut text = [b'0'; 24];
    let (mut at, mut rest, mut digits) = (text.len(), micros, 0);
    while rest > 0 || digits < 4 {
        if digits == 3 {
            at -= 1;
            text[at] = b'.';
        }
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        digits += 1;
    }
    HeaderValue::from_bytes(&text[at..]).expect("digits and a point are visible ASCII")
}

/// The request's activity id, or a new one.
pub(crate) fn activity_id(headers: &HeaderMap) -> HeaderValue {
    let sent = headers.get(&headers::ACTIVITY_ID);
    let usable = sent.filter(|id| (1..=ACTIVITY_ID_BYTES).contains(&id.len()) && id.as_bytes().is_ascii());
    usable.cloned().unwrap_or_else(new_activity_id)
}

/// A new activity id.
pub(crate) fn new_activity_id() -> HeaderValue {
    let mut buffer = uuid::Uuid::encode_buffer();
    let id = uuid::Uuid::new_v4().hyphenated().encode_lower(&mut buffer);
    HeaderValue::from_str(id).expect("a GUID is ASCII")
}

#[cfg(test)]
mod tests;
