//! The keys of an account, with which clients sign.

use bolide_model::account_key::{Access, AccountKey};
use ring::hmac;
use subtle::ConstantTimeEq;

/// An account key, and the prepared signing key, so that checking a signature does not have to derive it.
#[derive(Clone)]
struct SigningKey {
    access: Access,
    key: AccountKey,
    signing: hmac::Key,
}

impl SigningKey {
    fn new(access: Access, key: AccountKey) -> SigningKey {
        SigningKey {
            access,
            signing: hmac::Key::new(hmac::HMAC_SHA256, key.bytes()),
            key,
        }
    }

    fn signs(&self, payload: &[&[u8]], signature: &[u8]) -> bool {
        bool::from(self.sign(payload).as_ref().ct_eq(signature))
    }

    fn sign(&self, payload: &[&[u8]]) -> hmac::Tag {
        let mut mac = hmac::Context::with_key(&self.signing);
        for part in payload {
            mac.update(part);
        }
        mac.sign()
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {:?}", self.access, self.key)
    }
}

/// The keys of an account. Several may give the same access, so that keys can be rotated.
#[derive(Debug, Clone)]
pub struct Keys {
    keys: Vec<SigningKey>,
}

impl Keys {
    /// An account with its primary key.
    pub fn new(primary: AccountKey) -> Keys {
        Keys {
            keys: vec![SigningKey::new(Access::Full, primary)],
        }
    }

    /// Adds a key.
    #[must_use]
    pub fn with(mut self, access: Access, key: AccountKey) -> Keys {
        self.keys.push(SigningKey::new(access, key));
        self
    }

    /// The keys with their rights, the primary key first.
    pub fn iter(&self) -> impl Iterator<Item = (Access, &AccountKey)> {
        self.keys.iter().map(|key| (key.access, &key.key))
    }

    /// The rights of the signer of `payload` (its parts in order); `None` if the signature belongs to no key.
    ///
    /// Compares in constant time.
    pub(crate) fn signer(&self, payload: &[&[u8]], signature: &[u8]) -> Option<Access> {
        self.keys
            .iter()
            .find(|key| key.signs(payload, signature))
            .map(|key| key.access)
    }

    /// Signs `payload` with the primary key.
    pub(crate) fn sign(&self, payload: &[&[u8]]) -> hmac::Tag {
        self.keys[0].sign(payload)
    }

    /// The rights of a client that shows `text` as a key. Compares in constant time.
    pub(crate) fn holder(&self, text: &[u8]) -> Option<Access> {
        self.keys
            .iter()
            .find(|key| bool::from(key.key.text().as_bytes().ct_eq(text)))
            .map(|key| key.access)
    }
}
