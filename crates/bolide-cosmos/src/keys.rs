//! Account keys and what they allow.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use subtle::ConstantTimeEq;

/// The published key of the official emulator. Everybody knows it, so it must only guard loopback addresses.
pub const WELL_KNOWN_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// What the holder of a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everything.
    Full,
    /// Reads, feeds and queries.
    ReadOnly,
}

/// A text that is no account key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not standard base64.
    #[error("an account key must be standard base64 with padding")]
    NotBase64,
    /// Too few bytes to be a secret.
    #[error("an account key must be at least 16 bytes long before base64. bytes={0}")]
    TooShort(usize),
}

/// An account key: its text, and the signing state made of it once, so that checking a signature does not begin with the key.
#[derive(Clone)]
pub struct AccountKey {
    text: String,
    signing: hmac::Key,
}

impl AccountKey {
    /// Takes in a key as it stands in connection strings.
    ///
    /// # Errors
    /// A text that is not base64, or of less than 16 bytes.
    pub fn parse(text: &str) -> Result<AccountKey, KeyError> {
        let bytes = STANDARD.decode(text).map_err(|_| KeyError::NotBase64)?;
        if bytes.len() < 16 {
            return Err(KeyError::TooShort(bytes.len()));
        }
        Ok(AccountKey {
            text: text.to_owned(),
            signing: hmac::Key::new(hmac::HMAC_SHA256, &bytes),
        })
    }

    /// Whether this is the key that everybody knows.
    pub fn is_well_known(&self) -> bool {
        self.text == WELL_KNOWN_KEY
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

impl std::fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AccountKey(…)")
    }
}

/// The keys of an account. Several may open the same access, so that keys can be rotated.
#[derive(Debug, Clone)]
pub struct Keys {
    keys: Vec<(Access, AccountKey)>,
}

impl Keys {
    /// An account with its primary key.
    pub fn new(primary: AccountKey) -> Keys {
        Keys {
            keys: vec![(Access::Full, primary)],
        }
    }

    /// Adds a key.
    #[must_use]
    pub fn with(mut self, access: Access, key: AccountKey) -> Keys {
        self.keys.push((access, key));
        self
    }

    /// What the signer of `payload` (its parts, one after the other) may do; `None` if no key signs it so.
    ///
    /// Compares in constant time.
    pub(crate) fn signer(&self, payload: &[&[u8]], signature: &[u8]) -> Option<Access> {
        self.keys
            .iter()
            .find(|(_, key)| key.signs(payload, signature))
            .map(|(access, _)| *access)
    }

    /// Signs `payload` with the primary key.
    pub(crate) fn sign(&self, payload: &[&[u8]]) -> hmac::Tag {
        let (_, primary) = &self.keys[0];
        primary.sign(payload)
    }

    /// What somebody who shows `text` as a key may do. Compares in constant time.
    pub(crate) fn holder(&self, text: &[u8]) -> Option<Access> {
        self.keys
            .iter()
            .find(|(_, key)| bool::from(key.text.as_bytes().ct_eq(text)))
            .map(|(access, _)| *access)
    }
}
