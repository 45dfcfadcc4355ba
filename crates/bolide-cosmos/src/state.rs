//! State shared by all requests: the account and its keys, the options, the metrics, and permits for work that needs much memory or time.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use bolide_core::{Account, RecentRequests};
use bolide_model::time::Clock;
use bytes::Bytes;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::consistency::ConsistencyLevel;
use crate::content_paths::ContentPathCache;
use crate::decoding::Decoding;
use crate::faults::FaultRules;
use crate::forwarding::{Forwarding, Openings, Peers};
use crate::keys::Keys;
use crate::metrics::Metrics;
use crate::mongo_commands::MongoCommands;
use crate::names::{Endpoint, Names, Origins};
use crate::snapshots::Snapshots;

/// Number of export pages that are made at the same time, because each needs memory.
const MAX_EXPORTS: usize = 2;

/// Options of the front end.
#[derive(Clone)]
pub struct CosmosOptions {
    /// The clock of server time, which the admin API shows and moves.
    pub clock: Arc<Clock>,
    /// Whether the admin API may inject faults, and queries may say how they use indexes.
    pub faults_enabled: bool,
    /// The certificate of the HTTPS listener, for clients to trust.
    pub certificate_pem: Option<Bytes>,
    /// The names under which the server answers.
    pub names: Names,
    /// Origins of web pages that may send requests.
    pub origins: Origins,
    /// The default level, and the strongest that a request may ask for.
    pub consistency: ConsistencyLevel,
    /// The address of the server for clients; `None`: the address of their requests.
    pub endpoint: Option<Endpoint>,
    /// Whether the log contains the headers of requests and responses, for debugging clients.
    pub log_headers: bool,
    /// Number of open connections, for the metrics.
    pub connections: Arc<AtomicUsize>,
    /// Whether clients are told that they may send frames, in direct mode.
    pub has_direct: bool,
    /// Whether clients are told that they may send frames as bodies of HTTP/2.
    pub has_gateway_v2: bool,
    /// Whether the data explorer is served.
    pub has_explorer: bool,
    /// Set in a server that replaces the official emulator.
    pub emulation: Option<Emulation>,
    /// Snapshots of the account; `None`: there are none.
    pub snapshots: Option<Arc<dyn Snapshots>>,
    /// Reaches the other servers of the store, for writes that one of them had better commit; `None`: all are committed here.
    pub peers: Option<Arc<dyn Peers>>,
    /// The requests that were answered last, over all protocols.
    pub recent_requests: Arc<RecentRequests>,
    /// Runs commands of MongoDB; `None`: the server has no front end for them.
    pub mongo: Option<Arc<dyn MongoCommands>>,
}

/// How a server that replaces the official emulator differs from others.
#[derive(Debug, Clone, Copy)]
pub struct Emulation {
    /// The port of the database, which the page on the explorer's port shows.
    pub port: u16,
    /// Whether that page shows the database's port with `https`.
    pub is_tls: bool,
}

/// See the module.
pub(crate) struct State {
    pub account: Arc<Account>,
    pub keys: Keys,
    pub options: CosmosOptions,
    pub metrics: Arc<Metrics>,
    pub faults: Arc<FaultRules>,
    pub forwarding: Option<Forwarding>,
    pub openings: Openings,
    pub content_paths: ContentPathCache,
    pub decoding: Decoding,
    /// Permits for making export pages.
    pub exports: Arc<Semaphore>,
    /// Permit to collect the statistics of all containers.
    figures: Semaphore,
}

impl State {
    pub(crate) fn new(account: Arc<Account>, keys: Keys, options: CosmosOptions) -> State {
        let forwarding = options.peers.clone();
        let forwarding = forwarding.map(|peers| Forwarding::new(peers, keys.clone(), account.monotonic().clone()));
        State {
            account,
            keys,
            options,
            forwarding,
            openings: Openings::default(),
            metrics: Arc::default(),
            faults: Arc::default(),
            content_paths: ContentPathCache::default(),
            decoding: Decoding::default(),
            exports: Arc::new(Semaphore::new(MAX_EXPORTS)),
            figures: Semaphore::new(1),
        }
    }

    /// The state for another account in the place of this one. What belongs to the server and not to the account is kept.
    pub(crate) fn successor(&self, account: Arc<Account>, snapshots: Option<Arc<dyn Snapshots>>) -> State {
        let options = CosmosOptions {
            snapshots,
            ..self.options.clone()
        };
        State {
            metrics: self.metrics.clone(),
            faults: self.faults.clone(),
            ..State::new(account, self.keys.clone(), options)
        }
    }

    /// Waits for the permit to collect the statistics of all containers.
    pub(crate) async fn statistics_permit(&self) -> SemaphorePermit<'_> {
        self.figures.acquire().await.expect("it is never closed")
    }
}
