//! Decides which paths get an index because queries would profit: those on which conditions made queries read many items in vain.

use std::collections::HashMap;

use bolide_query::index::IndexPath;

/// Number of items read in vain after which a path gets an index: one query over a large container, or some over one of a few thousand items.
const ITEMS_IN_VAIN: u64 = 20_000;
/// Maximum number of paths that are counted. Later ones are not counted until one of these gets its index.
const MAX_PATHS: usize = 64;

/// Counts, in memory, the items that queries of a container read in vain.
#[derive(Debug, Default)]
pub(crate) struct IndexAdvisor {
    in_vain: HashMap<IndexPath, u64>,
    /// Paths that are to get an index.
    wanted: Vec<IndexPath>,
}

impl IndexAdvisor {
    /// Records that a query with a condition on a path read `items` items in vain. Returns whether the path is now to get an index.
    pub fn record(&mut self, path: &IndexPath, items: u64) -> bool {
        if self.wanted.contains(path) || (self.in_vain.len() >= MAX_PATHS && !self.in_vain.contains_key(path)) {
            return false;
        }
        let sum = self.in_vain.entry(path.clone()).or_default();
        *sum = sum.saturating_add(items);
        if *sum < ITEMS_IN_VAIN {
            return false;
        }
        self.in_vain.remove(path);
        self.wanted.push(path.clone());
        true
    }

    /// Takes the paths that are to get an index.
    pub fn take_wanted(&mut self) -> Vec<IndexPath> {
        std::mem::take(&mut self.wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> IndexPath {
        IndexPath::parse(text).expect("a path")
    }

    #[test]
    fn a_path_gets_an_index_when_enough_was_read_in_vain() {
        let mut advisor = IndexAdvisor::default();
        assert!(!advisor.record(&path("/a"), ITEMS_IN_VAIN - 1));
        assert!(!advisor.record(&path("/b"), 1));
        assert!(advisor.record(&path("/a"), 1));
        assert!(!advisor.record(&path("/a"), ITEMS_IN_VAIN), "it is wanted already");
        assert_eq!(advisor.take_wanted(), [path("/a")]);
        assert_eq!(advisor.take_wanted(), []);
    }

    #[test]
    fn the_memory_for_paths_is_bounded() {
        let mut advisor = IndexAdvisor::default();
        for at in 0..10 * MAX_PATHS {
            advisor.record(&path(&format!("/p{at}")), 1);
        }
        assert_eq!(advisor.in_vain.len(), MAX_PATHS);
    }
}
