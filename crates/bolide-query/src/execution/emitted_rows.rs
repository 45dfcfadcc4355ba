//! Which rows earlier pages have dealt with, where no place in an order says so.
//!
//! DISTINCT, ranking and groups under TOP begin anew with every page. What they gave out before cannot be told by counting: items may
//! have expired meanwhile, or a split may have taken them elsewhere (TTL-247). So the continuation names the rows by hashes, as many as
//! its size allows: 48 bits each, which among a million values err once in several million queries.

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_64;

/// Bytes of a hash in a continuation.
pub const HASH_BYTES: usize = 6;

/// The hashes of rows, in the order in which they were given out or swallowed by OFFSET.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EmittedRows {
    in_order: Vec<u64>,
    known: HashSet<u64>,
}

impl EmittedRows {
    pub fn is_empty(&self) -> bool {
        self.in_order.is_empty()
    }

    pub fn contains(&self, hash: u64) -> bool {
        !self.is_empty() && self.known.contains(&hash)
    }

    pub fn note(&mut self, hash: u64) {
        if self.known.insert(hash) {
            self.in_order.push(hash);
        }
    }

    /// All of them, if they are at most so many.
    pub fn all(&self, most: usize) -> Option<&[u64]> {
        (self.in_order.len() <= most).then_some(&self.in_order)
    }

    /// The latest of them.
    pub fn latest(&self, most: usize) -> &[u64] {
        &self.in_order[self.in_order.len().saturating_sub(most)..]
    }

    pub fn to_bytes(hashes: &[u64]) -> Vec<u8> {
        hashes
            .iter()
            .flat_map(|hash| hash.to_be_bytes()[8 - HASH_BYTES..].to_vec())
            .collect()
    }

    /// Reads [`EmittedRows::to_bytes`]; `None` if it is no list.
    pub fn from_bytes(bytes: &[u8]) -> Option<EmittedRows> {
        let (hashes, rest) = bytes.as_chunks::<HASH_BYTES>();
        let mut given = EmittedRows::default();
        for hash in hashes {
            given.note(hash.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)));
        }
        rest.is_empty().then_some(given)
    }
}

/// The hash of what makes a row the row it is: the first bits of XXH3, which is the same from release to release.
pub fn hash(bytes: &[u8]) -> u64 {
    xxh3_64(bytes) >> (64 - 8 * HASH_BYTES)
}

/// Which row of its item, or of what stands for one, the current row is; whatever came before that.
#[derive(Debug, Default)]
pub struct Ordinals {
    rid: Option<u64>,
    ordinal: u64,
}

impl Ordinals {
    pub fn next(&mut self, rid: u64) -> u64 {
        if self.rid.replace(rid) != Some(rid) {
            self.ordinal = 0;
        }
        self.ordinal += 1;
        self.ordinal
    }
}

/// The hash of a row of an item, or of what stands for one.
pub fn hash_of_row(rid: u64, ordinal: u64) -> u64 {
    hash(&(u128::from(rid) << 64 | u128::from(ordinal)).to_be_bytes())
}
