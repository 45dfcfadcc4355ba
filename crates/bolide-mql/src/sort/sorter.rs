//! Sorts items by their keys, in memory; with a limit it keeps only as many as the limit.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::context::memory::StageMemory;
use crate::error::Result;

/// Collects items and gives them back in the order of their keys, then of their arrival.
pub struct Sorter<T> {
    limit: Option<usize>,
    entries: BinaryHeap<Entry<T>>,
    arrivals: u64,
    memory: StageMemory,
}

struct Entry<T> {
    key: Vec<u8>,
    arrival: u64,
    bytes: usize,
    item: T,
}

impl<T> Sorter<T> {
    /// Returns a sorter that keeps the first `limit` items, or all.
    pub fn new(limit: Option<usize>, memory: StageMemory) -> Sorter<T> {
        Sorter {
            limit,
            entries: BinaryHeap::new(),
            arrivals: 0,
            memory,
        }
    }

    /// Adds an item of a size in bytes.
    ///
    /// # Errors
    /// 292 if the items that are kept need more than the memory allows.
    pub fn push(&mut self, key: Vec<u8>, item: T, bytes: usize) -> Result<()> {
        let entry = Entry {
            bytes: bytes + key.len() + size_of::<Entry<T>>(),
            key,
            arrival: self.arrivals,
            item,
        };
        self.arrivals += 1;
        let is_full = self.limit.is_some_and(|limit| self.entries.len() >= limit);
        if is_full {
            match self.entries.peek() {
                Some(last) if entry < *last => {}
                _ => return Ok(()),
            }
            if let Some(last) = self.entries.pop() {
                self.memory.release(last.bytes);
            }
        }
        self.memory.add(entry.bytes)?;
        self.entries.push(entry);
        Ok(())
    }

    /// Returns the items in order.
    pub fn finish(self) -> impl Iterator<Item = T> + use<T> {
        self.entries.into_sorted_vec().into_iter().map(|entry| entry.item)
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Entry<T>) -> Ordering {
        self.key.cmp(&other.key).then(self.arrival.cmp(&other.arrival))
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Entry<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Entry<T>) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Entry<T> {}
