//! Figures about a container: quota, backlog, what will end when, and why (TTL-253, TTL-272).

use super::{Model, Version};

impl Model {
    /// Live items and their bytes.
    pub fn usage(&self) -> (u64, u64) {
        sum(self.live_items())
    }

    /// Ghosts and their bytes.
    pub fn backlog(&self) -> (u64, u64) {
        sum(self.ghosts())
    }

    /// *T* less the earliest moment of expiry among the ghosts.
    pub fn oldest_pending_seconds(&self) -> i64 {
        let moments = self.ghosts().filter_map(|ghost| self.moment_of_expiry(ghost));
        moments.min().map_or(0, |oldest| self.now() - oldest)
    }

    pub fn moment_of_expiry(&self, version: &Version) -> Option<i64> {
        self.history.moment_of_expiry(version.written, version.own, self.now())
    }

    /// When a version ends unless settings change; `None`: never.
    pub fn end(&self, version: &Version) -> Option<i64> {
        self.history.end_in_force(version.written, version.own)
    }

    /// When the next live item ends.
    pub fn next_end(&self) -> Option<i64> {
        self.live_items().filter_map(|version| self.end(version)).min()
    }

    /// How many live items end in `from..to`.
    pub fn ending_in(&self, from: i64, to: i64) -> u64 {
        let ends = self.live_items().filter_map(|version| self.end(version));
        ends.filter(|end| (from..to).contains(end)).count() as u64
    }

    /// Of the live items, how many another default would end at once, within the hour after, within the day after, and never.
    pub fn preview(&self, default_ttl: Option<i64>) -> [u64; 4] {
        let mut after = self.clone();
        after.set_default(default_ttl);
        let mut counts = [0; 4];
        for version in self.live_items() {
            match after.end(version) {
                _ if !after.is_live(version) => counts[0] += 1,
                None => counts[3] += 1,
                Some(end) => {
                    counts[1] += u64::from(end <= self.now() + 3600);
                    counts[2] += u64::from(end <= self.now() + 86_400);
                }
            }
        }
        counts
    }
}

fn sum<'a>(versions: impl Iterator<Item = &'a Version>) -> (u64, u64) {
    versions.fold((0, 0), |(items, bytes), version| (items + 1, bytes + version.bytes()))
}
