//! Copying a range into its children while it is in use.
//!
//! ```text
//!   recorded:   keys of every commit from here on (`partition::dirty_keys`)
//!   pages:      Log ─▶ Expiry ─▶ Item ─▶ Index ─▶ history      each page at the head of its moment
//!   caught up:  dirty keys behind the pages are read again, between two pages and until few are left
//!   sealed:     with requests kept out, the last dirty keys, and the counters of the same head
//! ```
//!
//! A dirty key that the pages have not come to yet is left to them. One behind them is read again, and put into its child or removed there; what
//! is read last is what the parent has at the head at which the copy ends. Of new entries of the log there is no end, so pages of the log go to
//! where it stood when they began, and what lies behind is copied by its dirty keys. In memory are a page, what waits for a commit, and dirty keys.

use std::sync::Arc;
use std::time::Duration;

use bolide_model::{Error, ErrorKind, Result, UnixMillis};
use bolide_storage::{Head, Key, ReadRequest, Scan, Space};
use bytes::Bytes;

use super::child::Child;
use super::running::RunningSplit;
use crate::change_log::HistoryEntry;
use crate::format::keys::{self, LogPosition};
use crate::format::record::{ExpiryEntry, LogEntry};
use crate::partition::Partition;
use crate::partition::dirty_keys::Recording;
use crate::partition::state::{Amount, Ghosts, PartitionState};

/// Rows and bytes of one page. Others wait for no more than reading and committing one.
const PAGE_ROWS: usize = 500;
const PAGE_BYTES: usize = 256 * 1024;

/// Dirty keys that the end of the copy may find, while requests wait; and how often they are brought down to that.
const FEW_KEYS: usize = 500;
const CATCH_UP_ROUNDS: usize = 64;

/// Longest rest after a page.
const MAX_REST: Duration = Duration::from_millis(200);

/// How often the end of the copy waits for commits that are still on their way.
const END_TRIES: usize = 16;

/// See the module.
pub(super) struct Copy {
    parent: Arc<Partition>,
    pub children: Vec<Child>,
    recording: Recording,
    walks: Vec<CopyScan>,
    running: Arc<RunningSplit>,
}

/// The keys of one kind of row, and how far pages have come.
struct CopyScan {
    space: Space,
    /// First key of the kind, and the end, exclusive.
    from: Bytes,
    to: Option<Bytes>,
    /// Whether the kind is ordered by log sequence numbers: then pages end where the log stood when they began.
    is_log: bool,
    progress: Progress,
}

enum Progress {
    Waiting,
    /// Pages have copied what lies before `next`, and will copy up to `to`.
    Reading {
        next: Bytes,
        to: Option<Bytes>,
    },
    Done,
}

impl Copy {
    /// Begins to record what changes.
    pub async fn begin(parent: Arc<Partition>, children: Vec<Child>, running: Arc<RunningSplit>) -> Result<Copy> {
        let recording = parent.record_dirty_keys().await?;
        let of_space = |space| CopyScan::over(space, Bytes::new(), None);
        Ok(Copy {
            parent,
            children,
            recording,
            walks: vec![
                CopyScan::over(Space::Log, Bytes::new(), Some(keys::log_end())),
                of_space(Space::Expiry),
                of_space(Space::Item),
                of_space(Space::Index),
                CopyScan::over(Space::Log, keys::log_end(), None),
            ],
            running,
        })
    }

    /// Copies all pages, and what changed meanwhile until few keys are left.
    ///
    /// # Errors
    /// From the engine; `Unavailable` if more is written than can be copied, or if the account closes.
    pub async fn copy_pages(&mut self) -> Result<()> {
        for at in 0..self.walks.len() {
            let clock = self.running.clock().clone();
            let mut began = clock.now();
            while self.copy_page(at).await? {
                // Beside writers half of the time is theirs, that of the disk too (docs/benchmarks.md).
                match self.catch_up().await? {
                    0 => tokio::task::yield_now().await,
                    _ => clock.sleep(clock.since(began).min(MAX_REST)).await,
                }
                began = clock.now();
            }
        }
        self.catch_up_until_few().await?;
        for child in &mut self.children {
            child.flush().await?;
        }
        Ok(())
    }

    /// Reads dirty keys again until few are left.
    pub async fn catch_up_until_few(&mut self) -> Result<()> {
        for _ in 0..CATCH_UP_ROUNDS {
            if self.catch_up().await? <= FEW_KEYS {
                break;
            }
        }
        Ok(())
    }

