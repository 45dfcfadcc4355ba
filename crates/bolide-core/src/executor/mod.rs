//! The executor: threads for what users wrote (queries, conditions) and for walks over many items (feeds, figures), apart from those that
//! serve connections and partitions.
//!
//! ```text
//!   request ──▶ admitted? ──▶ work on a thread of low priority, in turns with others ──▶ answer
//!                 │ no: the oldest ▲ looks every millisecond: is the request still there? do others wait?
//!                 │ ends (429)
//! ```
//!
//! A thread runs one piece of work to its end. Through its [`Watch`] work learns that it must end (its request was dropped, its time is over,
//! or the account closes), and waits while it is others' turn.

mod ending;
mod priority;
#[cfg(test)]
mod tests;
mod turns;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bolide_model::time::Monotonic;
use bolide_model::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(crate) use ending::Ending;
use turns::{TimeSlice, TimeSlices};
pub(crate) use watch::Watch;
use watch::{Deadline, Signal};

/// Pieces of work at most, and threads.
const ADMITTED: usize = 512;

/// Threads that run at one time, for each processor: some of them wait for the disk.
const RUNNING_PER_PROCESSOR: usize = 2;

/// How long a thread without work is kept.
const IDLE: Duration = Duration::from_secs(10);

/// Stack of a thread: expressions nest as deep as the parser allows.
const STACK_BYTES: usize = 4 * 1024 * 1024;

/// How long clients are asked to wait before they try again what was not admitted.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// How long work waits for the end of the oldest, when there is no room.
const EVICTION: Duration = Duration::from_secs(2);

/// How long closing waits for work to end. It ends within milliseconds but for a script that does not.
const CLOSING: Duration = Duration::from_secs(1);

/// See the module.
pub(crate) struct Executor {
    clock: Monotonic,
    admitted: Arc<Semaphore>,
    turns: Arc<TimeSlices>,
    /// What was admitted, by its number.
    work: Arc<Mutex<BTreeMap<u64, Arc<Signal>>>>,
    admissions: AtomicU64,
    is_closing: Arc<AtomicBool>,
    /// Only its threads for blocking work are used, which start when they are needed.
    threads: Mutex<Option<Runtime>>,
}

impl Executor {
    /// An executor without work. Work has its time and its turns by `clock`.
    pub fn new(clock: Monotonic) -> Executor {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Executor {
            admitted: Arc::new(Semaphore::new(ADMITTED)),
            turns: Arc::new(TimeSlices::new(processors * RUNNING_PER_PROCESSOR, clock.clone())),
            clock,
            work: Arc::default(),
            admissions: AtomicU64::new(0),
            is_closing: Arc::default(),
            threads: Mutex::default(),
        }
    }

    /// Runs work for at most `limit`, and returns what it comes to. Dropping the future ends the work.
    ///
    /// # Errors
    /// `Throttled` if there is too much work already; `Unavailable` if the account is closed; what the work fails with.
    pub async fn run<T, F, W>(&self, limit: Duration, work: W) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>>,
        W: FnOnce(Arc<Watch>) -> F + Send + 'static,
    {
        self.run_until(limit, Ending::default(), work).await
    }

    /// As [`Executor::run`], for work inside a container, which also ends when a change of the container waits for it.
    ///
    /// # Errors
    /// As [`Executor::run`]; `Throttled` if it ended for a change.
    pub async fn run_until<T, F, W>(&self, limit: Duration, ending: Ending, work: W) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>>,
        W: FnOnce(Arc<Watch>) -> F + Send + 'static,
    {
        let admitted = self.admit().await?;
        if self.is_closing.load(Ordering::SeqCst) {
            return Err(closed());
        }
        let signal = Arc::new(Signal::new(
            self.is_closing.clone(),
            ending.clone(),
            Deadline::after(limit, &self.clock),
        ));
        let _guard = CancelOnDrop(signal.clone());
        let listed = self.list(signal.clone());
        let (requests, turns, running) = (Handle::current(), self.turns.clone(), signal.clone());
        let done = self.spawn(move || {
            let _admitted = (listed, admitted);
            let turn = TimeSlice::begin(&turns, running.clone());
            let watch = Arc::new(Watch::new(running, turn));
            requests.block_on(work(watch))
        })?;
        let done = done
            .await
            .map_err(|_| Error::internal("a query panicked, or its thread was ended"))?;
        match done {
            Err(error) if error.kind == ErrorKind::Unavailable && ending.is_wanted() => Err(changing()),
            Err(error) if error.kind == ErrorKind::Unavailable && signal.is_evicted() => Err(busy()),
            done => done,
        }
    }

