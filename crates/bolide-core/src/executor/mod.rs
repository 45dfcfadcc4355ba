//! The executor: threads for what users wrote (queries, conditions) and for scans over many items (feeds, statistics), separate from the threads
//! that serve connections and partitions.
//!
//! ```text
//!   request ──▶ admitted? ──▶ task on a thread of low priority, in time slices ──▶ answer
//!                 │ no: the oldest ▲ checks every millisecond: is the request still there? do other tasks wait?
//!                 │ task ends (Throttled)
//! ```
//!
//! A task that is likely to take less than a millisecond runs on the thread of its caller first ([`Executor::run_here`]).
//!
//! A thread runs one task to its end. Through its [`Watch`] a task learns that it must end (its request was dropped, its time is over, or the
//! account closes), and waits while other tasks have the time slices.

mod ending;
mod priority;
#[cfg(test)]
mod tests;
mod time_slices;
mod watch;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bolide_model::time::Monotonic;
use bolide_model::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(crate) use ending::Ending;
use time_slices::{TimeSlice, TimeSlices};
pub(crate) use watch::Watch;
use watch::{Deadline, Signal};

/// Maximum time of a task on the thread of its caller, which serves connections.
const BRIEF: Duration = Duration::from_millis(1);

/// Maximum number of admitted tasks, and of threads.
const ADMITTED: usize = 512;

/// Number of threads that run at one time, for each processor: more than one, because some of them wait for the disk.
const RUNNING_PER_PROCESSOR: usize = 2;

/// How long an idle thread is kept. Rows that it has made and another thread has freed are only given back when it ends.
const IDLE: Duration = Duration::from_secs(1);

/// Stack size of a thread, in bytes: expressions nest as deep as the parser allows.
const STACK_BYTES: usize = 4 * 1024 * 1024;

/// How long clients are asked to wait before they try again when a task was not admitted.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// How long a new task waits for the oldest task to end, when there is no room.
const EVICTION: Duration = Duration::from_secs(2);

/// How long closing waits for tasks to end. They end within milliseconds, except for a script that does not stop.
const CLOSING: Duration = Duration::from_secs(1);

/// Runs tasks on threads of low priority; see the module.
pub(crate) struct Executor {
    clock: Monotonic,
    processors: usize,
    admitted: Arc<Semaphore>,
    time_slices: Arc<TimeSlices>,
    /// Admitted tasks, by their number.
    work: Arc<Mutex<BTreeMap<u64, Arc<Signal>>>>,
    admissions: AtomicU64,
    is_closing: Arc<AtomicBool>,
    /// Whether tasks have threads of their own ([`AccountOptions::query_threads`](crate::AccountOptions::query_threads)).
    has_threads: bool,
    /// Only the threads for blocking work of this runtime are used; they start when they are needed.
    threads: Mutex<Option<Runtime>>,
}

impl Executor {
    /// Creates an executor without tasks. `clock` measures the deadlines and time slices of its tasks.
    pub fn new(clock: Monotonic) -> Executor {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Executor {
            admitted: Arc::new(Semaphore::new(ADMITTED)),
            time_slices: Arc::new(TimeSlices::new(processors * RUNNING_PER_PROCESSOR, clock.clone())),
            clock,
            processors,
            work: Arc::default(),
            admissions: AtomicU64::new(0),
            is_closing: Arc::default(),
            has_threads: true,
            threads: Mutex::default(),
        }
    }

    /// Sets whether tasks have threads of their own. Otherwise each runs within the task of its caller.
    pub fn with_threads(mut self, has_threads: bool) -> Executor {
        self.has_threads = has_threads;
        self
    }

    /// Runs a task for at most `limit`, and returns its result. Dropping the future ends the task.
    ///
    /// # Errors
    /// `Throttled` if too many tasks are running already; `Unavailable` if the account is closed; the errors of the task itself.
    pub async fn run<T, F, W>(&self, limit: Duration, work: W) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send,
        W: FnOnce(Arc<Watch>) -> F + Send + 'static,
    {
        self.run_until(limit, Ending::default(), work).await
    }

