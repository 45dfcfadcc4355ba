//! The copy that an account serves: at most one.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Instant;

use bolide_model::Result;
use bolide_model::time::Monotonic;
use bolide_storage::{Key, PartitionId};
use parking_lot::Mutex;

use super::no_copy;
use crate::catalog::Catalog;
use crate::partition::copied::{ChangedBudget, CopyRecording, TakenKeys};
use crate::partition::write_seal::{CopyId, LEASE};
use crate::partition::{Partition, Placement};
use crate::throughput::{Meter, PacingSettings};

/// Maximum size in bytes of the changed keys that the copy has not taken yet. If they are more, partitions are compared instead.
const CHANGED_BYTES: usize = 64 * 1024 * 1024;

/// Number of leases after which a copy that asks nothing has ended.
const IDLE_LEASES: u32 = 3;

/// The copy of an account. See the module.
pub(crate) struct Copies {
    clock: Monotonic,
    current: Mutex<Option<Arc<RunningCopy>>>,
}

/// A running copy.
pub(crate) struct RunningCopy {
    pub id: CopyId,
    /// Whether its end has failed, so that whoever asked for it knows that the store has not moved: a seal without end is taken away then, too.
    pub may_undo: AtomicBool,
    /// When it has asked for something the last time.
    used: Mutex<Instant>,
    budget: Arc<ChangedBudget>,
    recordings: tokio::sync::Mutex<HashMap<PartitionId, CopyRecording>>,
    /// Partitions that other servers have made and that this one has not opened.
    opened: tokio::sync::Mutex<HashMap<PartitionId, Arc<Partition>>>,
}

impl Copies {
    pub fn new(clock: Monotonic) -> Copies {
        let current = Mutex::default();
        Copies { clock, current }
    }

    /// Begins a copy. One before it ends: most likely the process that made it has died.
    pub fn begin(self: &Arc<Self>) -> CopyId {
        let copy = RunningCopy::new(self);
        let id = copy.id;
        *self.current.lock() = Some(Arc::new(copy));
        tokio::spawn(end_when_idle(Arc::downgrade(self), self.clock.clone(), id));
        id
    }

    /// Returns the running copy.
    pub fn current(&self) -> Option<Arc<RunningCopy>> {
        self.current.lock().clone()
    }

    /// Returns the running copy, which asks for something now.
    ///
    /// # Errors
    /// `NotFound` if it does not run.
    pub fn running(&self, id: CopyId) -> Result<Arc<RunningCopy>> {
        let current = self.current.lock();
        let copy = current.as_ref().filter(|copy| copy.id == id).ok_or_else(no_copy)?;
        *copy.used.lock() = self.clock.now();
        Ok(copy.clone())
    }

    /// Ends a copy: nothing is recorded for it any more.
    pub fn end(&self, id: CopyId) {
        self.current.lock().take_if(|copy| copy.id == id);
    }

    /// Ends a copy that has not asked for anything for long. Returns whether it still runs.
    fn end_if_idle(&self, id: CopyId) -> bool {
        let mut current = self.current.lock();
        let Some(copy) = current.as_ref().filter(|copy| copy.id == id) else {
            return false;
        };
        if self.clock.since(*copy.used.lock()) < LEASE * IDLE_LEASES {
            return true;
        }
        *current = None;
        false
    }
}

/// Looks now and then whether the process that copies has died: what is recorded for it would stay in memory.
async fn end_when_idle(copies: Weak<Copies>, clock: Monotonic, id: CopyId) {
    loop {
        clock.sleep(LEASE).await;
        let Some(copies) = copies.upgrade() else { return };
        if !copies.end_if_idle(id) {
            return;
        }
    }
}

impl RunningCopy {
    /// Returns a copy that is not known to others yet.
    pub fn new(copies: &Copies) -> RunningCopy {
        RunningCopy {
            id: CopyId::random(),
            may_undo: AtomicBool::new(false),
            used: Mutex::new(copies.clock.now()),
            budget: ChangedBudget::new(CHANGED_BYTES),
            recordings: tokio::sync::Mutex::default(),
            opened: tokio::sync::Mutex::default(),
        }
    }

    /// Records the changed keys of a partition from now on, if that is not done already.
    ///
    /// # Errors
    /// From the engine.
    pub async fn record(&self, partition: &Partition) -> Result<()> {
        let mut recordings = self.recordings.lock().await;
        let is_again = match recordings.get(&partition.id) {
            Some(recording) if recording.is_of(partition) => return Ok(()),
            before => before.is_some(),
        };
        let recording = partition.record_for_copy(self.budget.clone()).await?;
        if is_again {
            // Its worker is another one, and what was recorded at the one before is not all.
            recording.lose_track();
        }
        recordings.insert(partition.id, recording);
        Ok(())
    }

    /// Ends the recordings of partitions that the store does not have any more.
    pub async fn keep_only(&self, partitions: &[PartitionId]) {
        let partitions: HashSet<PartitionId> = partitions.iter().copied().collect();
        let kept = |id: &PartitionId| partitions.contains(id);
        self.recordings.lock().await.retain(|id, _| kept(id));
        self.opened.lock().await.retain(|id, _| kept(id));
    }

    /// Takes changed keys of a partition; `None` if they are not recorded, because nobody writes it.
    pub async fn take(&self, partition: PartitionId, max: usize) -> Option<TakenKeys> {
        let recordings = self.recordings.lock().await;
        Some(recordings.get(&partition)?.take(max))
    }

    /// Records keys again that could not be copied now.
    pub async fn put_back(&self, partition: PartitionId, keys: &[Key]) {
        if let Some(recording) = self.recordings.lock().await.get(&partition) {
            recording.put_back(keys);
        }
    }

    /// Lets the copy compare a partition, because changed keys were lost.
    pub async fn lose_track(&self, partition: PartitionId) {
        if let Some(recording) = self.recordings.lock().await.get(&partition) {
            recording.lose_track();
        }
    }

    /// Returns partitions of containers. Those that the catalog does not have open are opened here: another server may have made them.
    ///
    /// # Errors
    /// From the engine.
    pub async fn open(&self, catalog: &Catalog, placements: Vec<Placement>) -> Result<Vec<Arc<Partition>>> {
        let known = in_memory(catalog);
        let mut opened = self.opened.lock().await;
        let mut partitions = Vec::with_capacity(placements.len());
        for placement in placements {
            if let Some(partition) = known.get(&placement.id).or_else(|| opened.get(&placement.id)) {
                partitions.push(partition.clone());
                continue;
            }
            let meter = Meter::shared(&PacingSettings::of(None), 1, catalog.now().await?.seconds());
            let (engine, signals) = (catalog.engine().clone(), catalog.signals().clone());
            let partition = Partition::open(engine, placement, meter, signals).await?;
            opened.insert(partition.id, partition.clone());
            partitions.push(partition);
        }
        Ok(partitions)
    }
}

/// Returns the partitions that the catalog has open.
fn in_memory(catalog: &Catalog) -> HashMap<PartitionId, Arc<Partition>> {
    let containers = catalog.all_containers().into_iter();
    let partitions = containers.flat_map(|container| container.state().layout.partitions.clone());
    partitions.map(|partition| (partition.id, partition)).collect()
}
