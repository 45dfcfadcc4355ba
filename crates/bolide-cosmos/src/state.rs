//! What all requests share: the account and its keys, the options, the figures, and turns for what takes much memory or time.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use bolide_core::Account;
use bolide_model::time::Clock;
use bytes::Bytes;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::consistency::ConsistencyLevel;
use crate::content_paths::ContentPathCache;
use crate::decoding::Decoding;
use crate::faults::FaultRules;
use crate::keys::Keys;
use crate::metrics::Metrics;
use crate::names::{Endpoint, Names, Origins};

/// Pages of exports that are made at one time: each takes memory for itself.
const EXPORTS: usize = 2;

/// What a server decides about its front end.
#[derive(Debug, Clone)]
pub struct CosmosOptions {
    /// The clock behind server time, for the admin API to show and move.
    pub clock: Arc<Clock>,
    /// Whether the admin API may inject faults.
    pub faults_enabled: bool,
    /// The certificate of the HTTPS listener, for clients to trust.
    pub certificate_pem: Option<Bytes>,
    /// Under which names the server answers.
    pub names: Names,
    /// Origins of web pages that may ask.
    pub origins: Origins,
    /// The default level, and the strongest that a request may ask for.
    pub consistency: ConsistencyLevel,
    /// Where clients are told to reach the server; where they did, if `None`.
    pub endpoint: Option<Endpoint>,
    /// Whether the log shows the headers of requests and answers, for debugging clients.
    pub log_headers: bool,
    /// How many connections are open, for the metrics.
    pub connections: Arc<AtomicUsize>,
}

/// See the module.
pub(crate) struct State {
    pub account: Arc<Account>,
    pub keys: Keys,
    pub options: CosmosOptions,
    pub metrics: Metrics,
    pub faults: FaultRules,
    pub content_paths: ContentPathCache,
    pub decoding: Decoding,
    /// Pages of exports that are made at one time.
    pub exports: Arc<Semaphore>,
    /// Whose turn it is to go through the figures of all containers.
    figures: Semaphore,
}

impl State {
    pub(crate) fn new(account: Arc<Account>, keys: Keys, options: CosmosOptions) -> State {
        State {
            account,
            keys,
            options,
            metrics: Metrics::default(),
            faults: FaultRules::default(),
            content_paths: ContentPathCache::default(),
            decoding: Decoding::default(),
            exports: Arc::new(Semaphore::new(EXPORTS)),
            figures: Semaphore::new(1),
        }
    }

    /// The turn to go through the figures of all containers.
    pub(crate) async fn figures_turn(&self) -> SemaphorePermit<'_> {
        self.figures.acquire().await.expect("it is never closed")
    }
}
