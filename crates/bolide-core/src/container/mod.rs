//! A container: its definition, its settings of expiry, its ranges, and the gate that keeps requests and changes of settings apart.

mod offer;
mod quarantine;
mod scripts;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bolide_model::container::ContainerProperties;
use bolide_model::epk::{Epk, EpkRange};
use bolide_model::rid::{ContainerRid, DatabaseRid};
use bolide_model::ttl::{Policy, Settings};
use bolide_model::{Error, ErrorKind, Lsn, Result, UnixSeconds};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

use crate::change_log;
pub(crate) use offer::ResourceOffer;
pub(crate) use quarantine::ScriptQuarantine;
pub(crate) use scripts::Scripts;
pub use scripts::{Script, ScriptDraft, ScriptKind, ScriptName, TriggerFires, TriggerOperation, TriggerTime};

use crate::executor::Ending;
use crate::format::etag::Etag;
use crate::partition::{Partition, Placement};
use crate::throughput::{Meter, Pacing, PacingSettings, SharedMeter};

/// How long a change of a container waits before it ends the long work of readers.
const READERS_END: Duration = Duration::from_millis(100);

/// A container. Requests reach its items through [`Container::enter`].
pub struct Container {
    rid: ContainerRid,
    database_id: String,
    /// Requests hold the read side of one of the gates from their server time to their answer; whoever changes settings or ranges holds the
    /// write sides of all. So every request is judged wholly by the settings before a change or wholly by those after (TTL-233), and its
    /// server time is not later than a change it has not seen (docs/ttl.md, "Time").
    gates: Gates,
    ending: Ending,
    state: RwLock<Arc<ContainerState>>,
    readers: Mutex<BTreeMap<UnixSeconds, usize>>,
    scripts: RwLock<Arc<Scripts>>,
    /// Held by a full check: its tallies are one check's at a time.
    checking: tokio::sync::Mutex<()>,
    /// Held by a split: ranges change one split at a time.
    splitting: tokio::sync::Mutex<()>,
}

/// What changes of a container replace as a whole.
#[derive(Clone)]
pub(crate) struct ContainerState {
    pub properties: Arc<ContainerProperties>,
    pub etag: Etag,
    pub last_modified: UnixSeconds,
    /// The policy in force and the floors that earlier ones left.
    pub settings: Settings,
    /// When each policy came into force, oldest first. For figures and for people; verdicts need the floors only.
    pub history: Vec<PolicyPeriod>,
    pub offer: Option<ResourceOffer>,
    pub pacing: PacingSettings,
    /// A client has begun the all-versions feed of a container without a policy for it.
    pub keeps_all_versions: bool,
    /// Of the database, if it has throughput.
    pub database_meter: Option<SharedMeter>,
    pub layout: Arc<Layout>,
    /// The next range's id.
    pub next_range: u32,
    pub is_deleted: bool,
}

impl ContainerState {
    /// How long history is kept, in seconds; `None`: there is none.
    pub fn retention(&self) -> Option<i64> {
        change_log::retention(&self.properties, self.keeps_all_versions)
    }

    /// The meter of the database, if the container shares its throughput: it has no offer of its own, and nobody has given it another
    /// budget.
    pub fn shared_meter(&self) -> Option<&SharedMeter> {
        let is_on_its_own = self.offer.is_some() || self.pacing.pacing != Pacing::Unlimited;
        self.database_meter.as_ref().filter(|_| !is_on_its_own)
    }

    /// Gives every partition's meter its share of the budget, from `now` on.
    pub fn pace_meters(&self, now: UnixSeconds) {
        let partitions = &self.layout.partitions;
        if let Some(shared) = self.shared_meter() {
            for partition in partitions {
                partition.set_meter(shared.clone());
            }
            return;
        }
        for partition in partitions {
            let was_shared = |shared: &SharedMeter| Arc::ptr_eq(shared, &partition.meter());
            if self.database_meter.as_ref().is_some_and(was_shared) {
                partition.set_meter(Meter::shared(&self.pacing, partitions.len(), now));
            }
            partition.meter().lock().set_pacing(&self.pacing, partitions.len(), now);
        }
    }
}

/// A stretch of time under one policy; it ends where the next begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PolicyPeriod {
    pub start: UnixSeconds,
    pub policy: Policy,
}

/// The physical partitions of a container, in the order of their ranges.
#[derive(Clone)]
pub(crate) struct Layout {
    /// Rises with every split.
    pub version: u64,
    pub partitions: Vec<Arc<Partition>>,
}

impl Layout {
    /// Where each partition stands among the ranges.
    pub fn placements(&self) -> Vec<Placement> {
        let placements = self.partitions.iter().map(|partition| Placement {
            id: partition.id,
            range: partition.range,
            epk: partition.epk.clone(),
            parents: partition.parents.clone(),
        });
        placements.collect()
    }

