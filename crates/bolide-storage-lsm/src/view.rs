//! What reads stand on: a snapshot of the store together with the heads that belong to it.
//!
//! Only the committer writes, so between two of its writes the store is at rest. It takes the snapshot there and publishes it with
//! the heads, and reads use that one until the next is published. Reads could not take a snapshot themselves: the store numbers a write
//! before it is on the disk and may show later numbers meanwhile (when a flush or a compaction ends), so a snapshot taken during a write
//! can change under its reader. As a gift, what is read is durable (in mode `sync`), and no head has to be looked up.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use bolide_model::UnixMillis;
use bolide_storage::{Ask, Down, Head, Hold, Holds, HomeId, Key, Page, PartitionId, Reply, Scan};
use bytes::{Buf as _, Bytes};
use fjall::{Guard, Readable, Snapshot};
use parking_lot::{Mutex, RwLock};

use crate::error::down;
use crate::layout::{PREFIX_BYTES, row_key, rows_end};
use crate::store::Store;

/// One moment of the store.
struct Moment {
    snapshot: Snapshot,
    store: Arc<Store>,
}

/// The newest view; written by the committer, read by everybody.
#[derive(Default)]
pub(crate) struct Views {
    current: RwLock<View>,
    /// Every moment that may still be read, the oldest first.
    moments: Mutex<Moments>,
    /// How often was read and published.
    calls: AtomicU64,
    holds: Holds<HomeView>,
}

/// Moments that may still be read, the oldest first, and some that are gone.
#[derive(Default)]
struct Moments(VecDeque<Weak<Moment>>);

/// Moments that are gone are cleared away when so many were published.
const CLEARED_MOMENTS: usize = 64;

/// The partitions of a home at one moment.
pub(crate) struct HomeView {
    moment: Arc<Moment>,
    heads: HashMap<PartitionId, Head>,
}

#[derive(Default)]
struct View {
    /// `None` while the store is closed to be opened again.
    moment: Option<Arc<Moment>>,
    heads: HashMap<PartitionId, Head>,
}

impl Views {
    /// Shows the store as it is now, with `changes` of heads; `None` is a partition that went.
    ///
    /// Must be called between two writes.
    pub(crate) fn publish(&self, store: &Arc<Store>, changes: impl IntoIterator<Item = (PartitionId, Option<Head>)>) {
        let moment = Arc::new(Moment {
            snapshot: store.db.snapshot(),
            store: store.clone(),
        });
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.moments.lock().push(&moment);
        let mut view = self.current.write();
        for (partition, head) in changes {
            match head {
                Some(head) => view.heads.insert(partition, head),
                None => view.heads.remove(&partition),
            };
        }
        let before = view.moment.replace(moment);
        drop(view);
        // Closing a snapshot may take a lock of the store; readers need not wait for it.
        drop(before);
        self.moments.lock().forget_oldest();
    }

    /// Lets go of what is held beyond its time.
    pub(crate) fn expire(&self, now: UnixMillis) {
        self.holds.expire(now);
    }

    /// Holds the newest view of a home.
    pub(crate) fn hold(&self, home: HomeId, until: UnixMillis, now: UnixMillis) -> Result<Arc<Hold<HomeView>>, Down> {
        self.expire(now);
        let view = self.current.read();
        let moment = view.moment.clone().ok_or_else(no_store)?;
        let of_home = view.heads.iter().filter(|(partition, _)| partition.home() == home);
        let heads = of_home.map(|(partition, head)| (*partition, *head)).collect();
        // While the view is locked: whoever withdraws it finds all that is held of it.
        self.holds.add(HomeView { moment, heads }, until, now)
    }

    /// Counts a read.
    pub(crate) fn note_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of the store's writes that the oldest reader stands at; 0 if there is nothing to be read.
    pub(crate) fn oldest(&self) -> u64 {
        let oldest = self.moments.lock().oldest();
        oldest.map_or(0, |moment| moment.snapshot.seqno())
    }

    /// How often was read and published so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// How many moments are remembered, those that are gone included.
    #[cfg(test)]
    pub(crate) fn moments(&self) -> usize {
        self.moments.lock().0.len()
    }

