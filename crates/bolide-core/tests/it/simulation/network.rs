//! The network between servers and their store: requests and answers take time, are lost, or meet a link that is cut.
//!
//! ```text
//!   core of a server ──▶ Link ──delay, cut──▶ FaultyEngine ──▶ MemoryEngine, shared
//!                        ◀──delay, loss, cut── answer
//! ```
//!
//! A request that has left its server is carried out even if the server dies, unless it is lost on its way. It arrives within [`LONGEST_WAY`] or never:
//! docs/cluster.md says what a commit may do that is stalled for longer than a quarter of a second, and this is no place to look for it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bolide_model::UnixMillis;
use bolide_model::time::{Clock, Monotonic, Span};
use bolide_storage::faults::{Faults, FaultyEngine};
use bolide_storage::memory::MemoryEngine;
use bolide_storage::{
    Batch, CommitToken, Engine, EngineError, EngineFuture, Head, HeldSnapshot, HomeId, JointOutcome, Key, Outcome,
    PartitionId, ReadRequest, ReadResponse, Resolved, Ticket, WriteLock,
};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};

use super::held::LinkedSnapshot;
use super::trace::Trace;
use crate::random::RandomChoices;
use crate::test_container::START;

/// The longest time that a request or an answer takes, in milliseconds.
pub const LONGEST_WAY: u64 = 150;
/// How long a server waits for an answer of the store.
const STORE_TIMEOUT: Duration = Duration::from_millis(1_000);
/// A server that has locked a partition has lost the lock after this.
const LONGEST_LOCK: Duration = Duration::from_secs(2);
/// The largest error of a server's clock, in either direction, in milliseconds.
const LARGEST_ERROR: u64 = 20;
/// How long the error of a clock stays the same, in milliseconds.
const ERROR_LASTS: i64 = 250;

/// The store, the time, and all links to the store.
pub struct Network {
    memory: Arc<dyn Engine>,
    faulty: Arc<dyn Engine>,
    clock: Arc<Clock>,
    began: Instant,
    choices: Mutex<RandomChoices>,
    /// Percentage of messages that take long.
    slow_percent: u64,
    /// Commits that the store has said not to have happened: it does not carry them out any more.
    fenced: Mutex<HashSet<CommitToken>>,
    /// Whether there are no faults, and only short delays.
    is_calm: AtomicBool,
    pub trace: Trace,
}

impl Network {
    pub fn new(seed: u64) -> Arc<Network> {
        let clock = Arc::new(Clock::virtual_at(UnixMillis(START * 1_000)));
        let memory = Arc::new(MemoryEngine::shared(clock.clone()));
        let faults = Faults {
            seed,
            stale_percent: 5,
            // Links lose the outcomes of commits.
            unknown_percent: 0,
            down_percent: 1,
            span_ms: 0,
        };
        Arc::new(Network {
            faulty: Arc::new(FaultyEngine::new(memory.clone(), faults)),
            memory,
            clock,
            began: Monotonic::system().now(),
            choices: Mutex::new(RandomChoices::new(seed)),
            slow_percent: if seed.is_multiple_of(3) { 30 } else { 3 },
            fenced: Mutex::default(),
            is_calm: AtomicBool::new(true),
            trace: Trace::default(),
        })
    }

    /// Begins or ends a time without faults.
    pub fn be_calm(&self, is_calm: bool) {
        self.is_calm.store(is_calm, Ordering::SeqCst);
    }

    pub fn is_calm(&self) -> bool {
        self.is_calm.load(Ordering::SeqCst)
    }

    /// Returns the true time, and sets the store's clock to it.
    pub fn now(&self) -> UnixMillis {
        let now = UnixMillis(START * 1_000 + self.elapsed());
        self.clock.set(now);
        now
    }

    /// Returns the time since the beginning, in milliseconds.
    pub fn elapsed(&self) -> i64 {
        Monotonic::system().since(self.began).as_millis() as i64
    }

    pub fn note(&self, who: &str, what: &str) {
        self.trace.note(self.elapsed(), who, what);
    }

    fn store(&self) -> Arc<dyn Engine> {
        self.now();
        if self.is_calm() {
            self.memory.clone()
        } else {
            self.faulty.clone()
        }
    }

    /// Returns how long a message takes; `None`: it is lost.
    fn way(&self) -> Option<Duration> {
        let mut choices = self.choices.lock();
        let longest = match choices.roll(100) {
            _ if self.is_calm() => 2,
            0 => return None,
            roll if roll <= self.slow_percent => LONGEST_WAY,
            roll if roll <= self.slow_percent + 20 => 20,
            _ => 3,
        };
        Some(Duration::from_micros(choices.roll(longest * 1_000)))
    }
}

/// The store as one server sees it; see the module.
pub struct Link {
    pub(super) line: Line,
    time: Mutex<ServerTime>,
}

/// The way of requests and answers between a server and the store.
#[derive(Clone)]
pub(super) struct Line {
    network: Arc<Network>,
    wire: Arc<Wire>,
}

