//! A container: its definition, its settings of expiry, its ranges, and the gates that keep requests and changes of settings apart.

mod collection;
mod guards;
mod history;
mod info;
mod layout;
mod offer;
mod quarantine;
mod scripts;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bolide_model::container::ContainerProperties;
use bolide_model::error::ItemOperation;
use bolide_model::rid::ContainerRid;
use bolide_model::ttl::{Policy, Settings};
use bolide_model::{Error, Reason, Result, UnixMillis, UnixSeconds};
use bolide_query::Schema;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{MutexGuard, RwLockReadGuard};

pub use collection::{CollectionDefinition, CollectionIndex};
use guards::Gates;
pub(crate) use guards::{LongWorkHold, OwnedReadGuard, ReadGuard, Sealed, WriteGuard};
pub use info::{ContainerInfo, Range, Ranges};
pub(crate) use layout::Layout;
pub(crate) use offer::ResourceOffer;
pub(crate) use quarantine::ScriptQuarantine;
pub(crate) use scripts::Scripts;
pub use scripts::{Script, ScriptDraft, ScriptKind, ScriptName, TriggerFires, TriggerOperation, TriggerTime};

use crate::content::ShardKey;
use crate::executor::Ending;
use crate::format::etag::Etag;
use crate::index::{IndexAdvisor, PropertyIndexes};
use crate::partition::SettingsNumber;
use crate::sql::schema_of;
use crate::throughput::{Meter, Pacing, PacingSettings, SharedMeter};

/// How long a change of a container waits before it ends the long tasks of readers.
const READERS_END: Duration = Duration::from_millis(100);

/// A container. Requests reach its items through [`Container::enter`].
pub struct Container {
    rid: ContainerRid,
    database_id: String,
    /// Requests hold the read side of one of the gates from their server time to their answer; a change of settings or ranges holds the write sides
    /// of all. So every request uses either only the settings before a change or only those after it (TTL-233), and its server time is not later
    /// than a change that it has not seen (docs/ttl.md, "Time").
    gates: Gates,
    ending: Ending,
    state: RwLock<Arc<ContainerState>>,
    readers: Arc<Mutex<BTreeMap<UnixMillis, usize>>>,
    scripts: RwLock<Arc<Scripts>>,
    /// Counts the items that queries read in vain.
    advisor: Mutex<IndexAdvisor>,
    /// What [`Container::schema`] made last, and of which definition.
    schema: Mutex<Option<(Arc<ContainerProperties>, Arc<Schema>)>>,
    /// Number of items that the running build of indexes has gone through.
    built_items: AtomicU64,
    /// How often reads have used each index of a collection since the start.
    index_uses: Mutex<BTreeMap<u32, u64>>,
    /// Held by a full check: its counts belong to one check at a time.
    checking: tokio::sync::Mutex<()>,
    /// Held by a split: only one split at a time changes the ranges.
    splitting: tokio::sync::Mutex<()>,
}

/// The state of a container, which a change replaces as a whole.
#[derive(Clone)]
pub(crate) struct ContainerState {
    pub properties: Arc<ContainerProperties>,
    pub etag: Etag,
    pub last_modified: UnixSeconds,
    /// The policy in force and the floors left by earlier policies.
    pub settings: Settings,
    /// When each policy came into force, oldest first. For statistics and for users; whether an item is live follows from the floors alone.
    pub history: Vec<PolicyPeriod>,
    pub offer: Option<ResourceOffer>,
    pub pacing: PacingSettings,
    /// Whether a client has begun the all-versions feed although the container has no policy for it.
    pub keeps_all_versions: bool,
    /// What it has beside the definition of a container if it is a MongoDB collection.
    pub collection: Option<Arc<CollectionDefinition>>,
    /// Its property indexes.
    pub indexes: Arc<PropertyIndexes>,
    /// The meter of the database, if the database has throughput.
    pub database_meter: Option<SharedMeter>,
    /// Number of the settings, which the head of each partition has, too.
    pub settings_number: SettingsNumber,
    pub layout: Arc<Layout>,
    /// The id of the next range.
    pub next_range: u32,
    pub is_deleted: bool,
}

impl ContainerState {
    /// Refuses an operation that only containers of items have.
    ///
    /// # Errors
    /// `BadRequest` if it is a MongoDB collection.
    pub fn check_has_items(&self, refused: &str) -> Result<()> {
        match self.collection {
            None => Ok(()),
            Some(_) => Err(Error::bad_request(format!(
                "'{}' is a MongoDB collection: {refused}",
                self.properties.id
            ))),
        }
    }