    /// Keeps the newest moment as a reader does.
    #[cfg(test)]
    pub(crate) fn newest(&self) -> impl Sized + use<> {
        self.current.read().moment.clone()
    }

    /// Whether the store has changed its tables since the newest view was published. A view keeps what it was made of: memtables that were
    /// written out since, and tombstones that are gone from the tables.
    pub(crate) fn is_behind(&self, store: &Store) -> bool {
        let view = self.current.read();
        view.moment
            .as_ref()
            .is_some_and(|moment| moment.snapshot.seqno() < store.db.visible_seqno())
    }

    /// Shows nothing: from now on, reads find the store unavailable, and what was held has expired.
    pub(crate) fn withdraw(&self) {
        let before = std::mem::take(&mut *self.current.write());
        drop(before);
        self.holds.release_all();
    }

    /// Answers an ask from the newest view.
    pub(crate) fn read(&self, partition: PartitionId, ask: &Ask) -> Result<Reply, Down> {
        self.note_call();
        let (moment, head) = self.moment(partition)?;
        moment.read(partition, head, ask)
    }

    fn moment(&self, partition: PartitionId) -> Result<(Arc<Moment>, Head), Down> {
        let view = self.current.read();
        let moment = view.moment.as_ref().ok_or_else(no_store)?;
        let head = view.heads.get(&partition).ok_or(Down::NoPartition(partition))?;
        Ok((moment.clone(), *head))
    }
}

fn no_store() -> Down {
    Down::Unavailable("the store is being opened again".into())
}

impl Moments {
    fn push(&mut self, moment: &Arc<Moment>) {
        // What is held keeps its place at the front, and thousands may come and go behind it.
        if self.0.len() >= CLEARED_MOMENTS && self.0.len() == self.0.capacity() {
            self.0.retain(|moment| moment.strong_count() > 0);
        }
        self.0.push_back(Arc::downgrade(moment));
    }

    fn forget_oldest(&mut self) {
        while self.0.front().is_some_and(|moment| moment.strong_count() == 0) {
            self.0.pop_front();
        }
    }

    fn oldest(&self) -> Option<Arc<Moment>> {
        self.0.iter().find_map(Weak::upgrade)
    }
}

impl HomeView {
    /// Answers an ask as the partition was then.
    pub(crate) fn read(&self, partition: PartitionId, ask: &Ask) -> Result<Reply, Down> {
        let head = self.heads.get(&partition).ok_or(Down::NoPartition(partition))?;
        self.moment.read(partition, *head, ask)
    }
}

impl Moment {
    fn read(&self, partition: PartitionId, head: Head, ask: &Ask) -> Result<Reply, Down> {
        let (gets, pages) = ask.answer(|key| self.get(partition, key), |scan| self.scan(partition, scan))?;
        Ok(Reply { head, gets, pages })
    }

    fn get(&self, partition: PartitionId, key: &Key) -> Result<Option<Bytes>, Down> {
        let found = self
            .snapshot
            .get(self.store.space(key.space), row_key(partition, &key.bytes));
        let found = found.map_err(|error| down(&error, key.space, &self.store))?;
        Ok(found.map(Bytes::from))
    }

    fn scan(&self, partition: PartitionId, scan: &Scan) -> Result<Page, Down> {
        if scan.is_empty() {
            return Ok(Page::default());
        }
        let from = row_key(partition, &scan.from);
        let to = scan
            .to
            .as_ref()
            .map_or_else(|| rows_end(partition), |to| row_key(partition, to));
        let rows = self.snapshot.range(self.store.space(scan.space), from..to);
        let row = |guard| row(guard, scan.keys_only);
        let filled = if scan.reverse {
            Page::fill(scan, rows.rev().map(row))
        } else {
            Page::fill(scan, rows.map(row))
        };
        filled.map_err(|error| down(&error, scan.space, &self.store))
    }
}

fn row(guard: Guard, keys_only: bool) -> fjall::Result<(Bytes, Bytes)> {
    let (key, value) = if keys_only {
        (guard.key()?, Bytes::new())
    } else {
        let (key, value) = guard.into_inner()?;
        (key, Bytes::from(value))
    };
    let mut key = Bytes::from(key);
    key.advance(PREFIX_BYTES);
    Ok((key, value))
}
