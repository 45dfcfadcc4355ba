//! The account: everything behind one endpoint.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bolide_model::container::ContainerProperties;
use bolide_model::partition_key::PartitionKey;
use bolide_model::rid::{ContainerRid, DatabaseRid, OfferRid};
use bolide_model::{Error, ErrorKind, RequestUnits, Result, UnixMillis};
use bolide_storage::Engine;
use serde_json::Value;

use crate::admin::Splits;
use crate::answer::RangePosition;
use crate::background::{Keeper, Pace};
use crate::catalog::{Catalog, DatabaseInfo, DefinitionUsage, Offer, definition_limit};
use crate::clock;
use crate::container::{Container, ContainerInfo};
use crate::executor::{Executor, Watch};
use crate::items::{KnownNumbers, epk_of_key};
use crate::memory::MemoryBudget;
use crate::query::AheadCache;
use crate::scripts::{Places, ScriptHosting};
use crate::throughput::{OfferType, PacingSettings, Throughput};

/// How an account behaves.
#[derive(Debug, Clone)]
pub struct AccountOptions {
    /// The engine's clock is moved by hand: nothing is purged in the background (TTL-206).
    pub virtual_clock: bool,
    /// Remove expired items in the background. Without it they are hidden all the same, and stay stored until [`Account::purge`].
    pub background_purge: bool,
    /// Answer `Throttled` to users who consume more than a container's throughput.
    pub enforce_throughput: bool,
    /// Most items a second that the background purge removes; `None` without a limit.
    pub purge_items_per_second: Option<u32>,
    /// How long a forward step of the wall clock by more than a day holds the purge; zero: not at all (TTL-204).
    pub purge_hold: Duration,
    /// Most memory that all requests may hold together: bodies, answers, the state of queries and scripts; in bytes.
    pub memory_bytes: usize,
    /// Most memory that the definitions of databases, containers and all that belongs to them may take, in bytes; `None`: a quarter of
    /// `memory_bytes`, and at least 128 MiB.
    pub definition_bytes: Option<usize>,
    /// Where scripts run. Servers use processes; without a setting scripts are refused.
    pub script_hosting: ScriptHosting,
    /// How long a script may run. A call of a user-defined function has a fifth of it, all calls of a page twice as much.
    pub script_time: Duration,
    /// Most memory that one query may hold for groups, distinct values, sorted and ranked rows, in bytes.
    pub query_state_bytes: usize,
    /// How long a page of a query reads on before it ends with a continuation, if its query can go on in the middle of a scan. At least one
    /// item is read.
    pub query_page_time: Duration,
    /// How long one request of a query may take, whatever it does.
    pub query_time: Duration,
    /// Called when the purge has reached the fault that [`Account::set_purge_fault`] set; must not return to the purge alive.
    pub on_purge_fault: Option<fn()>,
}

impl Default for AccountOptions {
    fn default() -> AccountOptions {
        AccountOptions {
            virtual_clock: false,
            background_purge: true,
            enforce_throughput: false,
            purge_items_per_second: None,
            purge_hold: Duration::from_secs(600),
            memory_bytes: 1024 * 1024 * 1024,
            definition_bytes: None,
            script_hosting: ScriptHosting::default(),
            script_time: Duration::from_secs(5),
            query_state_bytes: bolide_query::Environment::default().state_bytes,
            query_page_time: Duration::from_secs(1),
            query_time: Duration::from_secs(60),
            on_purge_fault: None,
        }
    }
}

/// What a request carries from the front door: its server time, read once (TTL-211).
#[derive(Debug, Clone, Copy)]
pub struct RequestContext {
    /// Server time when the request came in.
    pub now: UnixMillis,
    /// It looks after the account: what it takes is not taken from users, and does not hold the purge back.
    pub(crate) is_upkeep: bool,
}

/// Everything behind one endpoint: databases, containers, items, and the background work on them.
pub struct Account {
    engine: Arc<dyn Engine>,
    options: AccountOptions,
    catalog: Arc<Catalog>,
    keeper: parking_lot::Mutex<Option<Arc<Keeper>>>,
    /// How many requests have begun: by it the background purge notices users.
    requests: AtomicU64,
    purge_held: AtomicBool,
    purge_fault: PurgeFault,
    script_places: Arc<Places>,
    memory: MemoryBudget,
    executor: Executor,
    known_numbers: KnownNumbers,
    ahead: Arc<AheadCache>,
    splits: Arc<Splits>,
}

