//! Load generators: as fast as responses come (closed loop), or at a fixed rate independent of responses (open loop).

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use crate::Result;
use crate::connection::Connection;
use crate::figures::Latencies;
use crate::process::cpu_time;

/// Time before counting begins, to open connections and fill caches.
pub const WARM_UP: Duration = Duration::from_millis(500);
/// Timeout of a request of an open loop, from its intended start.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long the operations of [`paced`] may go on after the last start.
const GRACE: Duration = Duration::from_secs(5);

/// One of several concurrent workers.
pub trait Worker: Send + 'static {
    /// Does one operation.
    fn step(&mut self) -> impl Future<Output = Result<()>> + Send;
}

/// The result of a closed loop.
#[derive(Debug)]
pub struct Measured {
    /// Operations that began and ended within the measured time.
    pub latencies: Latencies,
    /// The measured time.
    pub time: Duration,
    /// CPU time that the measured process used.
    pub cpu: Duration,
}

impl Measured {
    /// Operations per second.
    pub fn per_second(&self) -> f64 {
        self.latencies.count() as f64 / self.time.as_secs_f64()
    }

    /// CPU time per operation, in microseconds.
    pub fn cpu_micros(&self) -> f64 {
        crate::figures::micros(self.cpu) / self.latencies.count().max(1) as f64
    }
}

/// Lets every worker repeat its operation for `time`, after warming up. `pid` is the measured process.
///
/// # Errors
/// The first failed operation.
pub async fn closed_loop<W: Worker>(workers: Vec<W>, time: Duration, pid: u32) -> Result<Measured> {
    let (latencies, [before, after]) = watched_loop(workers, time, || cpu_time(pid)).await?;
    Ok(Measured {
        latencies,
        time,
        cpu: after.saturating_sub(before),
    })
}

/// As [`closed_loop`]; returns what `look` sees when the measured time begins, and when it ends.
///
/// # Errors
/// The first failed operation.
pub async fn watched_loop<W: Worker, T>(
    workers: Vec<W>,
    time: Duration,
    look: impl Fn() -> Result<T>,
) -> Result<(Latencies, [T; 2])> {
    let tasks = |period| workers.into_iter().map(move |worker| repeat(worker, period));
    watched_tasks(tasks, time, look).await
}

/// The time in which operations count.
#[derive(Debug, Clone, Copy)]
pub struct Period {
    begin: Instant,
    end: Instant,
}

impl Period {
    /// Whether an operation may begin now: it warms up, or counts if it ends in time.
    pub fn may_begin(self, now: Instant) -> bool {
        now < self.end
    }

    /// Whether an operation counts.
    pub fn counts(self, started: Instant, ended: Instant) -> bool {
        started >= self.begin && ended <= self.end
    }
}

/// As [`watched_loop`], of tasks that return the latencies of their operations in a period; `tasks` makes them.
///
/// # Errors
/// The first failed task.
pub async fn watched_tasks<I, T>(
    tasks: impl FnOnce(Period) -> I,
    time: Duration,
    look: impl Fn() -> Result<T>,
) -> Result<(Latencies, [T; 2])>
where
    I: Iterator<Item: Future<Output = Result<Vec<Duration>>> + Send + 'static>,
{
    let begin = Instant::now() + WARM_UP;
    let end = begin + time;
    let mut tasks: JoinSet<_> = tasks(Period { begin, end }).collect();
    tokio::time::sleep_until(begin.into()).await;
    let before = look()?;
    tokio::time::sleep_until(end.into()).await;
    let after = look()?;
    let mut latencies = Vec::new();
    while let Some(done) = tasks.join_next().await {
        latencies.append(&mut done??);
    }
    Ok((latencies.into_iter().collect(), [before, after]))
}

async fn repeat(mut worker: impl Worker, period: Period) -> Result<Vec<Duration>> {
    let mut latencies = Vec::new();
    loop {
        let started = Instant::now();
        if !period.may_begin(started) {
            return Ok(latencies);
        }
        worker.step().await?;
        let ended = Instant::now();
        if period.counts(started, ended) {
            latencies.push(ended - started);
        }
    }
}

/// A worker that sends requests over its own connection and expects the same status for all of them.
pub struct Client<F, S = TcpStream> {
    connection: Connection<S>,
    expected: u16,
    next: F,
}

