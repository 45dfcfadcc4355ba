//! Views for reads: a snapshot of the store together with the heads that belong to it.
//!
//! Only the committer writes, so the store does not change between two of its writes. There it takes the snapshot and publishes it with the heads;
//! reads use it until the next is published. Reads cannot take a snapshot themselves: the store numbers a write before it is on the disk and may show
//! later numbers meanwhile (when a flush or a compaction ends), so a snapshot taken during a write can change under its reader. Two more advantages:
//! whatever is read is durable (in mode `sync`), and no head has to be looked up.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use bolide_model::{Lsn, UnixMillis};
use bolide_storage::{EngineError, Head, Hold, Holds, HomeId, Key, Page, PartitionId, ReadRequest, ReadResponse, Scan};
use bytes::{Buf as _, Bytes};
use fjall::{Guard, Readable};
use parking_lot::{Mutex, RwLock};

use crate::error::engine_error;
use crate::layout::{PREFIX_BYTES, row_key, rows_end};
use crate::store::Store;

/// One snapshot of the store.
struct Snapshot {
    inner: fjall::Snapshot,
    store: Arc<Store>,
}

/// The newest view; written by the committer, read by every thread.
#[derive(Default)]
pub(crate) struct Views {
    current: RwLock<View>,
    /// Every snapshot that may still be read, the oldest first.
    snapshots: Mutex<Snapshots>,
    /// Number of reads and publications.
    calls: AtomicU64,
    holds: Holds<HomeView>,
}

/// Snapshots that may still be read, the oldest first. Some may be closed already.
#[derive(Default)]
struct Snapshots(VecDeque<Weak<Snapshot>>);

/// Closed snapshots are removed from the list after this many publications.
const CLEARED_SNAPSHOTS: usize = 64;

/// The partitions of a home at one snapshot.
pub(crate) struct HomeView {
    snapshot: Arc<Snapshot>,
    heads: HashMap<PartitionId, Head>,
}

#[derive(Default)]
struct View {
    /// `None` while the store is closed to be opened again.
    snapshot: Option<Arc<Snapshot>>,
    heads: HashMap<PartitionId, Head>,
}

impl Views {
    /// Publishes the store as it is now, with `changes` of heads; `None` is a partition that was removed.
    ///
    /// Must be called between two writes.
    pub(crate) fn publish(&self, store: &Arc<Store>, changes: impl IntoIterator<Item = (PartitionId, Option<Head>)>) {
        let snapshot = Arc::new(Snapshot {
            inner: store.db.snapshot(),
            store: store.clone(),
        });
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.snapshots.lock().push(&snapshot);
        let mut view = self.current.write();
        for (partition, head) in changes {
            match head {
                Some(head) => view.heads.insert(partition, head),
                None => view.heads.remove(&partition),
            };
        }
        let before = view.snapshot.replace(snapshot);
        drop(view);
        // Closing a snapshot may take a lock of the store; readers must not wait for it.
        drop(before);
        self.snapshots.lock().forget_oldest();
    }

    /// Ends held snapshots whose time is over.
    pub(crate) fn expire(&self, now: UnixMillis) {
        self.holds.expire(now);
    }

    /// Holds the newest view of a home.
    pub(crate) fn hold(
        &self,
        home: HomeId,
        until: UnixMillis,
        now: UnixMillis,
    ) -> Result<Arc<Hold<HomeView>>, EngineError> {
        self.expire(now);
        let view = self.current.read();
        let snapshot = view.snapshot.clone().ok_or_else(no_store)?;
        let of_home = view.heads.iter().filter(|(partition, _)| partition.home() == home);
        let heads = of_home.map(|(partition, head)| (*partition, *head)).collect();
        // While the view is locked, so that `withdraw` ends every snapshot held of it.
        self.holds.add(HomeView { snapshot, heads }, until, now)
    }

    /// Counts a read.
    pub(crate) fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// The store's write number at which the oldest reader reads; 0 if there is nothing to read.
    pub(crate) fn oldest(&self) -> u64 {
        let oldest = self.snapshots.lock().oldest();
        oldest.map_or(0, |snapshot| snapshot.inner.seqno())
    }

    /// Number of reads and publications so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Number of snapshots in the list, closed ones included.
    #[cfg(test)]
    pub(crate) fn snapshots(&self) -> usize {
        self.snapshots.lock().0.len()
    }

