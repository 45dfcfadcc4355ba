//! Snapshots for the admin API, and the replacement of the account's content, in the steps that [`super`] shows.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bolide_core::Account;
use bolide_cosmos::CosmosService;
use bolide_cosmos::snapshots::{SnapshotInfo, Snapshots};
use bolide_model::{Error, ErrorKind, Result, SnapshotName, UnixMillis};
use bolide_storage_lsm::Issued;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::{Current, Host, encode_numbers, leave_out};
use crate::server;
use crate::store::{Incoming, OpenEngine, Replaced};

/// How long running requests may take to end; those that are left get errors.
const DRAIN: Duration = Duration::from_secs(1);
/// Time between checks whether they have ended.
const DRAIN_CHECK_INTERVAL: Duration = Duration::from_micros(500);

/// Snapshots for the requests of one account.
pub(super) struct HostSnapshots {
    pub host: Weak<Host>,
    /// See [`Current::waiting`].
    pub waiting: Arc<AtomicUsize>,
}

/// Counts a request as waiting.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Waiting<'a> {
        count.fetch_add(1, Ordering::SeqCst);
        Waiting(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl HostSnapshots {
    /// Runs work on a task of its own, so that it is carried out to its end even if its client leaves.
    async fn run<T, F>(&self, work: impl FnOnce(Arc<Host>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let _waiting = Waiting::new(&self.waiting);
        let host = self.host.upgrade().ok_or_else(stopping)?;
        let done = tokio::spawn(work(host)).await;
        done.unwrap_or_else(|_| Err(Error::internal("the work on a snapshot panicked")))
    }
}

impl Snapshots for HostSnapshots {
    fn list(&self) -> BoxFuture<'_, Result<Vec<SnapshotInfo>>> {
        self.run(|host| async move { host.list().await }).boxed()
    }

    fn take(&self, name: SnapshotName) -> BoxFuture<'_, Result<SnapshotInfo>> {
        self.run(|host| async move { host.take(name).await }).boxed()
    }

    fn remove(&self, name: SnapshotName) -> BoxFuture<'_, Result<()>> {
        self.run(|host| async move { host.remove(&name).await }).boxed()
    }

    fn restore(&self, name: Option<SnapshotName>) -> BoxFuture<'_, Result<UnixMillis>> {
        self.run(|host| async move { host.replace(name).await }).boxed()
    }

    fn set_fault(&self, steps: u64) {
        if let Some(host) = self.host.upgrade() {
            host.steps.set(steps);
        }
    }
}

/// What is kept with a snapshot: server time, and what a virtual clock showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct About {
    time: UnixMillis,
    clock: Option<UnixMillis>,
}

impl About {
    fn encode(self) -> String {
        match self.clock {
            Some(clock) => format!("{} {}", self.time.0, clock.0),
            None => self.time.0.to_string(),
        }
    }

    fn decode(text: &str) -> Option<About> {
        let mut parts = text.split(' ');
        let time = UnixMillis(parts.next()?.parse().ok()?);
        let clock = match parts.next() {
            Some(clock) => Some(UnixMillis(clock.parse().ok()?)),
            None => None,
        };
        Some(About { time, clock })
    }
}

impl Host {
    async fn list(&self) -> Result<Vec<SnapshotInfo>> {
        let current = self.current.lock().await;
        let kept = self.store.list(&current.as_ref().ok_or_else(lost)?.engine).await?;
        let infos = kept.into_iter().filter_map(|(name, about)| {
            let time = About::decode(&about)?.time;
            Some(SnapshotInfo { name, time })
        });
        Ok(infos.collect())
    }

    async fn take(&self, name: SnapshotName) -> Result<SnapshotInfo> {
        let current = self.current.lock().await;
        let current = current.as_ref().ok_or_else(lost)?;
        let clock = &self.settings.clock;
        let about = About {
            // Not below the stamp of any commit in the snapshot once it is restored: the store keeps its own time, too.
            time: current.account.server_time(),
            clock: clock.is_virtual().then(|| clock.now()),
        };
        self.store.take(&current.engine, &name, about.encode()).await?;
        Ok(SnapshotInfo { name, time: about.time })
    }

    async fn remove(&self, name: &SnapshotName) -> Result<()> {
        let current = self.current.lock().await;
        self.store
            .remove(&current.as_ref().ok_or_else(lost)?.engine, name)
            .await
    }

