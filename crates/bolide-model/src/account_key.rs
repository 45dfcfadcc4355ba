//! Account keys and their rights, which every protocol accepts in its own way: as a signing key, or as a password.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

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

/// An account key, as written in connection strings.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountKey {
    text: String,
    bytes: Vec<u8>,
}

impl AccountKey {
    /// Parses a key.
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
            bytes,
        })
    }

    /// Its text, a secret.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The bytes that the text encodes, a secret.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether this is the emulator's well-known key.
    pub fn is_well_known(&self) -> bool {
        self.text == WELL_KNOWN_KEY
    }
}

impl std::fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AccountKey(…)")
    }
}
