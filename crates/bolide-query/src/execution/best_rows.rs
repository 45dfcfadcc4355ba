//! The best rows so far.

use std::collections::BinaryHeap;

/// Rows of which the worst can be taken. Those that come in order, as from an index, each behind all others, cost no comparisons but one.
#[derive(Debug)]
pub(super) enum BestRows<T: Ord> {
    /// No row is better than the one before.
    InOrder(Vec<T>),
    /// In any order, the worst on top.
    Heap(BinaryHeap<T>),
}

impl<T: Ord> Default for BestRows<T> {
    fn default() -> BestRows<T> {
        BestRows::InOrder(Vec::new())
    }
}

impl<T: Ord> BestRows<T> {
    pub fn len(&self) -> usize {
        match self {
            BestRows::InOrder(rows) => rows.len(),
            BestRows::Heap(rows) => rows.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The worst row.
    pub fn worst(&self) -> Option<&T> {
        match self {
            BestRows::InOrder(rows) => rows.last(),
            BestRows::Heap(rows) => rows.peek(),
        }
    }

    pub fn add(&mut self, row: T) {
        match self {
            BestRows::InOrder(rows) if rows.last().is_none_or(|worst| *worst <= row) => rows.push(row),
            BestRows::InOrder(rows) => {
                let mut heap = BinaryHeap::from(std::mem::take(rows));
                heap.push(row);
                *self = BestRows::Heap(heap);
            }
            BestRows::Heap(rows) => rows.push(row),
        }
    }

    /// Removes the worst row.
    pub fn take_worst(&mut self) -> Option<T> {
        match self {
            BestRows::InOrder(rows) => rows.pop(),
            BestRows::Heap(rows) => rows.pop(),
        }
    }

    /// All rows, the best first.
    pub fn into_sorted(self) -> Vec<T> {
        match self {
            BestRows::InOrder(rows) => rows,
            BestRows::Heap(rows) => rows.into_sorted_vec(),
        }
    }
}

#[cfg(test)]
mod tests;
