//! A partition of the target.

use std::collections::BTreeMap;
use std::sync::Arc;

use bolide_core::{COPIED_SPACES, CopyPage, PartitionId, unfinished_copy};
use bolide_storage::{Batch, CommitToken, Engine, Head, Key, Outcome, Put, ReadRequest, Resolved, Scan, Space};
use bytes::Bytes;

use super::source::Source;
use super::target::failed;
use crate::server::Failure;

/// Number of attempts of a commit.
const TRIES: usize = 5;
/// Maximum number of pages of changed rows that are copied before the other partitions have their turn.
const PAGES: usize = 64;
/// Maximum number of rows and of bytes that are compared at once.
const COMPARED_ROWS: usize = 4_096;
const COMPARED_BYTES: usize = 1024 * 1024;

/// A partition of the target. Nobody else writes it.
pub(super) struct TargetPartition {
    engine: Arc<dyn Engine>,
    id: PartitionId,
    head: Head,
    commits: u64,
    /// Number of its items.
    items: u64,
    /// Whether all its rows were copied once.
    is_whole: bool,
    /// Whether its rows are to be compared with those of the source, because not all changed keys are known.
    is_compared: bool,
    /// The head after its last commit, once that was tried.
    last: Option<Head>,
}

impl TargetPartition {
    /// The partition, which was just made.
    pub fn new(engine: Arc<dyn Engine>, id: PartitionId, head: Head) -> TargetPartition {
        TargetPartition {
            engine,
            id,
            head,
            commits: 0,
            items: 0,
            is_whole: false,
            is_compared: false,
            last: None,
        }
    }

