//! Names and origins: the names under which the server answers, and the web pages that may send requests.
//!
//! The emulator's well-known key is public. A web page that rebinds its own name to this machine would reach a server with that key as if it was the
//! page's own server, so the server then accepts only names that no web page can have. With any key, a browser sends the origin of a page: pages of
//! other origins are refused unless they are allowed.

use std::net::IpAddr;

use http::header::{ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use crate::listener::{Listener, authority};
use crate::status::{FORBIDDEN, Failure};
use crate::wire::{Reply, headers};

/// Names by which containers reach their host machine.
const CONTAINER_HOSTS: [&str; 2] = ["host.docker.internal", "host.containers.internal"];

/// The names under which the server answers.
#[derive(Debug, Clone, Default)]
pub enum Names {
    /// Any name: used with the user's own key.
    #[default]
    All,
    /// `localhost`, loopback addresses, and these: used with the well-known key.
    Listed {
        /// Names, without ports, in any case.
        names: Vec<String>,
        /// Also accept IP addresses, names without a dot, `*.localhost` and the names of a container's host.
        emulator: bool,
    },
}

impl Names {
    fn include(&self, host: &str) -> bool {
        let Names::Listed { names, emulator } = self else {
            return true;
        };
        if is_same_name(host, "localhost") || names.iter().any(|name| is_same_name(name, host)) {
            return true;
        }
        if let Some(address) = address(host) {
            return *emulator || address.to_canonical().is_loopback();
        }
        *emulator && is_name_of_containers(host)
    }
}

/// Whether the name cannot be that of a public web page.
fn is_name_of_containers(host: &str) -> bool {
    let host = without_dot(host);
    !host.is_empty()
        && (!host.contains('.')
            || host.to_ascii_lowercase().ends_with(".localhost")
            || CONTAINER_HOSTS.iter().any(|name| host.eq_ignore_ascii_case(name)))
}

fn is_same_name(one: &str, other: &str) -> bool {
    without_dot(one).eq_ignore_ascii_case(without_dot(other))
}

fn without_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

fn address(host: &str) -> Option<IpAddr> {
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    host.parse().ok()
}

/// Origins of web pages that may send requests, besides the server's own.
#[derive(Debug, Clone, Default)]
pub struct Origins(Vec<Origin>);

impl Origins {
    /// Parses origins such as `http://localhost:3000`.
    ///
    /// # Errors
    /// The first invalid one.
    pub fn parse(texts: &[String]) -> Result<Origins, String> {
        let origins = texts.iter().map(|text| Origin::parse(text).ok_or_else(|| text.clone()));
        origins.collect::<Result<_, _>>().map(Origins)
    }
}

/// Scheme, host and port, as browsers compare them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Origin {
    is_tls: bool,
    host: String,
    port: u16,
}

impl Origin {
    /// `None` if it is not an origin of a web page; `null` is not one.
    fn parse(text: &str) -> Option<Origin> {
        let (scheme, authority) = text.split_once("://")?;
        let is_tls = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        Origin::of(is_tls, authority)
    }

    fn of(is_tls: bool, authority: &str) -> Option<Origin> {
        let (host, port) = split_authority(authority)?;
        Some(Origin {
            is_tls,
            host: without_dot(host).to_ascii_lowercase(),
            port: port.unwrap_or(if is_tls { 443 } else { 80 }),
        })
    }
}

/// Splits host and port; `None` if the text is not `host` or `host:port`.
fn split_authority(authority: &str) -> Option<(&str, Option<u16>)> {
    let end_of_address = authority.rfind(']').map_or(0, |end| end + 1);
    let (host, port) = match authority[end_of_address..].find(':') {
        Some(colon) => authority.split_at(end_of_address + colon),
        None => (authority, ""),
    };
    let port = match port.trim_start_matches(':') {
        "" => None,
        digits => Some(
            digits
                .parse()
                .ok()
                .filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))?,
        ),
    };
    let is_address = host.starts_with('[') && host.ends_with(']') && address(host).is_some();
    let is_name = !host.is_empty()
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
    (is_address || is_name).then_some((host, port))
}

/// The address of the server for clients, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// Scheme, host and maybe a port, such as `https://db.example`; see [`Endpoint::parse`].
    Whole(String),
    /// The host alone, as in URLs; scheme and port are those of the request. See [`Endpoint::of_host`].
    Host(String),
}

impl Endpoint {
    /// Parses a URL of scheme, host and port.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn parse(text: &str) -> Result<Endpoint, String> {
        let origin = text.strip_suffix('/').unwrap_or(text);
        Origin::parse(origin).ok_or_else(|| text.to_owned())?;
        Ok(Endpoint::Whole(origin.to_owned()))
    }

    /// Parses a name or an IP address, without a port.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn of_host(text: &str) -> Result<Endpoint, String> {
        let host = match address(text) {
            Some(IpAddr::V6(address)) => format!("[{address}]"),
            _ => text.to_owned(),
        };
        match split_authority(&host) {
            Some((_, None)) if !host.ends_with(':') => Ok(Endpoint::Host(host)),
            _ => Err(text.to_owned()),
        }
    }
}

