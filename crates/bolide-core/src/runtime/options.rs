//! How an account behaves.

use std::time::Duration;

use bolide_model::Error;
use bolide_model::time::Monotonic;
use bolide_script::{Hosting as ScriptHosting, OperationError};

/// What a script gets to know of an operation that was refused.
pub type ScriptErrors = fn(&Error) -> OperationError;

/// How an account behaves.
#[derive(Debug, Clone)]
pub struct AccountOptions {
    /// The engine's clock is moved by hand: nothing is purged in the background (TTL-206).
    pub virtual_clock: bool,
    /// Remove expired items in the background. Without it they are hidden all the same, and stay stored until [`Account::purge`](crate::Account::purge).
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
    /// What scripts get to know of operations that were refused: numbers and words are those of the front end that they are written for.
    pub script_errors: ScriptErrors,
    /// How long a script may run. A call of a user-defined function has a fifth of it, all calls of a page twice as much.
    pub script_time: Duration,
    /// Most memory that one query may hold for groups, distinct values, sorted and ranked rows, in bytes.
    pub query_state_bytes: usize,
    /// How long a page of a query reads on before it ends with a continuation, if its query can go on in the middle of a scan. At least one
    /// item is read.
    pub query_page_time: Duration,
    /// How long one request of a query may take, whatever it does.
    pub query_time: Duration,
    /// Called when the purge has reached the fault that [`Account::set_purge_fault`](crate::Account::set_purge_fault) set; must not return to the purge alive.
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
            script_errors: |error| OperationError {
                number: 0,
                message: error.to_string(),
            },
            script_time: Duration::from_secs(5),
            query_state_bytes: bolide_query::Environment::default().state_bytes,
            query_page_time: Duration::from_secs(1),
            query_time: Duration::from_secs(60),
            on_purge_fault: None,
            monotonic: Monotonic::system(),
        }
    }
}
