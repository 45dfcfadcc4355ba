//! What every engine checks about a batch, and remembers of it.

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

    /// Names the batch, should its outcome be unknown.
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

    /// Says what makes this batch unfit to follow `head`, whoever sends it. Engines answer [`crate::Outcome::Refused`] with it.
    ///
    /// A base that is not the head is not a flaw but [`crate::Outcome::Stale`]; ask for that first.
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

/// The newest commits of one partition, by which an engine resolves tickets.
///
/// It goes back [`RESOLVABLE_COMMITS`].
#[derive(Debug)]
pub struct History {
    /// The head before the oldest commit in `commits`.
    start: Head,
    commits: VecDeque<(CommitToken, Head)>,
}

/// Commits of a partition whose outcome [`Engine::resolve`](crate::Engine::resolve) knows at least. A worker resolves before it commits
/// again, so few are enough.
pub const RESOLVABLE_COMMITS: usize = 16;

impl History {
    /// The history of a partition whose head is `head`, before any commit.
    pub fn starting_at(head: Head) -> History {
        History {
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

    /// What became of the commit `ticket` names, provided that it is no longer under way; `None` if it is older than this memory.
    pub fn resolve(&self, ticket: &Ticket) -> Option<Resolved> {
        let done = self.commits.iter().find(|(token, _)| *token == ticket.token);
        match done {
            Some((_, head)) => Some(Resolved::Done(*head)),
            // It would have been committed on top of `base`, and everything since `start` is remembered.
            None if self.start.lsn <= ticket.base => Some(Resolved::NotDone),
            None => None,
        }
    }
}
