//! A cache of item numbers by id: it saves point reads the lookup in the index.
//!
//! An entry is a hint only. The record under a number says which id it has, a number is never given twice, and when an item is deleted or
//! replaced by another with the same id, its record is removed in the same commit; so a record that is found under a hint and has the right id is
//! the item. In all other cases the index has to be read.
//!
//! ```text
//!   slot, 8 bytes:   tag, 16 bits of the hash │ number, 48 bits; 0 is empty
//! ```
//!
//! The tag makes it unlikely that another item's hint in the same slot causes a useless read. One table serves the whole account: it is small
//! enough to stay in the processor's caches, and holds the items that are read often.

use std::sync::atomic::{AtomicU64, Ordering};

use bolide_model::epk::Epk;
use bolide_storage::PartitionId;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Number of slots, a power of two: half a megabyte.
const SLOTS: usize = 1 << 16;
const NUMBER_BITS: u32 = 48;

/// The cache; see the module.
pub(crate) struct IdCache {
    slots: Box<[AtomicU64]>,
}

/// The slot that may hold an item's number.
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
    /// Returns the slot of an item.
    pub fn slot(&self, partition: PartitionId, epk: &Epk, id: &str) -> CacheSlot {
        let hash = xxh3_64_with_seed(id.as_bytes(), xxh3_64_with_seed(epk.as_bytes(), partition.0));
        CacheSlot {
            index: hash as usize % SLOTS,
            tag: hash >> NUMBER_BITS,
        }
    }

    /// Returns the number that was last stored for the item.
    pub fn get(&self, slot: CacheSlot) -> Option<u64> {
        let stored = self.slots[slot.index].load(Ordering::Relaxed);
        (stored != 0 && stored >> NUMBER_BITS == slot.tag).then_some(stored & ((1 << NUMBER_BITS) - 1))
    }

    /// Stores a number, in place of the slot's previous one.
    pub fn set(&self, slot: CacheSlot, number: u64) {
        if number >> NUMBER_BITS == 0 {
            self.slots[slot.index].store(slot.tag << NUMBER_BITS | number, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
