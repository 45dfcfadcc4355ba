//! Names of snapshots.

use std::fmt;

use crate::{Error, Result};

/// Maximum length of a name, in bytes.
const MAX_BYTES: usize = 64;

/// The name of a snapshot: 1 to 64 letters, digits, `.`, `_` and `-`, and the first is not `.`; so it can be part of a file's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotName(String);

impl SnapshotName {
    /// Validates a name.
    ///
    /// # Errors
    /// `BadRequest` for any other text.
    pub fn parse(text: &str) -> Result<SnapshotName> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if text.is_empty() || text.len() > MAX_BYTES || text.starts_with('.') || !text.bytes().all(is_allowed) {
            let shown: String = text.chars().take(MAX_BYTES).collect();
            return Err(Error::bad_request(format!(
                "the name of a snapshot has 1 to {MAX_BYTES} letters, digits, `.`, `_` or `-`, and does not begin with `.`. value=`{shown}`"
            )));
        }
        Ok(SnapshotName(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SnapshotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
