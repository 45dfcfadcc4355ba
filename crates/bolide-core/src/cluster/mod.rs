//! The nodes of an account: the servers that use one store at the same time. An engine that only this process uses has none.
//!
//! Every half second a node writes its heartbeat, and reads those of the others. From these it knows
//!
//! ```text
//!   who is alive           whose heartbeat has changed within five seconds, by the reader's own clock
//!   who does the upkeep    of a partition: the live node with the highest hash of (node, partition). There is no lease: two nodes that differ, or that
//!                          write at the same time, meet in the compare-and-set of the commit
//!   what may be purged     what had expired before the reads of all live nodes that are in progress (TTL-293)
//! ```
//!
//! A node whose own heartbeats fail for four seconds ends its reads of several steps: others may purge what these still show ([`Heard`]).
//!
//! Heartbeats have a partition of their own, so that they do not change the head of the catalog, which all nodes follow.

mod heartbeat;
mod upkeep;
mod view;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_model::rid::ContainerRid;
use bolide_model::time::Monotonic;
use bolide_model::{Error, ErrorKind, Result, UnixMillis};
use bolide_storage::{Engine, PartitionId, ReadRequest};
use parking_lot::{Mutex, RwLock};
use tokio::task::JoinHandle;

use crate::catalog::Catalog;
use crate::clock;
use crate::partition::write_batch::WriteBatch;
use crate::partition::{Heard, Partition, Signals};
pub use heartbeat::NodeId;
use heartbeat::{Heartbeat, Readers};
use view::View;

/// How long a node lives for the others after a heartbeat.
const DEAD_AFTER: Duration = Duration::from_secs(5);
/// How long a node takes itself for alive after it has begun to write a heartbeat; shorter, because others see it later.
const HEARD_FOR: Duration = Duration::from_secs(4);
/// Every so many heartbeats the heads of partitions are read that need upkeep only after rare requests.
const RARELY: u64 = 10;
/// How long the row of a dead node is kept.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
/// Interval of heartbeats while a purge waits for other nodes.
const IMPATIENT: Duration = Duration::from_millis(20);
/// How long a purge waits for other nodes: longer than a dead one takes.
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// A live node, for whoever operates it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// Random for each start.
    pub id: NodeId,
    /// Where clients reach it; empty if it listens nowhere.
    pub endpoint: String,
    /// Whether it is the node that was asked.
    pub is_self: bool,
    /// How long it has been running at its last heartbeat.
    pub alive: Duration,
    /// How long ago its last heartbeat was seen.
    pub heartbeat_age: Duration,
    /// Server time as it knew it at its last heartbeat: the interval that contains it.
    pub clock: (UnixMillis, UnixMillis),
    /// Number of partitions whose upkeep it does.
    pub partitions_owned: u64,
    /// Number of its commits so far that another node's commit had overtaken.
    pub conflicts: u64,
}

/// Where clients reach a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Endpoint {
    /// Over HTTP, such as `http://host:port`; where the other nodes do, if they have another way. Empty if it listens nowhere.
    pub http: String,
    /// In direct mode: host and port. `None` if they cannot, or if it is not known where.
    pub frames: Option<String>,
}