    /// The partition that holds a key.
    pub fn partition_of(&self, epk: &Epk) -> Result<&Arc<Partition>> {
        let after = self.partitions.partition_point(|partition| partition.epk.min <= *epk);
        after
            .checked_sub(1)
            .and_then(|at| self.partitions.get(at))
            .ok_or_else(|| Error::internal("no range holds the effective partition key"))
    }

    /// The partition with a range's id.
    ///
    /// # Errors
    /// `RangeGone` if there is none: the range was split, or never was.
    pub fn partition_with_id(&self, range: u32) -> Result<&Arc<Partition>> {
        self.partitions
            .iter()
            .find(|partition| partition.range == range)
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::RangeGone,
                    format!("the partition key range is gone. range={range}"),
                )
            })
    }
}

/// What a container is and is called.
#[derive(Debug, Clone)]
pub struct ContainerInfo {
    /// Its resource id.
    pub rid: ContainerRid,
    /// Its database.
    pub database_rid: DatabaseRid,
    /// The database's name.
    pub database_id: String,
    /// Its definition.
    pub properties: Arc<ContainerProperties>,
    /// Version of the definition.
    pub etag: Etag,
    /// When the definition was last written.
    pub last_modified: UnixSeconds,
}

/// The partition key ranges of a container.
#[derive(Debug, Clone)]
pub struct Ranges {
    /// Changes with every split.
    pub version: u64,
    /// In the order of their keys; together they hold every key.
    pub ranges: Vec<Range>,
}

/// A partition key range: one physical partition as clients see it.
#[derive(Debug, Clone)]
pub struct Range {
    /// Its id.
    pub id: u32,
    /// The keys it holds.
    pub epk: EpkRange,
    /// The ranges it was split from, oldest first.
    pub parents: Vec<u32>,
    /// Its newest log sequence number.
    pub lsn: Lsn,
}

impl Container {
    pub(crate) fn new(rid: ContainerRid, database_id: String, state: ContainerState) -> Arc<Container> {
        Arc::new(Container {
            rid,
            database_id,
            gates: Gates::default(),
            ending: Ending::default(),
            state: RwLock::new(Arc::new(state)),
            readers: Mutex::new(BTreeMap::new()),
            scripts: RwLock::default(),
            checking: tokio::sync::Mutex::new(()),
            splitting: tokio::sync::Mutex::new(()),
        })
    }

    /// The resource id.
    pub fn rid(&self) -> ContainerRid {
        self.rid
    }

    /// Whether its throughput is its database's, which other containers use too.
    pub fn shares_throughput(&self) -> bool {
        self.state().shared_meter().is_some()
    }

    /// What the container is and is called.
    pub fn info(&self) -> ContainerInfo {
        let state = self.state();
        ContainerInfo {
            rid: self.rid,
            database_rid: self.rid.database(),
            database_id: self.database_id.clone(),
            properties: state.properties.clone(),
            etag: state.etag,
            last_modified: state.last_modified,
        }
    }

    /// The definition.
    pub fn properties(&self) -> Arc<ContainerProperties> {
        self.state().properties.clone()
    }

    /// The partition key ranges.
    pub fn ranges(&self) -> Ranges {
        let layout = self.state().layout.clone();
        let ranges = layout.partitions.iter().map(|partition| Range {
            id: partition.range,
            epk: partition.epk.clone(),
            parents: partition.parents.clone(),
            lsn: partition.lsn(),
        });
        Ranges {
            version: layout.version,
            ranges: ranges.collect(),
        }
    }

    /// The stored procedures, triggers and user-defined functions.
    pub(crate) fn scripts(&self) -> Arc<Scripts> {
        self.scripts.read().clone()
    }

    /// Changes the scripts, once the change is durable.
    pub(crate) fn change_scripts(&self, change: impl FnOnce(&mut Scripts)) {
        change(Arc::make_mut(&mut *self.scripts.write()));
    }

    pub(crate) fn state(&self) -> Arc<ContainerState> {
        self.state.read().clone()
    }