    /// Tells whether it is an unsharded collection: then all of its documents are at the lowest effective partition key, whatever is asked for.
    pub fn is_unsharded(&self) -> bool {
        self.collection
            .as_ref()
            .is_some_and(|collection| collection.shard_key.is_none())
    }

    /// Returns its shard key, if it is a sharded collection.
    pub fn shard_key(&self) -> Option<&Arc<ShardKey>> {
        self.collection
            .as_ref()
            .and_then(|collection| collection.shard_key.as_ref())
    }

    /// Refuses an operation on items that a collection does not have. The only place that decides this.
    ///
    /// # Errors
    /// `NotForCollections` if it is a MongoDB collection.
    pub fn check_is_not_collection(&self, refused: ItemOperation) -> Result<()> {
        match self.collection {
            None => Ok(()),
            Some(_) => Err(Reason::NotForCollections {
                container: self.properties.id.clone(),
                refused,
            }
            .into()),
        }
    }

    /// Returns the meter of the database, if the container shares its throughput: the container has no offer of its own, and no other budget was
    /// set for it.
    pub fn shared_meter(&self) -> Option<&SharedMeter> {
        let is_on_its_own = self.offer.is_some() || self.pacing.pacing != Pacing::Unlimited;
        self.database_meter.as_ref().filter(|_| !is_on_its_own)
    }

    /// Returns the same state, with partitions whose settings have another number already.
    fn over(&self, number: SettingsNumber) -> ContainerState {
        ContainerState {
            layout: Arc::new(self.layout.at(number)),
            ..self.clone()
        }
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

/// A period of time under one policy; it ends where the next begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PolicyPeriod {
    pub start: UnixSeconds,
    pub policy: Policy,
}

impl Container {
    pub(crate) fn new(rid: ContainerRid, database_id: String, state: ContainerState) -> Arc<Container> {
        let since = state
            .layout
            .partitions
            .first()
            .map(|partition| partition.times().ahead_before());
        history::tell_endings(None, &state, (since.unwrap_or_default(), UnixMillis(i64::MIN)));
        Arc::new(Container {
            rid,
            database_id,
            gates: Gates::default(),
            ending: Ending::default(),
            state: RwLock::new(Arc::new(state)),
            readers: Arc::default(),
            scripts: RwLock::default(),
            advisor: Mutex::default(),
            schema: Mutex::default(),
            built_items: AtomicU64::new(0),
            index_uses: Mutex::default(),
            checking: tokio::sync::Mutex::new(()),
            splitting: tokio::sync::Mutex::new(()),
        })
    }

    /// Returns the resource id.
    pub fn rid(&self) -> ContainerRid {
        self.rid
    }

    /// Returns whether it uses the throughput of its database, which other containers use too.
    pub fn shares_throughput(&self) -> bool {
        self.state().shared_meter().is_some()
    }

    /// Returns the names and the definition of the container.
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

    /// Returns what it has beside the definition of a container if it is a MongoDB collection.
    pub fn collection(&self) -> Option<Arc<CollectionDefinition>> {
        self.state().collection.clone()
    }

    /// Returns the definition.
    pub fn properties(&self) -> Arc<ContainerProperties> {
        self.state().properties.clone()
    }

    /// Returns the definition as the query language sees it, without making it again for each query.
    pub(crate) fn schema(&self, properties: &Arc<ContainerProperties>) -> Arc<Schema> {
        let mut known = self.schema.lock();
        match &*known {
            Some((of, schema)) if Arc::ptr_eq(of, properties) => schema.clone(),
            _ => {
                let schema = Arc::new(schema_of(properties));
                *known = Some((properties.clone(), schema.clone()));
                schema
            }
        }
    }

    /// Returns the partition key ranges.
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

    /// Returns the stored procedures, triggers and user-defined functions.
    pub(crate) fn scripts(&self) -> Arc<Scripts> {
        self.scripts.read().clone()
    }

    /// Changes the scripts, once the change is durable.
    pub(crate) fn change_scripts(&self, change: impl FnOnce(&mut Scripts)) {
        change(Arc::make_mut(&mut *self.scripts.write()));
    }

    /// Returns what counts the items that queries read in vain.
    pub(crate) fn advisor(&self) -> parking_lot::MutexGuard<'_, IndexAdvisor> {
        self.advisor.lock()
    }

    /// Returns the number of items that the running build of indexes has gone through.
    pub(crate) fn built_items(&self) -> &AtomicU64 {
        &self.built_items
    }

    /// Counts a read by an index of a collection.
    pub(crate) fn count_index_use(&self, index: u32) {
        *self.index_uses.lock().entry(index).or_default() += 1;
    }

