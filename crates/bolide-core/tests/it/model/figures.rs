//! Statistics of a container: quota, backlog, which items expire when, and why (TTL-253, TTL-272).

use super::{Model, Version};

impl Model {
    /// Returns the number of live items and their bytes.
    pub fn usage(&self) -> (u64, u64) {
        sum(self.live_items())
    }

    /// Returns the number of ghosts and their bytes.
    pub fn backlog(&self) -> (u64, u64) {
        sum(self.ghosts())
    }

    /// Returns *T* minus the earliest moment of expiry of the ghosts, in seconds.
    pub fn oldest_pending_seconds(&self) -> i64 {
        let moments = self.ghosts().filter_map(|ghost| self.moment_of_expiry(ghost));
        moments.min().map_or(0, |oldest| self.now() - oldest)
    }

    pub fn moment_of_expiry(&self, version: &Version) -> Option<i64> {
        self.history.moment_of_expiry(version.written, version.own, self.now())
    }

    /// Returns when a version expires unless settings change; `None`: never.
    pub fn end(&self, version: &Version) -> Option<i64> {
        self.history.end_in_force(version.written, version.own)
    }

    /// Returns when the next live item expires.
    pub fn next_end(&self) -> Option<i64> {
        self.live_items().filter_map(|version| self.end(version)).min()
    }

    /// Returns the number of live items that expire in `from..to`.
    pub fn ending_in(&self, from: i64, to: i64) -> u64 {
        let ends = self.live_items().filter_map(|version| self.end(version));
        ends.filter(|end| (from..to).contains(end)).count() as u64
    }

    /// Returns how many of the live items would expire at once under another default, within the hour after, within the day after, and never.
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
