//! The memory engine: ordered maps behind a lock per partition. For tests, and for servers that store nothing.
//!
//! A read holds its partition's lock from the first key to the last, so its response is one snapshot. Joint commits and held snapshots first take the
//! locks of all their partitions, in the order of the ids. A held snapshot shares the maps of its partitions; the first commit that changes a held
//! map copies it. An [`MemoryImage`] does the same with all partitions, for snapshots of the whole engine.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::Arc;

use bolide_model::time::{Clock, MonotoneClock, Span};
use bolide_model::{Lsn, UnixMillis};
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Mutex as AsyncMutex;

use crate::{
    Batch, Engine, EngineError, EngineFuture, Head, HeldSnapshot, Hold, HoldError, Holds, HomeId, JointOutcome, Key,
    Outcome, Page, PartitionId, ReadRequest, ReadResponse, RecentCommits, Resolved, Scan, Space, Ticket, WriteLock,
    rejection,
};

/// Keeps partitions in memory, until the process ends.
#[derive(Debug)]
pub struct MemoryEngine {
    partitions: RwLock<HashMap<PartitionId, Arc<RwLock<Partition>>>>,
    time: Arc<MonotoneClock>,
    holds: Holds<HomeSnapshot>,
    is_shared: bool,
    /// Those of partitions that were locked once.
    locks: Mutex<HashMap<PartitionId, Arc<AsyncMutex<()>>>>,
}

impl MemoryEngine {
    /// An engine without partitions, whose server time comes from `clock`.
    pub fn new(clock: Arc<Clock>) -> MemoryEngine {
        MemoryEngine {
            partitions: RwLock::default(),
            time: Arc::new(MonotoneClock::new(clock, UnixMillis(i64::MIN))),
            holds: Holds::default(),
            is_shared: false,
            locks: Mutex::default(),
        }
    }

    /// As [`MemoryEngine::new`], for several users at once, like processes that share a store.
    pub fn shared(clock: Arc<Clock>) -> MemoryEngine {
        MemoryEngine {
            is_shared: true,
            ..MemoryEngine::new(clock)
        }
    }

    /// An engine with the content of `image`. Its server time comes from `clock` and is not below `floor`, and no head has a lower number than `least`.
    pub fn from_image(clock: Arc<Clock>, floor: UnixMillis, image: &MemoryImage, least: Lsn) -> MemoryEngine {
        let partitions = image.partitions.iter().map(|(id, (head, spaces))| {
            let head = Head {
                lsn: head.lsn.max(least),
                ..*head
            };
            let partition = Partition {
                commits: RecentCommits::starting_at(head),
                spaces: spaces.clone(),
            };
            (*id, Arc::new(RwLock::new(partition)))
        });
        MemoryEngine {
            partitions: RwLock::new(partitions.collect()),
            time: Arc::new(MonotoneClock::new(clock, floor)),
            holds: Holds::default(),
            is_shared: false,
            locks: Mutex::default(),
        }
    }

    /// The content of all partitions at one moment. It shares their maps until they are changed.
    pub fn image(&self) -> MemoryImage {
        // Held, so that no partition is created or removed meanwhile.
        let partitions = self.partitions.read();
        // In the order of the ids, and all at once, so that no joint commit falls between two copies.
        let ordered: BTreeMap<_, _> = partitions.iter().collect();
        let locked: Vec<_> = ordered.into_iter().map(|(id, found)| (*id, found.read())).collect();
        let copies = locked
            .iter()
            .map(|(id, partition)| (*id, (partition.head(), partition.spaces.clone())));
        MemoryImage {
            partitions: copies.collect(),
            time: self.time.now(),
        }
    }

    /// The highest log sequence number of any partition.
    pub fn highest_lsn(&self) -> Lsn {
        let partitions = self.partitions.read();
        let lsns = partitions.values().map(|partition| partition.read().head().lsn);
        lsns.max().unwrap_or_default()
    }

    fn partition(&self, id: PartitionId) -> Result<Arc<RwLock<Partition>>, EngineError> {
        self.partitions
            .read()
            .get(&id)
            .cloned()
            .ok_or(EngineError::NoPartition(id))
    }