impl<R, F> Client<F>
where
    R: AsRef<[u8]> + Send,
    F: FnMut() -> R + Send + 'static,
{
    /// Clients over `connections` connections; `next` makes the request generator of each.
    pub async fn connect(
        address: SocketAddr,
        connections: usize,
        expected: u16,
        mut next: impl FnMut(usize) -> F,
    ) -> Result<Vec<Client<F>>> {
        let mut clients = Vec::with_capacity(connections);
        for number in 0..connections {
            clients.push(Client::over(Connection::open(address).await?, expected, next(number)));
        }
        Ok(clients)
    }
}

impl<F, S> Client<F, S> {
    /// A client over a connection.
    pub fn over(connection: Connection<S>, expected: u16, next: F) -> Client<F, S> {
        Client {
            connection,
            expected,
            next,
        }
    }
}

impl<R, F, S> Worker for Client<F, S>
where
    R: AsRef<[u8]> + Send,
    F: FnMut() -> R + Send + 'static,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    async fn step(&mut self) -> Result<()> {
        let request = (self.next)();
        self.connection.expect(self.expected, request.as_ref()).await?;
        Ok(())
    }
}

/// The result of [`paced`].
#[derive(Debug)]
pub struct Paced {
    /// From the intended starts. Those of `unfinished` operations are how long they had waited when they were given up.
    pub latencies: Latencies,
    /// Operations that had no result when their time was over.
    pub unfinished: usize,
}

/// An open loop of workers: `rate` operations per second for `time`, each by the next worker that is free, at its intended start or later.
///
/// # Errors
/// The first failed operation.
pub async fn paced<W: Worker>(workers: Vec<W>, rate: u32, time: Duration) -> Result<Paced> {
    let (starts, queue) = mpsc::unbounded_channel();
    let queue = Arc::new(Mutex::new(queue));
    let end = Instant::now() + time;
    let mut tasks = JoinSet::new();
    for worker in workers {
        tasks.spawn(do_starts(worker, queue.clone(), end + GRACE));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    std::thread::spawn(move || pace(rate, &starts, &stopped));
    tokio::time::sleep_until(end.into()).await;
    stop.store(true, Ordering::Relaxed);
    let (mut latencies, mut unfinished) = (Vec::new(), 0);
    while let Some(done) = tasks.join_next().await {
        let (mut of_worker, given_up) = done??;
        latencies.append(&mut of_worker);
        unfinished += given_up;
    }
    Ok(Paced {
        latencies: latencies.into_iter().collect(),
        unfinished,
    })
}

/// The latencies of one worker, and how many operations it gave up. After one that was interrupted no other begins: the connection is in its middle.
async fn do_starts(
    mut worker: impl Worker,
    queue: Arc<Mutex<mpsc::UnboundedReceiver<(u64, Instant)>>>,
    last: Instant,
) -> Result<(Vec<Duration>, usize)> {
    let (mut latencies, mut unfinished) = (Vec::new(), 0);
    loop {
        let next = queue.lock().await.recv().await;
        let Some((_, intended)) = next else {
            return Ok((latencies, unfinished));
        };
        let is_in_time = Instant::now() < last;
        match is_in_time.then_some(tokio::time::timeout_at(last.into(), worker.step())) {
            Some(step) => match step.await {
                Ok(done) => done?,
                Err(_) => unfinished += 1,
            },
            None => unfinished += 1,
        }
        latencies.push(intended.elapsed());
    }
}

/// A connection over which a load generator sends prepared requests.
pub trait Link: Sized + Send + 'static {
    /// Connects.
    fn open(address: SocketAddr) -> impl Future<Output = Result<Self>> + Send;

    /// Sends a request; returns the status of the response.
    fn status(&mut self, request: &[u8]) -> impl Future<Output = Result<u16>> + Send;
}

impl Link for Connection {
    async fn open(address: SocketAddr) -> Result<Connection> {
        Connection::open(address).await
    }

    async fn status(&mut self, request: &[u8]) -> Result<u16> {
        Ok(self.ask(request).await?.status)
    }
}

/// A request of an open loop.
pub struct Planned<K> {
    pub kind: K,
    pub request: Vec<u8>,
    pub expected: u16,
}

/// The result of a request of an open loop.
#[derive(Debug, Clone, Copy)]
pub struct Sample<K> {
    pub kind: K,
    /// When it should have started.
    pub intended: Instant,
    /// From then to its response, including the wait for a free connection.
    pub latency: Duration,
    /// Whether it had the expected status.
    pub is_expected: bool,
}

