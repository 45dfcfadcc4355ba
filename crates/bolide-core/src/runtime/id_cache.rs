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
pub(crate) struct CacheSlot {
    index: usize,
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
    /// The slot of an item.
    pub fn slot(&self, partition: PartitionId, epk: &Epk, id: &str) -> CacheSlot {
        let hash = xxh3_64_with_seed(id.as_bytes(), xxh3_64_with_seed(epk.as_bytes(), partition.0));
        CacheSlot {
            index: hash as usize % SLOTS,
            tag: hash >> NUMBER_BITS,
        }
    }

    /// The number that was last seen here.
    pub fn get(&self, slot: CacheSlot) -> Option<u64> {
        let stored = self.slots[slot.index].load(Ordering::Relaxed);
        (stored != 0 && stored >> NUMBER_BITS == slot.tag).then_some(stored & ((1 << NUMBER_BITS) - 1))
    }

    /// Remembers a number, in place of whatever was here.
    pub fn set(&self, slot: CacheSlot, number: u64) {
        if number >> NUMBER_BITS == 0 {
            self.slots[slot.index].store(slot.tag << NUMBER_BITS | number, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