/// The state of a link.
struct Wire {
    /// The server, in the trace.
    name: String,
    is_cut: AtomicBool,
    /// Closed when the server has died.
    alive: Semaphore,
}

/// The clock of a server: its errors in both directions, and what it has shown.
struct ServerTime {
    choices: RandomChoices,
    errors: (i64, i64),
    until: i64,
    shown: Span,
}

impl ServerTime {
    /// Returns an interval that contains the true time, and whose ends never go back.
    fn at(&mut self, now: i64) -> Span {
        if now >= self.until {
            let mut error = || self.choices.roll(LARGEST_ERROR) as i64;
            self.errors = (error(), error());
            self.until = now + ERROR_LASTS;
        }
        self.shown = Span {
            lo: self.shown.lo.max(UnixMillis(now - self.errors.0)),
            hi: self.shown.hi.max(UnixMillis(now + self.errors.1)),
        };
        self.shown
    }
}

impl Link {
    pub fn new(network: &Arc<Network>, name: String, seed: u64) -> Arc<Link> {
        let wire = Wire {
            name,
            is_cut: AtomicBool::new(false),
            alive: Semaphore::new(0),
        };
        Arc::new(Link {
            line: Line {
                network: network.clone(),
                wire: Arc::new(wire),
            },
            time: Mutex::new(ServerTime {
                choices: RandomChoices::new(seed),
                errors: (0, 0),
                until: i64::MIN,
                shown: Span::point(UnixMillis(i64::MIN)),
            }),
        })
    }

    pub fn name(&self) -> &str {
        &self.line.wire.name
    }

    /// Cuts the link, or ends the cut. Nothing arrives while it is cut.
    pub fn cut(&self, is_cut: bool) {
        self.line.wire.is_cut.store(is_cut, Ordering::SeqCst);
        self.line
            .network
            .note(self.name(), if is_cut { "cut" } else { "mended" });
    }

    /// The server dies: its requests get no answer any more. Those that it has sent are carried out.
    pub fn die(&self) {
        self.line.wire.alive.close();
        self.line.network.note(self.name(), "died");
    }

    /// Waits until the server dies.
    pub async fn death(&self) {
        // There are no permits.
        let _ = self.line.wire.alive.acquire().await;
    }
}

impl Line {
    /// Sends a request to the store. `None`: no answer came, and the request is carried out or not, perhaps later.
    pub async fn ask<T, F>(&self, what: String, work: impl FnOnce(Arc<dyn Engine>) -> F + Send + 'static) -> Option<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.outlive().await;
        let (clock, patience) = (Monotonic::system(), self.network.patience());
        let until = clock.now() + patience;
        let (answer, answered) = oneshot::channel();
        let (network, wire) = (self.network.clone(), self.wire.clone());
        tokio::spawn(async move {
            match network.carry(&wire, &what, work).await {
                Some(done) => drop(answer.send(done)),
                // Its sender learns nothing, not even that it is lost.
                None => Monotonic::system().sleep_until(until).await,
            }
        });
        let came = clock.timeout_at(until, answered).await;
        self.outlive().await;
        came?.ok()
    }

    /// Waits for ever if the server has died.
    async fn outlive(&self) {
        if self.wire.alive.is_closed() {
            std::future::pending::<()>().await;
        }
    }
}

impl Network {
    /// Carries a request to the store, and the answer back. `None`: one of them is lost.
    async fn carry<T, F>(&self, wire: &Wire, what: &str, work: impl FnOnce(Arc<dyn Engine>) -> F) -> Option<T>
    where
        F: Future<Output = T>,
    {
        let (there, back) = (self.way(), self.way());
        let clock = Monotonic::system();
        clock.sleep(there?).await;
        if wire.is_cut.load(Ordering::SeqCst) {
            return None;
        }
        self.note(&wire.name, what);
        let done = work(self.store()).await;
        clock.sleep(back?).await;
        (!wire.is_cut.load(Ordering::SeqCst)).then_some(done)
    }

    /// Returns how long a server waits for an answer. Some connections break early, with a request on its way.
    fn patience(&self) -> Duration {
        let mut choices = self.choices.lock();
        match !self.is_calm() && choices.percent(1) {
            true => Duration::from_millis(choices.roll(LONGEST_WAY)),
            false => STORE_TIMEOUT,
        }
    }

    /// The fence: carries out a commit, unless the store has said that it did not happen.
    async fn commit<T>(&self, token: CommitToken, stale: T, commit: EngineFuture<'_, T>) -> T {
        let is_fenced = self.fenced.lock().contains(&token);
        if is_fenced { stale } else { commit.await }
    }
}

/// A lock that ends after a while even if its holder has died.
fn ending_soon(lock: WriteLock) -> WriteLock {
    let (dropped, ended) = oneshot::channel::<()>();
    tokio::spawn(async move {
        let clock = Monotonic::system();
        let until = clock.now() + LONGEST_LOCK;
        let _ = clock.timeout_at(until, ended).await;
        drop(lock);
    });
    WriteLock::new(dropped)
}

