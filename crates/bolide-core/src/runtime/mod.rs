//! What every operation of an account shares: its engine and options, the budget of memory, the threads for long work.

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
pub use options::{AccountOptions, ScriptErrors};

/// What a request carries from the front door: its server time, read once (TTL-211).
#[derive(Debug, Clone, Copy)]
pub struct RequestContext {
    /// Server time when the request came in.
    pub now: UnixMillis,
    /// It looks after the account: what it takes is not taken from users, and does not hold the purge back.
    pub(crate) is_admin: bool,
}

/// See the module.
pub(crate) struct Runtime {
    engine: Arc<dyn Engine>,
    options: AccountOptions,
    memory: MemoryBudget,
    executor: Executor,
    id_cache: IdCache,
}

impl Runtime {
    pub fn new(engine: Arc<dyn Engine>, options: AccountOptions) -> Runtime {
        Runtime {
            engine,
            memory: MemoryBudget::new(options.memory_bytes),
            executor: Executor::new(options.monotonic.clone()),
            id_cache: IdCache::default(),
            options,
        }
    }

    pub fn engine(&self) -> &dyn Engine {
        self.engine.as_ref()
    }

    pub fn options(&self) -> &AccountOptions {
        &self.options
    }

    /// The memory that requests share.
    pub fn memory(&self) -> &MemoryBudget {
        &self.memory
    }

    /// Threads for queries, conditions, and walks over many items.
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    pub fn id_cache(&self) -> &IdCache {
        &self.id_cache
    }

    /// The clock by which work is paced and waiting is bounded.
    pub fn monotonic(&self) -> &Monotonic {
        &self.options.monotonic
    }

    /// Server time now. Never decreases (TTL-202).
    pub fn server_time(&self) -> UnixMillis {
        self.engine.time().lo
    }

    /// Begins a request that looks after the account: it is no user to the purge, and consumes none of the throughput.
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

    /// Runs work inside a container on the executor: it ends with its request, when the time of a query is over, and for a change of the
    /// container that waits for it. Hold the visit meanwhile.
    ///
    /// # Errors
    /// As [`Executor::run_until`].
    pub async fn execute_until<T, F, W>(&self, ending: &Ending, work: W) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>>,
        W: FnOnce(Arc<Watch>) -> F + Send + 'static,
    {
        self.executor.run_until(self.query_time(), ending.clone(), work).await
    }
}

/// The error for users over their throughput.
pub(crate) fn throttled(retry_after_ms: u64) -> Error {
    let retry_after = Duration::from_millis(retry_after_ms);
    Reason::ThroughputUsedUp { retry_after }.into()
}
