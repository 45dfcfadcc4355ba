//! Copies a range into its children while it is in use.
//!
//! ```text
//!   recorded:   keys of every commit from here on (`partition::dirty_keys`)
//!   pages:      Log ─▶ Expiry ─▶ Item ─▶ Index ─▶ history      each page at the current head
//!   caught up:  dirty keys in copied pages are read again, between two pages and until few are left
//!   sealed:     with requests kept out, the last dirty keys, and the counters of the same head
//! ```
//!
//! A dirty key that the pages have not reached yet is copied with its page. A dirty key in a copied page is read again, and its value is put into its
//! child or removed there; so at the end the children have the parent's values at the head at which the copy ends. New entries are added to the log
//! without end, so the pages of the log end at the head at which they began, and later entries are copied as dirty keys. In memory are one page, the
//! rows that wait for a commit, and dirty keys.

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
use crate::partition::ghosts::Ghosts;
use crate::partition::state::{Amount, PartitionState};

/// Maximum number of rows and of bytes of one page, so that other writes wait no longer than for reading and committing one page.
const PAGE_ROWS: usize = 500;
const PAGE_BYTES: usize = 256 * 1024;

/// Number of dirty keys that may be left for the end of the copy, while requests wait; and how often dirty keys are copied to get below it.
const FEW_KEYS: usize = 500;
const CATCH_UP_ROUNDS: usize = 64;

/// Maximum pause after a page.
const MAX_REST: Duration = Duration::from_millis(200);

/// How often the end of the copy waits for commits that are not finished.
const END_TRIES: usize = 16;

/// See the module.
pub(super) struct Copy {
    parent: Arc<Partition>,
    pub children: Vec<Child>,
    recording: Recording,
    walks: Vec<CopyScan>,
    running: Arc<RunningSplit>,
}

/// The keys of one kind of row, and how many of them are copied.
struct CopyScan {
    space: Space,
    /// First key of the kind, and the end (exclusive).
    from: Bytes,
    to: Option<Bytes>,
    /// Whether the kind is ordered by log sequence numbers. Its pages then end at the head at which they began.
    is_log: bool,
    progress: Progress,
}

enum Progress {
    Waiting,
    /// Pages have copied the keys before `next`, and will copy those up to `to`.
    Reading {
        next: Bytes,
        to: Option<Bytes>,
    },
    Done,
}

impl Copy {
    /// Starts recording changed keys.
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

    /// Copies all pages, and the keys that change meanwhile until few are left.
    ///
    /// # Errors
    /// From the engine; `Unavailable` if more is written than can be copied, or if the account closes.
    pub async fn copy_pages(&mut self) -> Result<()> {
        for at in 0..self.walks.len() {
            let clock = self.running.clock().clone();
            let mut began = clock.now();
            while self.copy_page(at).await? {
                // If others write the range, half of the time is left to them, because they share the disk (docs/benchmarks.md).
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

    /// Copies dirty keys until few are left.
    pub async fn catch_up_until_few(&mut self) -> Result<()> {
        for _ in 0..CATCH_UP_ROUNDS {
            if self.catch_up().await? <= FEW_KEYS {
                break;
            }
        }
        Ok(())
    }

    /// Ends the copy, while requests are kept out. Afterwards the children have the parent's rows and stand at its log sequence number.
    ///
    /// # Errors
    /// The errors of [`Copy::copy_pages`]; `Corrupt` if the counters of the parent do not match its items.
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
        // The counters of the purge are kept once: in the first child.
        let mut figures = state.purge_figures();
        let mut commits = Vec::new();
        for child in &mut self.children {
            let of_child = PartitionState {
                stored: child.stored,
                purge: state.purge,
                ghosts: Ghosts::behind(state.purge),
                history_from: state.history_from,
                tombstones: state.tombstones.filtered(|tombstone| child.contains(&tombstone.epk)),
                ..std::mem::take(&mut figures)
            };
            commits.push(async move { child.finish(&of_child, head.lsn, now.max(head.stamp)).await });
        }
        futures_util::future::try_join_all(commits).await?;
        Ok(())
    }

    /// Copies the next page of the scan `at`. Returns `false` at its end.
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

    /// Copies the dirty keys in copied pages again. Returns their number.
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
                // A removed row whose key does not tell its item is removed from all children.
                if owner.as_ref().is_none_or(|owner| child.contains(owner)) {
                    child.set(key.clone(), before.get(key), value.clone())?;
                }
            }
            child.commit_if_full().await?;
        }
        Ok(())
    }

    /// Copies dirty keys until none is left at the parent's head, and returns that head and the counters at it. New requests are kept out; only
    /// commits whose client has disconnected may still be running.
    async fn catch_up_with_head(&mut self) -> Result<(Head, PartitionState)> {
        for _ in 0..END_TRIES {
            self.catch_up().await?;
            let request = ReadRequest {
                gets: vec![keys::state()],
                ..ReadRequest::default()
            };
            let mut reply = self.parent.read_raw(request).await?;
            // The worker records the keys of a commit before it publishes the commit's LSN.
            if reply.head.lsn == self.parent.lsn() && self.recording.is_empty() {
                let state = reply.gets.pop().flatten();
                let state = state.map_or(Ok(PartitionState::default()), |row| PartitionState::decode(&row))?;
                return Ok((reply.head, state));
            }
            // After a commit of unknown outcome, the worker finds the partition's head with the next commit.
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

    /// Records that a page was read at `head`. More rows follow after `last`, if that is given.
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

    /// Returns the first key of the commits after `head`.
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

    /// Tells whether no later page will contain a key.
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

/// Returns bytes that begin with the effective partition key of the item that a row belongs to.
fn owner_of(key: &Key, value: &Bytes) -> Result<Bytes> {
    Ok(match key.space {
        Space::Log if key.bytes >= keys::log_end() => epk_of(&HistoryEntry::decode(value)?.item_key),
        Space::Log => epk_of(&LogEntry::decode(value)?.item_key),
        Space::Expiry => epk_of(&ExpiryEntry::decode(value)?.item_key),
        Space::Item | Space::Index | Space::Meta => owner_of_removed(key)?.unwrap_or_default(),
    })
}

/// Like [`owner_of`], for a removed row; `None` if the key does not tell its item.
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