    /// Ends the copy; requests are kept out meanwhile. The children then have what the parent has, and stand where it stands.
    ///
    /// # Errors
    /// As [`Copy::copy_pages`]; `Corrupt` if the counters of the parent are not those of its items.
    pub async fn finish(&mut self, now: UnixMillis) -> Result<()> {
        let (head, state) = self.catch_up_with_head().await?;
        let mut copied = Amount::default();
        for child in &self.children {
            copied.items += child.stored.items;
            copied.bytes += child.stored.bytes;
        }
        if copied != state.stored {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "the counters of the range are not those of its items: let the container be verified",
            ));
        }
        // What was purged stays counted, once: in the first child.
        let mut figures = state.purge_figures();
        let mut commits = Vec::new();
        for child in &mut self.children {
            let of_child = PartitionState {
                stored: child.stored,
                purge: state.purge,
                ghosts: Ghosts {
                    upto: state.purge,
                    ..Ghosts::default()
                },
                history_from: state.history_from,
                tombstones: state.tombstones.filtered(|tombstone| child.contains(&tombstone.epk)),
                ..std::mem::take(&mut figures)
            };
            commits.push(async move { child.finish(&of_child, head.lsn, now.max(head.stamp)).await });
        }
        futures_util::future::try_join_all(commits).await?;
        Ok(())
    }

    /// Copies the next page of a walk; `false` at its end.
    async fn copy_page(&mut self, at: usize) -> Result<bool> {
        self.running.check()?;
        let Some(walk) = self.walks.get(at) else {
            return Ok(false);
        };
        let (from, to) = match &walk.progress {
            Progress::Waiting => (walk.from.clone(), walk.to.clone()),
            Progress::Reading { next, to } => (next.clone(), to.clone()),
            Progress::Done => return Ok(false),
        };
        let scan = Scan {
            space: walk.space,
            from,
            to,
            reverse: false,
            max_rows: PAGE_ROWS,
            max_bytes: PAGE_BYTES,
            keys_only: false,
        };
        let request = ReadRequest {
            scans: vec![scan],
            ..ReadRequest::default()
        };
        let mut reply = self.parent.read_raw(request).await?;
        let page = reply.pages.pop().unwrap_or_default();
        let last = page.rows.last().map(|(key, _)| key.clone());
        if let Some(walk) = self.walks.get_mut(at) {
            walk.advance(reply.head, last.filter(|_| page.more));
        }
        let space = self.walks.get(at).map_or(Space::Item, |walk| walk.space);
        for (key, value) in page.rows {
            let key = Key::new(space, key);
            let owner = owner_of(&key, &value)?;
            if let Some(child) = self.children.iter_mut().find(|child| child.contains(&owner)) {
                child.set(key, None, Some(value))?;
                child.commit_if_full().await?;
            }
        }
        Ok(true)
    }

    /// Reads the dirty keys behind the pages again; tells how many there were.
    async fn catch_up(&mut self) -> Result<usize> {
        let mut dirty = self.recording.take()?;
        dirty.retain(|key| self.is_copied(key));
        let mut left = &dirty[..];
        while !left.is_empty() {
            self.running.check()?;
            let request = ReadRequest {
                gets: left[..left.len().min(PAGE_ROWS)].to_vec(),
                max_bytes: PAGE_BYTES,
                ..ReadRequest::default()
            };
            let values = self.parent.read_raw(request).await?.gets;
            let (keys, later) = left.split_at(values.len());
            self.copy_again(keys, values).await?;
            left = later;
        }
        Ok(dirty.len())
    }

    fn is_copied(&self, key: &Key) -> bool {
        self.walks.iter().any(|walk| walk.has_copied(key))
    }

    async fn copy_again(&mut self, keys: &[Key], values: Vec<Option<Bytes>>) -> Result<()> {
        let mut owners = Vec::with_capacity(keys.len());
        for (key, value) in keys.iter().zip(&values) {
            owners.push(match value {
                Some(value) => Some(owner_of(key, value)?),
                None => owner_of_removed(key)?,
            });
        }
        for child in &mut self.children {
            let before = child.log_entries(keys).await?;
            for ((key, value), owner) in keys.iter().zip(&values).zip(&owners) {
                // What is gone and does not tell whose it was, is gone from all.
                if owner.as_ref().is_none_or(|owner| child.contains(owner)) {
                    child.set(key.clone(), before.get(key), value.clone())?;
                }
            }
            child.commit_if_full().await?;
        }
        Ok(())
    }

    /// Reads dirty keys again until none is left at the head of the parent, and its counters at that head. Of requests that were let in nothing
    /// is left but commits whose client has gone.
    async fn catch_up_with_head(&mut self) -> Result<(Head, PartitionState)> {
        for _ in 0..END_TRIES {
            self.catch_up().await?;
            let request = ReadRequest {
                gets: vec![keys::state()],
                ..ReadRequest::default()
            };
            let mut reply = self.parent.read_raw(request).await?;
            // The worker records a commit before it shows its LSN.
            if reply.head.lsn == self.parent.lsn() && self.recording.is_empty() {
                let state = reply.gets.pop().flatten();
                let state = state.map_or(Ok(PartitionState::default()), |row| PartitionState::decode(&row))?;
                return Ok((reply.head, state));
            }
            // Behind a commit of unknown outcome: with the next one, the worker finds out where the partition stands.
            self.parent
                .background(|batch| {
                    batch.next_lsn();
                    Ok(())
                })
                .await?;
        }
        Err(Error::new(
            ErrorKind::Unavailable,
            "the split could not be carried out, others write the range; nothing has changed",
        ))
    }
}

