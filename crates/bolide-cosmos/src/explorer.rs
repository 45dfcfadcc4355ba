//! The data explorer: the page that people open in a browser, and what it asks before somebody is signed in.
//!
//! ```text
//!   GET /_explorer/, /_explorer/index.html, / from a browser    the page
//!   GET /_explorer/app.js, …                                    its other files: explorer/dist, built from explorer/src
//!   GET /_explorer/session                                      {"version", "endpoint", "key"}
//! ```
//!
//! Every request that passes the checks of names and origins ([`crate::names`]) may get them. They show no key except the well-known one. The page
//! then asks as other clients do, with a key. Source: cosmos-rest §0.1: the emulator uses `/_explorer/`.

use std::io::Read as _;
use std::sync::OnceLock;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::header::{ACCEPT, ACCEPT_ENCODING, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::auth;
use crate::listener::Purpose;
use crate::routes::{PathKind, Route};
use crate::status::{Failure, NOT_FOUND};
use crate::wire::{Payload, Reply, headers};

/// A file of the built page, compressed by the build script.
struct File {
    name: &'static str,
    etag: &'static str,
    gzip: &'static [u8],
    /// As it was before, once somebody has asked for it so: clients without a key must not make the server do this work again and again.
    text: OnceLock<Bytes>,
}

// Defines `FILES`: those of explorer/dist.
include!(concat!(env!("OUT_DIR"), "/explorer.rs"));

const INDEX: &str = "index.html";
/// What the page asks before somebody is signed in.
const SESSION: &str = "session";

/// Whether a request is for the page or its files: by their own paths, or for the account from a browser, or by anybody on the port of the explorer.
pub(crate) fn is_requested(head: &Parts, kind: PathKind, purpose: Purpose) -> bool {
    let is_read = head.method == Method::GET || head.method == Method::HEAD;
    let wants_page = || auth::is_unsigned(head) && (purpose == Purpose::Explorer || accepts_html(head));
    is_read && (kind == PathKind::Explorer || (kind == PathKind::Account && wants_page()))
}

/// Whether the path is that of a page, also of one that the official emulator has and this server does not.
pub(crate) fn is_page(route: &Route<'_>) -> bool {
    let is_below = route.path == "_explorer" || route.path.starts_with("_explorer/");
    is_below && route.kind != PathKind::Certificate
}

/// Clients of the protocol do not accept HTML; browsers do.
fn accepts_html(head: &Parts) -> bool {
    let accepts_html = |value: &HeaderValue| value.to_str().is_ok_and(|accepted| accepted.contains("text/html"));
    head.headers.get_all(ACCEPT).iter().any(accepts_html)
}

/// What the page asks first.
pub(crate) struct Session<'s> {
    /// Where clients reach the database.
    pub endpoint: &'s str,
    /// The well-known key, if the server has it.
    pub key: Option<&'s str>,
}

/// The response for a path of the page. `name`: what comes after `/_explorer/`.
///
/// # Errors
/// 404 for a file that it does not have.
pub(crate) fn answer(head: &Parts, name: &str, session: &Session<'_>) -> Result<Reply, Failure> {
    let mut reply = match name {
        "" | INDEX => page(session)?,
        SESSION => session.reply(),
        name => file(&head.headers, name)?,
    };
    reply.fixed(&headers::CONTENT_TYPE_OPTIONS, "nosniff");
    reply.fixed(&headers::RESOURCE_POLICY, "same-origin");
    reply.fixed(&headers::OPENER_POLICY, "same-origin");
    reply.fixed(&headers::REFERRER_POLICY, "no-referrer");
    Ok(reply)
}

impl Session<'_> {
    fn to_json(&self) -> Value {
        json!({"version": env!("CARGO_PKG_VERSION"), "endpoint": self.endpoint, "key": self.key})
    }

    fn reply(&self) -> Reply {
        let mut reply = Reply::value(StatusCode::OK, &self.to_json());
        reply.fixed(&headers::CACHE_CONTROL, "no-store");
        reply
    }
}

/// The page itself, with a new nonce for the styles that its editor makes, and with what it would ask first. It may load and ask nothing but this server, and run nothing but its file.
fn page(session: &Session<'_>) -> Result<Reply, Failure> {
    let nonce = Uuid::new_v4().simple().to_string();
    let html = String::from_utf8_lossy(&named(INDEX)?.text()).replace("{nonce}", &nonce);
    let html = html.replace("{session}", &in_attribute(&session.to_json().to_string()));
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self'; connect-src 'self'; \
         frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    );
    let mut reply = Reply::empty(StatusCode::OK);
    reply.fixed(&headers::CONTENT_TYPE, "text/html; charset=utf-8");
    reply.text(&headers::CONTENT_SECURITY_POLICY, policy);
    reply.fixed(&headers::CACHE_CONTROL, "no-store");
    reply.payload = Payload::Whole(html.into());
    Ok(reply)
}

/// A text as it is written in an attribute of HTML with quotation marks.
fn in_attribute(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('"', "&quot;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

/// Another file of the page. Browsers keep it and ask whether it has changed.
fn file(asked: &HeaderMap, name: &str) -> Result<Reply, Failure> {
    let file = named(name)?;
    let mut reply = Reply::empty(StatusCode::OK);
    reply.fixed(&headers::CACHE_CONTROL, "no-cache");
    reply.fixed(&headers::VARY, "accept-encoding");
    reply.fixed(&headers::ETAG, file.etag);
    if has_it(asked, file.etag) {
        reply.status = StatusCode::NOT_MODIFIED;
        return Ok(reply);
    }
    reply.fixed(&headers::CONTENT_TYPE, content_type(name));
    reply.payload = Payload::Whole(match reads_gzip(asked) {
        true => {
            reply.fixed(&headers::CONTENT_ENCODING, "gzip");
            Bytes::from_static(file.gzip)
        }
        false => file.text(),
    });
    Ok(reply)
}

impl File {
    /// As it was before it was compressed.
    fn text(&self) -> Bytes {
        let text = self.text.get_or_init(|| {
            let mut text = Vec::new();
            let mut reader = GzDecoder::new(self.gzip);
            reader.read_to_end(&mut text).expect("the build script has written it");
            text.into()
        });
        text.clone()
    }
}

fn named(name: &str) -> Result<&'static File, Failure> {
    let file = FILES.iter().find(|file| file.name == name);
    file.ok_or_else(|| Failure::new(NOT_FOUND, "the explorer has no such file"))
}

/// Browsers run a module only with the type of a script.
fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("md") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// Whether the client has the file with this etag, of those that it lists.
fn has_it(asked: &HeaderMap, etag: &str) -> bool {
    let mut sent = asked.get_all(IF_NONE_MATCH).iter();
    sent.any(|sent| sent.to_str().is_ok_and(|sent| sent.contains(etag)))
}

/// Whether the client reads gzip: it lists it, with any parameters except that it must not be used (`;q=0`).
fn reads_gzip(asked: &HeaderMap) -> bool {
    let sent = asked.get_all(ACCEPT_ENCODING).iter();
    let encodings = sent
        .filter_map(|sent| sent.to_str().ok())
        .flat_map(|sent| sent.split(','));
    encodings.into_iter().any(|one| {
        let (name, parameters) = one.split_once(';').unwrap_or((one, ""));
        name.trim() == "gzip" && parameters.replace(' ', "") != "q=0"
    })
}

#[cfg(test)]
mod tests;
