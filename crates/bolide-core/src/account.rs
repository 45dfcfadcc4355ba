//! The account: everything behind one endpoint.

use std::sync::Arc;
use std::time::Duration;

use bolide_model::time::Monotonic;
use bolide_model::{Error, ErrorKind, Result, UnixMillis};
use bolide_storage::Engine;

use crate::admin::Splits;
use crate::background::{Background, PurgeFault, PurgeMode, PurgeOptions, PurgeScheduler};
use crate::catalog::{Catalog, DefinitionUsage, definition_limit};
use crate::clock;
use crate::container::Container;
use crate::executor::{Executor, Watch};
use crate::items::KnownNumbers;
use crate::memory::MemoryBudget;
use crate::query::AheadCache;
use crate::scripts::{Places, ScriptHosting};

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
    /// The clock by which work is paced and waiting is bounded. Tests may move one by hand.
    pub monotonic: Monotonic,
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
            monotonic: Monotonic::system(),
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
    background: Arc<Background>,
    purge_scheduler: parking_lot::Mutex<Option<PurgeScheduler>>,
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
        let monotonic = options.monotonic.clone();
        let background = Arc::new(Background::new(
            engine.clone(),
            monotonic.clone(),
            {
                let catalog = catalog.clone();
                Box::new(move || catalog.all_containers())
            },
            PurgeFault::new(options.on_purge_fault),
        ));
        let purge_scheduler = (!options.virtual_clock).then(|| {
            let purge_options = PurgeOptions {
                items_per_second: options.purge_items_per_second,
                hold: options.purge_hold,
                is_purging: options.background_purge,
            };
            PurgeScheduler::start(&background, catalog.alarm().clone(), purge_options)
        });
        let memory = MemoryBudget::new(options.memory_bytes);
        let script_places = Arc::new(Places::new(&options, &memory));
        Ok(Arc::new(Account {
            engine,
            options,
            catalog,
            background,
            purge_scheduler: parking_lot::Mutex::new(purge_scheduler),
            script_places,
            ahead: AheadCache::new(&memory, monotonic.clone()),
            memory,
            executor: Executor::new(monotonic.clone()),
            known_numbers: KnownNumbers::default(),
            splits: Arc::new(Splits::new(monotonic)),
        }))
    }

    /// Ends queries, scripts, splits and the background work, and makes everything durable, server time included.
    ///
    /// # Errors
    /// From the engine.
    pub async fn close(&self) -> Result<()> {
        self.script_places.close();
        self.executor.close().await;
        self.splits.close().await;
        let purge_scheduler = self.purge_scheduler.lock().take();
        if let Some(scheduler) = purge_scheduler {
            scheduler.stop().await;
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
        self.background.count_request();
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

    /// The clock by which work is paced and waiting is bounded.
    pub fn monotonic(&self) -> &Monotonic {
        &self.options.monotonic
    }

    /// How many requests of users have begun so far.
    #[cfg(test)]
    pub(crate) fn requests(&self) -> u64 {
        self.background.requests()
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

    /// Purges a container now, at most `max` items. Returns how many were removed.
    ///
    /// # Errors
    /// From the engine; what was removed before stays removed.
    pub async fn purge(&self, container: &Arc<Container>, mode: PurgeMode, max: Option<u64>) -> Result<u64> {
        self.background.purge(container, mode, max).await
    }

    pub(crate) fn purge_is_held(&self) -> bool {
        self.background.is_held()
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
        self.background.fault().set(after);
    }
}

impl Drop for Account {
    /// A split would otherwise keep the engine, and go on.
    fn drop(&mut self) {
        self.splits.end();
    }
}

/// The catalog as a whole.
impl Account {
    /// Lets databases, containers and all that belongs to them be seen as other processes over the same engine have changed them. Reads nothing
    /// where the engine has no other users. To be called before a name is refused as unknown, and before definitions are shown.
    ///
    /// # Errors
    /// From the engine.
    pub async fn refresh_catalog(&self) -> Result<()> {
        self.catalog.refresh().await
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
