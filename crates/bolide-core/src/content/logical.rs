//! What identifies a logical partition in storage keys: its effective partition key, and a tag of the key itself.
//!
//! An effective partition key says where items lie, and clients depend on how it is made. But murmur3 is no cryptographic hash: whoever
//! chooses partition keys can make one in a moment that hashes as somebody else's does. So a tag stands behind it that cannot be
//! aimed at, and two keys never share their items.
//!
//! ```text
//!   one component        epk ‖ first 16 bytes of SHA-256(key)
//!   several components   epk ‖ first 8 bytes of SHA-256(first component) ‖ … of SHA-256(first two) ‖ …
//! ```
//!
//! The tag comes last, so that keys still order by what a range is cut by.

use bolide_model::epk::{self, Epk};
use bolide_model::partition_key::{PartitionKey, PartitionKeyDefinition};
use sha2::{Digest as _, Sha256};

/// Bytes of the tag of a key with one component.
const TAG_BYTES: usize = 16;
/// Bytes of the tag of each level of a hierarchical key: below a prefix, one of them is looked at.
const LEVEL_TAG_BYTES: usize = 8;
/// What stands before a key that is digested.
const DOMAIN: &[u8] = b"bolide logical partition\n";

/// The bytes that begin the item keys of a logical partition.
///
/// `key` is whole. A prefix of a hierarchical key has no tag, and gives a prefix of the bytes; see [`PrefixTag`] for the rest.
pub(crate) fn of(definition: &PartitionKeyDefinition, key: &PartitionKey) -> Epk {
    let epk = Epk::of(definition, key);
    if !definition.is_full(key) {
        return epk;
    }
    let mut bytes = epk.as_bytes().to_vec();
    if key.0.len() == 1 {
        bytes.extend_from_slice(&digest(key, 1)[..TAG_BYTES]);
    } else {
        for levels in 1..=key.0.len() {
            bytes.extend_from_slice(&digest(key, levels)[..LEVEL_TAG_BYTES]);
        }
    }
    Epk::from_bytes(bytes)
}

/// How many of the first bytes of `bytes` are those of a logical partition, whatever follows; `None` if they begin with none.
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

/// Tells the item keys below a prefix of a hierarchical key from those below another prefix with the same hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PrefixTag {
    at: usize,
    tag: [u8; LEVEL_TAG_BYTES],
}

impl PrefixTag {
    /// Of a prefix; `None` if `key` is whole, whose bytes have its tag, or empty.
    pub fn of(definition: &PartitionKeyDefinition, key: &PartitionKey) -> Option<PrefixTag> {
        if key.is_empty() || definition.is_full(key) {
            return None;
        }
        // Every level of a hierarchical key has an effective partition key of its own, all of one length.
        let level_bytes = Epk::of(definition, key).as_bytes().len() / key.0.len();
        let mut tag = [0; LEVEL_TAG_BYTES];
        tag.copy_from_slice(&digest(key, key.0.len())[..LEVEL_TAG_BYTES]);
        Some(PrefixTag {
            at: definition.paths.len() * level_bytes + (key.0.len() - 1) * LEVEL_TAG_BYTES,
            tag,
        })
    }

    /// Whether an item key lies below the prefix, if its effective partition key does.
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
