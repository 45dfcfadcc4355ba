//! How two servers show each other that they have the primary key of the account, without showing the key.
//!
//! Whoever opens a connection names the node that it is for, the time, and a nonce. Their MAC shows that it has the key; another MAC of the same in the response
//! shows that the other side has it, too. Who has read an opening on its way cannot repeat it: it is old, or its nonce is known ([`Openings`]).

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bolide_model::UnixSeconds;
use bolide_model::time::wall_clock;
use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use subtle::ConstantTimeEq as _;

use crate::keys::Keys;

/// In a request: `<node of the receiver> <Unix time> <nonce> <MAC>`. In the response to it: a MAC.
pub(crate) static MARK: HeaderName = HeaderName::from_static("x-bolide-forwarded");

/// How far the wall clocks of two servers may differ, in seconds: as much as those of a server and a client.
const CLOCK_SKEW: i64 = 15 * 60;
/// Bytes of a nonce, and the number of them that are remembered. There are no more openings in that time.
const NONCE_BYTES: usize = 64;
const NONCES: usize = 4 * 1024;

/// A connection as its opener has named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opening {
    /// The node that it is for.
    pub node: String,
    /// When it was opened, by the wall clock of its opener.
    at: UnixSeconds,
    nonce: String,
}

/// The openings that were accepted of late.
#[derive(Debug, Default)]
pub(crate) struct Openings(Mutex<BTreeSet<(UnixSeconds, String)>>);

impl Openings {
    /// Whether an opening is new.
    pub(crate) fn accept(&self, opening: &Opening) -> bool {
        self.accept_at(opening, wall_clock().seconds())
    }

    fn accept_at(&self, opening: &Opening, now: UnixSeconds) -> bool {
        let mut seen = self.0.lock();
        *seen = seen.split_off(&(UnixSeconds(now.0 - CLOCK_SKEW), String::new()));
        let is_recent = now.0.abs_diff(opening.at.0) <= CLOCK_SKEW.unsigned_abs();
        is_recent && seen.len() < NONCES && seen.insert((opening.at, opening.nonce.clone()))
    }
}

/// The sender of a request that claims to be a server of this account has no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotFromPeer;

impl Opening {
    /// A connection to a node.
    pub(super) fn to(node: String) -> Opening {
        Opening {
            node,
            at: wall_clock().seconds(),
            nonce: uuid::Uuid::new_v4().simple().to_string(),
        }
    }

    /// The connection that a request opens.
    ///
    /// # Errors
    /// Its sender has not shown the primary key.
    pub(crate) fn of(keys: &Keys, headers: &HeaderMap) -> Result<Opening, NotFromPeer> {
        let mark = headers.get(&MARK).ok_or(NotFromPeer)?;
        let parts: Vec<&str> = mark.to_str().map_err(|_| NotFromPeer)?.split(' ').collect();
        let [node, at, nonce, mac] = parts[..] else {
            return Err(NotFromPeer);
        };
        if nonce.len() > NONCE_BYTES {
            return Err(NotFromPeer);
        }
        let at = UnixSeconds(at.parse().map_err(|_| NotFromPeer)?);
        let [node, nonce] = [node, nonce].map(str::to_owned);
        let opening = Opening { node, at, nonce };
        let is_from_peer = bool::from(mac.as_bytes().ct_eq(opening.sender_mac(keys).as_bytes()));
        is_from_peer.then_some(opening).ok_or(NotFromPeer)
    }

    /// What the opener shows.
    pub(super) fn request_mark(&self, keys: &Keys) -> HeaderValue {
        let mark = format!("{} {} {} {}", self.node, self.at.0, self.nonce, self.sender_mac(keys));
        HeaderValue::try_from(mark).expect("numbers and base64 are ASCII")
    }

    /// What the receiver shows.
    pub(crate) fn response_mark(&self, keys: &Keys) -> HeaderValue {
        HeaderValue::try_from(self.receiver_mac(keys)).expect("base64 is ASCII")
    }

    /// Whether the receiver has shown the key.
    pub(super) fn is_shown(&self, keys: &Keys, headers: &HeaderMap) -> bool {
        let shown = headers.get(&MARK).map(HeaderValue::as_bytes).unwrap_or_default();
        shown.ct_eq(self.receiver_mac(keys).as_bytes()).into()
    }

    fn sender_mac(&self, keys: &Keys) -> String {
        self.mac(keys, "bolide forwards to")
    }

    fn receiver_mac(&self, keys: &Keys) -> String {
        self.mac(keys, "bolide receives as")
    }

    fn mac(&self, keys: &Keys, purpose: &str) -> String {
        let at = self.at.0.to_string();
        let parts = [purpose, "\n", &self.node, "\n", &at, "\n", &self.nonce].map(str::as_bytes);
        STANDARD.encode(keys.sign(&parts))
    }
}

#[cfg(test)]
mod tests;
