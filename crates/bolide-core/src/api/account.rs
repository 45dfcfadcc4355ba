//! The account: everything that one endpoint serves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_model::partition_key::PartitionKey;
use bolide_model::time::Monotonic;
use bolide_model::{Result, UnixMillis};
use bolide_storage::Engine;

use super::collections::sweep_later;
use crate::admin::{Admin, CopiedStore, Copies, Splits};
use crate::background::{
    Background, PropertyIndexBuilds, PurgeFault, PurgeMode, PurgeOptions, PurgeScheduler, READERS_PAUSE,
};
use crate::catalog::{Catalog, DefinitionUsage, NextNumbers, definition_limit, unless_sealed};
use crate::clock;
use crate::cluster::{Cluster, Endpoint, Node, NodeId};
use crate::container::Container;
use crate::items::epk_of_key;
use crate::memory::MemoryBudget;
use crate::query::{AheadCache, Queries};
use crate::runtime::{AccountOptions, RequestContext, Runtime};
use crate::scripts::{ScriptFigures, ScriptPermits, ScriptRunner};

/// Delay before items that readers of other servers may keep are tried again: what is known of them changes with the heartbeats.
const OTHERS_PAUSE: Duration = Duration::from_millis(250);

/// Everything that one endpoint serves: databases, containers, items, and the background work on them.
pub struct Account {
    runtime: Runtime,
    catalog: Arc<Catalog>,
    background: Arc<Background>,
    /// Present if other servers may use the store.
    cluster: Option<Arc<Cluster>>,
    /// Where clients reach this server, once it is known.
    endpoint: parking_lot::Mutex<String>,
    opened: Instant,
    purge_scheduler: parking_lot::Mutex<Option<PurgeScheduler>>,
    index_builds: PropertyIndexBuilds,
    script_permits: Arc<ScriptPermits>,
    ahead: Arc<AheadCache>,
    splits: Arc<Splits>,
    copies: Arc<Copies>,
}

impl Account {
    /// Opens an account over an engine: reads the catalog, finishes operations that a crash interrupted, and starts the background purge.
    ///
    /// # Errors
    /// `Unavailable` or `Corrupt`, from the engine.
    pub async fn open(engine: Arc<dyn Engine>, options: AccountOptions) -> Result<Arc<Account>> {
        let definition_bytes = options.definition_bytes;
        let definition_bytes = definition_bytes.unwrap_or_else(|| definition_limit(options.memory_bytes));
        let catalog = Arc::new(Catalog::open(engine.clone(), definition_bytes, options.virtual_clock).await?);
        if !engine.is_shared() {
            unless_sealed(catalog.remove_unbuilt_indexes().await)?;
        }
        let monotonic = options.monotonic.clone();
        let cluster = match options.heartbeat_interval.filter(|_| engine.is_shared()) {
            Some(interval) => {
                let cluster = Cluster::join(catalog.clone(), monotonic.clone()).await?;
                cluster.start(interval);
                Some(cluster)
            }
            None => None,
        };
        let background = Arc::new(Background::new(
            engine.clone(),
            monotonic.clone(),
            (catalog.clone(), cluster.clone()),
            PurgeFault::new(options.on_purge_fault),
        ));
        let purge_scheduler = (!options.virtual_clock).then(|| {
            let purge_options = PurgeOptions {
                items_per_second: options.purge_items_per_second,
                hold: options.purge_hold,
                is_purging: options.background_purge,
                readers_pause: if cluster.is_some() { OTHERS_PAUSE } else { READERS_PAUSE },
            };
            PurgeScheduler::start(&background, catalog.signals().wakeup.clone(), purge_options)
        });
        let vector_items = options.vector_index_items;
        let runtime = Runtime::new(engine, options);
        sweep_later(&catalog, runtime.monotonic());
        if let Some(interval) = runtime.options().catalog_interval {
            catalog.follow_others(interval, monotonic.clone());
        }
        let script_permits = Arc::new(ScriptPermits::new(runtime.options(), runtime.memory()));
        Ok(Arc::new(Account {
            index_builds: PropertyIndexBuilds::start(&background, &catalog, vector_items),
            catalog,
            background,
            cluster,
            endpoint: parking_lot::Mutex::default(),
            opened: monotonic.now(),
            purge_scheduler: parking_lot::Mutex::new(purge_scheduler),
            script_permits,
            ahead: AheadCache::new(runtime.memory(), monotonic.clone()),
            splits: Arc::new(Splits::new(monotonic.clone())),
            copies: Arc::new(Copies::new(monotonic)),
            runtime,
        }))
    }

