//! Decides which indexes are built because queries would profit: those for whose want queries read many items in vain. An index that no query has used
//! for a day is given up.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bolide_query::index::IndexPath;

use super::PropertyIndexes;

/// Number of items read in vain after which an index is built: one query over a large container, or some over one of a few thousand items.
const ITEMS_IN_VAIN: u64 = 20_000;
/// Maximum number of indexes for which items are counted. Later ones are not counted until one of these is built.
const MAX_PATHS: usize = 64;

/// How long an automatic index is kept without being used.
const KEPT_UNUSED: Duration = Duration::from_secs(24 * 3600);

/// An index of which queries would profit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum WantedIndex {
    /// Of the values at a path.
    Values(IndexPath),
    /// Of the shapes at a path.
    Spatial(IndexPath),
}

/// Counts, in memory, the items that queries of a container read in vain.
#[derive(Debug, Default)]
pub(crate) struct IndexAdvisor {
    in_vain: HashMap<WantedIndex, u64>,
    wanted: Vec<WantedIndex>,
    /// When a query last used each index, by its id; before that, when the index was first looked at.
    used: HashMap<u32, Instant>,
}

impl IndexAdvisor {
    /// Records that a query that an index would serve read `items` items in vain. Returns whether that index is now to be built.
    pub fn record(&mut self, index: &WantedIndex, items: u64) -> bool {
        if self.wanted.contains(index) || (self.in_vain.len() >= MAX_PATHS && !self.in_vain.contains_key(index)) {
            return false;
        }
        let sum = self.in_vain.entry(index.clone()).or_default();
        *sum = sum.saturating_add(items);
        if *sum < ITEMS_IN_VAIN {
            return false;
        }
        self.in_vain.remove(index);
        self.wanted.push(index.clone());
        true
    }

    /// Records that a query uses an index.
    pub fn record_use(&mut self, index: u32, now: Instant) {
        self.used.insert(index, now);
    }

    /// Returns the ids of the automatic indexes that no query has used for a day.
    pub fn unused(&mut self, indexes: &PropertyIndexes, now: Instant) -> Vec<u32> {
        self.used
            .retain(|id, _| indexes.list.iter().any(|index| index.id == *id));
        let mut unused = Vec::new();
        for index in indexes.list.iter().filter(|index| index.is_automatic && index.is_ready) {
            let since = *self.used.entry(index.id).or_insert(now);
            if now.duration_since(since) >= KEPT_UNUSED {
                unused.push(index.id);
            }
        }
        unused
    }

    /// Takes the indexes that are to be built.
    pub fn take_wanted(&mut self) -> Vec<WantedIndex> {
        std::mem::take(&mut self.wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::IndexKind;

    fn path(text: &str) -> IndexPath {
        IndexPath::parse(text).expect("a path")
    }

    #[test]
    fn a_path_gets_an_index_when_enough_was_read_in_vain() {
        let mut advisor = IndexAdvisor::default();
        let values = |text: &str| WantedIndex::Values(path(text));
        assert!(!advisor.record(&values("/a"), ITEMS_IN_VAIN - 1));
        assert!(!advisor.record(&values("/b"), 1));
        assert!(!advisor.record(&WantedIndex::Spatial(path("/a")), 1));
        assert!(advisor.record(&values("/a"), 1));
        assert!(!advisor.record(&values("/a"), ITEMS_IN_VAIN), "it is wanted already");
        assert_eq!(advisor.take_wanted(), [values("/a")]);
        assert_eq!(advisor.take_wanted(), []);
    }

    #[test]
    fn an_automatic_index_that_nobody_uses_for_a_day_is_given_up() {
        let mut indexes = PropertyIndexes::default();
        for (text, is_automatic) in [("/used", true), ("/unused", true), ("/named", false)] {
            indexes.add(IndexKind::Values(std::sync::Arc::new(path(text))), is_automatic);
        }
        indexes.list.iter_mut().for_each(|index| index.is_ready = true);
        let (mut advisor, start) = (IndexAdvisor::default(), bolide_model::time::Monotonic::manual().now());
        assert_eq!(
            advisor.unused(&indexes, start),
            [0; 0],
            "not before they were looked at for a day"
        );
        advisor.record_use(1, start + KEPT_UNUSED / 2);
        assert_eq!(
            advisor.unused(&indexes, start + KEPT_UNUSED - Duration::from_secs(1)),
            [0; 0]
        );
        assert_eq!(advisor.unused(&indexes, start + KEPT_UNUSED), [2]);
        assert_eq!(advisor.unused(&indexes, start + KEPT_UNUSED * 3 / 2), [1, 2]);
    }

    #[test]
    fn the_memory_for_paths_is_bounded() {
        let mut advisor = IndexAdvisor::default();
        for at in 0..10 * MAX_PATHS {
            advisor.record(&WantedIndex::Values(path(&format!("/p{at}"))), 1);
        }
        assert_eq!(advisor.in_vain.len(), MAX_PATHS);
    }
}