/// This process as a node, and what it knows of the others. See the module.
pub(crate) struct Cluster {
    id: NodeId,
    engine: Arc<dyn Engine>,
    catalog: Arc<Catalog>,
    signals: Signals,
    clock: Monotonic,
    started: Instant,
    endpoint: Mutex<Endpoint>,
    /// The partition of the heartbeats.
    partition: Arc<Partition>,
    view: RwLock<Arc<View>>,
    /// Held while a heartbeat is written: they must not overtake each other.
    beating: tokio::sync::Mutex<Last>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

/// The last heartbeat of this node.
#[derive(Default)]
struct Last {
    beat: u64,
    /// The bound of the first heartbeat after others may have taken the node for dead, while reads of before go on.
    lapsed: Option<UnixMillis>,
}

impl Cluster {
    /// Joins the nodes that use the engine: the first heartbeat is written when this returns.
    ///
    /// # Errors
    /// From the engine.
    pub async fn join(catalog: Arc<Catalog>, clock: Monotonic) -> Result<Arc<Cluster>> {
        let (engine, signals) = (catalog.engine().clone(), catalog.signals().clone());
        let now = clock::exact_now(engine.as_ref()).await?;
        let partition = Partition::open_whole(engine.clone(), PartitionId::NODES, now, signals.clone()).await?;
        let cluster = Arc::new(Cluster {
            id: NodeId::random(),
            engine,
            catalog,
            signals,
            started: clock.now(),
            clock,
            endpoint: Mutex::default(),
            partition,
            view: RwLock::default(),
            beating: tokio::sync::Mutex::default(),
            tasks: Mutex::default(),
        });
        cluster.beat().await?;
        Ok(cluster)
    }

    /// Writes heartbeats from now on, and does the upkeep that only the owner of a partition does, until the account is dropped or [`Cluster::leave`].
    pub fn start(self: &Arc<Cluster>, interval: Duration) {
        let (cluster, clock) = (Arc::downgrade(self), self.clock.clone());
        let beating = async move {
            loop {
                clock.sleep(interval).await;
                let Some(cluster) = cluster.upgrade() else { return };
                if let Err(error) = cluster.beat().await {
                    tracing::debug!(%error, "the heartbeat cannot be written");
                }
            }
        };
        // Another task, because heartbeats must not wait for the partitions.
        let (cluster, clock) = (Arc::downgrade(self), self.clock.clone());
        let following = async move {
            for turn in 1_u64.. {
                clock.sleep(interval).await;
                let Some(cluster) = cluster.upgrade() else { return };
                cluster.follow_heads(turn.is_multiple_of(RARELY)).await;
            }
        };
        *self.tasks.lock() = vec![tokio::spawn(beating), tokio::spawn(following)];
    }

    /// Ends the heartbeats, and tells the others that this node is gone. If that fails, they find out.
    pub async fn leave(&self) {
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            task.abort();
            let _ = task.await;
        }
        let _beating = self.beating.lock().await;
        let key = heartbeat::key(self.id);
        let left = self.partition.write(move |batch| {
            batch.delete(key.clone());
            Ok(())
        });
        if let Err(error) = left.await {
            tracing::debug!(%error, "other servers learn a little later that this one has ended");
        }
    }

    /// Sets where clients reach this node, and tells the others.
    pub async fn set_endpoint(&self, endpoint: Endpoint) {
        *self.endpoint.lock() = endpoint;
        if let Err(error) = self.beat().await {
            tracing::debug!(%error, "other servers learn a little later where this one is");
        }
    }

    /// Returns the live nodes, by their ids.
    pub fn nodes(&self) -> Vec<Node> {
        let now = self.clock.now();
        self.view().nodes(self.id, now)
    }

    /// Returns the id of this node.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Returns whether this node does the upkeep of a partition.
    pub fn owns(&self, partition: PartitionId) -> bool {
        self.view().owner(partition).is_none_or(|owner| owner == self.id)
    }

    /// Returns the node that owns a partition, and where it is; `None` if this one does, or if clients cannot reach it.
    pub fn owner_elsewhere(&self, partition: PartitionId) -> Option<(NodeId, String)> {
        self.view().owner_elsewhere(self.id, partition)
    }

    /// Returns the nodes for clients in direct mode of a partition, the owner first, then the one that would be after it: where each is, `None` for this one.
    pub fn frame_places(&self, partition: PartitionId) -> Vec<Option<String>> {
        self.view().frame_places(self.id, partition)
    }

    /// Returns the time at which the purge of a container may judge: what had expired by then, no other node shows.
    pub fn purge_bound(&self, container: ContainerRid) -> UnixMillis {
        self.view().purge_bound(self.id, container)
    }

