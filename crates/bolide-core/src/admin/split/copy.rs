//! Copies a range into its children while it is in use.
//!
//! ```text
//!   recorded:   keys of every commit from here on (`partition::dirty_keys`)
//!   pages:      items ─▶ history ─▶ sessions      each page at the current head
//!   caught up:  dirty keys in the copied part are read again, between two pages and until few are left
//!   sealed:     while requests wait, the last dirty keys and the counters of the same head
//! ```
//!
//! Items are copied, and their entries are made from them by the one list of entries (`crate::format::entries`), so a split does not have to know
//! indexes and queues. The history is copied row by row, because it also describes items that are no longer stored; so are the retryable writes of sessions,
//! into both children.
//!
//! A dirty key that the pages have not reached yet is left to them. A dirty key in the copied part is read again: the old version is removed from the
//! child with its entries, and the parent's version is written. So at the end the children hold what the parent holds at the head at which the copy
//! ends. New history entries are added all the time, so the pages of the history end where it ended when they began; later entries are copied by their
//! dirty keys. Memory holds one page, the rows that wait for a commit, and the dirty keys.

use std::sync::Arc;
use std::time::Duration;

use bolide_model::{Error, ErrorKind, Result, UnixMillis};
use bolide_storage::{Head, Key, ReadRequest, Scan, Space};
use bytes::Bytes;

use super::child::Child;
use super::running::RunningSplit;
use crate::change_log::HistoryEntry;
use crate::format::entries;
use crate::format::keys::{self, LogPosition};
use crate::format::record::Record;
use crate::partition::Partition;
use crate::partition::dirty_keys::Recording;
use crate::partition::ghosts::Ghosts;
use crate::partition::state::{Amount, PartitionState};

/// Maximum number of rows and of bytes of one page: with the entries of its items about as much as one commit takes. Other requests wait for no more
/// than reading and committing one page.
const PAGE_ROWS: usize = 160;
const PAGE_BYTES: usize = 256 * 1024;

/// Number of dirty keys that may be left for the end of the copy, while requests wait; and how often dirty keys are copied to get below it.
const FEW_KEYS: usize = 100;
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
    scans: [CopyScan; 3],
    running: Arc<RunningSplit>,
}

/// The kinds of rows that are copied. All others are made from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copied {
    Items,
    History,
    /// The retryable writes of sessions: each child gets all, because a record does not tell which documents it is about.
    Sessions,
}

impl Copied {
    fn of(key: &Key) -> Option<Copied> {
        match key.space {
            _ if entries::is_entry(key) => None,
            Space::Item => Some(Copied::Items),
            Space::Log => Some(Copied::History),
            Space::Meta if keys::is_of_sessions(key) => Some(Copied::Sessions),
            Space::Expiry | Space::Index | Space::Meta => None,
        }
    }

    /// Returns the first key of the rows. They extend to the end of its space.
    fn begin(self) -> Key {
        match self {
            Copied::Items => Key::new(Space::Item, Bytes::new()),
            Copied::History => Key::new(Space::Log, keys::log_end()),
            Copied::Sessions => Key::new(Space::Meta, Bytes::new()),
        }
    }
}