    /// Returns how often reads have used an index of a collection since the start, by its id.
    pub fn index_uses(&self, index: u32) -> u64 {
        self.index_uses.lock().get(&index).copied().unwrap_or_default()
    }

    pub(crate) fn state(&self) -> Arc<ContainerState> {
        self.state.read().clone()
    }

    /// Admits a request that makes a few reads and writes. Hold the guard until the response is decided.
    ///
    /// # Errors
    /// `NotFound` if the container was deleted.
    pub(crate) async fn enter(&self) -> Result<ReadGuard<'_>> {
        self.guard(self.gates.short.read().await)
    }

    /// Admits a request that may take long and ends when [`Container::ending`] tells it to: a page of a query or feed.
    ///
    /// # Errors
    /// As [`Container::enter`].
    pub(crate) async fn enter_interruptible(&self) -> Result<ReadGuard<'_>> {
        self.guard(self.gates.interruptible.read().await)
    }

    /// Admits a request that may take long and runs to its end: a script, statistics, a condition that waits for a thread of the executor.
    ///
    /// # Errors
    /// As [`Container::enter`].
    pub(crate) async fn enter_uninterruptible(&self) -> Result<ReadGuard<'_>> {
        self.guard(self.gates.uninterruptible.read().await)
    }

    /// Like [`Container::enter_interruptible`], with a guard that does not borrow the container.
    ///
    /// # Errors
    /// As [`Container::enter`].
    pub(crate) async fn enter_interruptible_owned(&self) -> Result<OwnedReadGuard> {
        let gate = self.gates.interruptible.clone().read_owned().await;
        let state = self.state();
        if state.is_deleted {
            return Err(Reason::ContainerDeleted.into());
        }
        Ok(OwnedReadGuard { _gate: gate, state })
    }

    fn guard<'a>(&self, gate: RwLockReadGuard<'a, ()>) -> Result<ReadGuard<'a>> {
        let state = self.state();
        if state.is_deleted {
            return Err(Reason::ContainerDeleted.into());
        }
        Ok(ReadGuard { _gate: gate, state })
    }

    /// Waits until no request is in progress, and keeps new ones out while the state is replaced.
    pub(crate) async fn lock(&self) -> WriteGuard<'_> {
        self.hold_long_work().await.lock().await
    }

    /// Like [`Container::lock`], for a change of what only writers do: pages of queries and feeds go on, with the state of before.
    pub(crate) async fn lock_writers(&self) -> WriteGuard<'_> {
        let uninterruptible = self.gates.uninterruptible.write().await;
        LongWorkHold {
            gates: vec![uninterruptible],
            container: self,
        }
        .lock()
        .await
    }

    /// The first half of [`Container::lock`]: waits until no long request is in progress, and keeps new long requests out. Short requests continue. Long
    /// tasks of readers are ended if they take longer than [`READERS_END`].
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
            gates: vec![uninterruptible, interruptible],
            container: self,
        }
    }

    /// Returns the signal that tells long tasks of readers to end.
    pub(crate) fn ending(&self) -> &Ending {
        &self.ending
    }

    /// Waits for the other full checks of the container, and keeps new ones out.
    pub(crate) async fn check_alone(&self) -> MutexGuard<'_, ()> {
        self.checking.lock().await
    }

    /// Waits for the other splits of the container, and keeps new ones out.
    pub(crate) async fn split_alone(&self) -> MutexGuard<'_, ()> {
        self.splitting.lock().await
    }

    /// Registers a request that reads in several steps at server time `now`: until the pin is dropped, the purge removes nothing that is still live at
    /// `now`. So if two items expire at the same time, the request never shows one and misses the other (docs/ttl.md, "Time").
    pub(crate) fn pin_reads_at(&self, now: UnixMillis) -> ReadPin {
        *self.readers.lock().entry(now).or_insert(0) += 1;
        ReadPin {
            readers: self.readers.clone(),
            now,
        }
    }

    /// Returns the earliest server time at which a registered request reads.
    pub(crate) fn oldest_reader(&self) -> Option<UnixMillis> {
        self.readers.lock().keys().next().copied()
    }
}

/// A registered reader; see [`Container::pin_reads_at`].
pub(crate) struct ReadPin {
    readers: Arc<Mutex<BTreeMap<UnixMillis, usize>>>,
    now: UnixMillis,
}

impl Drop for ReadPin {
    fn drop(&mut self) {
        let mut readers = self.readers.lock();
        if let Some(count) = readers.get_mut(&self.now) {
            *count -= 1;
            if *count == 0 {
                readers.remove(&self.now);
            }
        }
    }
}
