//! The best texts with some words, so that the order of a ranking by these words is known without the entries of all texts that have them.
//!
//! ```text
//!   counts   how many texts have each word
//!   group    the texts in which each word occurs equally often ─▶ their number, and the first of them by length, then as ties are ordered
//! ```
//!
//! Inside a group the score of a text falls with its length, whatever the average length and the rarity of the words are at the time of a query. So each group has
//! the texts of a ranking in their order, and a ranking is a merge of groups. Ghosts are in all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::format::keys;

/// Maximum number of groups of a list; with more there is none.
const MAX_GROUPS: usize = 1_024;
/// Maximum number of texts of a list.
const MAX_TEXTS: usize = 65_536;
/// Memory for a text, a group and a list, in bytes.
const TEXT_BYTES: usize = 112;
const GROUP_BYTES: usize = 192;
const LIST_BYTES: usize = 512;

/// A text of a group. They are in the order of a ranking.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RankedText {
    /// Number of words of the text.
    pub words: u64,
    /// The order of equal scores: the resource number of the item, or its complement.
    pub order: u64,
    epk: Box<[u8]>,
}

/// Returns the place of an item among equal scores, by its resource number; of a place, the number.
pub(crate) fn order_of_ties(number: u64, ties_descend: bool) -> u64 {
    if ties_descend { !number } else { number }
}

impl RankedText {
    pub fn new(words: u64, number: u64, epk: &[u8], ties_descend: bool) -> RankedText {
        RankedText {
            words,
            order: order_of_ties(number, ties_descend),
            epk: epk.into(),
        }
    }

    /// Returns the resource number of the item.
    pub fn number(&self, ties_descend: bool) -> u64 {
        order_of_ties(self.order, ties_descend)
    }

    /// Returns the key of the item.
    pub fn item_key(&self, ties_descend: bool) -> Bytes {
        keys::item_key(&self.epk, self.number(ties_descend))
    }
}

/// Texts in which each word occurs equally often.
#[derive(Debug, Clone, Default)]
pub(crate) struct Group {
    total: u64,
    best: BTreeSet<RankedText>,
    /// All texts up to this one are in `best`, and none behind it; `None`: all are.
    bound: Option<RankedText>,
}

impl Group {
    /// The texts that are kept: the first ones.
    pub fn best(&self) -> &BTreeSet<RankedText> {
        &self.best
    }

    /// The number of words of texts that are not kept is at least this; `None`: all are kept.
    pub fn bound(&self) -> Option<u64> {
        self.bound.as_ref().map(|bound| bound.words)
    }

    fn add(&mut self, text: RankedText, keep: usize) {
        self.total += 1;
        if self.bound.as_ref().is_some_and(|bound| text > *bound) {
            return;
        }
        self.best.insert(text);
        if self.best.len() > 2 * keep {
            while self.best.len() > keep {
                self.best.pop_last();
            }
            self.bound = self.best.last().cloned();
        }
    }

    /// Returns whether the text was there, as far as is known.
    fn remove(&mut self, text: &RankedText) -> bool {
        let is_kept = self.bound.as_ref().is_none_or(|bound| text <= bound);
        let Some(total) = self.total.checked_sub(1) else {
            return false;
        };
        self.total = total;
        !is_kept || self.best.remove(text)
    }
}

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct RankedList {
    ties_descend: bool,
    /// Number of texts that each group keeps at least when others are left out.
    keep: usize,
    counts: Vec<u64>,
    groups: BTreeMap<Vec<u64>, Arc<Group>>,
    /// Number of texts that all groups keep.
    kept: usize,
}

impl RankedList {
    /// Returns a list of no texts for a number of words.
    pub fn new(words: usize, ties_descend: bool, keep: usize) -> RankedList {
        RankedList {
            ties_descend,
            keep,
            counts: vec![0; words],
            groups: BTreeMap::new(),
            kept: 0,
        }
    }

    /// Number of texts with each word.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The groups by how often each word occurs.
    pub fn groups(&self) -> impl Iterator<Item = (&[u64], &Group)> {
        self.groups.iter().map(|(times, group)| (&times[..], &**group))
    }

    /// Whether so many texts were removed that it should be made anew.
    pub fn is_worn(&self) -> bool {
        let is_short = |group: &Arc<Group>| group.bound.is_some() && group.best.len() < self.keep / 2;
        self.groups.values().any(is_short)
    }

    /// Returns the memory that it takes, in bytes.
    pub fn bytes(&self) -> usize {
        let group_bytes = GROUP_BYTES + self.counts.len() * size_of::<u64>();
        LIST_BYTES + self.kept * TEXT_BYTES + self.groups.len() * group_bytes
    }

    /// Adds a text in which the words occur `times` times. Returns `false` if the list is too large now.
    pub fn add(&mut self, times: &[u64], words: u64, number: u64, epk: &[u8]) -> bool {
        if times.iter().all(|times| *times == 0) {
            return true;
        }
        for (count, times) in self.counts.iter_mut().zip(times) {
            *count += u64::from(*times > 0);
        }
        if !self.groups.contains_key(times) {
            self.groups.insert(times.to_vec(), Arc::default());
        }
        let Some(group) = self.groups.get_mut(times).map(Arc::make_mut) else {
            return false;
        };
        let before = group.best.len();
        group.add(RankedText::new(words, number, epk, self.ties_descend), self.keep);
        self.kept = self.kept + group.best.len() - before;
        self.groups.len() <= MAX_GROUPS && self.kept <= MAX_TEXTS
    }

    /// Removes a text. Returns `false` if it was not there.
    pub fn remove(&mut self, times: &[u64], words: u64, number: u64, epk: &[u8]) -> bool {
        if times.iter().all(|times| *times == 0) {
            return true;
        }
        for (count, times) in self.counts.iter_mut().zip(times) {
            *count = count.saturating_sub(u64::from(*times > 0));
        }
        let Some(group) = self.groups.get_mut(times).map(Arc::make_mut) else {
            return false;
        };
        let before = group.best.len();
        let was_there = group.remove(&RankedText::new(words, number, epk, self.ties_descend));
        self.kept = self.kept + group.best.len() - before;
        if group.total == 0 {
            self.kept -= group.best.len();
            self.groups.remove(times);
        }
        was_there
    }
}

#[cfg(test)]
mod tests;