    /// Keeps the newest snapshot open, as a reader does.
    #[cfg(test)]
    pub(crate) fn newest(&self) -> impl Sized + use<> {
        self.current.read().snapshot.clone()
    }

    /// Whether the store has changed its tables since the newest view was published. A view keeps its data alive: memtables that were flushed since,
    /// and tombstones that are gone from the tables.
    pub(crate) fn is_behind(&self, store: &Store) -> bool {
        let view = self.current.read();
        view.snapshot
            .as_ref()
            .is_some_and(|snapshot| snapshot.inner.seqno() < store.db.visible_seqno())
    }

    /// Removes the view: from now on the store is unavailable to reads, and held snapshots have expired.
    pub(crate) fn withdraw(&self) {
        let before = std::mem::take(&mut *self.current.write());
        drop(before);
        self.holds.release_all();
    }

    /// The highest log sequence number of any partition.
    pub(crate) fn highest_lsn(&self) -> Lsn {
        let view = self.current.read();
        view.heads.values().map(|head| head.lsn).max().unwrap_or_default()
    }

    /// Answers a request from the newest view.
    pub(crate) fn read(&self, partition: PartitionId, request: &ReadRequest) -> Result<ReadResponse, EngineError> {
        self.count_call();
        let (snapshot, head) = self.snapshot(partition)?;
        snapshot.read(partition, head, request)
    }

    fn snapshot(&self, partition: PartitionId) -> Result<(Arc<Snapshot>, Head), EngineError> {
        let view = self.current.read();
        let snapshot = view.snapshot.as_ref().ok_or_else(no_store)?;
        let head = view.heads.get(&partition).ok_or(EngineError::NoPartition(partition))?;
        Ok((snapshot.clone(), *head))
    }
}

fn no_store() -> EngineError {
    EngineError::Unavailable("the store is being opened again".into())
}

impl Snapshots {
    fn push(&mut self, snapshot: &Arc<Snapshot>) {
        // A held snapshot stays at the front while thousands come and go after it.
        if self.0.len() >= CLEARED_SNAPSHOTS && self.0.len() == self.0.capacity() {
            self.0.retain(|snapshot| snapshot.strong_count() > 0);
        }
        self.0.push_back(Arc::downgrade(snapshot));
    }

    fn forget_oldest(&mut self) {
        while self.0.front().is_some_and(|snapshot| snapshot.strong_count() == 0) {
            self.0.pop_front();
        }
    }

    fn oldest(&self) -> Option<Arc<Snapshot>> {
        self.0.iter().find_map(Weak::upgrade)
    }
}

impl HomeView {
    /// Answers a request from the partition as it was at the snapshot.
    pub(crate) fn read(&self, partition: PartitionId, request: &ReadRequest) -> Result<ReadResponse, EngineError> {
        let head = self.heads.get(&partition).ok_or(EngineError::NoPartition(partition))?;
        self.snapshot.read(partition, *head, request)
    }
}

impl Snapshot {
    fn read(&self, partition: PartitionId, head: Head, request: &ReadRequest) -> Result<ReadResponse, EngineError> {
        let (gets, pages) = request.answer(|key| self.get(partition, key), |scan| self.scan(partition, scan))?;
        Ok(ReadResponse { head, gets, pages })
    }

    fn get(&self, partition: PartitionId, key: &Key) -> Result<Option<Bytes>, EngineError> {
        let found = self
            .inner
            .get(self.store.space(key.space), row_key(partition, &key.bytes));
        let found = found.map_err(|error| engine_error(&error, key.space, &self.store))?;
        Ok(found.map(Bytes::from))
    }

    fn scan(&self, partition: PartitionId, scan: &Scan) -> Result<Page, EngineError> {
        if scan.is_empty() {
            return Ok(Page::default());
        }
        let from = row_key(partition, &scan.from);
        let to = scan
            .to
            .as_ref()
            .map_or_else(|| rows_end(partition), |to| row_key(partition, to));
        let rows = self.inner.range(self.store.space(scan.space), from..to);
        let row = |guard| row(guard, scan.keys_only);
        let filled = if scan.reverse {
            Page::fill(scan, rows.rev().map(row))
        } else {
            Page::fill(scan, rows.map(row))
        };
        filled.map_err(|error| engine_error(&error, scan.space, &self.store))
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