    /// As [`Executor::run`], for a task inside a container, which also ends when a change of the container waits for it.
    ///
    /// # Errors
    /// As [`Executor::run`]; `Throttled` if the task ended for a change of the container.
    pub async fn run_until<T, F, W>(&self, limit: Duration, ending: Ending, work: W) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send,
        W: FnOnce(Arc<Watch>) -> F + Send + 'static,
    {
        if !self.has_threads {
            // In a box: the futures of all requests would be larger by that of a query.
            return Box::pin(self.run_within(limit, &ending, work)).await;
        }
        let work = |watch, requests: Handle| requests.block_on(work(watch));
        self.run_on_thread(limit, ending, work).await
    }

    /// Runs a task within that of its caller.
    async fn run_within<T, F, W>(&self, limit: Duration, ending: &Ending, work: W) -> Result<T>
    where
        F: Future<Output = Result<T>> + Send,
        W: FnOnce(Arc<Watch>) -> F,
    {
        let _admitted = self.admit().await?;
        let signal = self.signal(limit, ending)?;
        let slice = TimeSlice::none(&self.time_slices, signal.clone());
        let done = work(Arc::new(Watch::new(signal.clone(), slice))).await;
        done.map_err(|error| why_ended(error, &signal, ending))
    }

    /// As [`Executor::run`], for a task that does not wait, except for reads: by `block_on` of the given runtime. It always has a thread of its own.
    ///
    /// # Errors
    /// As [`Executor::run`].
    pub async fn run_blocking<T, W>(&self, limit: Duration, work: W) -> Result<T>
    where
        T: Send + 'static,
        W: FnOnce(Arc<Watch>, Handle) -> Result<T> + Send + 'static,
    {
        self.run_on_thread(limit, Ending::default(), work).await
    }

    /// Runs a task on the thread of the caller, where one that takes microseconds is done before another thread would have woken. `None` if it takes longer or has to
    /// wait, or while tasks run on other threads: those come first, and the processors are for whoever serves connections. Run it there then, from
    /// the beginning.
    pub fn run_here<T, F, W>(&self, ending: &Ending, work: W) -> Option<Result<T>>
    where
        F: Future<Output = Result<T>>,
        W: FnOnce(Arc<Watch>) -> F,
    {
        if self.running() > 0 || self.is_closing.load(Ordering::SeqCst) {
            return None;
        }
        let deadline = Deadline::after(BRIEF, &self.clock);
        let signal = Arc::new(Signal::brief(self.is_closing.clone(), ending.clone(), deadline));
        let slice = TimeSlice::none(&self.time_slices, signal.clone());
        let watch = Arc::new(Watch::new(signal.clone(), slice));
        // Pinned where it is made: the future of a query has several kilobytes, which should not be copied.
        let once = || match pin!(work(watch)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        };
        let done = catch_unwind(AssertUnwindSafe(once));
        match done {
            Err(_) => Some(Err(Error::internal("a query panicked"))),
            Ok(Some(Err(_))) if signal.has_given_up() || ending.is_wanted() => None,
            Ok(done) => done,
        }
    }

    /// Starts a task that helps one that runs already, on a thread of its own; `None` if it cannot start now. Nobody waits for its result. Ask
    /// [`Executor::has_free_processor`] first: it takes time slices like any task.
    pub fn help<F, W>(&self, limit: Duration, ending: Ending, work: W) -> Option<Helper>
    where
        F: Future<Output = ()>,
        W: FnOnce(Arc<Watch>) -> F + Send + 'static,
    {
        if !self.has_threads {
            return None;
        }
        let admitted = self.admitted.clone().try_acquire_owned().ok()?;
        let deadline = Deadline::after(limit, &self.clock);
        let signal = Arc::new(Signal::new(self.is_closing.clone(), ending, deadline));
        let helper = Helper(CancelOnDrop(signal.clone()));
        let listed = self.list(signal.clone());
        let (requests, time_slices) = (Handle::current(), self.time_slices.clone());
        let started = self.spawn(move || {
            let _admitted = (listed, admitted);
            let slice = TimeSlice::begin(&time_slices, signal.clone());
            requests.block_on(work(Arc::new(Watch::new(signal, slice))));
        });
        started.ok().map(|_| helper)
    }

