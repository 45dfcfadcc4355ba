//! Writes that are better committed by another server of the store: they are sent there, and its responses are passed on.
//!
//! ```text
//!   clients ──▶ A: admits, reads ──▶ the client's request, with a header ──▶ B, the owner: carries it out like any other
//!           ◀──────────────────────────────── its response, with a header ◀──┘
//! ```
//!
//! Servers that write one partition at the same time wait for each other's commits, and each commit has the writes of one of them only. Those that one
//! server gets share a commit. Any server can carry out any write, so a write that could not be sent is carried out where it arrived. One that was sent, and
//! to which B has not responded, has an unknown outcome (408).
//!
//! A forwarded request is the client's own, and its signature is checked again. The header shows that its sender has the primary key of the account, without showing the key, and
//! names the node that it is for. With the one of the response B shows that it has the key, too: what a proxy between them says tells nothing. B shows this once
//! before it is sent any write: where it is, it has written into the store itself, and that may be an address by which A reaches something else.

mod destination;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bolide_core::NodeId;
use bolide_model::time::Monotonic;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri, header};
use parking_lot::Mutex;
use subtle::ConstantTimeEq as _;

use crate::keys::Keys;
use destination::Destination;

/// In a request: `<node of the receiver> <nonce> <MAC>`. In the response to it: a MAC.
const MARK: HeaderName = HeaderName::from_static("x-bolide-forwarded");
/// Largest body of a request that is forwarded. Larger ones gain nothing from a shared commit.
pub(crate) const BODY_BYTES: usize = 64 * 1024;
/// Headers of a request that is forwarded.
pub(crate) const HEADERS: usize = 80;
/// Servers that are remembered: each start of a server is another one.
const DESTINATIONS: usize = 64;

/// Headers about a connection, and not about the request or response.
const OF_THE_CONNECTION: [HeaderName; 9] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::EXPECT,
    header::TE,
    header::UPGRADE,
    header::DATE,
    MARK,
];

/// Sends requests to the other servers of the store.
pub trait Peers: Send + Sync {
    /// Sends a request to the server at an endpoint, and waits for its response, a bounded time.
    fn send<'p>(
        &'p self,
        endpoint: &'p str,
        request: Request<Bytes>,
    ) -> BoxFuture<'p, Result<Response<Bytes>, SendError>>;
}

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendError {
    /// Nothing was sent.
    NotSent(String),
    /// The request may have been carried out.
    NoResponse(String),
}

/// How a write ended that was to be carried out by another server.
#[derive(Debug)]
pub(crate) enum Outcome {
    Answered(Response<Bytes>),
    /// It was not carried out.
    NotSent,
    /// It may have been carried out.
    Unknown,
}

/// The other servers, as destinations of writes. See the module.
pub(crate) struct Forwarding {
    peers: Arc<dyn Peers>,
    keys: Keys,
    clock: Monotonic,
    destinations: Mutex<HashMap<NodeId, Arc<Destination>>>,
    pub figures: Figures,
}

/// How the writes ended that were better committed elsewhere.
#[derive(Default)]
pub(crate) struct Figures {
    pub answered: AtomicU64,
    pub not_sent: AtomicU64,
    pub unknown: AtomicU64,
}

impl Forwarding {
    pub(crate) fn new(peers: Arc<dyn Peers>, keys: Keys, clock: Monotonic) -> Forwarding {
        Forwarding {
            peers,
            keys,
            clock,
            destinations: Mutex::default(),
            figures: Figures::default(),
        }
    }

    /// Sends a client's request to a server.
    pub(crate) async fn send(&self, to: (NodeId, String), head: &Parts, body: &Bytes) -> Outcome {
        let mut request = Request::new(body.clone());
        *request.method_mut() = head.method.clone();
        // Without the authority that HTTP/2 has in it: the client's is another one.
        *request.uri_mut() = head.uri.path_and_query().cloned().map_or_else(Uri::default, Uri::from);
        let headers = head
            .headers
            .iter()
            .filter(|(name, _)| !OF_THE_CONNECTION.contains(name));
        request
            .headers_mut()
            .extend(headers.map(|(name, value)| (name.clone(), value.clone())));
        let outcome = match self.destination(to).carry_out(self, request).await {
            // It refuses before it begins, by what the servers judge differently: keys, the age of a signature, which node it is.
            Outcome::Answered(response) if is_refusal(response.status()) => Outcome::NotSent,
            outcome => outcome,
        };
        self.figures.count(&outcome);
        outcome
    }

    fn destination(&self, (node, endpoint): (NodeId, String)) -> Arc<Destination> {
        let mut destinations = self.destinations.lock();
        if destinations.len() >= DESTINATIONS && !destinations.contains_key(&node) {
            // Those in use go on.
            destinations.clear();
        }
        let destination = destinations
            .entry(node)
            .or_insert_with(|| Arc::new(Destination::new(node, endpoint.clone())));
        if destination.endpoint != endpoint {
            *destination = Arc::new(Destination::new(node, endpoint));
        }
        destination.clone()
    }
}

fn is_refusal(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::MISDIRECTED_REQUEST
    )
}

impl Figures {
    fn count(&self, outcome: &Outcome) {
        let counter = match outcome {
            Outcome::Answered(_) => &self.answered,
            Outcome::NotSent => &self.not_sent,
            Outcome::Unknown => &self.unknown,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// A request that another server has forwarded, as its sender has shown.
#[derive(Debug, Clone)]
pub(crate) struct Forwarded {
    /// The node that it is for.
    pub node: String,
    nonce: String,
}

impl Forwarded {
    /// What a request says of itself; `None` if it comes from a client.
    ///
    /// # Errors
    /// If its sender does not have the primary key. Whoever repeats a header can send only what a client has signed.
    pub(crate) fn of(keys: &Keys, headers: &HeaderMap) -> Result<Option<Forwarded>, NotFromPeer> {
        let Some(mark) = headers.get(&MARK) else {
            return Ok(None);
        };
        let parts: Vec<&str> = mark.to_str().map_err(|_| NotFromPeer)?.split(' ').collect();
        let [node, nonce, mac] = parts[..] else {
            return Err(NotFromPeer);
        };
        if !bool::from(mac.as_bytes().ct_eq(sender_mac(keys, node, nonce).as_bytes())) {
            return Err(NotFromPeer);
        }
        let [node, nonce] = [node, nonce].map(str::to_owned);
        Ok(Some(Forwarded { node, nonce }))
    }

    /// Marks the response, whatever it is.
    pub(crate) fn mark(&self, keys: &Keys, headers: &mut HeaderMap) {
        let mac = HeaderValue::try_from(receiver_mac(keys, &self.node, &self.nonce)).expect("base64 is ASCII");
        headers.insert(MARK, mac);
    }
}

/// The sender of a request that claims to be forwarded has no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotFromPeer;

fn sender_mac(keys: &Keys, node: &str, nonce: &str) -> String {
    mac(keys, "bolide forwards to", node, nonce)
}

fn receiver_mac(keys: &Keys, node: &str, nonce: &str) -> String {
    mac(keys, "bolide receives as", node, nonce)
}

fn mac(keys: &Keys, purpose: &str, node: &str, nonce: &str) -> String {
    let parts = [purpose, "\n", node, "\n", nonce].map(str::as_bytes);
    STANDARD.encode(keys.sign(&parts))
}

#[cfg(test)]
mod tests;
