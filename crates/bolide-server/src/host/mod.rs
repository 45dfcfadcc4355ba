//! The account that the server serves: opening it, replacing its content, closing it.
//!
//! An account keeps much of its content in memory, and so do the front ends (sessions, cursors, caches). So when the content is replaced by a snapshot,
//! there is a new engine, a new account over it, and new front ends, while listeners and connections stay:
//!
//!   prepare the content ──▶ requests wait ──▶ those that run end ──▶ replace ──▶ open the account ──▶ requests go on
//!
//! [`replacement`] has these steps.

mod replacement;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bolide_core::{Account, AccountOptions, NextNumbers};
use bolide_cosmos::snapshots::Snapshots;
use bolide_cosmos::{CosmosOptions, CosmosService};
use bolide_model::UnixMillis;
use bolide_model::time::Monotonic;
use bolide_mongo::service::MongoService;
use bolide_storage_lsm::{Issued, Steps};
use tokio::sync::{Mutex, OnceCell};

use crate::connection::Shared;
use crate::mongo::commands::Commands;
use crate::options::Settings;
use crate::script_host;
use crate::server::{self, Failure};
use crate::store::{OpenEngine, Store};
use replacement::HostSnapshots;

/// Changes of permissions take effect on all servers of a store within 200 ms: half of that, and the time to read them.
const CATALOG_INTERVAL: Duration = Duration::from_millis(100);

/// The purge lags the deadline by up to a second (TTL-293): what a server has told with one heartbeat, others read with their next.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(500);

/// See the module.
pub struct Host {
    settings: Arc<Settings>,
    shared: Arc<Shared>,
    monotonic: Monotonic,
    store: Store,
    steps: Steps,
    /// What a virtual clock showed at the start of the server.
    clock_start: UnixMillis,
    mongo: OnceCell<MongoService>,
    /// Held while a snapshot is taken or restored. `None` if the account was lost because its content could not be replaced.
    current: Mutex<Option<Current>>,
}

/// The account in use.
struct Current {
    engine: OpenEngine,
    account: Arc<Account>,
    /// Requests of the admin API that wait for `Host::current`: they cannot end before a replacement ends.
    waiting: Arc<AtomicUsize>,
}

impl Host {
    /// Opens the store and the account.
    ///
    /// # Errors
    /// Why one of them cannot be opened.
    pub async fn open(
        settings: Arc<Settings>,
        shared: Arc<Shared>,
        monotonic: Monotonic,
        store_files: usize,
    ) -> Result<Arc<Host>, Failure> {
        let steps = match settings.options.enable_faults {
            true => Steps::calling(server::crash),
            false => Steps::default(),
        };
        let clock = settings.clock.clone();
        let host = Host {
            store: Store::new(&settings, clock.clone(), store_files, steps.clone()),
            settings,
            shared,
            monotonic,
            steps,
            clock_start: clock.now(),
            mongo: OnceCell::new(),
            current: Mutex::default(),
        };
        let engine = host.store.open().await?;
        let account = host.open_account(&engine).await?;
        server::warn_of_time_ahead(&account, &host.settings.clock);
        *host.current.lock().await = Some(Current {
            engine,
            account,
            waiting: Arc::default(),
        });
        Ok(Arc::new(host))
    }

    /// Serves the account over HTTP, and over MongoDB's protocol if there is a front end for it.
    pub async fn start(
        self: &Arc<Host>,
        options: CosmosOptions,
        mongo: impl FnOnce(Arc<Account>) -> Option<MongoService>,
    ) {
        let current = self.current.lock().await;
        let Some(current) = current.as_ref() else { return };
        let mongo = mongo(current.account.clone());
        let options = CosmosOptions {
            mongo: mongo.clone().map(|service| Arc::new(Commands(service)) as _),
            snapshots: self.store.has_snapshots().then(|| self.snapshots(&current.waiting)),
            ..options
        };
        let keys = self.settings.keys.keys.clone();
        let service = CosmosService::new(current.account.clone(), keys, options);
        self.shared.serving().start(service);
        if let Some(service) = mongo {
            let background = service.clone();
            tokio::spawn(async move { background.run_background().await });
            self.shared.start_mongo(service.clone());
            // It is set once.
            let _ = self.mongo.set(service);
        }
    }

    /// The name of the engine.
    pub fn engine_name(&self) -> &'static str {
        self.store.engine_name()
    }

    /// The account in use; `None` if it was lost.
    pub async fn account(&self) -> Option<Arc<Account>> {
        let current = self.current.lock().await;
        current.as_ref().map(|current| current.account.clone())
    }

    fn snapshots(self: &Arc<Host>, waiting: &Arc<AtomicUsize>) -> Arc<dyn Snapshots> {
        Arc::new(HostSnapshots {
            host: Arc::downgrade(self),
            waiting: waiting.clone(),
        })
    }

    async fn open_account(&self, engine: &OpenEngine) -> Result<Arc<Account>, Failure> {
        let options = &self.settings.options;
        let options = AccountOptions {
            virtual_clock: self.settings.clock.is_virtual(),
            enforce_throughput: options.enforce_throughput,
            memory_bytes: self.settings.memory_bytes(),
            purge_hold: Duration::from_secs(options.purge_hold),
            script_hosting: script_host::hosting()?,
            script_errors: bolide_cosmos::script_error,
            mongo_ttl_mode: options.mongo.mongo_ttl_mode.into(),
            on_purge_fault: options.enable_faults.then_some(server::crash as fn()),
            monotonic: self.monotonic.clone(),
            catalog_interval: Some(CATALOG_INTERVAL),
            heartbeat_interval: Some(HEARTBEAT_INTERVAL),
            ..AccountOptions::default()
        };
        let failed = |error: &dyn std::fmt::Display| Failure::new(format!("cannot open the database: {error}"));
        let account = Account::open(engine.shared(), options).await;
        let account = account.map_err(|error| failed(&error))?;
        if let Some(issued) = engine.issued().await.map_err(|error| failed(&error))? {
            leave_out(&account, &issued).await?;
            engine.forget_issued().await.map_err(|error| failed(&error))?;
        }
        Ok(account)
    }
}

/// Ensures that the account issues no number again.
async fn leave_out(account: &Account, issued: &Issued) -> Result<(), Failure> {
    let failed = |error: bolide_model::Error| Failure::new(format!("cannot open the database: {error}"));
    let numbers = decode_numbers(&issued.above)
        .ok_or_else(|| Failure::new("cannot open the database: the issued numbers cannot be read"))?;
    if account.seal().await.map_err(failed)?.is_some() {
        // The snapshot was taken while its store was sealed. What has moved is that store, and not what is made of its snapshot.
        account.unseal().await.map_err(failed)?;
    }
    account.leave_out_numbers(numbers).await.map_err(failed)
}

/// The numbers of databases, offers and partitions, in this order.
fn encode_numbers(numbers: NextNumbers) -> String {
    format!("{} {} {}", numbers.database, numbers.offer, numbers.partition)
}

fn decode_numbers(text: &str) -> Option<NextNumbers> {
    let mut numbers = text.split(' ');
    let numbers = NextNumbers {
        database: numbers.next()?.parse().ok()?,
        offer: numbers.next()?.parse().ok()?,
        partition: numbers.next()?.parse().ok()?,
    };
    Some(numbers)
}

#[cfg(test)]
mod tests;