impl Account {
    /// Opens an account over an engine: reads the catalog, ends what a crash interrupted, and starts the background purge.
    ///
    /// # Errors
    /// `Unavailable` or `Corrupt`, from the engine.
    pub async fn open(engine: Arc<dyn Engine>, options: AccountOptions) -> Result<Arc<Account>> {
        let definition_bytes = options.definition_bytes;
        let definition_bytes = definition_bytes.unwrap_or_else(|| definition_limit(options.memory_bytes));
        let catalog = Arc::new(Catalog::open(engine.clone(), definition_bytes).await?);
        let pace = Pace {
            items_per_second: options.purge_items_per_second,
            hold: options.purge_hold,
            is_purging: options.background_purge,
        };
        let is_virtual = options.virtual_clock;
        let memory = MemoryBudget::new(options.memory_bytes);
        let script_places = Arc::new(Places::new(&options, &memory));
        let account = Arc::new(Account {
            engine,
            purge_fault: PurgeFault {
                items_left: AtomicU64::new(PurgeFault::UNSET),
                reached: options.on_purge_fault,
            },
            options,
            catalog,
            keeper: parking_lot::Mutex::new(None),
            requests: AtomicU64::new(0),
            purge_held: AtomicBool::new(false),
            script_places,
            ahead: AheadCache::new(&memory),
            memory,
            executor: Executor::default(),
            known_numbers: KnownNumbers::default(),
            splits: Arc::default(),
        });
        if !is_virtual {
            let keeper = Keeper::start(Arc::downgrade(&account), account.catalog.alarm().clone(), pace);
            *account.keeper.lock() = Some(Arc::new(keeper));
        }
        Ok(account)
    }

    /// Ends queries, scripts, splits and the background work, and makes everything durable, server time included.
    ///
    /// # Errors
    /// From the engine.
    pub async fn close(&self) -> Result<()> {
        self.script_places.close();
        self.executor.close().await;
        self.splits.close().await;
        let keeper = self.keeper.lock().take();
        if let Some(keeper) = keeper {
            keeper.stop().await;
        }
        clock::make_durable(self.engine.as_ref(), self.server_time()).await;
        self.engine.close().await.map_err(crate::partition::down)
    }

    /// Begins a request: reads server time, whose second is durable (TTL-203).
    ///
    /// # Errors
    /// `Unavailable` if the engine's clock is too uncertain.
    pub async fn begin(&self) -> Result<RequestContext> {
        let now = clock::exact_now(self.engine.as_ref()).await?;
        self.requests.fetch_add(1, Ordering::Relaxed);
        Ok(RequestContext { now, is_upkeep: false })
    }

    /// As [`Account::begin`], for requests that look after the account: they are no users to the purge, and consume none of the throughput.
    ///
    /// # Errors
    /// As [`Account::begin`].
    pub async fn begin_upkeep(&self) -> Result<RequestContext> {
        let now = clock::exact_now(self.engine.as_ref()).await?;
        Ok(RequestContext { now, is_upkeep: true })
    }

    /// Server time now. Never decreases (TTL-202).
    pub fn server_time(&self) -> UnixMillis {
        self.engine.time().lo
    }

