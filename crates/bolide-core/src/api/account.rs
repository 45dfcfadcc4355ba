//! The account: everything behind one endpoint.

use std::sync::Arc;

use bolide_model::time::Monotonic;
use bolide_model::{Result, UnixMillis};
use bolide_storage::Engine;

use crate::admin::{Admin, Splits};
use crate::background::{Background, PurgeFault, PurgeMode, PurgeOptions, PurgeScheduler};
use crate::catalog::{Catalog, DefinitionUsage, definition_limit};
use crate::clock;
use crate::container::Container;
use crate::memory::MemoryBudget;
use crate::query::{AheadCache, Queries};
use crate::runtime::{AccountOptions, RequestContext, Runtime};
use crate::scripts::{ScriptFigures, ScriptPermits, ScriptRunner};

/// Everything behind one endpoint: databases, containers, items, and the background work on them.
pub struct Account {
    runtime: Runtime,
    catalog: Arc<Catalog>,
    background: Arc<Background>,
    purge_scheduler: parking_lot::Mutex<Option<PurgeScheduler>>,
    script_places: Arc<ScriptPermits>,
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
            PurgeScheduler::start(&background, catalog.wakeup().clone(), purge_options)
        });
        let runtime = Runtime::new(engine, options);
        let script_places = Arc::new(ScriptPermits::new(runtime.options(), runtime.memory()));
        Ok(Arc::new(Account {
            catalog,
            background,
            purge_scheduler: parking_lot::Mutex::new(purge_scheduler),
            script_places,
            ahead: AheadCache::new(runtime.memory(), monotonic.clone()),
            splits: Arc::new(Splits::new(monotonic)),
            runtime,
        }))
    }

    /// Ends queries, scripts, splits and the background work, and makes everything durable, server time included.
    ///
    /// # Errors
    /// From the engine.
    pub async fn close(&self) -> Result<()> {
        self.script_places.close();
        self.runtime.executor().close().await;
        self.splits.close().await;
        let purge_scheduler = self.purge_scheduler.lock().take();
        if let Some(scheduler) = purge_scheduler {
            scheduler.stop().await;
        }
        clock::make_durable(self.runtime.engine(), self.server_time()).await;
        self.runtime
            .engine()
            .close()
            .await
            .map_err(crate::partition::engine_error)
    }

    /// Begins a request: reads server time, whose second is durable (TTL-203).
    ///
    /// # Errors
    /// `Unavailable` if the engine's clock is too uncertain.
    pub async fn begin(&self) -> Result<RequestContext> {
        let now = clock::exact_now(self.runtime.engine()).await?;
        self.background.count_request();
        Ok(RequestContext { now, is_admin: false })
    }

    /// As [`Account::begin`], for requests that look after the account: they are no users to the purge, and consume none of the throughput.
    ///
    /// # Errors
    /// As [`Account::begin`].
    pub async fn begin_admin(&self) -> Result<RequestContext> {
        self.runtime.begin_admin().await
    }

    /// Server time now. Never decreases (TTL-202).
    pub fn server_time(&self) -> UnixMillis {
        self.runtime.server_time()
    }

    /// The engine's name.
    pub fn engine_name(&self) -> &'static str {
        self.runtime.engine().name()
    }

    /// Server time to be shown: to the millisecond, no restart and no crash falls below it (TTL-203).
    pub async fn shown_time(&self) -> UnixMillis {
        let now = self.server_time();
        if self.runtime.engine().durable_time() < now {
            // So that asking often is not writing often.
            let until = if self.runtime.has_virtual_clock() {
                now
            } else {
                clock::ahead_of(now)
            };
            clock::make_durable(self.runtime.engine(), until).await;
        }
        now
    }

    /// Makes the second durable that it is now: for refusals that depend on the time and begin no request.
    pub async fn make_second_durable(&self) {
        // A clock that is too uncertain refuses requests elsewhere.
        let _ = clock::exact_now(self.runtime.engine()).await;
    }

    /// The clock by which work is paced and waiting is bounded.
    pub fn monotonic(&self) -> &Monotonic {
        self.runtime.monotonic()
    }

    /// How many requests of users have begun so far.
    #[cfg(test)]
    pub(crate) fn requests(&self) -> u64 {
        self.background.requests()
    }

    /// Ends what users' queries and conditions do, and takes no more of them: the first step of stopping.
    pub async fn end_queries(&self) {
        self.runtime.executor().close().await;
    }

    /// How many queries and conditions of patches run, or wait for a thread.
    pub fn running_queries(&self) -> usize {
        self.runtime.executor().running()
    }

    /// Runs what takes its time with data at hand, such as writing out a large page, beside queries instead of where connections are served.
    ///
    /// # Errors
    /// `Throttled` if there is too much such work; `Unavailable` when the account closes.
    pub async fn aside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let work = |_| async move { Ok(work()) };
        self.runtime.executor().run(self.runtime.query_time(), work).await
    }

    /// The memory that requests share. Front ends take from it for bodies and answers.
    pub fn memory(&self) -> &MemoryBudget {
        self.runtime.memory()
    }

    /// What the definitions of databases, containers and all that belongs to them take, and may take.
    pub fn definitions(&self) -> DefinitionUsage {
        self.catalog.definitions()
    }

    /// Purges a container now, at most `max` items. Returns how many were removed.
    ///
    /// # Errors
    /// From the engine; what was removed before stays removed.
    pub async fn purge(&self, container: &Arc<Container>, mode: PurgeMode, max: Option<u64>) -> Result<u64> {
        self.background.purge(container, mode, max).await
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
            places: &self.script_places,
            ahead: &self.ahead,
        }
    }

    pub(super) fn script_runner(&self) -> ScriptRunner<'_> {
        ScriptRunner {
            runtime: &self.runtime,
            places: &self.script_places,
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

    /// What scripts are doing now.
    pub fn script_figures(&self) -> ScriptFigures {
        ScriptFigures::of(&self.script_places, &self.all_containers())
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
