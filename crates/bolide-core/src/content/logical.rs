//! What identifies a logical partition in storage keys: its effective partition key, and a tag of the key itself.
//!
//! An effective partition key determines the place of items, and clients depend on how it is computed. But murmur3 is not a cryptographic hash:
//! a client that chooses partition keys can quickly make one that has the hash of another client's key. So a tag follows the effective partition
//! key that cannot be made to collide, and two keys never share their items.
//!
//! ```text
//!   one component        epk ‖ first 16 bytes of SHA-256(key)
//!   several components   epk ‖ first 8 bytes of SHA-256(first component) ‖ … of SHA-256(first two) ‖ …
//! ```
//!
//! The tag comes last, so that keys still sort by the effective partition key, by which ranges are split.

use bolide_model::epk::{self, Epk};
use bolide_model::partition_key::{PartitionKey, PartitionKeyDefinition};
use sha2::{Digest as _, Sha256};

/// Length of the tag of a key with one component, in bytes.
const TAG_BYTES: usize = 16;
/// Length of the tag of each level of a hierarchical key, in bytes: a prefix is checked by one of them.
const LEVEL_TAG_BYTES: usize = 8;
/// Prefix of every key that is digested.
const DOMAIN: &[u8] = b"bolide logical partition\n";

/// Returns the bytes that begin the item keys of a logical partition.
///
/// `key` is a whole key. For a prefix of a hierarchical key, which has no tag, returns a prefix of the bytes; [`PrefixTag`] checks the rest.
pub(crate) fn of(definition: &PartitionKeyDefinition, key: &PartitionKey) -> Epk {
    let epk = Epk::of(definition, key);
    if !definition.is_full(key) {
        return epk;
    }
    let mut bytes = Vec::with_capacity(epk.as_bytes().len() + TAG_BYTES.max(key.0.len() * LEVEL_TAG_BYTES));
    bytes.extend_from_slice(epk.as_bytes());
    if key.0.len() == 1 {
        bytes.extend_from_slice(&digest(key, 1)[..TAG_BYTES]);
    } else {
        for levels in 1..=key.0.len() {
            bytes.extend_from_slice(&digest(key, levels)[..LEVEL_TAG_BYTES]);
        }
    }
    Epk::from_bytes(bytes)
}

/// Returns how many of the first bytes of `bytes` belong to a logical partition, whatever follows; `None` if they do not begin with one.
///
/// Agrees with: [`of`].
pub(crate) fn length_in(definition: &PartitionKeyDefinition, bytes: &[u8]) -> Option<usize> {
    let tag = match definition.paths.len() {
        1 => TAG_BYTES,
        levels => levels * LEVEL_TAG_BYTES,
    };
    let length = Epk::length_in(definition, bytes)? + tag;
    (length <= bytes.len()).then_some(length)
}

/// Distinguishes the item keys with a prefix of a hierarchical key from those with another prefix of the same hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PrefixTag {
    at: usize,
    tag: [u8; LEVEL_TAG_BYTES],
}

impl PrefixTag {
    /// Returns the tag of a prefix; `None` if `key` is whole (its bytes contain its tag) or empty.
    pub fn of(definition: &PartitionKeyDefinition, key: &PartitionKey) -> Option<PrefixTag> {
        if key.is_empty() || definition.is_full(key) {
            return None;
        }
        // Every level of a hierarchical key has an effective partition key of its own; all have the same length.
        let level_bytes = Epk::of(definition, key).as_bytes().len() / key.0.len();
        let mut tag = [0; LEVEL_TAG_BYTES];
        tag.copy_from_slice(&digest(key, key.0.len())[..LEVEL_TAG_BYTES]);
        Some(PrefixTag {
            at: definition.paths.len() * level_bytes + (key.0.len() - 1) * LEVEL_TAG_BYTES,
            tag,
        })
    }

    /// Returns whether an item key has the prefix, provided that its effective partition key has.
    pub fn matches(&self, item_key: &[u8]) -> bool {
        item_key.get(self.at..self.at + LEVEL_TAG_BYTES) == Some(&self.tag[..])
    }
}

fn digest(key: &PartitionKey, levels: usize) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(DOMAIN);
    digest.update(epk::canonical(&key.0[..levels]));
    digest.finalize().into()
}

#[cfg(test)]
mod tests;