    /// Ends queries, scripts, splits and the background work, and makes everything durable, server time included.
    ///
    /// # Errors
    /// Errors of the engine.
    pub async fn close(&self) -> Result<()> {
        self.end().await;
        clock::make_durable(self.runtime.engine(), self.server_time()).await;
        self.runtime
            .engine()
            .close()
            .await
            .map_err(crate::partition::engine_error)
    }

    /// Ends queries, scripts, splits and the background work, and leaves the engine open, for another account over it or over what replaces it.
    pub async fn end(&self) {
        self.script_permits.close();
        self.runtime.executor().close().await;
        self.splits.close().await;
        self.index_builds.stop().await;
        let purge_scheduler = self.purge_scheduler.lock().take();
        if let Some(scheduler) = purge_scheduler {
            scheduler.stop().await;
        }
        if let Some(cluster) = &self.cluster {
            cluster.leave().await;
        }
    }

    /// Begins a request: reads server time, whose second is durable (TTL-203).
    ///
    /// # Errors
    /// `Unavailable` if the engine's clock is too uncertain, or if the store has lost commits.
    pub async fn begin(&self) -> Result<RequestContext> {
        self.catalog.signals().lost.check()?;
        let now = clock::exact_now(self.runtime.engine()).await?;
        self.background.count_request();
        Ok(RequestContext { now, is_admin: false })
    }

    /// As [`Account::begin`], for administration: the purge does not count these requests as use, and they consume none of the throughput.
    ///
    /// # Errors
    /// As [`Account::begin`].
    pub async fn begin_admin(&self) -> Result<RequestContext> {
        self.catalog.signals().lost.check()?;
        self.runtime.begin_admin().await
    }

    /// Sets where clients reach this server, for [`Account::nodes`] of all servers of the store.
    pub async fn set_endpoint(&self, endpoint: Endpoint) {
        if let Some(cluster) = &self.cluster {
            cluster.set_endpoint(endpoint.clone()).await;
        }
        *self.endpoint.lock() = endpoint.http;
    }

    /// Returns the live servers that use the store; only this one if no other process can.
    pub fn nodes(&self) -> Vec<Node> {
        if let Some(cluster) = &self.cluster {
            return cluster.nodes();
        }
        let containers = self.catalog.all_containers();
        let partitions = containers
            .iter()
            .map(|container| container.state().layout.partitions.len() as u64);
        let time = self.runtime.engine().time();
        vec![Node {
            id: NodeId::default(),
            endpoint: self.endpoint.lock().clone(),
            is_self: true,
            alive: self.monotonic().since(self.opened),
            heartbeat_age: Duration::ZERO,
            clock: (time.lo, time.hi),
            partitions_owned: partitions.sum(),
            conflicts: 0,
        }]
    }

    /// Returns the id of this server among those of [`Account::nodes`]; `None` if no other process can use the store.
    pub fn node_id(&self) -> Option<NodeId> {
        self.cluster.as_ref().map(|cluster| cluster.id())
    }

