//! What all operations of an account share: its engine and options, the memory budget, the threads for long tasks.

mod id_cache;
mod options;

use std::sync::Arc;
use std::time::Duration;

use bolide_model::time::Monotonic;
use bolide_model::{Error, Reason, Result, UnixMillis};
use bolide_storage::Engine;

use crate::clock;
use crate::executor::{Ending, Executor, Watch};
use crate::memory::MemoryBudget;
pub(crate) use id_cache::IdCache;
pub use options::{AccountOptions, IndexUse, ScriptErrors};

/// What a request carries from its beginning on: its server time, read once (TTL-211).
#[derive(Debug, Clone, Copy)]
pub struct RequestContext {
    /// Server time when the request arrived.
    pub now: UnixMillis,
    /// Whether this is administration: its consumption is not charged to users, and does not slow down the purge.
    pub(crate) is_admin: bool,
}

/// The shared parts of an account; see the module.
pub(crate) struct Runtime {
    engine: Arc<dyn Engine>,
    options: AccountOptions,
    memory: MemoryBudget,
    executor: Arc<Executor>,
    id_cache: IdCache,
}

impl Runtime {
    pub fn new(engine: Arc<dyn Engine>, options: AccountOptions) -> Runtime {
        let executor = Executor::new(options.monotonic.clone()).with_threads(options.query_threads);
        Runtime {
            engine,
            memory: MemoryBudget::new(options.memory_bytes),
            executor: Arc::new(executor),
            id_cache: IdCache::default(),
            options,
        }
    }

    pub fn engine(&self) -> &dyn Engine {
        self.engine.as_ref()
    }

    /// Returns the engine for tasks that outlive a request.
    pub fn shared_engine(&self) -> Arc<dyn Engine> {
        self.engine.clone()
    }

    pub fn options(&self) -> &AccountOptions {
        &self.options
    }

    /// Returns the memory budget that requests share.
    pub fn memory(&self) -> &MemoryBudget {
        &self.memory
    }

    /// Returns the threads for queries, conditions, and scans of many items.
    pub fn executor(&self) -> &Arc<Executor> {
        &self.executor
    }

    pub fn id_cache(&self) -> &IdCache {
        &self.id_cache
    }

    /// Returns the clock that paces background work and limits waiting.
    pub fn monotonic(&self) -> &Monotonic {
        &self.options.monotonic
    }

    /// Returns server time now. Never decreases (TTL-202).
    pub fn server_time(&self) -> UnixMillis {
        self.engine.time().lo
    }

    /// Begins a request for administration: the purge does not count it as use, and it consumes none of the throughput.
    ///
    /// # Errors
    /// `Unavailable` if the engine's clock is too uncertain.
    pub async fn begin_admin(&self) -> Result<RequestContext> {
        let now = clock::exact_now(self.engine.as_ref()).await?;
        Ok(RequestContext { now, is_admin: true })
    }

    pub fn enforces_throughput(&self) -> bool {
        self.options.enforce_throughput
    }

    pub fn has_virtual_clock(&self) -> bool {
        self.options.virtual_clock
    }

    pub fn query_state_bytes(&self) -> usize {
        self.options.query_state_bytes
    }

    pub fn query_page_time(&self) -> Duration {
        self.options.query_page_time
    }

    pub fn query_time(&self) -> Duration {
        self.options.query_time
    }

    /// See `Account::aside`.
    pub async fn aside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let work = |_| async move { Ok(work()) };
        self.executor().run(self.query_time(), work).await
    }

    /// Runs a task inside a container on the executor: it ends when its request is dropped, when a query's maximum time is over, and when a change of
    /// the container waits for it. Hold the container's read guard meanwhile.
    ///
    /// # Errors
    /// As [`Executor::run_until`].
    pub async fn execute_until<T, F, W>(&self, ending: &Ending, work: W) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send,
        W: FnOnce(Arc<Watch>) -> F + Send + 'static,
    {
        self.executor.run_until(self.query_time(), ending.clone(), work).await
    }
}

/// Returns the error for users who exceed their throughput.
pub(crate) fn throttled(retry_after_ms: u64) -> Error {
    let retry_after = Duration::from_millis(retry_after_ms);
    Reason::ThroughputUsedUp { retry_after }.into()
}
