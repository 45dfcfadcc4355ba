//! Collects items into bulk requests.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher as _;
use std::sync::mpsc::Sender;

use super::Operation;
use super::ledger::Ledger;
use crate::container::Ranges;

/// Most operations and bytes of items in a request.
///
/// Source: the limits of bulk requests of .NET's SDK.
const BATCH_ITEMS: usize = 100;
const BATCH_BYTES: usize = 220 * 1024;
/// Items that may be read before the first item of a batch is sent.
const OLDEST_ITEMS: u64 = 20_000;
/// Bytes of all batches that are being collected.
const OPEN_BYTES: usize = 32 * 1024 * 1024;

/// The batches that are being collected.
pub(super) struct Batches {
    ranges: Ranges,
    lanes: Vec<Sender<Vec<Operation>>>,
    /// Lanes of each range.
    shards: usize,
    open: HashMap<usize, Batch>,
    open_bytes: usize,
    /// The number of the item before which old batches are looked for.
    next_check: u64,
    hasher: RandomState,
}

#[derive(Default)]
struct Batch {
    operations: Vec<Operation>,
    bytes: usize,
    /// Hashes of the items' keys and ids: no batch has two versions of an item, which its retries could confuse.
    items: HashSet<u64>,
}

impl Batches {
    pub fn new(ranges: Ranges, lanes: Vec<Sender<Vec<Operation>>>) -> Batches {
        Batches {
            shards: (lanes.len() / ranges.0.len()).max(1),
            ranges,
            lanes,
            open: HashMap::new(),
            open_bytes: 0,
            next_check: OLDEST_ITEMS,
            hasher: RandomState::new(),
        }
    }

    /// Adds an item to the batch of its range and lane; sends batches that are full.
    pub fn add(&mut self, operation: Operation, ledger: &Ledger) {
        let number = operation.number;
        let hash = self.hasher.hash_one((&operation.key, &operation.id));
        let shard = usize::try_from(hash % self.shards as u64).unwrap_or_default();
        let slot = self.ranges.index_of(&operation.epk) * self.shards + shard;
        let bytes = operation.text.len();
        let is_full = self.open.get(&slot).is_some_and(|batch| {
            batch.bytes + bytes > BATCH_BYTES || batch.operations.len() >= BATCH_ITEMS || batch.items.contains(&hash)
        });
        if is_full {
            self.send(slot, ledger);
        }
        let batch = self.open.entry(slot).or_default();
        batch.operations.push(operation);
        batch.bytes += bytes;
        batch.items.insert(hash);
        self.open_bytes += bytes;
        if self.open_bytes > OPEN_BYTES {
            self.send_all(ledger);
        }
        if number >= self.next_check {
            self.send_old(number, ledger);
            self.next_check = number + OLDEST_ITEMS / 4;
        }
    }

    /// Sends everything.
    pub fn send_all(&mut self, ledger: &Ledger) {
        self.send_old(u64::MAX, ledger);
    }

    fn send_old(&mut self, number: u64, ledger: &Ledger) {
        let is_old = |batch: &Batch| {
            let first = batch.operations.first();
            first.is_some_and(|first| first.number.saturating_add(OLDEST_ITEMS) <= number)
        };
        let old = self.open.iter().filter(|(_, batch)| is_old(batch));
        let old: Vec<usize> = old.map(|(slot, _)| *slot).collect();
        for slot in old {
            self.send(slot, ledger);
        }
    }

    fn send(&mut self, slot: usize, ledger: &Ledger) {
        let Some(batch) = self.open.remove(&slot) else {
            return;
        };
        self.open_bytes -= batch.bytes;
        ledger.sent(batch.operations.len(), batch.bytes);
        // A lane that has ended has failed, which the ledger says.
        let _ = self.lanes[slot % self.lanes.len()].send(batch.operations);
    }
}
