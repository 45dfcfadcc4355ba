//! The memory engine: ordered maps behind a lock per partition. For tests, and for servers that keep nothing.
//!
//! A read holds its partition's lock from the first key to the last, which is what makes its answer one snapshot.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::Arc;

use bolide_model::time::{Clock, MonotoneClock, Span};
use bolide_model::{Lsn, UnixMillis};
use bytes::Bytes;
use parking_lot::RwLock;

use crate::{
    Ask, Batch, Down, Engine, EngineFuture, Head, History, Key, Outcome, Page, PartitionId, Reply, Scan, Settled,
    Space, Ticket,
};

/// Keeps partitions in memory, for as long as the process lives.
#[derive(Debug)]
pub struct MemoryEngine {
    partitions: RwLock<HashMap<PartitionId, Arc<RwLock<Partition>>>>,
    time: MonotoneClock,
    is_shared: bool,
}

impl MemoryEngine {
    /// An engine without partitions, whose server time comes from `clock`.
    pub fn new(clock: Arc<Clock>) -> MemoryEngine {
        MemoryEngine {
            partitions: RwLock::default(),
            time: MonotoneClock::new(clock, UnixMillis(i64::MIN)),
            is_shared: false,
        }
    }

    /// As [`MemoryEngine::new`], for several users at once, as processes are that share a store.
    pub fn shared(clock: Arc<Clock>) -> MemoryEngine {
        MemoryEngine {
            is_shared: true,
            ..MemoryEngine::new(clock)
        }
    }

    fn partition(&self, id: PartitionId) -> Result<Arc<RwLock<Partition>>, Down> {
        self.partitions.read().get(&id).cloned().ok_or(Down::NoPartition(id))
    }
}

impl Engine for MemoryEngine {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn read(&self, partition: PartitionId, ask: Ask) -> EngineFuture<'_, Result<Reply, Down>> {
        Box::pin(async move { Ok(self.partition(partition)?.read().answer(&ask)) })
    }

    fn commit(&self, partition: PartitionId, batch: Batch) -> EngineFuture<'_, Result<Outcome, Down>> {
        Box::pin(async move {
            let partition = self.partition(partition)?;
            let mut partition = partition.write();
            let outcome = partition.commit(batch);
            // Under the lock: nobody may see the commit before server time has reached its stamp.
            if let Outcome::Done(head) = outcome {
                self.time.observe(head.stamp);
            }
            Ok(outcome)
        })
    }

    fn settle(&self, partition: PartitionId, ticket: Ticket) -> EngineFuture<'_, Result<Settled, Down>> {
        Box::pin(async move {
            let settled = self.partition(partition)?.read().history.settle(&ticket);
            settled.ok_or_else(|| Down::Unavailable("the commit is too old to be settled".into()))
        })
    }

    fn create(&self, partition: PartitionId, head: Head) -> EngineFuture<'_, Result<(), Down>> {
        Box::pin(async move {
            self.time.observe(head.stamp);
            self.partitions
                .write()
                .entry(partition)
                .or_insert_with(|| Arc::new(RwLock::new(Partition::new(head))));
            Ok(())
        })
    }

    fn remove(&self, partition: PartitionId) -> EngineFuture<'_, Result<(), Down>> {
        Box::pin(async move {
            self.partitions.write().remove(&partition);
            Ok(())
        })
    }

    fn time(&self) -> Span {
        Span::point(self.time.now())
    }

    fn durable_time(&self) -> UnixMillis {
        // What ends with the process has nothing to fall behind.
        UnixMillis(i64::MAX)
    }

    fn make_time_durable(&self, _until: UnixMillis) -> EngineFuture<'_, Result<(), Down>> {
        Box::pin(async { Ok(()) })
    }

    fn close(&self) -> EngineFuture<'_, Result<(), Down>> {
        Box::pin(async { Ok(()) })
    }
}

#[derive(Debug)]
struct Partition {
    history: History,
    /// Indexed by `Space as usize`.
    spaces: [BTreeMap<Bytes, Bytes>; Space::ALL.len()],
}

impl Partition {
    fn new(head: Head) -> Partition {
        Partition {
            history: History::starting_at(head),
            spaces: Default::default(),
        }
    }

    fn head_lsn(&self) -> Lsn {
        self.history.head().lsn
    }

    fn answer(&self, ask: &Ask) -> Reply {
        let get = |key: &Key| Ok::<_, Infallible>(self.space(key.space).get(&key.bytes).cloned());
        let Ok((gets, pages)) = ask.answer(get, |scan| Ok(self.scan(scan)));
        Reply {
            head: self.history.head(),
            gets,
            pages,
        }
    }

    fn scan(&self, scan: &Scan) -> Page {
        if scan.is_empty() {
            return Page::default();
        }
        let to = scan.to.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let range = self
            .space(scan.space)
            .range::<Bytes, _>((Bound::Included(&scan.from), to));
        let rows = range.map(|(key, value)| {
            let value = if scan.keys_only { Bytes::new() } else { value.clone() };
            Ok::<_, Infallible>((key.clone(), value))
        });
        let filled = if scan.reverse {
            Page::fill(scan, rows.rev())
        } else {
            Page::fill(scan, rows)
        };
        match filled {
            Ok(page) => page,
        }
    }

    fn commit(&mut self, batch: Batch) -> Outcome {
        if batch.base != self.head_lsn() {
            return Outcome::Stale;
        }
        if let Some(flaw) = batch.flaw(self.history.head()) {
            return Outcome::Refused(flaw);
        }
        self.history.push(&batch);
        for Key { space, bytes } in batch.deletes {
            self.spaces[space as usize].remove(&bytes);
        }
        for put in batch.puts {
            self.spaces[put.key.space as usize].insert(put.key.bytes, put.value);
        }
        Outcome::Done(self.history.head())
    }

    fn space(&self, space: Space) -> &BTreeMap<Bytes, Bytes> {
        &self.spaces[space as usize]
    }
}
