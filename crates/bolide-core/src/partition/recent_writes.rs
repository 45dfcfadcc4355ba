//! The keys that the newest commits of a partition have written, while rows are read for background work ([`prepared`](super::prepared)).

use std::collections::VecDeque;
use std::sync::Arc;

use bolide_model::Lsn;
use bolide_storage::Key;

use super::write_batch::Changes;

/// Maximum number of keys that are kept, so that memory stays bounded while rows are read for long.
const MAX_KEYS: usize = 4096;

/// Held by each set of rows for which it matters what has been written since.
pub(super) type Interest = Arc<()>;

/// Commits that followed each other, the newest last.
#[derive(Debug, Default)]
pub(super) struct RecentWrites {
    interest: Interest,
    commits: VecDeque<Commit>,
    /// The log sequence number after the newest commit.
    end: Option<Lsn>,
    /// Number of keys of all commits.
    keys: usize,
}

#[derive(Debug)]
struct Commit {
    base: Lsn,
    keys: Vec<Key>,
}

impl RecentWrites {
    pub fn of(interest: &Interest) -> RecentWrites {
        RecentWrites {
            interest: interest.clone(),
            ..RecentWrites::default()
        }
    }

    /// Returns the keys that a commit will write, if anyone wants to know. `None`: nobody does.
    pub fn keys_of(&self, changes: &Changes) -> Option<Vec<Key>> {
        let others = Arc::strong_count(&self.interest) > Self::OWN_REFERENCES;
        others.then(|| {
            let puts = changes.puts.iter().map(|put| &put.key);
            puts.chain(&changes.deletes).cloned().collect()
        })
    }

    /// References to `interest` that are no interest: this one, and the one from which others are made.
    const OWN_REFERENCES: usize = 2;

    /// Records the commit between two log sequence numbers. `None` as its keys: they are not known.
    pub fn note(&mut self, base: Lsn, next: Lsn, keys: Option<Vec<Key>>) {
        if self.end != Some(base) || keys.is_none() {
            self.forget_all();
        }
        let Some(keys) = keys else { return };
        self.keys += keys.len();
        self.commits.push_back(Commit { base, keys });
        self.end = Some(next);
        while self.keys > MAX_KEYS {
            let Some(oldest) = self.commits.pop_front() else { break };
            self.keys -= oldest.keys.len();
        }
    }

    /// Returns the keys written between two heads. `None` if not all of them are known.
    pub fn between(&self, from: Lsn, to: Lsn) -> Option<impl Iterator<Item = &Key>> {
        let first = match from == to {
            true => self.commits.len(),
            false if self.end == Some(to) => self.commits.iter().position(|commit| commit.base == from)?,
            false => return None,
        };
        Some(self.commits.range(first..).flat_map(|commit| &commit.keys))
    }

    fn forget_all(&mut self) {
        self.commits.clear();
        (self.end, self.keys) = (None, 0);
    }
}

#[cfg(test)]
mod tests;