    fn commit_now(&self, partition: PartitionId, batch: Batch) -> Result<Outcome, EngineError> {
        self.holds.expire(self.time.now());
        let partition = self.partition(partition)?;
        let mut partition = partition.write();
        let head = partition.head();
        if batch.base != head.lsn {
            return Ok(Outcome::Stale);
        }
        if let Some(reason) = batch.validate(head) {
            return Ok(Outcome::Refused(reason));
        }
        if !batch.new_keys.is_empty() {
            if !self.is_shared {
                return Ok(Outcome::Refused("this engine does not check new keys".to_owned()));
            }
            let put: HashSet<&Key> = batch.puts.iter().map(|put| &put.key).collect();
            if !batch.new_keys.iter().all(|key| put.contains(key)) {
                return Ok(Outcome::Refused("a new key is not put".to_owned()));
            }
            let is_there = |key: &Key| partition.spaces.space(key.space).contains_key(&key.bytes);
            if batch.new_keys.iter().any(is_there) {
                return Ok(Outcome::Exists);
            }
        }
        // While the lock is held: no reader may see the commit before server time has reached its stamp.
        self.time.observe(batch.stamp);
        partition.apply(batch);
        Ok(Outcome::Done(partition.head()))
    }

    fn commit_together_now(&self, batches: Vec<(PartitionId, Batch)>) -> Result<JointOutcome, EngineError> {
        self.holds.expire(self.time.now());
        let partitions = self.by_ids(batches.iter().map(|(partition, _)| *partition));
        let mut locked: BTreeMap<_, _> = partitions.iter().map(|(id, found)| (*id, found.write())).collect();
        if let Some(answer) = rejection(&batches, |id| locked.get(&id).map(|partition| partition.head())) {
            return answer;
        }
        let done = JointOutcome::done(&batches);
        for (id, batch) in batches {
            self.time.observe(batch.stamp);
            let partition = locked.get_mut(&id).expect("it was found when it was validated");
            partition.apply(batch);
        }
        Ok(done)
    }

    fn hold_now(&self, home: HomeId, until: UnixMillis) -> Result<MemorySnapshot, EngineError> {
        let ids: Vec<PartitionId> = self.partitions.read().keys().copied().collect();
        let partitions = self.by_ids(ids.into_iter().filter(|id| id.home() == home));
        // All locks at once, so that no joint commit falls between two copies.
        let locked: Vec<_> = partitions.iter().map(|(id, found)| (*id, found.read())).collect();
        let copies = locked
            .iter()
            .map(|(id, partition)| (*id, (partition.head(), partition.spaces.clone())));
        let snapshot = HomeSnapshot(copies.collect());
        Ok(MemorySnapshot {
            hold: self.holds.add(snapshot, until, self.time.now())?,
            time: self.time.clone(),
        })
    }

    /// The partitions that exist among `ids`, in the order in which they are to be locked.
    fn by_ids(&self, ids: impl Iterator<Item = PartitionId>) -> BTreeMap<PartitionId, Arc<RwLock<Partition>>> {
        let partitions = self.partitions.read();
        ids.filter_map(|id| Some((id, partitions.get(&id)?.clone()))).collect()
    }
}

