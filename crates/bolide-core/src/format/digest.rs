//! Hashes of several byte strings.

use sha2::{Digest as _, Sha256};

/// Returns a hash of `parts`, each preceded by its length: moving bytes from one part to the next gives another hash.
pub(crate) fn of_parts(parts: &[&[u8]]) -> Sha256 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash
}
