//! The content of feeds, page by page (TTL-247…249).

use std::collections::BTreeMap;

use bolide_model::epk::{Epk, EpkRange};

use super::{Model, Version};

/// The part of the container that a feed reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Part {
    All,
    Key(&'static str),
    /// A partition key range, by its id.
    Range(u32),
}

/// How far a read feed was read: in each of these key ranges, items up to this insertion number were listed.
pub type Listed = Vec<(EpkRange, u64)>;

/// How far a change feed was read, by range: the position of the last change that was shown or that needs no more reading.
pub type ChangesPlace = BTreeMap<u32, u64>;

impl Model {
    /// Returns whether the part exists: a range that was split does not.
    pub fn has(&self, part: Part) -> bool {
        match part {
            Part::All | Part::Key(_) => true,
            Part::Range(id) => self.range_at(id).is_some(),
        }
    }

    pub fn contains(&self, part: Part, version: &Version) -> bool {
        match part {
            Part::All => true,
            Part::Key(pk) => version.pk == pk,
            Part::Range(id) => self.ranges[self.range_of(&version.epk)].id == id,
        }
    }

    /// Returns the live items that were not listed, in the order of the read feed: range by range, then by insertion.
    pub fn listed(&self, part: Part, done: &Listed) -> Vec<&Version> {
        let is_done = |version: &Version| {
            let mut done = done.iter();
            done.any(|(range, inserted)| range.contains(&version.epk) && version.inserted <= *inserted)
        };
        let mut listed: Vec<&Version> = self
            .live_items()
            .filter(|version| self.contains(part, version) && !is_done(version))
            .collect();
        listed.sort_by_key(|version| (self.range_of(&version.epk), version.inserted));
        listed
    }

    /// Records a page of the read feed, which ends with its range: the first `shown` of the items that were to be listed.
    pub fn note_listed(&self, want: &[&Version], shown: usize, done: &mut Listed) {
        let (Some(last), Some(next)) = (shown.checked_sub(1).map(|at| want[at]), want.get(shown)) else {
            return;
        };
        let [last_range, next_range] = [last, *next].map(|version| &self.ranges[self.range_of(&version.epk)].epk);
        if last_range == next_range {
            done.push((last_range.clone(), last.inserted));
        } else {
            done.push((EpkRange::new(Epk::start(), next_range.min.clone()), u64::MAX));
        }
    }

    /// Returns how many of the items a page of `size` shows: it ends with a range.
    pub fn items_of_page(&self, items: &[&Version], size: usize) -> usize {
        let first = items.first().map(|version| self.range_id_of(version));
        let alike = items
            .iter()
            .take_while(|version| Some(self.range_id_of(version)) == first);
        alike.count().min(size)
    }

    /// Returns the live items after a position, in the order of the change feed: range by range, by last write.
    pub fn changed(&self, part: Part, after: &ChangesPlace) -> Vec<&Version> {
        let done = |range: usize| after.get(&self.ranges[range].id).copied().unwrap_or(0);
        let mut changed: Vec<(usize, &Version)> = self
            .live_items()
            .filter(|version| self.contains(part, version))
            .map(|version| (self.range_of(&version.epk), version))
            .filter(|(range, version)| version.order > done(*range))
            .collect();
        changed.sort_by_key(|(range, version)| (*range, version.order));
        changed.into_iter().map(|(_, version)| version).collect()
    }

    /// Returns how many of the changes a page of `size` shows: it ends with a range, and a transaction is not cut in two.
    pub fn page_of(&self, changed: &[&Version], size: usize) -> usize {
        let transaction = |at: usize| (self.range_id_of(changed[at]), changed[at].transaction);
        let mut end = self.items_of_page(changed, size);
        while end > 0 && end < changed.len() && transaction(end) == transaction(end - 1) {
            end += 1;
        }
        end
    }

    /// Returns the position after everything written so far.
    pub fn end_of_changes(&self) -> ChangesPlace {
        self.ranges.iter().map(|range| (range.id, self.writes)).collect()
    }

    /// Returns the position before the first change after a second.
    pub fn changes_since(&self, second: i64) -> ChangesPlace {
        let mut place = ChangesPlace::new();
        for version in self.versions.iter().filter(|version| version.written <= second) {
            let done = place.entry(self.ranges[self.range_of(&version.epk)].id).or_insert(0);
            *done = version.order.max(*done);
        }
        place
    }

    /// Returns the id of the range that a version is in.
    pub fn range_id_of(&self, version: &Version) -> u32 {
        self.ranges[self.range_of(&version.epk)].id
    }
}
