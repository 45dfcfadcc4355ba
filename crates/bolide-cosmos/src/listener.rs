//! The listener of a request, and the host and port that its client used.

use std::net::SocketAddr;

use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;

use crate::status::Failure;
use crate::wire::headers;

/// What a listener is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The protocol of Cosmos DB, the admin API and the data explorer.
    Database,
    /// Health checks, on the port and under the paths of the official emulator.
    Health,
    /// The data explorer at its root, on the port of the official emulator's explorer. As the page may ask nothing but the server that it came from, the
    /// database is there, too.
    Explorer,
}

/// The listener that accepted a request.
#[derive(Debug, Clone, Copy)]
pub struct Listener {
    /// What may be asked of it.
    pub purpose: Purpose,
    /// Whether the connection is encrypted.
    pub is_tls: bool,
    /// The address the client reached.
    pub local: SocketAddr,
}

impl Listener {
    /// The scheme, host and port that the client used: SDKs use the endpoint in responses, also through port mappings.
    pub(crate) fn origin(&self, head: &Parts) -> String {
        self.url(head, "")
    }

    /// The [`Listener::origin`], followed by a path.
    pub(crate) fn url(&self, head: &Parts, path: &str) -> String {
        let scheme = if self.is_tls { "https://" } else { "http://" };
        match authority(head) {
            Ok(Some(authority)) => [scheme, authority, path].concat(),
            _ => format!("{scheme}{}{path}", self.local),
        }
    }
}

/// The host and port to which a request was sent, if it names them.
///
/// # Errors
/// 400 if it names several.
pub(crate) fn authority(head: &Parts) -> Result<Option<&str>, Failure> {
    let mut hosts = head.headers.get_all(HOST).iter();
    let (host, another) = (hosts.next(), hosts.next());
    if another.is_some() {
        return Err(Failure::bad_request("a request has one `Host` header"));
    }
    let outside = || Failure::bad_request("the `Host` header has bytes outside ASCII");
    let host = host.map(|host| headers::ascii(host).ok_or_else(outside)).transpose()?;
    let host = host.filter(|host| !host.is_empty());
    // HTTP/2 has it in the target, as requests to proxies do.
    let target = head.uri.authority().map(Authority::as_str);
    match (target, host) {
        (Some(target), Some(host)) if !target.eq_ignore_ascii_case(host) => Err(Failure::bad_request(format!(
            "the request's target and its `Host` header differ. target=`{target}` host=`{host}`"
        ))),
        (target, host) => Ok(target.or(host)),
    }
}
