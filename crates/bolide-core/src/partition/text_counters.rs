//! The number of words of the stored texts of each full-text index, those of ghosts included.
//!
//! A new index counts while it is built, in the order of item keys: items before the place that the build has reached are counted, and writes of items behind
//! it leave the counter as it is. So a build may begin again, and counts no item twice. An index that a container was created with counts all items from the first one
//! on.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::index::PropertyIndex;

/// The length that stands for the end of all items.
const ALL: u16 = u16::MAX;

/// The counters of a partition. In a row: count(2) ‖ for each: index(4) ‖ words(8) ‖ length(2) ‖ item key up to which items are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TextCounters(Vec<Counter>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Counter {
    index: u32,
    words: u64,
    /// Items before this key are counted; `None`: all.
    upto: Option<Bytes>,
}

impl TextCounters {
    /// Returns the counters of a partition that counts all items of these indexes.
    pub fn of_all(words: &[(u32, u64)]) -> TextCounters {
        let counter = |(index, words): &(u32, u64)| Counter {
            index: *index,
            words: *words,
            upto: None,
        };
        TextCounters(words.iter().map(counter).collect())
    }

    /// Returns the number of words of an index.
    pub fn words(&self, index: u32) -> u64 {
        self.of(index).map_or(0, |counter| counter.words)
    }

    /// Returns whether the words of an item are counted.
    pub fn counts(&self, index: &PropertyIndex, item_key: &[u8]) -> bool {
        match self.of(index.id) {
            Some(counter) => counter.upto.as_ref().is_none_or(|upto| item_key < &upto[..]),
            None => index.is_ready,
        }
    }

    /// Adds the words of a text that is now stored.
    pub fn add(&mut self, index: u32, words: u64) {
        self.of_mut(index).words += words;
    }

    /// Subtracts the words of a text that is no longer stored.
    pub fn remove(&mut self, index: u32, words: u64) {
        let counter = self.of_mut(index);
        counter.words = counter.words.saturating_sub(words);
    }

    /// Records that a build has reached a key, or the end of all items.
    pub fn reach(&mut self, index: u32, upto: Option<&Bytes>) {
        if self.of(index).is_none() {
            self.0.push(Counter {
                index,
                words: 0,
                upto: Some(Bytes::new()),
            });
        }
        let counter = self.of_mut(index);
        counter.upto = match (counter.upto.take(), upto) {
            (Some(before), Some(upto)) => Some(before.max(upto.clone())),
            _ => None,
        };
    }

    /// Forgets an index that was dropped.
    pub fn forget(&mut self, index: u32) {
        self.0.retain(|counter| counter.index != index);
    }

    fn of(&self, index: u32) -> Option<&Counter> {
        self.0.iter().find(|counter| counter.index == index)
    }

    fn of_mut(&mut self, index: u32) -> &mut Counter {
        let at = self.0.iter().position(|counter| counter.index == index);
        let at = at.unwrap_or_else(|| {
            self.0.push(Counter {
                index,
                words: 0,
                upto: None,
            });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    pub fn put(&self, bytes: &mut BytesMut) {
        // A container has at most `MAX_INDEXES`, and as many may be dropped.
        bytes.put_u16(u16::try_from(self.0.len()).unwrap_or(u16::MAX));
        for counter in &self.0 {
            bytes.put_u32(counter.index);
            bytes.put_u64(counter.words);
            let key = counter.upto.as_ref();
            bytes.put_u16(key.map_or(ALL, |key| u16::try_from(key.len()).unwrap_or(ALL)));
            bytes.put_slice(key.map_or(&[][..], |key| &key[..]));
        }
    }

    /// Decodes counters; returns what follows them. `None` if they are damaged.
    pub fn decode(bytes: &[u8]) -> Option<(TextCounters, &[u8])> {
        let mut rest = bytes;
        let count = rest.try_get_u16().ok()?;
        let mut counters = TextCounters::default();
        for _ in 0..count {
            let (index, words) = (rest.try_get_u32().ok()?, rest.try_get_u64().ok()?);
            let upto = match rest.try_get_u16().ok()? {
                ALL => None,
                length => {
                    let (key, after) = rest.split_at_checked(usize::from(length))?;
                    rest = after;
                    Some(Bytes::copy_from_slice(key))
                }
            };
            counters.0.push(Counter { index, words, upto });
        }
        Some((counters, rest))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bolide_query::index::{IndexPath, TextIndex};

    use super::*;
    use crate::index::IndexKind;

    fn index(is_ready: bool) -> PropertyIndex {
        let path = IndexPath::parse("/text").expect("a path");
        let language = "en-US".to_owned();
        PropertyIndex {
            id: 1,
            kind: IndexKind::FullText(Arc::new(TextIndex { path, language })),
            is_ready,
            is_automatic: false,
        }
    }

    #[test]
    fn a_build_counts_every_item_once() {
        let mut counters = TextCounters::default();
        assert!(counters.counts(&index(true), b"a"), "a new container has no build");
        assert!(!counters.counts(&index(false), b"a"));
        counters.reach(1, Some(&Bytes::from_static(b"m")));
        assert!(counters.counts(&index(false), b"a") && !counters.counts(&index(false), b"m"));
        counters.reach(1, Some(&Bytes::from_static(b"c")));
        assert!(counters.counts(&index(false), b"d"), "it began again");
        counters.reach(1, None);
        counters.reach(1, Some(&Bytes::from_static(b"c")));
        assert!(counters.counts(&index(false), b"z"));
    }

    #[test]
    fn counters_come_back() {
        let mut counters = TextCounters::of_all(&[(7, 12)]);
        counters.reach(9, Some(&Bytes::from_static(b"key")));
        counters.add(9, 5);
        counters.remove(9, 2);
        counters.reach(8, Some(&Bytes::new()));
        let mut bytes = BytesMut::new();
        counters.put(&mut bytes);
        bytes.put_slice(b"more");
        assert_eq!(TextCounters::decode(&bytes), Some((counters.clone(), &b"more"[..])));
        assert_eq!((counters.words(7), counters.words(9), counters.words(8)), (12, 3, 0));
        for end in 0..bytes.len() - 4 {
            assert_eq!(TextCounters::decode(&bytes[..end]), None, "{end}");
        }
    }
}