    /// Returns the server that a write of a key is better sent to, and where it is: the owner of the key's partition, if several servers write it at the
    /// same time. Their commits would have to wait for each other; those of one server share a commit. `None`: it is better committed here.
    pub fn writer_elsewhere(&self, container: &Container, key: &PartitionKey) -> Option<(NodeId, String)> {
        let cluster = self.cluster.as_ref()?;
        let state = container.state();
        let epk = epk_of_key(&state, key).ok()?;
        let partition = state.layout.partition_of(&epk).ok()?;
        // Asked first: it costs less, and nearly always there are no others.
        let owner = || cluster.owner_elsewhere(partition.id);
        partition.take_forward().then(owner).flatten()
    }

    /// Returns where clients in direct mode send requests for a range: the owner first, so that their writes wait for no other server's commits, then the server
    /// that would be after it; one or two. `None` in it: this server.
    ///
    /// # Errors
    /// `RangeGone` if there is no such range.
    pub fn frame_places(&self, container: &Container, range: u32) -> Result<Vec<Option<String>>> {
        let state = container.state();
        let partition = state.layout.partition_with_id(range)?;
        Ok(match &self.cluster {
            Some(cluster) => cluster.frame_places(partition.id),
            None => vec![None],
        })
    }

    /// Returns server time now. Never decreases (TTL-202).
    pub fn server_time(&self) -> UnixMillis {
        self.runtime.server_time()
    }

    /// Returns the engine's name.
    pub fn engine_name(&self) -> &'static str {
        self.runtime.engine().name()
    }

    /// Returns server time for showing it to clients: no restart and no crash lets it fall below this millisecond (TTL-203).
    pub async fn shown_time(&self) -> UnixMillis {
        let now = self.server_time();
        if self.runtime.engine().durable_time() < now {
            // Made durable in advance, so that frequent calls do not cause frequent writes.
            let until = if self.runtime.has_virtual_clock() {
                now
            } else {
                clock::ahead_of(now)
            };
            clock::make_durable(self.runtime.engine(), until).await;
        }
        now
    }

    /// Makes the current second durable: for refusals that depend on the time and begin no request.
    pub async fn make_second_durable(&self) {
        // If the clock is too uncertain, [`Account::begin`] refuses requests; nothing to do here.
        let _ = clock::exact_now(self.runtime.engine()).await;
    }

    /// Returns the clock that paces background work and limits waiting.
    pub fn monotonic(&self) -> &Monotonic {
        self.runtime.monotonic()
    }

    #[cfg(test)]
    pub(crate) fn cluster(&self) -> Option<&Arc<Cluster>> {
        self.cluster.as_ref()
    }

    /// Returns the number of user requests that have begun so far.
    #[cfg(test)]
    pub(crate) fn requests(&self) -> u64 {
        self.background.requests()
    }

    /// Ends running queries and conditions of users, and refuses new ones: the first step of stopping.
    pub async fn end_queries(&self) {
        self.runtime.executor().close().await;
    }

    /// Returns the number of queries and conditions of patches that run or wait for a thread.
    pub fn running_queries(&self) -> usize {
        self.runtime.executor().running()
    }

    /// Runs long computations on data in memory, such as writing out a large page, on the threads for queries instead of those that serve connections.
    ///
    /// # Errors
    /// `Throttled` if too many tasks are running already; `Unavailable` when the account closes.
    pub async fn aside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        self.runtime.aside(work).await
    }

    /// Returns the memory budget that requests share. Front ends take from it for bodies and responses.
    pub fn memory(&self) -> &MemoryBudget {
        self.runtime.memory()
    }

    /// Returns the current and the maximum memory of the definitions of databases, containers and everything that belongs to them.
    pub fn definitions(&self) -> DefinitionUsage {
        self.catalog.definitions()
    }

    /// Purges a container now, at most `max` items. Returns the number of items removed.
    ///
    /// # Errors
    /// Errors of the engine; items removed before the error stay removed.
    pub async fn purge(&self, container: &Arc<Container>, mode: PurgeMode, max: Option<u64>) -> Result<u64> {
        self.background.purge(container, mode, max).await
    }

    /// Returns what wakes the task that builds indexes.
    pub(super) fn index_signal(&self) -> &Arc<tokio::sync::Notify> {
        self.index_builds.signal()
    }

    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    pub(super) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(super) fn queries(&self) -> Queries<'_> {
        Queries {
            runtime: &self.runtime,
            permits: &self.script_permits,
            ahead: &self.ahead,
            index_signal: self.index_signal(),
        }
    }

    pub(super) fn script_runner(&self) -> ScriptRunner<'_> {
        ScriptRunner {
            runtime: &self.runtime,
            permits: &self.script_permits,
        }
    }

    pub(super) fn admin(&self) -> Admin<'_> {
        Admin {
            runtime: &self.runtime,
            catalog: &self.catalog,
            background: &self.background,
            splits: &self.splits,
        }
    }

    pub(super) fn copied_store(&self) -> CopiedStore<'_> {
        CopiedStore {
            engine: self.catalog.engine(),
            catalog: &self.catalog,
            copies: &self.copies,
        }
    }

    /// Returns statistics of the scripts that run now.
    pub fn script_figures(&self) -> ScriptFigures {
        ScriptFigures::of(&self.script_permits, &self.all_containers())
    }

    /// Makes the process die after `after` more items were durably purged. For tests of crashes.
    pub fn set_purge_fault(&self, after: u64) {
        self.background.fault().set(after);
    }
}