impl CopyScan {
    fn over(space: Space, from: Bytes, to: Option<Bytes>) -> CopyScan {
        CopyScan {
            space,
            from,
            to,
            is_log: space == Space::Log,
            progress: Progress::Waiting,
        }
    }

    /// A page was read at `head`; more follows behind `last`, if that is given.
    fn advance(&mut self, head: Head, last: Option<Bytes>) {
        let to = match std::mem::replace(&mut self.progress, Progress::Done) {
            Progress::Reading { to, .. } => to,
            _ if self.is_log => Some(self.behind(head)),
            _ => self.to.clone(),
        };
        let next = last.map(|last| keys::after(&last));
        if let Some(next) = next.filter(|next| to.as_ref().is_none_or(|to| next < to)) {
            self.progress = Progress::Reading { next, to };
        }
    }

    /// The first key of a commit behind `head`.
    fn behind(&self, head: Head) -> Bytes {
        let position = LogPosition {
            lsn: head.lsn.next(),
            seq: 0,
        };
        match self.to {
            Some(_) => position.to_bytes(),
            None => keys::history(position).bytes,
        }
    }

    /// Whether no page will come to a key any more.
    fn has_copied(&self, key: &Key) -> bool {
        let is_of_kind =
            key.space == self.space && key.bytes >= self.from && self.to.as_ref().is_none_or(|to| key.bytes < *to);
        is_of_kind
            && match &self.progress {
                Progress::Waiting => false,
                Progress::Reading { next, to } => key.bytes < *next || to.as_ref().is_some_and(|to| key.bytes >= *to),
                Progress::Done => true,
            }
    }
}

fn epk_of(item_key: &Bytes) -> Bytes {
    item_key.slice_ref(keys::epk_of_item(item_key))
}

/// Bytes that begin with the effective partition key of the item that a row belongs to.
fn owner_of(key: &Key, value: &Bytes) -> Result<Bytes> {
    Ok(match key.space {
        Space::Log if key.bytes >= keys::log_end() => epk_of(&HistoryEntry::decode(value)?.item_key),
        Space::Log => epk_of(&LogEntry::decode(value)?.item_key),
        Space::Expiry => epk_of(&ExpiryEntry::decode(value)?.item_key),
        Space::Item | Space::Index | Space::Meta => owner_of_removed(key)?.unwrap_or_default(),
    })
}

/// As [`owner_of`], of a row that is gone; `None` if the key does not tell.
fn owner_of_removed(key: &Key) -> Result<Option<Bytes>> {
    match key.space {
        Space::Item => Ok(Some(epk_of(&key.bytes))),
        Space::Index => keys::epk_and_rest_of_index(&key.bytes)
            .map(|owner| Some(key.bytes.slice_ref(owner)))
            .ok_or_else(|| Error::new(ErrorKind::Corrupt, "an index entry is damaged")),
        Space::Log | Space::Expiry | Space::Meta => Ok(None),
    }
}

#[cfg(test)]
mod tests;
