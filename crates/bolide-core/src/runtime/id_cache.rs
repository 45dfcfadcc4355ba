//! Which number an item had when it was last read: saves point reads the way through the index.
//!
//! A hint only. The record under a number says which id it has, a number is never given twice, and an item that is deleted or replaced by
//! another of its name takes its record along in the same commit; so a record found under a hint, with the right id, is the item. Anything
//! else means that the index has to be asked.
//!
//! ```text
//!   slot, 8 bytes:   tag, 16 bits of the hash │ number, 48 bits; 0 is empty
//! ```
//!
//! The tag keeps another item's hint in the same slot from costing a read in vain. One table serves the whole account: it is small enough to
//! stay in the processor's caches, and what is read often is in it.

use std::sync::atomic::{AtomicU64, Ordering};

use bolide_model::epk::Epk;
use bolide_storage::PartitionId;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A power of two; half a megabyte.
const SLOTS: usize = 1 << 16;
const NUMBER_BITS: u32 = 48;

/// See the module.
pub(crate) struct IdCache {
    slots: Box<[AtomicU64]>,
}

/// Where an item's number is kept, if it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    slot: usize,
    tag: u64,
}

impl Default for IdCache {
    fn default() -> IdCache {
        IdCache {
            slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl IdCache {
    /// The place of an item.
    pub fn place(&self, partition: PartitionId, epk: &Epk, id: &str) -> Place {
        let hash = xxh3_64_with_seed(id.as_bytes(), xxh3_64_with_seed(epk.as_bytes(), partition.0));
        Place {
            slot: hash as usize % SLOTS,
            tag: hash >> NUMBER_BITS,
        }
    }

    /// The number that was last seen here.
    pub fn get(&self, place: Place) -> Option<u64> {
        let slot = self.slots[place.slot].load(Ordering::Relaxed);
        (slot != 0 && slot >> NUMBER_BITS == place.tag).then_some(slot & ((1 << NUMBER_BITS) - 1))
    }

    /// Remembers a number, in place of whatever was here.
    pub fn set(&self, place: Place, number: u64) {
        if number >> NUMBER_BITS == 0 {
            self.slots[place.slot].store(place.tag << NUMBER_BITS | number, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
