//! Signed requests to a server, repeated as it asks.

mod http;
mod retries;
mod signature;

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bolide_model::account_key::AccountKey;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use ureq::http::{HeaderMap, Method, Request, Response};

pub use self::http::HttpTransport;
pub(crate) use self::retries::{Retries, Stop};
use crate::failure::{Failure, Result};

/// The API version that requests state: the first with ids that have a backslash.
const VERSION: &str = "2020-11-05";

/// What is escaped in paths: all but letters, digits and the marks that need no escape.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Carries requests to a server: over HTTP, or to one in the same process.
pub trait Transport: Send + Sync {
    /// Sends a request, and returns the whole response. The path has no scheme or host.
    ///
    /// # Errors
    /// Why there is no response; the request may have been carried out.
    fn send(&self, request: Request<Vec<u8>>) -> std::result::Result<Response<Vec<u8>>, String>;

    /// Sends the lines of an import that keeps `_ts`, as `POST /_bolide{coll}/import`.
    ///
    /// # Errors
    /// As [`Transport::send`].
    fn import_lines(
        &self,
        request: Request<()>,
        lines: &mut dyn Read,
    ) -> std::result::Result<Response<Vec<u8>>, String>;

    /// What it is called in messages: an endpoint, or a directory.
    fn name(&self) -> &str;
}

/// A client of one account.
#[derive(Clone)]
pub struct Client {
    transport: Arc<dyn Transport>,
    key: AccountKey,
    stop: Stop,
    /// Whether the server has ever answered: only then a broken connection is worth another try.
    has_answered: Arc<AtomicBool>,
}

/// A request before it is signed.
pub(crate) struct Draft<'a> {
    pub method: Method,
    /// Ids along the path, alternating with kinds: `["dbs", "a", "colls"]`.
    pub path: &'a [&'a str],
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl<'a> Draft<'a> {
    /// A GET of what is at the path.
    pub fn get(path: &'a [&'a str]) -> Draft<'a> {
        Draft {
            method: Method::GET,
            path,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// A POST of a body to the path.
    pub fn post(path: &'a [&'a str], body: impl Into<Vec<u8>>) -> Draft<'a> {
        Draft {
            method: Method::POST,
            path,
            headers: Vec::new(),
            body: body.into(),
        }
    }

    /// With another header.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Draft<'a> {
        self.headers.push((name, value.into()));
        self
    }
}

/// A response.
pub(crate) struct Answer {
    pub status: u16,
    headers: HeaderMap,
    pub body: Vec<u8>,
    /// Whether an earlier try of the same request had no certain outcome: it may have been carried out.
    pub was_repeated: bool,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub fn sub_status(&self) -> u32 {
        let text = self.header("x-ms-substatus");
        text.and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    /// Milliseconds to wait before the next try, as the server asks.
    pub fn retry_after_ms(&self) -> Option<u64> {
        let text = self.header("x-ms-retry-after-ms")?;
        text.parse::<f64>().ok().map(|ms| ms.max(0.0) as u64)
    }

    /// The body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The server's words for its refusal.
    pub fn message(&self) -> String {
        let body = self.json();
        let words = body["message"].as_str().unwrap_or_default();
        let words = words.split("\r\nActivityId").next().unwrap_or_default();
        let words = words.strip_prefix("Message: ").unwrap_or(words);
        match words.is_empty() {
            true => format!("status {}", self.status),
            false => format!("status {}: {words}", self.status),
        }
    }
}

impl Client {
    /// A client with an account key.
    ///
    /// # Errors
    /// The text is not an account key.
    pub fn new(transport: Arc<dyn Transport>, key: &str) -> Result<Client> {
        let key = AccountKey::parse(key)
            .map_err(|error| Failure::new(format!("the key of {}: {error}", transport.name())))?;
        Ok(Client {
            transport,
            key,
            stop: Stop::default(),
            has_answered: Arc::default(),
        })
    }

    /// What the server is called in messages.
    pub fn name(&self) -> &str {
        self.transport.name()
    }

