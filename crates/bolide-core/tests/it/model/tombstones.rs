//! Deletes all items of a partition key: invisible for every request from then on, removed later, by the purge or by a writer that needs their id
//! or unique key. Until then they are neither items nor ghosts, so they do not expire: the delete ends them (P7).

use super::{Model, Version};

impl Model {
    /// Deletes all live items of a key. Items that had expired before were invisible already, and stay ghosts.
    pub fn drop_all(&mut self, pk: &str) {
        let dropped = self.live_items().filter(|version| version.pk == pk);
        let dropped: Vec<Version> = dropped.cloned().collect();
        let is_dropped = |version: &Version| dropped.iter().any(|dropped| dropped.etag == version.etag);
        self.versions.retain(|version| !is_dropped(version));
        self.dropped.extend(dropped);
    }

    /// Purges ghosts and removes items that were deleted with their key, in one commit: only now their events appear. The removal is paid from the
    /// budget of the purge, but the statistics of expiry do not count it.
    pub fn purged_and_removed(&mut self, is_gone: impl Fn(&Version) -> bool, is_removed: impl Fn(&Version) -> bool) {
        self.events.begin_turn();
        self.purged_in_turn(is_gone);
        let removed: Vec<Version> = self
            .dropped
            .iter()
            .filter(|version| is_removed(version))
            .cloned()
            .collect();
        self.dropped.retain(|version| !is_removed(version));
        self.events.removed(self.now(), &removed);
        let (now, cost) = (self.now(), self.cost());
        for version in &removed {
            let range = self.range_of(&version.epk);
            self.ranges[range].windows.spend(now, cost);
        }
    }
}