    /// Room for one more piece of work. If there is none, the oldest ends for it: what is short gets through however much there is that is
    /// long.
    async fn admit(&self) -> Result<OwnedSemaphorePermit> {
        if let Ok(admitted) = self.admitted.clone().try_acquire_owned() {
            return Ok(admitted);
        }
        self.evict_oldest();
        match tokio::time::timeout(EVICTION, self.admitted.clone().acquire_owned()).await {
            Ok(Ok(admitted)) => Ok(admitted),
            _ => Err(busy()),
        }
    }

    fn evict_oldest(&self) {
        let work: Vec<Arc<Signal>> = self.work.lock().values().cloned().collect();
        // Whoever has been told is on its way out. What waits for its first turn may be short.
        let _ = work.iter().any(|signal| signal.has_run() && signal.evict());
    }

    fn list(&self, signal: Arc<Signal>) -> Listed {
        let number = self.admissions.fetch_add(1, Ordering::Relaxed);
        self.work.lock().insert(number, signal);
        Listed {
            number,
            work: self.work.clone(),
        }
    }

    /// Ends all work, and takes no more.
    pub async fn close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.turns.open();
        let all = u32::try_from(ADMITTED).unwrap_or(u32::MAX);
        if tokio::time::timeout(CLOSING, self.admitted.acquire_many(all))
            .await
            .is_err()
        {
            tracing::warn!("a query did not end when told to; its thread is left behind");
        }
        self.shut_down();
    }

    /// How much work was admitted and has not ended.
    pub fn running(&self) -> usize {
        ADMITTED - self.admitted.available_permits()
    }

    fn spawn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<tokio::task::JoinHandle<T>> {
        let mut threads = self.threads.lock();
        if self.is_closing.load(Ordering::SeqCst) {
            return Err(closed());
        }
        let threads = match &mut *threads {
            Some(threads) => threads,
            none => none.insert(start()?),
        };
        Ok(threads.spawn_blocking(work))
    }

    fn shut_down(&self) {
        if let Some(threads) = self.threads.lock().take() {
            // Waiting is not possible within a runtime, and of no use: what still runs was told to end.
            threads.shutdown_background();
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.turns.open();
        self.shut_down();
    }
}

fn start() -> Result<Runtime> {
    Builder::new_current_thread()
        .max_blocking_threads(ADMITTED)
        .thread_keep_alive(IDLE)
        .thread_stack_size(STACK_BYTES)
        .thread_name("query")
        .on_thread_start(priority::lower)
        .build()
        .map_err(|error| Error::new(ErrorKind::Unavailable, format!("no threads for queries: {error}")))
}

/// A piece of work in the list, until it is dropped.
struct Listed {
    number: u64,
    work: Arc<Mutex<BTreeMap<u64, Arc<Signal>>>>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.work.lock().remove(&self.number);
    }
}

/// Ends work when whoever waits for it is gone.
struct CancelOnDrop(Arc<Signal>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

fn busy() -> Error {
    let kind = ErrorKind::Throttled {
        retry_after: RETRY_AFTER,
    };
    Error::new(
        kind,
        format!("The server runs too many queries; try again later. limit={ADMITTED}"),
    )
}

fn changing() -> Error {
    let kind = ErrorKind::Throttled {
        retry_after: RETRY_AFTER,
    };
    Error::new(
        kind,
        "The container is being changed, which long requests must not hold up; try again.",
    )
}

fn closed() -> Error {
    Error::new(ErrorKind::Unavailable, "the server is stopping")
}