    /// Number of its items.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Adds the mark of an unfinished copy.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn put_mark(&mut self, key: Key, value: Bytes) -> Result<(), Failure> {
        self.commit(vec![(key, Some(value))]).await
    }

    /// Copies all rows, if that was not done yet, and then those that have changed. Returns how many these were.
    ///
    /// # Errors
    /// The source cannot be read, or the target not written.
    pub async fn bring_up_to_date(&mut self, source: &Arc<Source>) -> Result<u64, Failure> {
        if !self.is_whole {
            self.copy_all(source).await?;
            self.is_whole = true;
        }
        let mut changed = 0;
        for _ in 0..PAGES {
            let page = source.changes(self.id).await?;
            self.is_compared |= page.is_lost;
            changed += page.rows.len() as u64;
            let left = page.left;
            self.apply(page.rows).await?;
            if left == 0 {
                break;
            }
        }
        if self.is_compared {
            // Keys that are recorded from here on are of commits that the comparison may not see.
            self.is_compared = false;
            changed += self.compare_all(source).await?;
        }
        Ok(changed)
    }

    async fn copy_all(&mut self, source: &Arc<Source>) -> Result<(), Failure> {
        for (number, space) in COPIED_SPACES.into_iter().enumerate() {
            let mut reading = Some(read(source, self.id, number, Bytes::new()));
            while let Some(read_page) = reading.take() {
                let page = joined(read_page.await)?;
                // The next page is read while this one is written.
                reading = page.next.map(|next| read(source, self.id, number, next));
                if space == Space::Item {
                    self.items += page.rows.len() as u64;
                }
                self.commit(page.rows).await?;
            }
        }
        Ok(())
    }

    /// Writes rows as the source has them now.
    async fn apply(&mut self, rows: Vec<(Key, Option<Bytes>)>) -> Result<(), Failure> {
        let keys: Vec<Key> = rows.iter().map(|(key, _)| key.clone()).collect();
        let items: Vec<&(Key, Option<Bytes>)> = rows.iter().filter(|(key, _)| key.space == Space::Item).collect();
        let before = self.stored_items(keys).await?;
        let after = items.iter().filter(|(_, value)| value.is_some()).count() as u64;
        self.items = (self.items + after).saturating_sub(before);
        self.commit(rows).await
    }

    /// Returns how many of these keys are items that are stored.
    async fn stored_items(&self, mut keys: Vec<Key>) -> Result<u64, Failure> {
        keys.retain(|key| key.space == Space::Item);
        let mut stored = 0;
        let mut left = &keys[..];
        while !left.is_empty() {
            let request = ReadRequest {
                gets: left.to_vec(),
                max_bytes: COMPARED_BYTES,
                ..ReadRequest::default()
            };
            let reply = self
                .engine
                .read(self.id, request)
                .await
                .map_err(|error| failed(&error))?;
            stored += reply.gets.iter().flatten().count() as u64;
            left = &left[reply.gets.len().clamp(1, left.len())..];
        }
        Ok(stored)
    }

    /// Compares all rows with those of the source, and writes what differs. Returns how many rows that were.
    async fn compare_all(&mut self, source: &Arc<Source>) -> Result<u64, Failure> {
        let mut changed = 0;
        for (number, space) in COPIED_SPACES.into_iter().enumerate() {
            let mut from = Bytes::new();
            loop {
                let page = source.rows(self.id, number, from.clone()).await?;
                let (next, rows) = (page.next.clone(), by_key(page));
                changed += self.compare(space, (from, next.clone()), rows).await?;
                match next {
                    Some(next) => from = next,
                    None => break,
                }
            }
        }
        Ok(changed)
    }

    /// Compares the rows between two keys with all that the source has there.
    async fn compare(
        &mut self,
        space: Space,
        (from, to): (Bytes, Option<Bytes>),
        mut wanted: BTreeMap<Bytes, Bytes>,
    ) -> Result<u64, Failure> {
        let (mut next, mut changed, mut deletes) = (Some(from), 0, Vec::new());
        while let Some(from) = next.take() {
            let scan = Scan {
                space,
                from,
                to: to.clone(),
                reverse: false,
                max_rows: COMPARED_ROWS,
                max_bytes: COMPARED_BYTES,
                keys_only: false,
            };
            let request = ReadRequest {
                scans: vec![scan],
                ..ReadRequest::default()
            };
            let mut reply = self
                .engine
                .read(self.id, request)
                .await
                .map_err(|error| failed(&error))?;
            let page = reply.pages.pop().unwrap_or_default();
            let last = page.rows.last().map(|(key, _)| key.clone());
            for (key, value) in page.rows {
                match wanted.get(&key) {
                    Some(same) if *same == value => drop(wanted.remove(&key)),
                    // It is put below; for the number of items it is one that is there.
                    Some(_) => self.count(space, -1),
                    None => deletes.push(Key::new(space, key)),
                }
            }
            next = last.filter(|_| page.more).map(|last| behind(&last));
        }
        let (mark, _) = unfinished_copy();
        deletes.retain(|key| *key != mark);
        self.count(space, -(deletes.len() as i64));
        self.count(space, wanted.len() as i64);
        changed += (wanted.len() + deletes.len()) as u64;
        let puts = wanted
            .into_iter()
            .map(|(key, value)| (Key::new(space, key), Some(value)));
        let rows = puts.chain(deletes.into_iter().map(|key| (key, None)));
        self.commit(rows.collect()).await?;
        Ok(changed)
    }

    fn count(&mut self, space: Space, items: i64) {
        if space == Space::Item {
            self.items = self.items.saturating_add_signed(items);
        }
    }

    /// Brings the partition to the head of the source, and takes away the mark of an unfinished copy. May be repeated.
    ///
    /// # Errors
    /// It cannot be written. Whether it was is unknown then.
    pub async fn finish(&mut self, head: Head, mark: Option<Key>) -> Result<(), Failure> {
        if let Some(last) = self.last {
            // An attempt may have succeeded although it seemed to fail. Nobody else writes the partition.
            let reply = self.engine.read(self.id, ReadRequest::default()).await;
            self.head = reply.map_err(|error| failed(&error))?.head;
            if self.head.lsn >= last.lsn {
                return Ok(());
            }
        }
        let last = Head {
            // Never below what was committed here; log sequence numbers may be left out.
            lsn: head.lsn.max(self.head.lsn.next()),
            stamp: head.stamp.max(self.head.stamp),
            edition: head.edition,
        };
        self.last = Some(last);
        self.commit_to(last, mark.into_iter().map(|key| (key, None)).collect())
            .await
    }

    async fn commit(&mut self, rows: Vec<(Key, Option<Bytes>)>) -> Result<(), Failure> {
        if rows.is_empty() {
            return Ok(());
        }
        let head = Head {
            lsn: self.head.lsn.next(),
            ..self.head
        };
        self.commit_to(head, rows).await
    }

    async fn commit_to(&mut self, next: Head, rows: Vec<(Key, Option<Bytes>)>) -> Result<(), Failure> {
        let (mut puts, mut deletes) = (Vec::new(), Vec::new());
        for (key, value) in rows {
            match value {
                Some(value) => puts.push(Put { key, value }),
                None => deletes.push(key),
            }
        }
        for _ in 0..TRIES {
            self.commits += 1;
            let batch = Batch {
                base: self.head.lsn,
                next: next.lsn,
                stamp: next.stamp,
                edition: next.edition,
                token: CommitToken(u128::from(self.id.0) << 64 | u128::from(self.commits)),
                puts: puts.clone(),
                deletes: deletes.clone(),
                new_keys: Vec::new(),
                may_block: false,
            };
            match self
                .engine
                .commit(self.id, batch)
                .await
                .map_err(|error| failed(&error))?
            {
                Outcome::Done(head) => {
                    self.head = head;
                    return Ok(());
                }
                Outcome::Refused(why) => return Err(Failure::new(format!("the target cannot be written: {why}"))),
                Outcome::Stale | Outcome::Exists => {
                    return Err(Failure::new("the target cannot be written: others write it"));
                }
                Outcome::Unknown(ticket) => {
                    let resolved = self.engine.resolve(self.id, ticket).await;
                    if let Resolved::Done(head) = resolved.map_err(|error| failed(&error))? {
                        self.head = head;
                        return Ok(());
                    }
                }
            }
        }
        Err(Failure::new(
            "the target cannot be written: the outcome of commits stays unknown",
        ))
    }
}

/// Reads a page of the source on a task of its own.
fn read(
    source: &Arc<Source>,
    partition: PartitionId,
    space: usize,
    from: Bytes,
) -> tokio::task::JoinHandle<Result<CopyPage, Failure>> {
    let source = source.clone();
    tokio::spawn(async move { source.rows(partition, space, from).await })
}

fn joined(page: Result<Result<CopyPage, Failure>, tokio::task::JoinError>) -> Result<CopyPage, Failure> {
    page.unwrap_or_else(|_| Err(Failure::new("a page of rows could not be read")))
}

/// The rows of a page by their keys.
fn by_key(page: CopyPage) -> BTreeMap<Bytes, Bytes> {
    let rows = page.rows.into_iter();
    rows.filter_map(|(key, value)| Some((key.bytes, value?))).collect()
}

/// The first key after one.
fn behind(key: &[u8]) -> Bytes {
    [key, &[0]].concat().into()
}
