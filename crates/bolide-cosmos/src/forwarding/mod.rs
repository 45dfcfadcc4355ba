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
//! Two servers have one connection for all writes that A sends to B: HTTP/1.1, upgraded to a protocol of frames ([`frame`]). What arrives at A at the same time is
//! written together, as are the responses of one commit, so the way to B and back costs less per write than a request of HTTP.
//!
//! ```text
//!   A  destination ── opens ──▶ connection ══ frames ══▶ receiver  B
//! ```
//!
//! A forwarded request is the client's own, and its signature is checked again. With the request for the upgrade A shows that it has the primary key of the
//! account, and with the response B does ([`mark`]), before any write is sent: where B is, it has written into the store itself, and that may be an address by which A
//! reaches something else.

mod connection;
mod destination;
mod frame;
mod mark;
mod receiver;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bolide_core::NodeId;
use bolide_model::time::Monotonic;
use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode, header};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::keys::Keys;
use destination::Destination;
pub(crate) use frame::Sent;
pub(crate) use mark::{MARK, Opening, Openings};
pub use receiver::receive;

/// Where a server accepts connections from others.
const PATH: &str = "/_bolide/forward";
/// The protocol that connections between servers are upgraded to.
pub(crate) const PROTOCOL: &str = "bolide-forward";
/// Largest body of a request that is forwarded. Larger ones gain nothing from a shared commit.
pub(crate) const BODY_BYTES: usize = 64 * 1024;
/// Headers of a request that is forwarded.
pub(crate) const HEADERS: usize = 80;
/// Writes that are under way to one server. More are carried out where they arrived.
const UNDER_WAY: usize = 128;
/// Servers that are remembered: each start of a server is another one.
const DESTINATIONS: usize = 64;

/// Reaches the other servers of the store.
pub trait Peers: Send + Sync {
    /// Sends a request for an upgrade to the server at an endpoint. Returns the headers of its response and the connection.
    ///
    /// # Errors
    /// It cannot be reached, or does not switch to the protocol; why.
    fn open<'p>(
        &'p self,
        endpoint: &'p str,
        request: Request<()>,
    ) -> BoxFuture<'p, Result<(HeaderMap, PeerStream), String>>;

    /// How long a response is waited for.
    fn response_timeout(&self) -> Duration;
}

/// A connection to another server.
pub type PeerStream = Box<dyn Duplex>;

/// A stream in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

/// Marks a request that another server has sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FromPeer;

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SendError {
    /// Nothing was sent.
    NotSent(String),
    /// The request may have been carried out.
    NoResponse(String),
    /// It was carried out, and its response is too large.
    Unsendable,
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
    pub(crate) async fn send(&self, to: (NodeId, String), sent: Sent<'_>) -> Outcome {
        let outcome = match self.destination(to).carry_out(self, sent).await {
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

/// Whether a request opens a connection between servers.
pub(crate) fn is_opening(head: &Parts) -> bool {
    let protocol = head.headers.get(header::UPGRADE);
    head.uri.path() == PATH && protocol.is_some_and(|protocol| protocol.as_bytes() == PROTOCOL.as_bytes())
}

/// Empties a buffer for the next frames. One that has grown large is given back.
fn reuse(buffer: &mut BytesMut) {
    match buffer.capacity() > frame::FRAME_BYTES {
        true => *buffer = BytesMut::new(),
        false => buffer.clear(),
    }
}

#[cfg(test)]
mod tests;
