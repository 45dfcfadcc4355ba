//! A minimal signed Cosmos DB client: requests as data, responses as data.
//!
//! It is written from the documentation of the protocol and independent of the server's code, so that a mistake there is not repeated here.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use sha2::Sha256;
use ureq::http;

use crate::Result;

/// The account key that every emulator and SDK test suite knows; the server uses it by default on loopback.
const WELL_KNOWN_KEY: &str = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// The protocol version that most SDKs send.
const API_VERSION: &str = "2020-07-15";

/// Far above the time of any step; a server that hangs fails the scenario and not the whole run.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Characters that are not escaped in a path segment.
const PATH_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A connection to one running server.
pub struct Client {
    agent: ureq::Agent,
    endpoint: String,
}

/// The resource of a request: its path, and the part of it that is signed.
pub struct Target {
    path: String,
    resource_type: &'static str,
    link: String,
}

/// A request before it is signed.
pub struct Request {
    method: http::Method,
    path: String,
    authorization: String,
    headers: Vec<(&'static str, String)>,
    body: Option<String>,
}

/// A response.
pub struct Response {
    status: u16,
    headers: http::HeaderMap,
    body: Vec<u8>,
}

/// Levels of a resource's name, such as `("colls", "c")`.
pub type Level<'a> = (&'static str, &'a str);

impl Target {
    /// The list of resources of one kind below a parent.
    pub fn feed(parent: &[Level<'_>], kind: &'static str) -> Self {
        Self {
            path: format!("{}/{kind}", path_of(parent)),
            resource_type: kind,
            link: link_of(parent),
        }
    }

    /// One resource; `levels` ends with it and is not empty.
    pub fn instance(levels: &[Level<'_>]) -> Self {
        let kind = levels.last().map_or("", |(kind, _)| kind);
        Self {
            path: path_of(levels),
            resource_type: kind,
            link: link_of(levels),
        }
    }
}

fn path_of(levels: &[Level<'_>]) -> String {
    levels
        .iter()
        .map(|(kind, id)| format!("/{kind}/{}", utf8_percent_encode(id, PATH_SEGMENT)))
        .collect()
}

/// Links are signed without any encoding.
fn link_of(levels: &[Level<'_>]) -> String {
    levels
        .iter()
        .map(|(kind, id)| format!("{kind}/{id}"))
        .collect::<Vec<_>>()
        .join("/")
}

impl Request {
    /// A request to a resource, signed with the account key.
    pub fn signed(method: http::Method, target: Target) -> Self {
        let date = httpdate::fmt_http_date(signing_time());
        let payload = payload_to_sign(method.as_str(), &target, &date);
        let token = format!("type=master&ver=1.0&sig={}", signature(&payload));
        Self {
            method,
            path: target.path,
            authorization: utf8_percent_encode(&token, NON_ALPHANUMERIC).to_string(),
            headers: vec![("x-ms-date", date), ("x-ms-version", API_VERSION.to_owned())],
            body: None,
        }
    }

    /// A request to the admin interface, `path` below `/_bolide/`.
    pub fn admin(method: http::Method, path: &str) -> Self {
        Self {
            method,
            path: format!("/_bolide/{path}"),
            authorization: format!("Bearer {WELL_KNOWN_KEY}"),
            headers: Vec::new(),
            body: None,
        }
    }

    /// Adds a header.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Adds a header if it has a value.
    pub fn optional_header(self, name: &'static str, value: Option<&String>) -> Self {
        match value {
            Some(value) => self.header(name, value),
            None => self,
        }
    }

    /// Sets the logical partition; the header is ASCII, so other characters are escaped.
    pub fn partition_key(self, value: &Value) -> Self {
        let text = Value::Array(vec![value.clone()]).to_string();
        self.header(
            "x-ms-documentdb-partitionkey",
            text.chars().map(ascii).collect::<String>(),
        )
    }

    /// Adds a JSON body.
    pub fn json(self, body: &Value) -> Self {
        self.text(body.to_string(), "application/json")
    }

    /// Adds a body of any type.
    pub fn text(mut self, body: String, content_type: &'static str) -> Self {
        self.body = Some(body);
        self.header("content-type", content_type)
    }
}

/// A character of a JSON text, escaped to ASCII.
fn ascii(character: char) -> String {
    if character.is_ascii() {
        return character.to_string();
    }
    character
        .encode_utf16(&mut [0; 2])
        .iter()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect()
}

/// Signatures contain the real date; the server checks it with the real clock and not with its virtual one.
#[expect(clippy::disallowed_methods, reason = "a client's clock, not the server's")]
fn signing_time() -> std::time::SystemTime {
    std::time::SystemTime::now()
}

fn payload_to_sign(method: &str, target: &Target, date: &str) -> String {
    let lines = [
        &method.to_lowercase(),
        target.resource_type,
        &target.link,
        &date.to_lowercase(),
        "",
    ];
    lines.map(|line| format!("{line}\n")).concat()
}

fn signature(payload: &str) -> String {
    let key = BASE64.decode(WELL_KNOWN_KEY).expect("the constant is base64");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
    mac.update(payload.as_bytes());
    BASE64.encode(mac.finalize().into_bytes())
}

impl Client {
    /// A client for a server at `endpoint`, such as `http://127.0.0.1:8081`.
    pub fn new(endpoint: &str) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(REQUEST_TIMEOUT));
        Self {
            agent: config.build().into(),
            endpoint: endpoint.trim_end_matches('/').to_owned(),
        }
    }

    /// Sends a request and reads the whole response. Every status is a response; errors are broken connections and timeouts.
    pub fn send(&self, request: Request) -> std::result::Result<Response, ureq::Error> {
        let mut builder = http::Request::builder()
            .method(request.method)
            .uri(format!("{}{}", self.endpoint, request.path))
            .header("authorization", request.authorization);
        for (name, value) in request.headers {
            builder = builder.header(name, value);
        }
        let response = match request.body {
            Some(body) => self.agent.run(builder.body(body)?)?,
            None => self.agent.run(builder.body(())?)?,
        };
        let (parts, mut body) = response.into_parts();
        Ok(Response {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: body.read_to_vec()?,
        })
    }
}

impl Response {
    /// The status code.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Whether the status means success.
    pub fn succeeded(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Fails with `otherwise` and the server's message, unless the status means success.
    pub fn require(&self, otherwise: &str) -> Result<()> {
        if self.succeeded() {
            return Ok(());
        }
        Err(format!("{otherwise}: {} {}", self.status, self.message().unwrap_or_default()).into())
    }

    /// A header, if it exists and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as JSON; null if it is empty.
    pub fn json(&self) -> Result<Value> {
        match self.body.as_slice() {
            [] => Ok(Value::Null),
            body => serde_json::from_slice(body).map_err(|error| format!("the body is not JSON: {error}").into()),
        }
    }

    /// The message of an error body, on one line.
    pub fn message(&self) -> Option<String> {
        let body = self.json().ok()?;
        Some(
            body.get("message")?
                .as_str()?
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
        )
    }
}

#[cfg(test)]
mod tests;
