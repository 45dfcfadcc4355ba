//! The items of a list in a full-text index, in the order of their creation.

use std::collections::{HashSet, VecDeque};

use bolide_model::Result;
use bytes::Bytes;

use super::text_candidates::list;
use crate::format::keys::{self, PropertyEntry};
use crate::partition::IndexInterval;
use crate::scan::Slice;

/// Number of entries of the first read of a range, and at most.
const FIRST_ROWS: usize = 32;
const MAX_ROWS: usize = 1_024;

/// The items of a list, merged from all ranges.
pub(super) struct TextsInOrder<'a> {
    ranges: Vec<RangeOfTexts<'a>>,
    descending: bool,
}

struct RangeOfTexts<'a> {
    slice: &'a Slice,
    /// The entries that are not read; `None`: all are.
    unread: Option<IndexInterval>,
    rows: usize,
    /// The entries that are read: numbers and item keys.
    read: VecDeque<(u64, Bytes)>,
}

impl<'a> TextsInOrder<'a> {
    /// `descending`: the items that were created last come first.
    pub fn new(slices: &'a [Slice], index: u32, key: &[u8], descending: bool) -> TextsInOrder<'a> {
        let range = |slice| RangeOfTexts {
            slice,
            unread: Some(list(index, key)),
            rows: FIRST_ROWS,
            read: VecDeque::new(),
        };
        TextsInOrder {
            ranges: slices.iter().map(range).collect(),
            descending,
        }
    }

    /// Returns the next items, at most `count`, without those of some numbers: the index of the slice, and the item key of each. None at the end.
    ///
    /// # Errors
    /// From the engine.
    pub async fn take(&mut self, count: usize, without: &HashSet<u64>) -> Result<Vec<(usize, Bytes)>> {
        let mut items = Vec::with_capacity(count);
        while items.len() < count {
            for range in &mut self.ranges {
                range.fill(self.descending).await?;
            }
            let heads = self.ranges.iter().enumerate();
            let heads = heads.filter_map(|(at, range)| Some((range.read.front()?.0, at)));
            let next = if self.descending { heads.max() } else { heads.min() };
            let Some((number, at)) = next else { break };
            if let Some((_, key)) = self.ranges[at].read.pop_front()
                && !without.contains(&number)
            {
                items.push((at, key));
            }
        }
        Ok(items)
    }
}

impl RangeOfTexts<'_> {
    async fn fill(&mut self, descending: bool) -> Result<()> {
        let Some(unread) = self.unread.as_mut().filter(|_| self.read.is_empty()) else {
            return Ok(());
        };
        let interval = [unread.clone()];
        let (_, mut pages) = self
            .slice
            .partition
            .read_index(&interval, descending, self.rows)
            .await?;
        let page = pages.pop().unwrap_or_default();
        let entries = page.rows.iter().filter_map(|(key, _)| PropertyEntry::parse(key));
        self.read
            .extend(entries.map(|entry| (entry.number(), entry.item_key())));
        match page.rows.last().filter(|_| page.more) {
            None => self.unread = None,
            Some((last, _)) if descending => unread.to = Some(last.clone()),
            Some((last, _)) => unread.from = keys::after(last),
        }
        self.rows = (2 * self.rows).min(MAX_ROWS);
        Ok(())
    }
}
