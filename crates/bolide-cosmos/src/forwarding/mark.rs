//! How two servers show each other that they have the primary key of the account, without showing the key.
//!
//! Whoever opens a connection names the node that it is for, and a nonce. Their MAC shows that it has the key; another MAC of the same in the response shows
//! that the other side is that node, or a holder of the key that may speak for it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use subtle::ConstantTimeEq as _;

use crate::keys::Keys;

/// In a request: `<node of the receiver> <nonce> <MAC>`. In the response to it: a MAC.
pub(crate) static MARK: HeaderName = HeaderName::from_static("x-bolide-forwarded");

/// A connection as its opener has named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opening {
    /// The node that it is for.
    pub node: String,
    nonce: String,
}

/// The sender of a request that claims to be a server of this account has no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotFromPeer;

impl Opening {
    /// A connection to a node.
    pub(super) fn to(node: String) -> Opening {
        let nonce = uuid::Uuid::new_v4().simple().to_string();
        Opening { node, nonce }
    }

    /// The connection that a request opens.
    ///
    /// # Errors
    /// Its sender has not shown the primary key.
    pub(crate) fn of(keys: &Keys, headers: &HeaderMap) -> Result<Opening, NotFromPeer> {
        let mark = headers.get(&MARK).ok_or(NotFromPeer)?;
        let parts: Vec<&str> = mark.to_str().map_err(|_| NotFromPeer)?.split(' ').collect();
        let [node, nonce, mac] = parts[..] else {
            return Err(NotFromPeer);
        };
        let [node, nonce] = [node, nonce].map(str::to_owned);
        let opening = Opening { node, nonce };
        let is_from_peer = bool::from(mac.as_bytes().ct_eq(opening.sender_mac(keys).as_bytes()));
        is_from_peer.then_some(opening).ok_or(NotFromPeer)
    }

    /// What the opener shows.
    pub(super) fn request_mark(&self, keys: &Keys) -> HeaderValue {
        let mark = format!("{} {} {}", self.node, self.nonce, self.sender_mac(keys));
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
        let parts = [purpose, "\n", &self.node, "\n", &self.nonce].map(str::as_bytes);
        STANDARD.encode(keys.sign(&parts))
    }
}

#[cfg(test)]
mod tests;