fn unavailable() -> EngineError {
    EngineError::Unavailable("no answer".into())
}

impl Engine for Link {
    fn name(&self) -> &'static str {
        self.line.network.memory.name()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn read(
        &self,
        partition: PartitionId,
        request: ReadRequest,
    ) -> EngineFuture<'_, Result<ReadResponse, EngineError>> {
        Box::pin(async move {
            let read = move |store: Arc<dyn Engine>| async move { store.read(partition, request).await };
            let answer = self.line.ask(format!("read {partition}"), read).await;
            answer.unwrap_or_else(|| Err(unavailable()))
        })
    }

    fn checks_new_keys(&self) -> bool {
        self.line.network.memory.checks_new_keys()
    }

    fn read_and_lock(
        &self,
        partition: PartitionId,
        keys: Vec<Key>,
    ) -> EngineFuture<'_, Result<(ReadResponse, Option<WriteLock>), EngineError>> {
        Box::pin(async move {
            let lock = move |store: Arc<dyn Engine>| async move {
                let (read, lock) = store.read_and_lock(partition, keys).await?;
                Ok((read, lock.map(ending_soon)))
            };
            let answer = self.line.ask(format!("lock {partition}"), lock).await;
            answer.unwrap_or_else(|| Err(unavailable()))
        })
    }

    fn commit(&self, partition: PartitionId, batch: Batch) -> EngineFuture<'_, Result<Outcome, EngineError>> {
        Box::pin(async move {
            let (ticket, network) = (batch.ticket(), self.line.network.clone());
            let what = format!("commit {partition} {}..{}", batch.base, batch.next);
            let commit = move |store: Arc<dyn Engine>| async move {
                let token = batch.token;
                let work = store.commit(partition, batch);
                network.commit(token, Ok(Outcome::Stale), work).await
            };
            self.line
                .ask(what, commit)
                .await
                .unwrap_or(Ok(Outcome::Unknown(ticket)))
        })
    }

    fn commit_together(
        &self,
        batches: Vec<(PartitionId, Batch)>,
    ) -> EngineFuture<'_, Result<JointOutcome, EngineError>> {
        Box::pin(async move {
            let (unknown, network) = (JointOutcome::unknown(&batches), self.line.network.clone());
            let commit = move |store: Arc<dyn Engine>| async move {
                let Some(token) = batches.first().map(|(_, batch)| batch.token) else {
                    return store.commit_together(batches).await;
                };
                let work = store.commit_together(batches);
                network.commit(token, Ok(JointOutcome::Stale), work).await
            };
            self.line
                .ask("commit together".into(), commit)
                .await
                .unwrap_or(Ok(unknown))
        })
    }

    fn hold(&self, home: HomeId, until: UnixMillis) -> EngineFuture<'_, Result<Arc<dyn HeldSnapshot>, EngineError>> {
        Box::pin(async move {
            let hold = move |store: Arc<dyn Engine>| async move { store.hold(home, until).await };
            let answer = self.line.ask("hold".into(), hold).await;
            let held = answer.unwrap_or_else(|| Err(unavailable()))?;
            Ok(Arc::new(LinkedSnapshot::new(self.line.clone(), held)) as Arc<dyn HeldSnapshot>)
        })
    }

    fn resolve(&self, partition: PartitionId, ticket: Ticket) -> EngineFuture<'_, Result<Resolved, EngineError>> {
        Box::pin(async move {
            let (what, network) = (
                format!("resolve {partition} {}", ticket.next),
                self.line.network.clone(),
            );
            let resolve = move |store: Arc<dyn Engine>| async move {
                network.fenced.lock().insert(ticket.token);
                store.resolve(partition, ticket).await
            };
            let answer = self.line.ask(what, resolve).await;
            answer.unwrap_or_else(|| Err(unavailable()))
        })
    }

    fn create(&self, partition: PartitionId, head: Head) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            let create = move |store: Arc<dyn Engine>| async move { store.create(partition, head).await };
            let answer = self.line.ask(format!("create {partition}"), create).await;
            answer.unwrap_or_else(|| Err(unavailable()))
        })
    }

    fn remove(&self, partition: PartitionId) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            let remove = move |store: Arc<dyn Engine>| async move { store.remove(partition).await };
            let answer = self.line.ask(format!("remove {partition}"), remove).await;
            answer.unwrap_or_else(|| Err(unavailable()))
        })
    }

    fn time(&self) -> Span {
        self.time.lock().at(self.line.network.now().0)
    }

    fn durable_time(&self) -> UnixMillis {
        self.line.network.memory.durable_time()
    }

    fn make_time_durable(&self, until: UnixMillis) -> EngineFuture<'_, Result<(), EngineError>> {
        self.line.network.memory.make_time_durable(until)
    }

    fn close(&self) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async { Ok(()) })
    }
}
