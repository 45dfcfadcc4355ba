//! The page for people who open the server in a browser: a description, its address, and how programs connect to it.
//!
//! Every request that passes the checks of names and origins ([`crate::names`]) may get it. It shows no key except the well-known one. Source:
//! cosmos-rest §0.1: the emulator uses `/_explorer/`.

use http::header::{ACCEPT, AUTHORIZATION};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};

use crate::routes::{PathKind, Route};
use crate::wire::{Payload, Reply, headers};

const PAGE: &str = include_str!("explorer.html");
/// The page may not load, run or frame anything, whatever text is inserted into it.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// Whether a request is for the page: by its own path, or for the account from a browser.
pub(crate) fn is_requested(head: &Parts, kind: PathKind) -> bool {
    is_read(head) && (kind == PathKind::Explorer || (kind == PathKind::Account && is_of_browser(head)))
}

/// The same on the port of the page, where it is at the root, too.
pub(crate) fn is_requested_on_its_port(head: &Parts, kind: PathKind) -> bool {
    is_read(head) && matches!(kind, PathKind::Explorer | PathKind::Account)
}

/// Whether the path is that of a page, also of one that the official emulator has and this server does not.
pub(crate) fn is_page(route: &Route<'_>) -> bool {
    let is_below = route.path == "_explorer" || route.path.starts_with("_explorer/");
    is_below && route.kind != PathKind::Certificate
}

fn is_read(head: &Parts) -> bool {
    head.method == Method::GET || head.method == Method::HEAD
}

/// Whether a browser sent the request: clients of the protocol sign requests, and do not accept HTML.
fn is_of_browser(head: &Parts) -> bool {
    let signed = head.headers.get(AUTHORIZATION).filter(|value| !value.is_empty());
    let accepts_html = |value: &HeaderValue| value.to_str().is_ok_and(|accepted| accepted.contains("text/html"));
    signed.is_none() && head.headers.get_all(ACCEPT).iter().any(accepts_html)
}

/// The page. `key`: the well-known key, if the server has it.
pub(crate) fn page(endpoint: &str, key: Option<&str>) -> Reply {
    let key = key.unwrap_or("<your key>");
    let html = PAGE
        .replace("{version}", env!("CARGO_PKG_VERSION"))
        .replace("{key}", &escaped(key))
        .replace("{endpoint}", &escaped(endpoint));
    let mut reply = Reply::empty(StatusCode::OK);
    reply.fixed(&headers::CONTENT_TYPE, "text/html; charset=utf-8");
    reply.fixed(&headers::CONTENT_SECURITY_POLICY, POLICY);
    reply.fixed(&headers::CACHE_CONTROL, "no-store");
    reply.payload = Payload::Whole(html.into());
    reply
}

/// Escapes text for an element of a page.
fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            other => html.push(other),
        }
    }
    html
}

#[cfg(test)]
mod tests;
