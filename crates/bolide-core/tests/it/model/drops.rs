//! Deleting everything of a partition key: gone for every request from then on, removed later, by the purge or by a writer in whose way it
//! is. Until then it is neither an item nor a ghost, so it does not expire: its end is the delete (P7).

use super::{Model, Version};

impl Model {
    /// All live items of a key are deleted. What had expired before was gone already, and stays a ghost.
    pub fn drop_all(&mut self, pk: &str) {
        let dropped = self.live_items().filter(|version| version.pk == pk);
        let dropped: Vec<Version> = dropped.cloned().collect();
        let is_dropped = |version: &Version| dropped.iter().any(|dropped| dropped.etag == version.etag);
        self.versions.retain(|version| !is_dropped(version));
        self.dropped.extend(dropped);
    }

    /// In one turn ghosts are purged, and what was deleted with its key is removed: only now its events come. That is paid from the
    /// budget of the purge, but no figure of expiry counts it.
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