    /// Waits until the purge of a container may remove what had expired at `asked`.
    ///
    /// # Errors
    /// `Unavailable` if another node still reads at an earlier time after some seconds; from the engine.
    pub async fn await_purge_bound(&self, container: ContainerRid, asked: UnixMillis) -> Result<()> {
        let began = self.clock.now();
        loop {
            self.beat().await?;
            if self.purge_bound(container) >= asked {
                return Ok(());
            }
            if self.clock.since(began) > LONGEST_WAIT {
                return Err(Error::new(
                    ErrorKind::Unavailable,
                    "another server still reads what had not expired at an earlier time",
                ));
            }
            tokio::time::sleep(IMPATIENT).await;
        }
    }

    /// Writes a heartbeat, and reads those of the others.
    pub(crate) async fn beat(&self) -> Result<()> {
        self.signals.lost.check()?;
        let mut last = self.beating.lock().await;
        let began = self.clock.now();
        last.beat += 1;
        let (heartbeat, oldest) = self.heartbeat(last.beat).await?;
        let bound = UnixMillis(heartbeat.bound_ms);
        let (key, value) = (heartbeat::key(self.id), heartbeat.encode());
        let written = self.partition.write(move |batch| {
            batch.put(key.clone(), value.clone());
            Ok(())
        });
        written.await?;
        if self.heard().has_lapsed() {
            last.lapsed.get_or_insert(bound);
        }
        // Others may have purged what reads still show that had begun before. When these have ended, reads of several steps go on.
        if last.lapsed.is_none_or(|lapsed| oldest >= lapsed) {
            last.lapsed = None;
            self.heard().until(&self.clock, began + HEARD_FOR);
        }
        self.look().await
    }

    /// Returns what to tell the others, and the earliest time of a read in several steps.
    async fn heartbeat(&self, beat: u64) -> Result<(Heartbeat, UnixMillis)> {
        let span = self.engine.time();
        // Before the readers are listed: who registers later reads at a later time.
        let bound = clock::exact_now(self.engine.as_ref()).await?;
        let (mut readers, mut earliest, mut partitions_owned) = (Readers::default(), bound, 0);
        let view = self.view();
        for container in self.catalog.all_containers() {
            if let Some(oldest) = container.oldest_reader().filter(|oldest| *oldest < bound) {
                readers.add(container.rid(), oldest);
                earliest = earliest.min(oldest);
            }
            let state = container.state();
            let owned = state.layout.partitions.iter();
            partitions_owned += owned
                .filter(|partition| view.owner(partition.id) == Some(self.id))
                .count() as u64;
        }
        let endpoint = self.endpoint.lock().clone();
        let heartbeat = Heartbeat {
            beat,
            endpoint: endpoint.http,
            frames: endpoint.frames.unwrap_or_default(),
            alive_ms: self.clock.since(self.started).as_millis() as u64,
            clock_ms: (span.lo.0, span.hi.0),
            partitions_owned,
            conflicts: self.signals.conflicts.count(),
            bound_ms: bound.0,
            readers,
        };
        Ok((heartbeat, earliest))
    }

    /// Reads the heartbeats, and removes those of nodes that have been dead for long.
    async fn look(&self) -> Result<()> {
        let began = self.clock.now();
        let request = ReadRequest {
            scans: vec![heartbeat::scan()],
            ..ReadRequest::default()
        };
        let reply = self.partition.read_raw(request).await?;
        let rows = reply.pages.into_iter().flat_map(|page| page.rows);
        let view = self.view().next(reply.head.stamp, rows, (began, self.clock.now()));
        let forgotten = view.forgotten();
        *self.view.write() = Arc::new(view);
        for (key, value) in forgotten {
            let remove = move |batch: &mut WriteBatch<'_>| {
                if batch.get_raw(&key)?.as_ref() == Some(&value) {
                    batch.delete(key.clone());
                }
                Ok(())
            };
            self.partition.write(remove).await?;
        }
        Ok(())
    }

    fn view(&self) -> Arc<View> {
        self.view.read().clone()
    }

    fn heard(&self) -> &Heard {
        &self.signals.heard
    }
}

#[cfg(test)]
mod tests;