/// A running open loop; see [`OpenLoop::start`].
pub struct OpenLoop<K> {
    stop: Arc<AtomicBool>,
    tasks: JoinSet<Result<Vec<Sample<K>>>>,
}

impl<K: Copy + Send + 'static> OpenLoop<K> {
    /// Starts `rate` requests per second, evenly spaced, over as many connections as are free; `plan` makes the n-th one.
    ///
    /// Latencies count from the intended start, so a server that stalls is charged for every request that should have started meanwhile.
    pub fn start(
        address: SocketAddr,
        rate: u32,
        connections: usize,
        plan: impl Fn(u64) -> Planned<K> + Send + Sync + 'static,
    ) -> OpenLoop<K> {
        OpenLoop::over::<Connection>(address, rate, connections, plan)
    }

    /// As [`OpenLoop::start`], over connections of another protocol.
    pub fn over<L: Link>(
        address: SocketAddr,
        rate: u32,
        connections: usize,
        plan: impl Fn(u64) -> Planned<K> + Send + Sync + 'static,
    ) -> OpenLoop<K> {
        let (starts, queue) = mpsc::unbounded_channel();
        let (queue, plan) = (Arc::new(Mutex::new(queue)), Arc::new(plan));
        let mut tasks = JoinSet::new();
        for _ in 0..connections {
            tasks.spawn(answer_starts::<K, L>(address, queue.clone(), plan.clone()));
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        std::thread::spawn(move || pace(rate, &starts, &stopped));
        OpenLoop { stop, tasks }
    }

    /// As [`OpenLoop::finish_with_failures`], and a request that failed is an error.
    ///
    /// # Errors
    /// If any request did not get the expected response.
    pub async fn finish(self) -> Result<Vec<Sample<K>>> {
        let samples = self.finish_with_failures().await?;
        match samples.iter().filter(|sample| !sample.is_expected).count() {
            0 => Ok(samples),
            failed => Err(format!("{failed} of {} requests failed", samples.len()).into()),
        }
    }

    /// Stops, waits for the requests in progress, and returns all samples.
    ///
    /// # Errors
    /// Only a bug.
    pub async fn finish_with_failures(mut self) -> Result<Vec<Sample<K>>> {
        self.stop.store(true, Ordering::Relaxed);
        let mut samples = Vec::new();
        while let Some(done) = self.tasks.join_next().await {
            samples.append(&mut done??);
        }
        Ok(samples)
    }
}

/// Sends starts at their times, from a thread because timers of the runtime are exact only to a millisecond.
fn pace(rate: u32, starts: &mpsc::UnboundedSender<(u64, Instant)>, stopped: &AtomicBool) {
    let begin = Instant::now();
    for number in 0.. {
        let intended = begin + Duration::from_secs_f64(number as f64 / f64::from(rate));
        std::thread::sleep(intended.saturating_duration_since(Instant::now()));
        if stopped.load(Ordering::Relaxed) || starts.send((number, intended)).is_err() {
            return;
        }
    }
}

async fn answer_starts<K: Copy, L: Link>(
    address: SocketAddr,
    queue: Arc<Mutex<mpsc::UnboundedReceiver<(u64, Instant)>>>,
    plan: Arc<impl Fn(u64) -> Planned<K>>,
) -> Result<Vec<Sample<K>>> {
    let mut samples = Vec::new();
    let mut connection: Option<L> = None;
    loop {
        let next = queue.lock().await.recv().await;
        let Some((number, intended)) = next else {
            return Ok(samples);
        };
        let planned = plan(number);
        // Time spent waiting for a connection counts.
        let left = TIMEOUT.saturating_sub(intended.elapsed());
        let asked = tokio::time::timeout(left, ask(&mut connection, address, &planned.request)).await;
        let status = asked.ok().and_then(Result::ok);
        if status.is_none() {
            connection = None;
        }
        samples.push(Sample {
            kind: planned.kind,
            intended,
            latency: intended.elapsed(),
            is_expected: status == Some(planned.expected),
        });
    }
}

/// The status of the response to a request, over the existing connection or a new one.
async fn ask<L: Link>(connection: &mut Option<L>, address: SocketAddr, request: &[u8]) -> Result<u16> {
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(L::open(address).await?),
    };
    connection.status(request).await
}