    /// The engine's name.
    pub fn engine_name(&self) -> &'static str {
        self.engine.name()
    }

    /// Server time to be shown: to the millisecond, no restart and no crash falls below it (TTL-203).
    pub async fn shown_time(&self) -> UnixMillis {
        let now = self.server_time();
        if self.engine.durable_time() < now {
            // So that asking often is not writing often.
            let until = if self.options.virtual_clock {
                now
            } else {
                clock::ahead_of(now)
            };
            clock::make_durable(self.engine.as_ref(), until).await;
        }
        now
    }

    /// Makes the second durable that it is now: for refusals that depend on the time and begin no request.
    pub async fn make_second_durable(&self) {
        // A clock that is too uncertain refuses requests elsewhere.
        let _ = clock::exact_now(self.engine.as_ref()).await;
    }

    pub(crate) fn engine(&self) -> &dyn Engine {
        self.engine.as_ref()
    }

    /// How many requests have begun so far.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn enforces_throughput(&self) -> bool {
        self.options.enforce_throughput
    }

    pub(crate) fn ahead(&self) -> &Arc<AheadCache> {
        &self.ahead
    }

    pub(crate) fn query_state_bytes(&self) -> usize {
        self.options.query_state_bytes
    }

    pub(crate) fn query_page_time(&self) -> Duration {
        self.options.query_page_time
    }

    /// Ends what users' queries and conditions do, and takes no more of them: the first step of stopping.
    pub async fn end_queries(&self) {
        self.executor.close().await;
    }

    /// How many queries and conditions of patches run, or wait for a thread.
    pub fn running_queries(&self) -> usize {
        self.executor.running()
    }

    pub(crate) fn query_time(&self) -> Duration {
        self.options.query_time
    }

    pub(crate) fn executor(&self) -> &Executor {
        &self.executor
    }

    pub(crate) fn has_virtual_clock(&self) -> bool {
        self.options.virtual_clock
    }

    /// Runs work inside a container on the executor: it ends with its request, when the time of a query is over, and for a change of the
    /// container that waits for it. Hold the visit meanwhile.
    ///
    /// # Errors
    /// As [`Executor::run_until`].
    pub(crate) async fn execute_in<T, F, W>(&self, container: &Container, work: W) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>>,
        W: FnOnce(Arc<Watch>) -> F + Send + 'static,
    {
        let ending = container.ending().clone();
        self.executor().run_until(self.query_time(), ending, work).await
    }

    /// Runs what takes its time with data at hand, such as writing out a large page, beside queries instead of where connections are served.
    ///
    /// # Errors
    /// `Throttled` if there is too much such work; `Unavailable` when the account closes.
    pub async fn aside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let work = |_| async move { Ok(work()) };
        self.executor().run(self.query_time(), work).await
    }

    /// The memory that requests share. Front ends take from it for bodies and answers.
    pub fn memory(&self) -> &MemoryBudget {
        &self.memory
    }

    /// What the definitions of databases, containers and all that belongs to them take, and may take.
    pub fn definitions(&self) -> DefinitionUsage {
        self.catalog.definitions()
    }

    pub(crate) fn script_places(&self) -> &Arc<Places> {
        &self.script_places
    }

    pub(crate) fn set_purge_held(&self, is_held: bool) {
        self.purge_held.store(is_held, Ordering::Relaxed);
    }

    pub(crate) fn purge_is_held(&self) -> bool {
        self.purge_held.load(Ordering::Relaxed)
    }

    pub(crate) fn purge_fault(&self) -> &PurgeFault {
        &self.purge_fault
    }

    pub(crate) fn known_numbers(&self) -> &KnownNumbers {
        &self.known_numbers
    }

    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    pub(crate) fn splits(&self) -> &Arc<Splits> {
        &self.splits
    }

    /// Lets the process die after `after` more items were durably purged. For tests of crashes.
    pub fn set_purge_fault(&self, after: u64) {
        self.purge_fault.items_left.store(after, Ordering::SeqCst);
    }
}

impl Drop for Account {
    /// A split would otherwise keep the engine, and go on.
    fn drop(&mut self) {
        self.splits.end();
    }
}

/// Databases, containers and offers.
impl Account {
    /// Creates a database.
    ///
    /// # Errors
    /// `Conflict` if there is one of this name; `BadRequest` for a bad name or throughput.
    pub async fn create_database(
        &self,
        _ctx: &RequestContext,
        id: &str,
        throughput: Option<Throughput>,
    ) -> Result<DatabaseInfo> {
        let id = id.to_owned();
        let create = |catalog: Arc<Catalog>| async move { catalog.create_database(&id, throughput).await };
        self.catalog.carry_out(create).await
    }

    /// All databases, in the order of their creation.
    pub fn list_databases(&self) -> Vec<DatabaseInfo> {
        self.catalog.list_databases()
    }