    /// Lets a request in that does a few reads and writes. Hold the visit until the answer is decided.
    ///
    /// # Errors
    /// `NotFound` if the container was deleted.
    pub(crate) async fn enter(&self) -> Result<ReadGuard<'_>> {
        self.guard(self.gates.short.read().await)
    }

    /// Lets a request in that may take long, and ends when [`Container::ending`] wants it: a page of a query or feed.
    ///
    /// # Errors
    /// As [`Container::enter`].
    pub(crate) async fn enter_interruptible(&self) -> Result<ReadGuard<'_>> {
        self.guard(self.gates.interruptible.read().await)
    }

    /// Lets a request in that may take long, and goes on to its end: a script, figures, a condition that waits for a thread of the executor.
    ///
    /// # Errors
    /// As [`Container::enter`].
    pub(crate) async fn enter_uninterruptible(&self) -> Result<ReadGuard<'_>> {
        self.guard(self.gates.uninterruptible.read().await)
    }

    fn guard<'a>(&self, gate: RwLockReadGuard<'a, ()>) -> Result<ReadGuard<'a>> {
        let state = self.state();
        if state.is_deleted {
            return Err(Error::not_found("the container was deleted"));
        }
        Ok(ReadGuard { _gate: gate, state })
    }

    /// Waits until no request is under way, and keeps new ones out while the state is replaced.
    pub(crate) async fn lock(&self) -> WriteGuard<'_> {
        self.hold_long_work().await.lock().await
    }

    /// The first half of [`Container::lock`]: waits until no long work is under way, and keeps new long work out. Short requests go on. Long
    /// work of readers is ended if it keeps this waiting.
    pub(crate) async fn hold_long_work(&self) -> LongWorkHold<'_> {
        let uninterruptible = self.gates.uninterruptible.write().await;
        let interruptible = match tokio::time::timeout(READERS_END, self.gates.interruptible.write()).await {
            Ok(gate) => gate,
            Err(_) => {
                let _ending = self.ending.begin();
                self.gates.interruptible.write().await
            }
        };
        LongWorkHold {
            gates: [uninterruptible, interruptible],
            container: self,
        }
    }

    /// Whether long work of readers is to end now.
    pub(crate) fn ending(&self) -> &Ending {
        &self.ending
    }

    /// Keeps other full checks of the container out.
    pub(crate) async fn check_alone(&self) -> MutexGuard<'_, ()> {
        self.checking.lock().await
    }

    /// Keeps other splits of the container out.
    pub(crate) async fn split_alone(&self) -> MutexGuard<'_, ()> {
        self.splitting.lock().await
    }

    /// Registers a request that reads in several steps at server time `now`: until it is dropped, the purge removes nothing that
    /// is still live at `now`. So such a request never misses an item of a second whose other items it shows (docs/ttl.md, "Time").
    pub(crate) fn pin_reads_at(&self, now: UnixSeconds) -> ReadPin<'_> {
        *self.readers.lock().entry(now).or_insert(0) += 1;
        ReadPin { container: self, now }
    }

    /// The earliest server time that a request still reads at.
    pub(crate) fn oldest_reader(&self) -> Option<UnixSeconds> {
        self.readers.lock().keys().next().copied()
    }
}

/// A request inside a container, and the state it is judged by.
pub(crate) struct ReadGuard<'a> {
    _gate: RwLockReadGuard<'a, ()>,
    pub state: Arc<ContainerState>,
}

/// A gate for each kind of request. A change takes them in the order of how long it may wait for each, the longest first: while it waits for
/// a script, pages and short requests go on; while it waits for a page, short ones do. New requests of a kind wait with the change
/// for old ones of their kind, never for longer ones.
#[derive(Default)]
struct Gates {
    uninterruptible: tokio::sync::RwLock<()>,
    interruptible: tokio::sync::RwLock<()>,
    short: tokio::sync::RwLock<()>,
}

/// Keeps long work out of a container. See [`Container::hold_long_work`].
pub(crate) struct LongWorkHold<'a> {
    gates: [RwLockWriteGuard<'a, ()>; 2],
    container: &'a Container,
}

impl<'a> LongWorkHold<'a> {
    /// Keeps short requests out, too, once those under way have ended.
    pub async fn lock(self) -> WriteGuard<'a> {
        WriteGuard {
            _short: self.container.gates.short.write().await,
            _long: self.gates,
            container: self.container,
        }
    }
}

/// The right to replace a container's state.
pub(crate) struct WriteGuard<'a> {
    _short: RwLockWriteGuard<'a, ()>,
    _long: [RwLockWriteGuard<'a, ()>; 2],
    container: &'a Container,
}

impl WriteGuard<'_> {
    pub fn state(&self) -> Arc<ContainerState> {
        self.container.state()
    }

    pub fn replace(&self, state: ContainerState) {
        *self.container.state.write() = Arc::new(state);
    }
}

/// See [`Container::pin_reads_at`].
pub(crate) struct ReadPin<'a> {
    container: &'a Container,
    now: UnixSeconds,
}

impl Drop for ReadPin<'_> {
    fn drop(&mut self) {
        let mut readers = self.container.readers.lock();
        if let Some(count) = readers.get_mut(&self.now) {
            *count -= 1;
            if *count == 0 {
                readers.remove(&self.now);
            }
        }
    }
}
