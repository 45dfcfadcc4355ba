//! Intervals of keys.

use std::cmp::Ordering;

use super::key;

/// The keys from `from`, inclusive, to `to`, exclusive; without `to` up to the end of the index.
///
/// A key followed by any bytes is in the interval if and only if the key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// The lowest key; empty for the beginning of the index.
    pub from: Vec<u8>,
    /// Above the highest key.
    pub to: Option<Vec<u8>>,
}

impl Interval {
    /// Whether a key, or an entry that begins with it, is in the interval.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.from.as_slice() <= key && self.to.as_deref().is_none_or(|to| key < to)
    }

    /// An interval that is not empty.
    pub(super) fn new(from: Vec<u8>, to: Option<Vec<u8>>) -> Option<Interval> {
        let is_possible = to.as_ref().is_none_or(|to| from < *to);
        is_possible.then_some(Interval { from, to })
    }

    /// All keys that begin with these bytes.
    pub(super) fn of_prefix(prefix: Vec<u8>) -> Interval {
        Interval {
            to: key::after(&prefix),
            from: prefix,
        }
    }

    /// The bytes of both ends.
    pub(super) fn bytes(&self) -> usize {
        self.from.len() + self.to.as_ref().map_or(0, Vec::len)
    }

    /// The keys that are in both intervals; `None` if there are none.
    pub fn overlap(&self, other: &Interval) -> Option<Interval> {
        let ends_first = order_of_ends(self, other).is_le();
        let first = if ends_first { self } else { other };
        Interval::new(self.from.clone().max(other.from.clone()), first.to.clone())
    }
}

/// The order of the ends of two intervals.
fn order_of_ends(a: &Interval, b: &Interval) -> Ordering {
    match (&a.to, &b.to) {
        (Some(a), Some(b)) => a.cmp(b),
        (a, b) => a.is_none().cmp(&b.is_none()),
    }
}

/// The keys that are in any of the intervals: sorted, and without overlaps. Intervals that only touch stay apart.
pub(super) fn union(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.sort_by(|a, b| a.from.cmp(&b.from));
    let mut out: Vec<Interval> = Vec::with_capacity(intervals.len());
    for interval in intervals {
        match out.last_mut() {
            Some(last) if last.contains(&interval.from) => {
                if order_of_ends(last, &interval).is_lt() {
                    last.to = interval.to;
                }
            }
            _ => out.push(interval),
        }
    }
    out
}

/// The keys that are in both lists of intervals, each sorted and without overlaps, as is the result.
pub(super) fn intersection(left: &[Interval], right: &[Interval]) -> Vec<Interval> {
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    let mut out = Vec::new();
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        out.extend(a.overlap(b));
        if order_of_ends(a, b).is_lt() {
            left.next();
        } else {
            right.next();
        }
    }
    out
}

#[cfg(test)]
mod tests;