impl Drop for Account {
    /// Ends splits, which would otherwise keep the engine open and continue.
    fn drop(&mut self) {
        self.splits.end();
    }
}

/// Operations on the catalog as a whole.
impl Account {
    /// Returns whether other processes may use the same store.
    pub fn has_shared_store(&self) -> bool {
        self.runtime.engine().is_shared()
    }

    /// Reads the changes that other processes over the same engine have made to databases, containers and everything that belongs to them. Reads
    /// nothing if the engine has no other users. Must be called before a name is refused as unknown, and before definitions are returned.
    ///
    /// # Errors
    /// Errors of the engine.
    pub async fn refresh_catalog(&self) -> Result<()> {
        self.catalog.refresh().await
    }

    /// Like [`Account::refresh_catalog`], if there may be other processes.
    pub(super) async fn refresh_if_shared(&self) -> Result<()> {
        match self.has_shared_store() {
            true => self.refresh_catalog().await,
            false => Ok(()),
        }
    }

    /// Returns whether MongoDB documents may have a ttl of their own (TTL-288).
    pub fn mongo_document_ttl(&self) -> bool {
        self.catalog.mongo_document_ttl()
    }

    /// Sets whether MongoDB documents may have a ttl of their own (TTL-288).
    ///
    /// # Errors
    /// Errors of the engine.
    pub async fn set_mongo_document_ttl(&self, is_on: bool) -> Result<()> {
        let set = |catalog: Arc<Catalog>| async move { catalog.set_mongo_document_ttl(is_on).await };
        self.catalog.carry_out(set).await
    }

    /// Returns the numbers that the account gives next.
    pub fn next_numbers(&self) -> NextNumbers {
        self.catalog.next_numbers()
    }

    /// Ensures that no number below `numbers` is given. The account's content may be an earlier one: what was made later is gone, but clients may still
    /// have its resource ids and the tokens made for them, and these must not refer to something else.
    ///
    /// # Errors
    /// Errors of the engine.
    pub async fn leave_out_numbers(&self, numbers: NextNumbers) -> Result<()> {
        let leave_out = move |catalog: Arc<Catalog>| async move { catalog.leave_out_numbers(numbers).await };
        self.catalog.carry_out(leave_out).await
    }

    /// Ensures that no new database gets a resource id that a database of `other` has or had, so that links and tokens of that account refer to nothing
    /// here, instead of to another resource.
    ///
    /// # Errors
    /// Errors of the engine.
    pub async fn leave_out_resource_ids_of(&self, other: &Account) -> Result<()> {
        let upto = other.catalog.next_database();
        let leave_out = move |catalog: Arc<Catalog>| async move { catalog.leave_out_databases(upto).await };
        self.catalog.carry_out(leave_out).await
    }
}
