//! Several requests or responses in one body.
//!
//! ```text
//!   message   length of the head, length of the body (4 bytes each, big-endian), head, body
//!   head      as in HTTP/1.1 (RFC 9112), up to and including the empty line
//! ```

use bytes::{Buf as _, Bytes};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};

/// Headers of one message.
const HEADERS: usize = 128;

/// Headers about the connection to the client, and not about the request.
const OF_THE_CONNECTION: [HeaderName; 7] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::EXPECT,
    header::TE,
    header::UPGRADE,
];

/// Adds a request.
pub(super) fn put_request(to: &mut Vec<u8>, head: &Parts, body: &[u8]) {
    put(to, body, |to| {
        let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
        for part in [head.method.as_str(), " ", target, " HTTP/1.1\r\n"] {
            to.extend_from_slice(part.as_bytes());
        }
        put_headers(to, &head.headers);
    });
}

/// Adds a response.
pub(super) fn put_response<B>(to: &mut Vec<u8>, response: &Response<B>, body: &[u8]) {
    put(to, body, |to| {
        to.extend_from_slice(b"HTTP/1.1 ");
        to.extend_from_slice(response.status().as_str().as_bytes());
        to.extend_from_slice(b" \r\n");
        put_headers(to, response.headers());
    });
}

fn put(to: &mut Vec<u8>, body: &[u8], head: impl FnOnce(&mut Vec<u8>)) {
    let start = to.len();
    to.extend_from_slice(&[0; 8]);
    head(to);
    let head_bytes = (to.len() - start - 8) as u32;
    to[start..start + 4].copy_from_slice(&head_bytes.to_be_bytes());
    to[start + 4..start + 8].copy_from_slice(&(body.len() as u32).to_be_bytes());
    to.extend_from_slice(body);
}

fn put_headers(to: &mut Vec<u8>, headers: &HeaderMap) {
    for (name, value) in headers {
        if !OF_THE_CONNECTION.contains(name) {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                to.extend_from_slice(part);
            }
        }
    }
    to.extend_from_slice(b"\r\n");
}

/// The requests in a body; `None` if it is none, or has more than `most`.
pub(super) fn requests(body: Bytes, most: usize) -> Option<Vec<Request<Bytes>>> {
    each(body, most, |head, body| {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        is_whole(parsed.parse(head), head)?;
        let mut request = Request::new(body);
        *request.method_mut() = parsed.method?.parse().ok()?;
        *request.uri_mut() = parsed.path?.parse().ok()?;
        *request.headers_mut() = owned(parsed.headers)?;
        Some(request)
    })
}

/// The responses in a body; `None` if it is none, or has more than `most`.
pub(super) fn responses(body: Bytes, most: usize) -> Option<Vec<Response<Bytes>>> {
    each(body, most, |head, body| {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut parsed = httparse::Response::new(&mut headers);
        is_whole(parsed.parse(head), head)?;
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(parsed.code?).ok()?;
        *response.headers_mut() = owned(parsed.headers)?;
        Some(response)
    })
}

fn each<M>(mut body: Bytes, most: usize, message: impl Fn(&[u8], Bytes) -> Option<M>) -> Option<Vec<M>> {
    let mut messages = Vec::new();
    while !body.is_empty() {
        if body.len() < 8 || messages.len() == most {
            return None;
        }
        let [head, rest] = [body.get_u32() as usize, body.get_u32() as usize];
        if head.checked_add(rest)? > body.len() {
            return None;
        }
        let head = body.split_to(head);
        messages.push(message(&head, body.split_to(rest))?);
    }
    Some(messages)
}

/// Whether a head was parsed to its end.
fn is_whole(parsed: httparse::Result<usize>, head: &[u8]) -> Option<()> {
    let is_whole = matches!(parsed, Ok(httparse::Status::Complete(bytes)) if bytes == head.len());
    is_whole.then_some(())
}

fn owned(parsed: &[httparse::Header<'_>]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::with_capacity(parsed.len());
    for header in parsed {
        let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
        headers.append(name, HeaderValue::from_bytes(header.value).ok()?);
    }
    Some(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: &'static str) -> Request<Bytes> {
        let request = Request::put("/dbs/d/colls/c/docs/a%20b?x=1")
            .header("host", "one:8081")
            .header("content-length", "3")
            .header("x-ms-date", "today")
            .header("x-ms-documentdb-partitionkey", "[\"\u{e9}\"]");
        request.body(Bytes::from_static(body.as_bytes())).unwrap()
    }

    #[test]
    fn what_was_put_is_found() {
        let mut body = Vec::new();
        for text in ["{}", ""] {
            let (head, content) = request(text).into_parts();
            put_request(&mut body, &head, &content);
        }
        let found = requests(body.into(), 2).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].body(), "{}");
        assert_eq!(found[1].body(), "");
        assert_eq!(found[0].method(), "PUT");
        assert_eq!(found[0].uri(), "/dbs/d/colls/c/docs/a%20b?x=1");
        let names = found[0].headers().keys().map(HeaderName::as_str);
        assert_eq!(names.collect::<Vec<_>>(), ["x-ms-date", "x-ms-documentdb-partitionkey"]);
        assert_eq!(
            found[0].headers()["x-ms-documentdb-partitionkey"].as_bytes(),
            "[\"\u{e9}\"]".as_bytes()
        );

        let response = Response::builder()
            .status(409)
            .header("etag", "\"1\"")
            .body(())
            .unwrap();
        let mut body = Vec::new();
        put_response(&mut body, &response, b"taken");
        let found = responses(body.into(), 1).unwrap();
        assert_eq!(found[0].status(), 409);
        assert_eq!(found[0].headers()["etag"], "\"1\"");
        assert_eq!(found[0].body(), "taken");
    }

    #[test]
    fn what_is_cut_or_too_much_is_refused() {
        let (head, content) = request("{}").into_parts();
        let mut one = Vec::new();
        put_request(&mut one, &head, &content);
        for bytes in 1..one.len() {
            assert!(
                requests(Bytes::copy_from_slice(&one[..bytes]), 9).is_none(),
                "{bytes} bytes"
            );
        }
        assert!(requests(Bytes::from(one.repeat(2)), 1).is_none(), "more than allowed");
        let lying = [u32::MAX.to_be_bytes(), u32::MAX.to_be_bytes()].concat();
        assert!(requests(lying.into(), 9).is_none());
        let mut headless = vec![0, 0, 0, 2, 0, 0, 0, 0];
        headless.extend_from_slice(b"\r\n");
        assert!(requests(headless.into(), 9).is_none());
    }
}
