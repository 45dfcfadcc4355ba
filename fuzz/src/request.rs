//! Whole requests: a request line, headers, an empty line, a body. Every request gets a response in the protocol's format, and none triggers a bug in
//! the server (500).
//!
//! Requests are signed here, so that the code behind the signature check is tested.

use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bolide_cosmos::Payload;
use bolide_model::account_key::WELL_KNOWN_KEY;
use bolide_model::time::wall_clock;
use bytes::Bytes;
use hmac::{Hmac, Mac};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use serde_json::Value;
use sha2::Sha256;

use super::input::Input;
use super::test_account::TestAccount;

/// A limit, because splits and imports of any size would only be slow.
const BODY_BYTES: usize = 4_096;

/// Sends the bytes as a request.
pub fn run(data: &[u8]) {
    let Some(request) = parse(data) else { return };
    let test_account = TestAccount::new(2);
    let response = test_account.answer(request);
    let (status, payload) = (response.status(), response.into_body());
    let Payload::Whole(body) = payload else { return };
    assert_ne!(
        status,
        StatusCode::INTERNAL_SERVER_ERROR,
        "{}",
        String::from_utf8_lossy(&body)
    );
    if status.is_client_error() && !body.is_empty() {
        let error: Value = serde_json::from_slice(&body).expect("errors are JSON");
        assert!(error["code"].is_string() && error["message"].is_string(), "{error}");
    }
}

fn parse(data: &[u8]) -> Option<Request<Bytes>> {
    let mut input = Input(data);
    let line = std::str::from_utf8(input.until(b'\n')).ok()?;
    let (method, path) = line.split_once(' ')?;
    let uri: Uri = path.parse().ok()?;
    let mut request = Request::builder()
        .method(Method::from_bytes(method.as_bytes()).ok()?)
        .uri(uri);
    loop {
        let line = input.until(b'\n');
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            break;
        };
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        request = request.header(name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?);
    }
    let mut request = request
        .body(Bytes::copy_from_slice(&input.0[..input.0.len().min(BODY_BYTES)]))
        .ok()?;
    sign(&mut request);
    Some(request)
}

/// Adds a signature to a request.
pub(super) fn sign(request: &mut Request<Bytes>) {
    let path = request.uri().path().trim_matches('/').to_owned();
    let (authorization, date) = if path.starts_with("_bolide") {
        (format!("Bearer {WELL_KNOWN_KEY}"), None)
    } else {
        let now = Duration::from_millis(wall_clock().0.try_into().expect("after 1970"));
        let date = httpdate::fmt_http_date(UNIX_EPOCH + now);
        (token(request.method(), &path, &date), Some(date))
    };
    let headers = request.headers_mut();
    headers
        .entry(http::header::AUTHORIZATION)
        .or_insert(HeaderValue::try_from(authorization).expect("ASCII"));
    if let Some(date) = date {
        headers.insert("x-ms-date", HeaderValue::try_from(date).expect("ASCII"));
    }
}

/// A signature of the resource type and link of the path: a list is signed by its parent, a resource by itself.
fn token(method: &Method, path: &str, date: &str) -> String {
    let segments: Vec<&str> = path.split('/').collect();
    let (kind, link) = match segments.len() % 2 {
        0 => (segments[segments.len() - 2], path),
        _ => (
            segments[segments.len() - 1],
            path.rsplit_once('/').map_or("", |(parent, _)| parent),
        ),
    };
    let payload = format!(
        "{}\n{kind}\n{link}\n{}\n\n",
        method.as_str().to_lowercase(),
        date.to_lowercase()
    );
    let key = STANDARD.decode(WELL_KNOWN_KEY).expect("the well-known key");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("any length");
    mac.update(payload.as_bytes());
    let signature = STANDARD
        .encode(mac.finalize().into_bytes())
        .replace('+', "%2B")
        .replace('=', "%3D");
    format!("type%3Dmaster%26ver%3D1.0%26sig%3D{signature}")
}
