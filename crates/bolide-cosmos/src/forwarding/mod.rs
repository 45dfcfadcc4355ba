//! Writes that are better committed by another server of the store: they are sent there, and its responses are passed on.
//!
//! ```text
//!   clients ──▶ A: admits, reads ──▶ queue ──▶ POST of all that wait ──▶ B, the owner: carries out each like any other request
//!           ◀───────────────────────────────────────────── responses ◀──┘
//! ```
//!
//! Servers that write one partition at the same time wait for each other's commits, and each commit has the writes of one of them only. Those that one
//! server gets share a commit. Any server can carry out any write, so a write that could not be sent is carried out where it arrived. One that was sent, and whose response did
//! not come, has an unknown outcome (408).
//!
//! A forwarded request is the client's own, and its signature is checked again. The request around it shows that its sender has a key of the account, without showing the key: it has a MAC
//! over the receiver's node id. Before the first one, the receiver proves that it has the key: where it is, it has written into the store itself, and that may be an address by which the sender
//! reaches something else.

mod destination;
mod messages;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bolide_core::NodeId;
use bolide_model::time::Monotonic;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use parking_lot::Mutex;
use subtle::ConstantTimeEq as _;

use crate::keys::Keys;
use crate::routes::Route;
use destination::Destination;
pub(crate) use destination::Outcome;

/// Where forwarded writes are sent, followed by the node id of the receiver.
const PATH: &str = "_bolide/forwarded-writes/";
/// What a receiver includes in its proof.
const NONCE: HeaderName = HeaderName::from_static("x-bolide-nonce");
/// Requests of one POST.
pub(crate) const MESSAGES: usize = 64;
/// Largest body of a request that is forwarded. Larger ones gain nothing from a shared commit.
pub(crate) const BODY_BYTES: usize = 64 * 1024;
/// Servers that are remembered: each start of a server is another one.
const DESTINATIONS: usize = 64;

/// Sends requests to the other servers of the store.
pub trait Peers: Send + Sync {
    /// Sends a request to the server at an endpoint, and waits for its response, a bounded time.
    fn send(&self, endpoint: &str, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Bytes>, SendError>>;
}

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendError {
    /// Nothing was sent.
    NotSent(String),
    /// The request may have been carried out.
    NoResponse(String),
}

/// Marks a request that another server has forwarded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Forwarded;

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
    pub(crate) fn new(peers: Arc<dyn Peers>, keys: Keys, clock: Monotonic) -> Arc<Forwarding> {
        Arc::new(Forwarding {
            peers,
            keys,
            clock,
            destinations: Mutex::default(),
            figures: Figures::default(),
        })
    }

    /// Sends a request to a server.
    pub(crate) async fn send(self: &Arc<Forwarding>, to: (NodeId, String), head: &Parts, body: &Bytes) -> Outcome {
        let mut message = Vec::with_capacity(body.len() + 2 * 1024);
        messages::put_request(&mut message, head, body);
        let outcome = self.destination(to).carry_out(self, message).await;
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

    /// Sends a body to a server. One without messages asks for its proof.
    async fn post(&self, to: &Destination, body: Bytes, nonce: &str) -> Result<Response<Bytes>, SendError> {
        let node = to.node.to_string();
        let not_sent = |error: &dyn std::fmt::Display| SendError::NotSent(error.to_string());
        let mac = HeaderValue::from_str(&sender_mac(&self.keys, &node)).map_err(|error| not_sent(&error))?;
        let nonce = HeaderValue::from_str(nonce).map_err(|error| not_sent(&error))?;
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = format!("/{PATH}{node}").parse().map_err(|error| not_sent(&error))?;
        request.headers_mut().insert(http::header::AUTHORIZATION, mac);
        request.headers_mut().insert(NONCE, nonce);
        self.peers.send(&to.endpoint, request).await
    }
}

impl Figures {
    fn count(&self, outcome: &Outcome) {
        let counter = match outcome {
            Outcome::Answered(_) => &self.answered,
            Outcome::NotSent => &self.not_sent,
            Outcome::Unknown => &self.unknown,
        };
        counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

/// The node to which a request forwards writes; `None` if it is another request.
pub(crate) fn receiver<'r>(head: &Parts, route: &Route<'r>) -> Option<&'r str> {
    let node = route.path.strip_prefix(PATH)?;
    (head.method == Method::POST).then_some(node)
}

/// Whether the sender of forwarded writes for `node` has a key of the account. Who repeats it can forward only what its clients have signed.
pub(crate) fn is_from_peer(keys: &Keys, head: &Parts, node: &str) -> bool {
    let shown = head.headers.get(http::header::AUTHORIZATION);
    let mac = sender_mac(keys, node);
    shown.is_some_and(|shown| bool::from(shown.as_bytes().ct_eq(mac.as_bytes())))
}

/// The proof that this server has a key of the account.
pub(crate) fn proof(keys: &Keys, headers: &HeaderMap, node: &str) -> String {
    let nonce = headers.get(NONCE).map(HeaderValue::as_bytes).unwrap_or_default();
    receiver_mac(keys, node, nonce)
}

/// The requests in the body of a POST; `None` if it is none.
pub(crate) fn requests(body: Bytes) -> Option<Vec<Request<Bytes>>> {
    let mut requests = messages::requests(body, MESSAGES)?;
    for request in &mut requests {
        request.extensions_mut().insert(Forwarded);
    }
    Some(requests)
}

/// The body of the response to it.
pub(crate) fn responses(responses: &[(Response<()>, Bytes)]) -> Vec<u8> {
    let mut body = Vec::with_capacity(responses.iter().map(|(_, body)| body.len() + 2 * 1024).sum());
    for (response, content) in responses {
        messages::put_response(&mut body, response, content);
    }
    body
}

fn sender_mac(keys: &Keys, node: &str) -> String {
    let mac = keys.sign(&[b"bolide forwards writes to\n", node.as_bytes()]);
    format!("type=peer&sig={}", STANDARD.encode(mac))
}

fn receiver_mac(keys: &Keys, node: &str, nonce: &[u8]) -> String {
    STANDARD.encode(keys.sign(&[b"bolide receives writes as\n", node.as_bytes(), b"\n", nonce]))
}

#[cfg(test)]
mod tests;