    /// Ends the waits of all requests of this client when it is set.
    pub(crate) fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Sends a request; again if the server asks for it, or is not there for a moment.
    ///
    /// Answers of any status are returned, those that ask for another try only after many tries.
    ///
    /// # Errors
    /// There is no response.
    pub(crate) fn send(&self, draft: &Draft<'_>) -> Result<Answer> {
        let mut retries = Retries::default();
        let mut was_repeated = false;
        loop {
            let sent = self.try_once(draft);
            let wait = match &sent {
                Ok(answer) => match answer.status {
                    429 => retries.throttled(answer.retry_after_ms()),
                    408 | 449 | 503 => retries.unavailable(),
                    _ => None,
                },
                Err(_) if self.has_answered.load(Ordering::Relaxed) => retries.unavailable(),
                Err(_) => None,
            };
            let Some(wait) = wait else {
                return sent.map(|answer| Answer { was_repeated, ..answer });
            };
            was_repeated |= sent.as_ref().map_or(true, |answer| answer.status == 408);
            self.stop.wait(wait)?;
        }
    }

    fn try_once(&self, draft: &Draft<'_>) -> Result<Answer> {
        let request = self.request(draft).body(draft.body.clone());
        let request = request.map_err(|error| Failure::new(format!("a request cannot be made: {error}")))?;
        let sent = self.transport.send(request);
        let response = sent.map_err(|error| Failure::new(format!("{}: {error}", self.name())))?;
        self.has_answered.store(true, Ordering::Relaxed);
        let (head, body) = response.into_parts();
        Ok(Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            was_repeated: false,
        })
    }

    fn request(&self, draft: &Draft<'_>) -> ureq::http::request::Builder {
        let (date, authorization) = signature::of(&self.key, &draft.method, draft.path);
        let mut request = Request::builder()
            .method(draft.method.clone())
            .uri(path(draft.path))
            .header("authorization", authorization)
            .header("x-ms-date", date)
            .header("x-ms-version", VERSION)
            .header("accept", "application/json")
            .header("content-type", "application/json");
        for (name, value) in &draft.headers {
            request = request.header(*name, value);
        }
        request
    }

    /// Imports lines of items that keep their `_ts`, by Bolide's admin API. The answer of another server is a 404 or the like.
    pub(crate) fn import_lines(&self, container: &[&str], lines: &mut dyn Read) -> Result<Answer> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("/_bolide{}/import", path(container)))
            .header("authorization", format!("Bearer {}", self.key.text()))
            .header("content-type", "application/x-ndjson")
            .body(());
        let request = request.map_err(|error| Failure::new(format!("a request cannot be made: {error}")))?;
        let sent = self.transport.import_lines(request, lines);
        let response = sent.map_err(|error| Failure::new(format!("{}: {error}", self.name())))?;
        let (head, body) = response.into_parts();
        Ok(Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            was_repeated: false,
        })
    }

    /// Whether a container is a MongoDB collection: only Bolide has these, and its admin API says so. The answer of another server is a 404 or the like.
    pub(crate) fn is_collection(&self, container: &[&str]) -> Result<bool> {
        let request = Request::builder()
            .method(Method::GET)
            .uri(format!("/_bolide{}/indexes", path(container)))
            .header("authorization", format!("Bearer {}", self.key.text()))
            .body(Vec::new());
        let request = request.map_err(|error| Failure::new(format!("a request cannot be made: {error}")))?;
        let sent = self.transport.send(request);
        let response = sent.map_err(|error| Failure::new(format!("{}: {error}", self.name())))?;
        let says_so = |body: &[u8]| String::from_utf8_lossy(body).contains("is a MongoDB collection");
        Ok(response.status().as_u16() == 400 && says_so(response.body()))
    }

    /// The answer to a request that must succeed.
    ///
    /// # Errors
    /// Another answer, in the server's words, after what was tried.
    pub(crate) fn expect(&self, draft: &Draft<'_>, what: &str) -> Result<Answer> {
        let answer = self.send(draft)?;
        if answer.is_success() {
            return Ok(answer);
        }
        Err(Failure::new(format!("{}: {what}: {}", self.name(), answer.message())))
    }
}

fn path(ids: &[&str]) -> String {
    ids.iter()
        .map(|id| format!("/{}", utf8_percent_encode(id, ESCAPED)))
        .collect()
}

#[cfg(test)]
mod tests;
