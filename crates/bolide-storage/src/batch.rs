//! Checks that every engine makes on a batch, and the recent commits by which it resolves tickets.

use std::collections::VecDeque;

use bolide_model::limits::KEY_BYTES;

use crate::{Batch, CommitToken, Head, Key, Resolved, Ticket};

impl Batch {
    /// The head of the partition once this batch is committed.
    pub fn head(&self) -> Head {
        Head {
            lsn: self.next,
            stamp: self.stamp,
            edition: self.edition,
        }
    }

    /// Names the batch, in case its outcome is unknown.
    pub fn ticket(&self) -> Ticket {
        Ticket {
            base: self.base,
            next: self.next,
            token: self.token,
        }
    }

    /// Bytes of its keys and values.
    pub fn bytes(&self) -> usize {
        let values: usize = self.puts.iter().map(|put| put.value.len()).sum();
        values + self.keys().map(|key| key.bytes.len()).sum::<usize>()
    }

    /// Returns the reason why this batch may not follow `head`, whoever sends it. Engines return it as [`crate::Outcome::Refused`].
    ///
    /// A base that is not the head is not checked here: it makes the commit [`crate::Outcome::Stale`]. Check that first.
    pub fn validate(&self, head: Head) -> Option<String> {
        if self.next <= self.base {
            return Some(format!(
                "a commit must move the log forward. base={} next={}",
                self.base, self.next
            ));
        }
        if self.stamp < head.stamp {
            return Some(format!(
                "a commit is older than the head. stamp={} head={}",
                self.stamp.0, head.stamp.0
            ));
        }
        let longest = self.keys().map(|key| key.bytes.len()).max().unwrap_or(0);
        (longest > KEY_BYTES).then(|| format!("a key is too long. bytes={longest} limit={KEY_BYTES}"))
    }

    /// Every key the batch touches.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.puts.iter().map(|put| &put.key).chain(&self.deletes)
    }
}

/// The newest commits of one partition, by which an engine resolves tickets. At least the last [`RESOLVABLE_COMMITS`] are kept.
#[derive(Debug)]
pub struct RecentCommits {
    /// The head before the oldest commit in `commits`.
    start: Head,
    commits: VecDeque<(CommitToken, Head)>,
}

/// How many of the newest commits of a partition [`Engine::resolve`](crate::Engine::resolve) must know. A worker resolves an unknown outcome before
/// it commits again, so a few are enough.
pub const RESOLVABLE_COMMITS: usize = 16;

impl RecentCommits {
    /// No commits yet, on a partition whose head is `head`.
    pub fn starting_at(head: Head) -> RecentCommits {
        RecentCommits {
            start: head,
            commits: VecDeque::new(),
        }
    }

    /// The head of the partition.
    pub fn head(&self) -> Head {
        self.commits.back().map_or(self.start, |(_, head)| *head)
    }

    /// Remembers that `batch` was committed.
    pub fn push(&mut self, batch: &Batch) {
        self.push_commit(batch.token, batch.head());
    }

    /// Remembers a commit by its token and the head it made.
    pub fn push_commit(&mut self, token: CommitToken, head: Head) {
        if self.commits.len() == RESOLVABLE_COMMITS {
            self.start = self.commits.pop_front().map_or(self.start, |(_, head)| head);
        }
        self.commits.push_back((token, head));
    }

    /// The outcome of the commit that `ticket` names, if it is no longer in progress; `None` if it is older than the commits kept here.
    pub fn resolve(&self, ticket: &Ticket) -> Option<Resolved> {
        let done = self.commits.iter().find(|(token, _)| *token == ticket.token);
        match done {
            Some((_, head)) => Some(Resolved::Done(*head)),
            // All commits since `start` are known here, and this one would have followed `base`.
            None if self.start.lsn <= ticket.base => Some(Resolved::NotDone),
            None => None,
        }
    }
}