/// The scheme, host and port that clients are told to use.
///
/// SDKs send all further requests there, so this client must be able to reach it: it is the configured endpoint, or else the address of this request
/// as reported by the proxies on its way. A client that sends a false header misleads only itself.
pub(crate) fn endpoint(configured: Option<&Endpoint>, head: &Parts, listener: Listener) -> String {
    if let Some(Endpoint::Whole(configured)) = configured {
        return configured.clone();
    }
    let own = listener.origin(head);
    let (own_scheme, own_authority) = own.split_once("://").unwrap_or(("http", &own));
    // Each proxy appends its value; the first one is the client's.
    let forwarded = |name| {
        let text = head
            .headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())?;
        text.split(',').next().map(str::trim)
    };
    let scheme = forwarded(&headers::FORWARDED_PROTO).filter(|scheme| matches!(*scheme, "http" | "https"));
    let authority = forwarded(&headers::FORWARDED_HOST).filter(|host| split_authority(host).is_some());
    let (scheme, authority) = (scheme.unwrap_or(own_scheme), authority.unwrap_or(own_authority));
    match configured {
        Some(Endpoint::Host(host)) => match split_authority(authority).and_then(|(_, port)| port) {
            Some(port) => format!("{scheme}://{host}:{port}"),
            None => format!("{scheme}://{host}"),
        },
        _ => format!("{scheme}://{authority}"),
    }
}

/// As [`endpoint`], for a request that came to another port than the database's, which is `port`.
pub(crate) fn endpoint_on_port(
    configured: Option<&Endpoint>,
    head: &Parts,
    listener: Listener,
    is_tls: bool,
    port: u16,
) -> String {
    let asked = endpoint(configured, head, listener);
    if matches!(configured, Some(Endpoint::Whole(_))) {
        return asked;
    }
    let authority = asked.split_once("://").map_or(&*asked, |(_, authority)| authority);
    let host = split_authority(authority).map_or(authority, |(host, _)| host);
    let scheme = if is_tls { "https" } else { "http" };
    format!("{scheme}://{host}:{port}")
}

/// Refuses requests under a name that is not the server's.
///
/// # Errors
/// 400.
pub(crate) fn check_name(names: &Names, head: &Parts) -> Result<(), Failure> {
    // A browser always sends the name.
    let Some(authority) = authority(head)? else {
        return Ok(());
    };
    if matches!(names, Names::All) {
        return Ok(());
    }
    let host = split_authority(authority).map(|(host, _)| host);
    if host.is_some_and(|host| names.include(host)) {
        return Ok(());
    }
    Err(Failure::bad_request(format!(
        "This server has the emulator's well-known key, which is public, and so answers only under names of this machine. \
         Start it with --allow-host to add a name, or with a key of your own. host=`{authority}`"
    )))
}

/// Refuses pages of other origins; returns the origin of an allowed page.
///
/// # Errors
/// 403.
pub(crate) fn check_origin<'h>(
    origins: &Origins,
    head: &'h Parts,
    listener: Listener,
) -> Result<Option<&'h HeaderValue>, Failure> {
    let mut sent = head.headers.get_all(ORIGIN).iter();
    let Some(value) = sent.next() else {
        return Ok(None);
    };
    let origin = value
        .to_str()
        .ok()
        .filter(|_| sent.next().is_none())
        .and_then(Origin::parse);
    let own = authority(head)?.and_then(|authority| Origin::of(listener.is_tls, authority));
    if origin.is_some() && origin == own {
        return Ok(None);
    }
    if origin.is_some_and(|origin| origins.0.contains(&origin)) {
        return Ok(Some(value));
    }
    Err(Failure::new(
        FORBIDDEN,
        format!(
            "Web pages of other origins may not use this server. Start it with --allow-origin to allow one. origin=`{}`",
            String::from_utf8_lossy(value.as_bytes())
        ),
    ))
}

/// Whether the request asks what a page may send (a CORS preflight).
pub(crate) fn is_preflight(head: &Parts) -> bool {
    head.method == Method::OPTIONS && head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The requests that a page of an allowed origin may send: all that an SDK sends.
pub(crate) fn preflight(asked: &HeaderMap) -> Reply {
    let mut reply = Reply::empty(StatusCode::NO_CONTENT);
    reply.fixed(&headers::ALLOW_METHODS, "GET, HEAD, POST, PUT, PATCH, DELETE");
    // A wildcard would not include `authorization`.
    if let Some(names) = asked.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        reply.header(&headers::ALLOW_HEADERS, names.clone());
    }
    if asked.contains_key(&headers::REQUEST_PRIVATE_NETWORK) {
        reply.fixed(&headers::ALLOW_PRIVATE_NETWORK, "true");
    }
    reply.fixed(&headers::MAX_AGE, "600");
    reply
}

/// Allows a page of an allowed origin to read a response.
pub(crate) fn allow_origin(reply: &mut Reply, origin: &HeaderValue) {
    reply.header(&headers::ALLOW_ORIGIN, origin.clone());
    reply.fixed(&headers::EXPOSE_HEADERS, "*");
    reply.fixed(&headers::VARY, "origin");
}

/// Host and port of an endpoint, for places where its scheme, which may have its usual port, is not told.
pub(crate) fn with_port(endpoint: &str) -> String {
    let (scheme, authority) = endpoint.split_once("://").unwrap_or(("https", endpoint));
    let authority = authority.trim_end_matches('/');
    let after_address = &authority[authority.rfind(']').unwrap_or(0)..];
    let port = if scheme.eq_ignore_ascii_case("http") { 80 } else { 443 };
    match after_address.contains(':') {
        true => authority.to_owned(),
        false => format!("{authority}:{port}"),
    }
}

#[cfg(test)]
mod tests;