    /// Returns whether fewer tasks than processors are running.
    pub fn has_free_processor(&self) -> bool {
        self.has_threads && self.running() < self.processors
    }

    /// Returns whether more tasks than processors are running, so that helpers should end.
    pub fn is_crowded(&self) -> bool {
        self.running() > self.processors
    }

    async fn run_on_thread<T, W>(&self, limit: Duration, ending: Ending, work: W) -> Result<T>
    where
        T: Send + 'static,
        W: FnOnce(Arc<Watch>, Handle) -> Result<T> + Send + 'static,
    {
        let admitted = self.admit().await?;
        let signal = self.signal(limit, &ending)?;
        let _guard = CancelOnDrop(signal.clone());
        let listed = self.list(signal.clone());
        let (requests, time_slices, running) = (Handle::current(), self.time_slices.clone(), signal.clone());
        let done = self.spawn(move || {
            let _admitted = (listed, admitted);
            let slice = TimeSlice::begin(&time_slices, running.clone());
            let watch = Arc::new(Watch::new(running, slice));
            work(watch, requests)
        })?;
        let done = done
            .await
            .map_err(|_| Error::internal("a query panicked, or its thread was ended"))?;
        done.map_err(|error| why_ended(error, &signal, &ending))
    }

    /// Creates the signals of a task that was admitted.
    fn signal(&self, limit: Duration, ending: &Ending) -> Result<Arc<Signal>> {
        if self.is_closing.load(Ordering::SeqCst) {
            return Err(closed());
        }
        let deadline = Deadline::after(limit, &self.clock);
        Ok(Arc::new(Signal::new(self.is_closing.clone(), ending.clone(), deadline)))
    }

    /// Admits one more task. If there is no room, the oldest task is ended for it, so that short requests are served however many long ones there
    /// are.
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
        // A task that has been evicted already is ending. A task that waits for its first time slice may be short, so it is not evicted.
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

    /// Ends all tasks, and admits no more.
    pub async fn close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.time_slices.open();
        let all = u32::try_from(ADMITTED).unwrap_or(u32::MAX);
        if tokio::time::timeout(CLOSING, self.admitted.acquire_many(all))
            .await
            .is_err()
        {
            tracing::warn!("a query did not end when told to; its thread is left behind");
        }
        self.shut_down();
    }

    /// Returns the number of tasks that were admitted and have not ended.
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
            // Waiting is not possible within a runtime, and not needed: tasks that still run were told to end.
            threads.shutdown_background();
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.time_slices.open();
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

/// An entry in the list of admitted tasks; removed when it is dropped.
struct Listed {
    number: u64,
    work: Arc<Mutex<BTreeMap<u64, Arc<Signal>>>>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.work.lock().remove(&self.number);
    }
}

/// A task that helps another; told to end when this is dropped.
pub(crate) struct Helper(#[expect(dead_code, reason = "dropped to tell it")] CancelOnDrop);

/// Ends a task when the request that waits for it is dropped.
struct CancelOnDrop(Arc<Signal>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Returns the error for the user of a task that has ended with `error`.
fn why_ended(error: Error, signal: &Signal, ending: &Ending) -> Error {
    match error.kind {
        ErrorKind::Unavailable if ending.is_wanted() => changing(),
        ErrorKind::Unavailable if signal.is_evicted() => busy(),
        _ => error,
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
