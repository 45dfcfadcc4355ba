//! The target of a copy: an empty place, written as an engine.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use bolide_core::{PartitionId, SealedPartition, unfinished_copy};
use bolide_model::UnixMillis;
use bolide_model::time::Clock;
use bolide_storage::{Engine, EngineError, Head, ReadRequest};
use bolide_storage_lsm::{LsmEngine, LsmOptions};
use bolide_storage_postgres::PostgresOptions;

use super::partition::TargetPartition;
use crate::postgres;
use crate::server::Failure;

/// Where the copy is written.
#[derive(Debug, Clone)]
pub enum TargetPlace {
    /// A data directory.
    Directory(PathBuf),
    /// A database of PostgreSQL.
    Postgres(Box<PostgresOptions>),
}

/// The time at which partitions of the target are made: not after that of any commit.
const EARLIEST: UnixMillis = UnixMillis(0);

/// The store that is being written.
pub(super) struct Target {
    engine: Arc<dyn Engine>,
    partitions: BTreeMap<PartitionId, TargetPartition>,
}

impl TargetPlace {
    /// Checks that nothing is there yet, as far as that can be seen without making anything.
    ///
    /// # Errors
    /// Something is there.
    pub fn check_empty(&self) -> Result<(), Failure> {
        let TargetPlace::Directory(directory) = self else {
            return Ok(());
        };
        let is_empty = match std::fs::read_dir(directory) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => {
                let is_missing = error.kind() == std::io::ErrorKind::NotFound;
                return match is_missing {
                    true => Ok(()),
                    false => Err(Failure::new(format!("--to-data-dir: {}: {error}", directory.display()))),
                };
            }
        };
        match is_empty {
            true => Ok(()),
            false => Err(Failure::new(format!(
                "--to-data-dir: {}: the directory is not empty; a copy is made in a new one, and what an unfinished one has left can be removed",
                directory.display()
            ))),
        }
    }

    /// What it is called in messages.
    fn option(&self) -> &'static str {
        match self {
            TargetPlace::Directory(_) => "--to-data-dir",
            TargetPlace::Postgres(_) => "--to-store",
        }
    }

    /// Opens the engine, whose time does not go ahead of the source's: a store begins with the time that its last server has shown.
    async fn engine(&self, time: UnixMillis) -> Result<Arc<dyn Engine>, Failure> {
        let clock = Arc::new(Clock::virtual_at(time));
        match self {
            TargetPlace::Directory(directory) => {
                crate::files::survive_size_limit()?;
                let engine = LsmEngine::open(directory, clock, LsmOptions::default());
                let engine = engine.map_err(|error| Failure::new(format!("--to-data-dir: {error}")))?;
                Ok(Arc::new(engine))
            }
            TargetPlace::Postgres(options) => Ok(Arc::new(postgres::open(options, clock).await?)),
        }
    }
}

impl Target {
    /// Opens an empty place, and marks it as an unfinished copy.
    ///
    /// # Errors
    /// It has a store, or it cannot be written.
    pub async fn open(place: &TargetPlace, time: UnixMillis) -> Result<Target, Failure> {
        let engine = place.engine(time).await?;
        check_empty(engine.as_ref(), place.option()).await?;
        let mut target = Target {
            engine,
            partitions: BTreeMap::new(),
        };
        let (key, value) = unfinished_copy();
        let catalog = target.partition(PartitionId::CATALOG).await?;
        catalog.put_mark(key, value).await?;
        Ok(target)
    }

    /// Returns a partition; makes it if it is missing.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn partition(&mut self, id: PartitionId) -> Result<&mut TargetPartition, Failure> {
        if !self.partitions.contains_key(&id) {
            let head = Head::first(EARLIEST);
            self.engine.create(id, head).await.map_err(|error| failed(&error))?;
            let partition = TargetPartition::new(self.engine.clone(), id, head);
            self.partitions.insert(id, partition);
        }
        let partition = self.partitions.get_mut(&id);
        partition.ok_or_else(|| Failure::new("a partition of the target is missing"))
    }

    /// Removes the partitions that the source does not have any more.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn remove_others(&mut self, partitions: &[PartitionId]) -> Result<(), Failure> {
        let there: HashSet<&PartitionId> = partitions.iter().collect();
        let gone = self.partitions.keys().filter(|id| !there.contains(id));
        let gone: Vec<PartitionId> = gone.copied().collect();
        for id in gone {
            self.engine.remove(id).await.map_err(|error| failed(&error))?;
            self.partitions.remove(&id);
        }
        Ok(())
    }

    /// Checks that a partition has as many items as the source's counters say.
    ///
    /// # Errors
    /// It has not.
    pub async fn check(&mut self, sealed: &SealedPartition) -> Result<(), Failure> {
        let items = self.partition(sealed.id).await?.items();
        match sealed.items {
            Some(counted) if counted != items => Err(Failure::new(format!(
                "partition {} has {items} items at the target and {counted} by its counters; let its container be verified",
                sealed.id
            ))),
            _ => Ok(()),
        }
    }

    /// Brings all partitions to the heads of the source, that of the catalog last: from then on the store can be opened. May be repeated.
    ///
    /// # Errors
    /// It cannot be written. Whether it was is unknown then.
    pub async fn finish(&mut self, sealed: &[SealedPartition]) -> Result<(), Failure> {
        let mut latest = EARLIEST;
        for partition in sealed {
            latest = latest.max(partition.head.stamp);
            if partition.id != PartitionId::CATALOG {
                self.partition(partition.id).await?.finish(partition.head, None).await?;
            }
        }
        let durable = self.engine.make_time_durable(latest).await;
        durable.map_err(|error| failed(&error))?;
        let catalog = sealed.iter().find(|partition| partition.id == PartitionId::CATALOG);
        let catalog = catalog.ok_or_else(|| Failure::new("--from: the store has no catalog"))?;
        let (mark, _) = unfinished_copy();
        let target = self.partition(PartitionId::CATALOG).await?;
        target.finish(catalog.head, Some(mark)).await
    }

    /// Closes the engine.
    ///
    /// # Errors
    /// From the engine.
    pub async fn close(&self) -> Result<(), EngineError> {
        self.engine.close().await
    }
}

async fn check_empty(engine: &dyn Engine, option: &str) -> Result<(), Failure> {
    let (mark, _) = unfinished_copy();
    let request = ReadRequest::of_keys(vec![mark]);
    let reply = match engine.read(PartitionId::CATALOG, request).await {
        Err(EngineError::NoPartition(_)) => return Ok(()),
        reply => reply.map_err(|error| failed(&error))?,
    };
    let what = match reply.gets.into_iter().flatten().next() {
        Some(_) => "an unfinished copy; drop its table `bolide_kv`, or name another database",
        None => "a store already; a copy is made in a database without one",
    };
    Err(Failure::new(format!("{option}: there is {what}")))
}

/// Why the target cannot be written.
pub(super) fn failed(error: &EngineError) -> Failure {
    Failure::new(format!("the target cannot be written: {error}"))
}