impl Engine for MemoryEngine {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn read(
        &self,
        partition: PartitionId,
        request: ReadRequest,
    ) -> EngineFuture<'_, Result<ReadResponse, EngineError>> {
        Box::pin(async move {
            let partition = self.partition(partition)?;
            let partition = partition.read();
            Ok(partition.spaces.answer(partition.head(), &request))
        })
    }

    fn checks_new_keys(&self) -> bool {
        self.is_shared
    }

    fn read_and_lock(
        &self,
        partition: PartitionId,
        keys: Vec<Key>,
    ) -> EngineFuture<'_, Result<(ReadResponse, Option<WriteLock>), EngineError>> {
        Box::pin(async move {
            let lock = self
                .is_shared
                .then(|| self.locks.lock().entry(partition).or_default().clone());
            let lock = match lock {
                Some(lock) => Some(WriteLock::new(lock.lock_owned().await)),
                None => None,
            };
            let request = ReadRequest::of_keys(keys);
            Ok((self.read(partition, request).await?, lock))
        })
    }

    fn commit(&self, partition: PartitionId, batch: Batch) -> EngineFuture<'_, Result<Outcome, EngineError>> {
        Box::pin(async move { self.commit_now(partition, batch) })
    }

    fn commit_together(
        &self,
        batches: Vec<(PartitionId, Batch)>,
    ) -> EngineFuture<'_, Result<JointOutcome, EngineError>> {
        Box::pin(async move { self.commit_together_now(batches) })
    }

    fn hold(&self, home: HomeId, until: UnixMillis) -> EngineFuture<'_, Result<Arc<dyn HeldSnapshot>, EngineError>> {
        Box::pin(async move { Ok(Arc::new(self.hold_now(home, until)?) as Arc<dyn HeldSnapshot>) })
    }

    fn resolve(&self, partition: PartitionId, ticket: Ticket) -> EngineFuture<'_, Result<Resolved, EngineError>> {
        Box::pin(async move {
            let resolved = self.partition(partition)?.read().commits.resolve(&ticket);
            resolved.ok_or_else(|| EngineError::Unavailable("the commit is too old to be resolved".into()))
        })
    }

    fn create(&self, partition: PartitionId, head: Head) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            self.time.observe(head.stamp);
            self.partitions
                .write()
                .entry(partition)
                .or_insert_with(|| Arc::new(RwLock::new(Partition::new(head))));
            Ok(())
        })
    }

    fn remove(&self, partition: PartitionId) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            self.partitions.write().remove(&partition);
            Ok(())
        })
    }

    fn time(&self) -> Span {
        Span::point(self.time.now())
    }

    fn durable_time(&self) -> UnixMillis {
        // Nothing survives the process, so server time cannot fall below what was durable.
        UnixMillis(i64::MAX)
    }

    fn make_time_durable(&self, _until: UnixMillis) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async { Ok(()) })
    }

    fn close(&self) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async { Ok(()) })
    }
}

#[derive(Debug)]
struct Partition {
    commits: RecentCommits,
    spaces: Spaces,
}

impl Partition {
    fn new(head: Head) -> Partition {
        Partition {
            commits: RecentCommits::starting_at(head),
            spaces: Spaces::default(),
        }
    }

    fn head(&self) -> Head {
        self.commits.head()
    }

    /// Applies a batch that was validated.
    fn apply(&mut self, batch: Batch) {
        self.commits.push(&batch);
        for Key { space, bytes } in batch.deletes {
            self.spaces.space_mut(space).remove(&bytes);
        }
        for put in batch.puts {
            self.spaces.space_mut(put.key.space).insert(put.key.bytes, put.value);
        }
    }
}

/// The rows of a partition, by `Space as usize`. A copy shares the maps until one of the two changes them.
#[derive(Debug, Clone, Default)]
struct Spaces([Arc<BTreeMap<Bytes, Bytes>>; Space::ALL.len()]);

impl Spaces {
    fn answer(&self, head: Head, request: &ReadRequest) -> ReadResponse {
        let get = |key: &Key| Ok::<_, Infallible>(self.space(key.space).get(&key.bytes).cloned());
        let Ok((gets, pages)) = request.answer(get, |scan| Ok(self.scan(scan)));
        ReadResponse { head, gets, pages }
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

    fn space(&self, space: Space) -> &BTreeMap<Bytes, Bytes> {
        &self.0[space as usize]
    }

    /// A space to be changed; copied first if it is held.
    fn space_mut(&mut self, space: Space) -> &mut BTreeMap<Bytes, Bytes> {
        Arc::make_mut(&mut self.0[space as usize])
    }
}

/// The content of an engine at one moment; see [`MemoryEngine::image`].
#[derive(Debug, Clone, Default)]
pub struct MemoryImage {
    partitions: HashMap<PartitionId, (Head, Spaces)>,
    time: UnixMillis,
}

impl MemoryImage {
    /// Server time at that moment.
    pub fn time(&self) -> UnixMillis {
        self.time
    }
}

/// The partitions of a home as they were at one time.
#[derive(Debug)]
struct HomeSnapshot(HashMap<PartitionId, (Head, Spaces)>);

#[derive(Debug)]
struct MemorySnapshot {
    hold: Arc<Hold<HomeSnapshot>>,
    time: Arc<MonotoneClock>,
}

impl HeldSnapshot for MemorySnapshot {
    fn read(&self, partition: PartitionId, request: ReadRequest) -> EngineFuture<'_, Result<ReadResponse, HoldError>> {
        Box::pin(async move {
            let snapshot = self.hold.snapshot(self.time.now())?;
            let found = snapshot.0.get(&partition);
            let (head, spaces) = found.ok_or(EngineError::NoPartition(partition))?;
            Ok(spaces.answer(*head, &request))
        })
    }
}