    /// Replaces the content. Returns server time afterwards.
    async fn replace(self: Arc<Host>, name: Option<SnapshotName>) -> Result<UnixMillis> {
        let mut slot = self.current.lock().await;
        let before = slot.as_ref().ok_or_else(lost)?;
        // Errors until here have changed nothing.
        let about = self.about(&before.engine, name.as_ref()).await?;
        let incoming = self.store.prepare(&before.engine, name.as_ref()).await?;
        let Some(before) = slot.take() else { return Err(lost()) };
        let service = self.shared.serving().suspend();
        if let Some(mongo) = self.mongo.get() {
            mongo.retire();
        }
        before.account.end_queries().await;
        self.drain(service.as_ref(), &before.waiting).await;
        before.account.end().await;
        let numbers = before.account.next_numbers();
        let issued = Issued {
            lsn: before.engine.highest_lsn().after_replacement(),
            above: encode_numbers(numbers),
        };
        let replaced = self.swap(&before, incoming, about, &issued).await;
        let opened = match replaced {
            Ok(Replaced { engine, outcome }) => match self.open_account(&engine).await {
                Ok(account) => self
                    .note_issued(&account, &engine, &issued)
                    .await
                    .map(|()| (engine, account, outcome)),
                Err(failure) => Err(failure),
            },
            Err(failure) => Err(failure),
        };
        match opened {
            Ok((engine, account, outcome)) => {
                let now = account.server_time();
                server::warn_of_time_ahead(&account, &self.settings.clock);
                *slot = Some(self.resume(service, engine, account));
                outcome.map(|()| now)
            }
            Err(failure) => {
                let why = format!("the account could not be opened again; restart the server: {failure}");
                tracing::error!(%failure, "the account could not be opened again after its content was to be replaced");
                self.shared.serving().lose(&why);
                Err(Error::new(ErrorKind::Unavailable, why))
            }
        }
    }

    /// What is kept with a snapshot.
    async fn about(&self, engine: &OpenEngine, name: Option<&SnapshotName>) -> Result<Option<About>> {
        let Some(name) = name else { return Ok(None) };
        let kept = self.store.list(engine).await?;
        let found = kept.into_iter().find(|(kept, _)| kept == name);
        // If it is missing, preparing it says so.
        Ok(found.and_then(|(_, about)| About::decode(&about)))
    }

    /// Waits until no request runs, up to a timeout.
    async fn drain(&self, service: Option<&Arc<CosmosService>>, waiting: &AtomicUsize) {
        let is_idle = || {
            let requests = service.map_or(0, |service| Arc::strong_count(service) - 1);
            let is_mongo_idle = self.mongo.get().is_none_or(|mongo| mongo.is_idle());
            requests <= waiting.load(Ordering::SeqCst) && is_mongo_idle
        };
        let until = self.monotonic.now() + DRAIN;
        while !is_idle() {
            if self.monotonic.now() >= until {
                tracing::warn!("some requests did not end in time and are cut off");
                return;
            }
            self.monotonic.sleep(DRAIN_CHECK_INTERVAL).await;
        }
    }

    /// Puts the incoming content in the place of the current one, and sets a virtual clock.
    async fn swap(
        &self,
        before: &Current,
        incoming: Incoming,
        about: Option<About>,
        issued: &Issued,
    ) -> Result<Replaced, server::Failure> {
        let clock = &self.settings.clock;
        let shown = clock.now();
        // Time goes on with the system's clock, and back with a virtual one.
        let least = if clock.is_virtual() {
            let to = about.map_or(Some(self.clock_start), |about| about.clock);
            to.map(|to| clock.set(to));
            UnixMillis(i64::MIN)
        } else {
            before.account.server_time()
        };
        let replaced = self
            .store
            .replace(before.engine.clone(), incoming, least, issued.clone())
            .await?;
        if replaced.outcome.is_err() {
            clock.set(shown);
        }
        Ok(replaced)
    }

    /// Lets the content leave out the issued numbers, where the store itself does not note them.
    async fn note_issued(
        &self,
        account: &Account,
        engine: &OpenEngine,
        issued: &Issued,
    ) -> Result<(), server::Failure> {
        match engine {
            OpenEngine::Memory(_) => leave_out(account, issued).await,
            OpenEngine::Lsm(_) | OpenEngine::Postgres(_) => Ok(()),
        }
    }

    /// Serves the new account in the place of the one before.
    fn resume(
        self: &Arc<Host>,
        service: Option<Arc<CosmosService>>,
        engine: OpenEngine,
        account: Arc<Account>,
    ) -> Current {
        let waiting = Arc::default();
        if let Some(service) = service {
            let successor = service.successor(account.clone(), Some(self.snapshots(&waiting)));
            self.shared.serving().start(successor);
        }
        if let Some(mongo) = self.mongo.get() {
            mongo.replace(account.clone());
        }
        Current {
            engine,
            account,
            waiting,
        }
    }
}

fn lost() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "the account could not be opened again; restart the server",
    )
}

fn stopping() -> Error {
    Error::new(ErrorKind::Unavailable, "the server is stopping")
}