/// The progress of the pages of one kind of rows.
struct CopyScan {
    rows: Copied,
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
        Ok(Copy {
            parent,
            children,
            recording,
            scans: [Copied::Items, Copied::History, Copied::Sessions].map(CopyScan::of),
            running,
        })
    }

    /// Goes on as a part of the change of the container's state that seals the partition.
    pub fn read_by_change(&mut self, parent: &Arc<Partition>) {
        self.parent = parent.clone();
    }

    /// Copies all pages, and the keys that change meanwhile until few are left.
    ///
    /// # Errors
    /// From the engine; `Unavailable` if more is written than can be copied, or if the account closes.
    pub async fn copy_pages(&mut self) -> Result<()> {
        for at in 0..self.scans.len() {
            let clock = self.running.clock().clone();
            let mut began = clock.now();
            while self.copy_page(at, PAGE_ROWS).await? {
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
                history_after: state.history_after,
                history_last: state.history_last,
                history_happened: state.history_happened,
                told: state.told,
                told_dates: state.told_dates.clone(),
                texts: child.texts(),
                tombstones: state.tombstones.filtered(|tombstone| child.contains(&tombstone.epk)),
                ..std::mem::take(&mut figures)
            };
            commits.push(async move { child.finish(&of_child, head.lsn, now.max(head.stamp)).await });
        }
        futures_util::future::try_join_all(commits).await?;
        Ok(())
    }

    /// Copies the next page of a scan. Returns false at its end.
    async fn copy_page(&mut self, at: usize, max_rows: usize) -> Result<bool> {
        self.running.check()?;
        let Some(scan) = self.scans.get(at).and_then(|scan| scan.next_page(max_rows)) else {
            return Ok(false);
        };
        let space = scan.space;
        let request = ReadRequest {
            scans: vec![scan],
            ..ReadRequest::default()
        };
        let mut reply = self.parent.read_raw(request).await?;
        let page = reply.pages.pop().unwrap_or_default();
        let last = page.rows.last().map(|(key, _)| key.clone());
        if let Some(scan) = self.scans.get_mut(at) {
            scan.advance(reply.head, last.filter(|_| page.more));
        }
        for (key, value) in page.rows {
            self.put(Key::new(space, key), value)?;
            for child in &mut self.children {
                child.commit_if_full().await?;
            }
        }
        Ok(true)
    }

    /// Adds a row to the child that it belongs to, an item with its entries. The child does not hold it yet.
    fn put(&mut self, key: Key, value: Bytes) -> Result<()> {
        match Copied::of(&key) {
            Some(Copied::Items) => {
                let record = Record::decode(value)?;
                if let Some(child) = child_of(&mut self.children, &key.bytes) {
                    child.add_item(key, &record);
                }
            }
            Some(Copied::History) => {
                let item_key = HistoryEntry::decode(&value)?.item_key;
                if let Some(child) = child_of(&mut self.children, &item_key) {
                    child.set(key, Some(value));
                }
            }
            Some(Copied::Sessions) => {
                for child in &mut self.children {
                    child.set(key.clone(), Some(value.clone()));
                }
            }
            None => {}
        }
        Ok(())
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
        self.scans.iter().any(|scan| scan.has_copied(key))
    }

    async fn copy_again(&mut self, keys: &[Key], values: Vec<Option<Bytes>>) -> Result<()> {
        let items = keys.iter().filter(|key| Copied::of(key) == Some(Copied::Items));
        let items: Vec<Key> = items.cloned().collect();
        for child in &mut self.children {
            child.remove_items(&items).await?;
        }
        for (key, value) in keys.iter().zip(values) {
            match value {
                Some(value) => self.put(key.clone(), value)?,
                // What is gone of the history does not tell whose it was, and is gone from all.
                None if matches!(Copied::of(key), Some(Copied::History | Copied::Sessions)) => {
                    self.children.iter_mut().for_each(|child| child.set(key.clone(), None));
                }
                None => {}
            }
        }
        for child in &mut self.children {
            child.commit_if_full().await?;
        }
        Ok(())
    }

    /// Copies dirty keys until none is left at the parent's head, and returns that head and the counters at it. New requests are kept out; only
    /// commits whose client has disconnected may still be running.
    async fn catch_up_with_head(&mut self) -> Result<(Head, PartitionState)> {
        for _ in 0..END_TRIES {
            self.catch_up().await?;
            let request = ReadRequest::of_keys(vec![keys::state()]);
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

/// The child that an item belongs to.
fn child_of<'c>(children: &'c mut [Child], item_key: &[u8]) -> Option<&'c mut Child> {
    let epk = keys::epk_of_item(item_key);
    children.iter_mut().find(|child| child.contains(epk))
}

impl CopyScan {
    fn of(rows: Copied) -> CopyScan {
        CopyScan {
            rows,
            progress: Progress::Waiting,
        }
    }

    /// Returns the scan of the next page; `None` at the end.
    fn next_page(&self, max_rows: usize) -> Option<Scan> {
        let begin = self.rows.begin();
        let (from, to) = match &self.progress {
            Progress::Waiting => (begin.bytes, None),
            Progress::Reading { next, to } => (next.clone(), to.clone()),
            Progress::Done => return None,
        };
        Some(Scan {
            space: begin.space,
            from,
            to,
            reverse: false,
            max_rows,
            max_bytes: PAGE_BYTES,
            keys_only: false,
        })
    }

    /// Records that a page was read at `head`. More rows follow after `last`, if that is given.
    fn advance(&mut self, head: Head, last: Option<Bytes>) {
        let to = match (std::mem::replace(&mut self.progress, Progress::Done), self.rows) {
            (Progress::Reading { to, .. }, _) => to,
            (_, Copied::Items | Copied::Sessions) => None,
            (_, Copied::History) => Some(history_behind(head)),
        };
        let next = last.map(|last| keys::after(&last));
        if let Some(next) = next.filter(|next| to.as_ref().is_none_or(|to| next < to)) {
            self.progress = Progress::Reading { next, to };
        }
    }

    /// Tells whether no later page will contain a key.
    fn has_copied(&self, key: &Key) -> bool {
        Copied::of(key) == Some(self.rows)
            && match &self.progress {
                Progress::Waiting => false,
                Progress::Reading { next, to } => key.bytes < *next || to.as_ref().is_some_and(|to| key.bytes >= *to),
                Progress::Done => true,
            }
    }
}

/// Returns the first key of the history for commits after `head`.
fn history_behind(head: Head) -> Bytes {
    let position = LogPosition {
        lsn: head.lsn.next(),
        seq: 0,
    };
    keys::history(position).bytes
}

#[cfg(test)]
mod tests;