    /// The database of this name.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn database_by_name(&self, id: &str) -> Result<DatabaseInfo> {
        self.catalog.database_by_name(id)
    }

    /// The database with this resource id.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn database_by_rid(&self, rid: DatabaseRid) -> Result<DatabaseInfo> {
        self.catalog.database_by_rid(rid)
    }

    /// Deletes a database with all its containers.
    ///
    /// # Errors
    /// `NotFound`; `PreconditionFailed` if it is another version.
    pub async fn delete_database(&self, _ctx: &RequestContext, rid: DatabaseRid, if_match: Option<&str>) -> Result<()> {
        let if_match = if_match.map(str::to_owned);
        let delete = |catalog: Arc<Catalog>| async move { catalog.delete_database(rid, if_match.as_deref()).await };
        self.catalog.carry_out(delete).await
    }

    /// Creates a container, with as many ranges as its throughput implies.
    ///
    /// # Errors
    /// `NotFound` without the database; `Conflict` if it has a container of this name; `BadRequest` for a bad name or throughput.
    pub async fn create_container(
        &self,
        _ctx: &RequestContext,
        database: DatabaseRid,
        properties: ContainerProperties,
        throughput: Option<Throughput>,
    ) -> Result<Arc<Container>> {
        self.create_container_of_type(database, properties, (throughput, OfferType::default()))
            .await
    }

    /// As [`Account::create_container`], with the performance level of its offer.
    ///
    /// # Errors
    /// As [`Account::create_container`].
    pub async fn create_container_of_type(
        &self,
        database: DatabaseRid,
        properties: ContainerProperties,
        offer: (Option<Throughput>, OfferType),
    ) -> Result<Arc<Container>> {
        let create = |catalog: Arc<Catalog>| async move { catalog.create_container(database, properties, offer).await };
        self.catalog.carry_out(create).await
    }

    /// Where the range of a partition key stands.
    ///
    /// # Errors
    /// `PartitionKeyMismatch` if the key has the wrong number of components; `NotFound` if the container was deleted.
    pub async fn position(&self, container: &Arc<Container>, key: &PartitionKey) -> Result<RangePosition> {
        let visit = container.enter().await?;
        let partition = visit.state.layout.partition_of(&epk_of_key(&visit.state, key)?)?;
        Ok(RangePosition {
            range: partition.range,
            lsn: partition.lsn(),
            charge: RequestUnits::ZERO,
        })
    }

    /// The containers of a database, in the order of their creation.
    ///
    /// # Errors
    /// `NotFound` without the database.
    pub fn list_containers(&self, database: DatabaseRid) -> Result<Vec<Arc<Container>>> {
        self.catalog.list_containers(database)
    }

    /// The container of this name.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn container_by_name(&self, database: DatabaseRid, id: &str) -> Result<Arc<Container>> {
        self.catalog.container_by_name(database, id)
    }

    /// The container with this resource id.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn container_by_rid(&self, rid: ContainerRid) -> Result<Arc<Container>> {
        self.catalog.container_by_rid(rid)
    }

    /// Every container of the account.
    pub fn all_containers(&self) -> Vec<Arc<Container>> {
        self.catalog.all_containers()
    }

    /// Replaces a container's definition with what was `sent`, whole: what is left out is removed (TTL-231). A changed default ttl
    /// holds at once, for items already there too (TTL-228), and brings nothing back (TTL-226).
    ///
    /// # Errors
    /// `BadRequest` or `Forbidden` for what cannot be, or cannot change; `PreconditionFailed` if it is another version.
    pub async fn replace_container(
        &self,
        _ctx: &RequestContext,
        container: &Arc<Container>,
        sent: &Value,
        if_match: Option<&str>,
    ) -> Result<ContainerInfo> {
        let (container, sent, if_match) = (container.clone(), sent.clone(), if_match.map(str::to_owned));
        let replace = |catalog: Arc<Catalog>| async move {
            catalog.replace_container(&container, &sent, if_match.as_deref()).await
        };
        self.catalog.carry_out(replace).await
    }

    /// Deletes a container. Its purge ends with it (TTL-271).
    ///
    /// # Errors
    /// `NotFound`; `PreconditionFailed` if it is another version.
    pub async fn delete_container(
        &self,
        _ctx: &RequestContext,
        rid: ContainerRid,
        if_match: Option<&str>,
    ) -> Result<()> {
        let if_match = if_match.map(str::to_owned);
        let delete = |catalog: Arc<Catalog>| async move { catalog.delete_container(rid, if_match.as_deref()).await };
        self.catalog.carry_out(delete).await
    }

    /// All offers.
    pub fn list_offers(&self) -> Vec<Offer> {
        self.catalog.list_offers()
    }

    /// The offer with this resource id.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn offer(&self, rid: OfferRid) -> Result<Offer> {
        self.catalog.offer(rid)
    }

    /// Replaces what an offer grants. More throughput than a container's ranges can carry splits them.
    ///
    /// # Errors
    /// `NotFound`; `BadRequest` for amounts that cannot be; `PreconditionFailed` if it is another version.
    pub async fn replace_offer(
        &self,
        _ctx: &RequestContext,
        rid: OfferRid,
        throughput: Throughput,
        if_match: Option<&str>,
    ) -> Result<Offer> {
        let if_match = if_match.map(str::to_owned);
        let replace =
            |catalog: Arc<Catalog>| async move { catalog.replace_offer(rid, throughput, if_match.as_deref()).await };
        let offer = self.catalog.carry_out(replace).await?;
        self.split_for_throughput(&offer).await?;
        Ok(offer)
    }

    /// Sets how a container's purge is paced.
    ///
    /// # Errors
    /// From the engine.
    pub async fn set_pacing(&self, container: &Arc<Container>, pacing: PacingSettings) -> Result<()> {
        let container = container.clone();
        let set = |catalog: Arc<Catalog>| async move { catalog.set_pacing(&container, pacing).await };
        self.catalog.carry_out(set).await
    }

    /// Consumes request units as users would in the running second, evenly over the partitions.
    ///
    /// # Errors
    /// `Throttled` where the throughput does not allow it; then nothing is consumed.
    pub fn consume(&self, container: &Container, units: RequestUnits) -> Result<()> {
        let layout = container.state().layout.clone();
        let share = RequestUnits(units.0 / layout.partitions.len() as f64);
        let now = self.server_time().seconds();
        for (at, partition) in layout.partitions.iter().enumerate() {
            if !partition.meter().lock().try_consume(now, share) {
                for consumed in &layout.partitions[..at] {
                    consumed.meter().lock().consume(now, RequestUnits(-share.0));
                }
                return Err(throttled(1_000));
            }
        }
        Ok(())
    }

    /// Whether MongoDB documents may have a ttl of their own (TTL-288).
    pub fn mongo_document_ttl(&self) -> bool {
        self.catalog.mongo_document_ttl()
    }

    /// Sets whether MongoDB documents may have a ttl of their own (TTL-288).
    ///
    /// # Errors
    /// From the engine.
    pub async fn set_mongo_document_ttl(&self, is_on: bool) -> Result<()> {
        let set = |catalog: Arc<Catalog>| async move { catalog.set_mongo_document_ttl(is_on).await };
        self.catalog.carry_out(set).await
    }

    /// Gives no database a resource id that one of `other` has or had: links and tokens of that account then lead to nothing here, and not to
    /// something else.
    ///
    /// # Errors
    /// From the engine.
    pub async fn leave_out_resource_ids_of(&self, other: &Account) -> Result<()> {
        let upto = other.catalog.next_database();
        let leave_out = move |catalog: Arc<Catalog>| async move { catalog.leave_out_databases(upto).await };
        self.catalog.carry_out(leave_out).await
    }
}

/// The error for users over their throughput.
pub(crate) fn throttled(retry_after_ms: u64) -> Error {
    let retry_after = Duration::from_millis(retry_after_ms);
    Error::new(
        ErrorKind::Throttled { retry_after },
        "Request rate is large. More Request Units may be needed, so no changes were made.",
    )
}

/// A crash on purpose, after so many durable purges.
pub(crate) struct PurgeFault {
    items_left: AtomicU64,
    reached: Option<fn()>,
}

impl PurgeFault {
    const UNSET: u64 = u64::MAX;

    /// How many items may still be purged, if a fault is set.
    pub fn items_left(&self) -> Option<u64> {
        let left = self.items_left.load(Ordering::SeqCst);
        (left != PurgeFault::UNSET).then_some(left)
    }

    /// Counts durable purges, and calls the fault when it is reached.
    pub fn purged(&self, items: u64) {
        if self.items_left().is_none() || items == 0 {
            return;
        }
        let left = self.items_left.fetch_sub(items, Ordering::SeqCst).saturating_sub(items);
        if left == 0 {
            self.items_left.store(PurgeFault::UNSET, Ordering::SeqCst);
            if let Some(reached) = self.reached {
                reached();
            }
        }
    }
}
