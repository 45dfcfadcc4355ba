//! Account keys and their rights.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use subtle::ConstantTimeEq;

/// The published key of the official emulator. It is public, so it must be used only on loopback addresses.
pub const WELL_KNOWN_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// The rights of an account key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everything.
    Full,
    /// Reads, feeds and queries.
    ReadOnly,
}

/// The text is not an account key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not standard base64.
    #[error("an account key must be standard base64 with padding")]
    NotBase64,
    /// Too short to be secure.
    #[error("an account key must be at least 16 bytes long before base64. bytes={0}")]
    TooShort(usize),
}

/// An account key: its text, and the prepared signing key, so that checking a signature does not have to derive it.
#[derive(Clone)]
pub struct AccountKey {
    text: String,
    signing: hmac::Key,
}

impl AccountKey {
    /// Parses a key as written in connection strings.
    ///
    /// # Errors
    /// The text is not base64, or has less than 16 bytes.
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

    /// Whether this is the emulator's well-known key.
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

/// The keys of an account. Several may give the same access, so that keys can be rotated.
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

    /// The rights of the signer of `payload` (its parts in order); `None` if the signature belongs to no key.
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

    /// The rights of a client that shows `text` as a key. Compares in constant time.
    pub(crate) fn holder(&self, text: &[u8]) -> Option<Access> {
        self.keys
            .iter()
            .find(|(_, key)| bool::from(key.text.as_bytes().ct_eq(text)))
            .map(|(access, _)| *access)
    }
}
