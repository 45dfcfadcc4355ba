//! The rows that earlier pages have processed, for queries whose rows have no position in an order.
//!
//! DISTINCT, ranking and groups under TOP start again with every page. A count of the rows returned before is not enough: items may have expired
//! meanwhile, or a split may have moved them to another range (TTL-247). So the continuation lists the rows by hashes, as many as its size allows.
//! With 48 bits each, a collision among a million values occurs in one of several million queries.

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_64;

/// Bytes of a hash in a continuation.
pub const HASH_BYTES: usize = 6;

/// The hashes of rows, in the order in which they were returned or skipped by OFFSET.
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

    /// All hashes, if there are at most `max`.
    pub fn all(&self, max_hashes: usize) -> Option<&[u64]> {
        (self.in_order.len() <= max_hashes).then_some(&self.in_order)
    }

    /// The latest `max` hashes.
    pub fn latest(&self, max_hashes: usize) -> &[u64] {
        &self.in_order[self.in_order.len().saturating_sub(max_hashes)..]
    }

    pub fn to_bytes(hashes: &[u64]) -> Vec<u8> {
        hashes
            .iter()
            .flat_map(|hash| hash.to_be_bytes()[8 - HASH_BYTES..].to_vec())
            .collect()
    }

    /// Reads [`EmittedRows::to_bytes`]; `None` if the bytes are not a valid list.
    pub fn from_bytes(bytes: &[u8]) -> Option<EmittedRows> {
        let (hashes, rest) = bytes.as_chunks::<HASH_BYTES>();
        let mut emitted = EmittedRows::default();
        for hash in hashes {
            emitted.note(hash.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)));
        }
        rest.is_empty().then_some(emitted)
    }
}

/// The hash of the bytes that identify a row: the first bits of XXH3, which is the same in every release.
pub fn hash(bytes: &[u8]) -> u64 {
    xxh3_64(bytes) >> (64 - 8 * HASH_BYTES)
}

/// The number of the current row within its item, or within the value that replaces an item; started again when the item changes.
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

/// The hash of a row of an item, or of the value that replaces an item.
pub fn hash_of_row(rid: u64, ordinal: u64) -> u64 {
    hash(&(u128::from(rid) << 64 | u128::from(ordinal)).to_be_bytes())
}
