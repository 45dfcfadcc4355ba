//! The options of an account.

use std::time::Duration;

use bolide_model::Error;
use bolide_model::time::Monotonic;
use bolide_mql::index::TtlMode;
use bolide_script::{Hosting as ScriptHosting, OperationError};

/// What a script gets to know of an operation that was refused.
pub type ScriptErrors = fn(&Error) -> OperationError;

/// When queries use property indexes. Every choice gives the same rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IndexUse {
    /// Where that is faster than a scan.
    #[default]
    WhereFaster,
    /// Wherever an index serves the query, for tests: its entries alone if they suffice, else those of a condition, else the order.
    Always,
    /// The same, but to find items only: in the order of the query if an index has it, else by a condition.
    AlwaysInOrder,
    /// Nowhere.
    Never,
    /// Nowhere, and several threads scan every part of a container, however small it is, for tests.
    ParallelScan,
}

impl IndexUse {
    /// Whether an index is used even where a scan is as fast.
    pub(crate) fn is_forced(self) -> bool {
        matches!(self, IndexUse::Always | IndexUse::AlwaysInOrder)
    }

    /// Whether no index is used.
    pub(crate) fn is_never(self) -> bool {
        matches!(self, IndexUse::Never | IndexUse::ParallelScan)
    }
}

/// The options of an account.
#[derive(Debug, Clone)]
pub struct AccountOptions {
    /// The engine's clock is moved by hand, and nothing is purged in the background (TTL-206).
    pub virtual_clock: bool,
    /// Remove expired items in the background. Otherwise they are hidden, but stay stored until [`Account::purge`](crate::Account::purge).
    pub background_purge: bool,
    /// Answer `Throttled` to users who consume more than a container's throughput.
    pub enforce_throughput: bool,
    /// Maximum number of items per second that the background purge removes; `None` without a limit.
    pub purge_items_per_second: Option<u32>,
    /// How long the purge pauses after the wall clock steps forward by more than a day; zero: not at all (TTL-204).
    pub purge_hold: Duration,
    /// Maximum memory of all requests together, in bytes: bodies, answers, the state of queries and scripts.
    pub memory_bytes: usize,
    /// Maximum memory for the definitions of databases, containers and everything that belongs to them, in bytes; `None`: a quarter of
    /// `memory_bytes`, and at least 128 MiB.
    pub definition_bytes: Option<usize>,
    /// Where scripts run. Servers use processes; by default scripts are refused.
    pub script_hosting: ScriptHosting,
    /// Maps the refusal of an operation to the error that a script sees. Its number and text are those of the front end for which scripts are written.
    pub script_errors: ScriptErrors,
    /// Maximum run time of a script. A call of a user-defined function may take a fifth of it, all calls of a page together twice as much.
    pub script_time: Duration,
    /// Maximum memory of one query for groups, distinct values, sorted and ranked rows, in bytes.
    pub query_state_bytes: usize,
    /// How long a page of a query reads before it ends with a continuation, if its query can continue in the middle of a scan. At least one item is
    /// read.
    pub query_page_time: Duration,
    /// Maximum duration of one request of a query, in any case.
    pub query_time: Duration,
    /// Whether queries and scans have threads of their own. Otherwise they run within their requests, so that the account uses no thread but its
    /// runtime's: for simulations, which must not depend on how the machine schedules threads. Scripts always have threads or processes.
    pub query_threads: bool,
    /// When queries use property indexes.
    pub index_use: IndexUse,
    /// Number of stored items from which on a container gets the vector indexes that its policy asks for. Fewer vectors are compared one by one.
    pub vector_index_items: u64,
    /// Which fields of MongoDB collections may have a TTL index, and which values count in them.
    pub mongo_ttl_mode: TtlMode,
    /// Called when the purge has reached the fault that [`Account::set_purge_fault`](crate::Account::set_purge_fault) set; must not return to the purge alive.
    pub on_purge_fault: Option<fn()>,
    /// The clock that paces background work and limits waiting. Tests may move one by hand.
    pub monotonic: Monotonic,
    /// Time between looks at what other processes have changed in the catalog, on an engine that they share. `None`: only when asked
    /// ([`crate::Account::refresh_catalog`]).
    pub catalog_interval: Option<Duration>,
    /// Interval of the heartbeats, on an engine that several servers share. `None`: there are none, so at most one server may purge.
    pub heartbeat_interval: Option<Duration>,
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
            script_errors: |error| OperationError {
                number: 0,
                message: error.to_string(),
            },
            script_time: Duration::from_secs(5),
            query_state_bytes: bolide_query::Environment::default().state_bytes,
            query_page_time: Duration::from_secs(1),
            query_time: Duration::from_secs(60),
            query_threads: true,
            index_use: IndexUse::default(),
            vector_index_items: 5_000,
            mongo_ttl_mode: TtlMode::default(),
            on_purge_fault: None,
            monotonic: Monotonic::system(),
            catalog_interval: None,
            heartbeat_interval: None,
        }
    }
}
