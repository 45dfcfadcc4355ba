//! Reads of a few keys: those of one partition that are asked for at the same time share a statement.
//!
//! ```text
//!   first read ───▶ a statement
//!   later reads ──▶ wait ──▶ when it ends: one statement for all that wait
//! ```
//!
//! Where the server takes longer, because it reads from its disk or is far away, there is more than one statement at once: a read that comes when the last
//! one has taken long takes those that wait with it.
//!
//! A statement costs the server and this process more than the rows of a key do. A lone read is sent at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_storage::{EngineError, PartitionId, ReadRequest, ReadResponse};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::engine::Inner;

/// Statements of one partition at once.
const STATEMENTS: usize = 4;
/// A further statement begins if the last one has taken so long already.
const SLOW: Duration = Duration::from_millis(1);
/// Reads of one statement.
const READS: usize = 64;
/// Bytes of one answer, if its values are as large as those of late. The first large ones may make it larger.
const BYTES: usize = 4 * 1024 * 1024;
/// A read that has waited so long looks whether it can begin a statement itself: those under way may hang.
const PATIENCE: Duration = Duration::from_millis(5);
/// Keys of a read that is sent together with others.
const KEYS: usize = 2;

/// The reads of a partition that wait, and how many statements are under way.
#[derive(Default)]
pub(crate) struct Lookups(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    statements: usize,
    /// When the last one began.
    begun: Option<Instant>,
    /// Bytes of the largest answers of late.
    largest: usize,
    waiting: Vec<Waiting>,
}

struct Waiting {
    request: ReadRequest,
    reply: oneshot::Sender<Result<ReadResponse, EngineError>>,
}

/// Whether a read may be sent together with others: it has a few keys only, and no limit that depends on them.
pub(crate) fn can_share(request: &ReadRequest) -> bool {
    let keys = request.gets.len();
    let is_limited = keys > 1 && request.max_bytes != usize::MAX;
    (1..=KEYS).contains(&keys) && request.scans.is_empty() && !is_limited
}

/// One of the statements that may be under way. When it ends, whatever its outcome, the reads that wait are sent.
struct Turn {
    inner: Arc<Inner>,
    partition: PartitionId,
    lookups: Arc<Lookups>,
    /// If not, and it ends, no task runs any more.
    is_begun: bool,
}

impl Turn {
    /// A turn for a read, or its place among those that wait.
    fn take(
        inner: Arc<Inner>,
        partition: PartitionId,
        request: &ReadRequest,
    ) -> Result<Turn, oneshot::Receiver<Result<ReadResponse, EngineError>>> {
        let lookups = inner.partitions.get(partition).lookups.clone();
        let now = inner.monotonic.now();
        let mut queue = lookups.0.lock();
        if !queue.may_begin(now) {
            return Err(queue.wait(request));
        }
        queue.begin(now);
        // It takes along those that wait.
        let waits = (!queue.waiting.is_empty()).then(|| (queue.wait(request), queue.next()));
        drop(queue);
        let turn = Turn {
            inner,
            partition,
            lookups,
            is_begun: true,
        };
        let Some((answer, reads)) = waits else {
            return Ok(turn);
        };
        tokio::spawn(turn.send(reads));
        Err(answer)
    }

    /// A turn for the reads that wait, if there may be one more.
    fn take_for_those_who_wait(inner: &Arc<Inner>, partition: PartitionId) -> Option<(Turn, Vec<Waiting>)> {
        let lookups = inner.partitions.get(partition).lookups.clone();
        let mut queue = lookups.0.lock();
        if queue.statements == STATEMENTS || queue.waiting.is_empty() {
            return None;
        }
        queue.begin(inner.monotonic.now());
        let reads = queue.next();
        drop(queue);
        let turn = Turn {
            inner: inner.clone(),
            partition,
            lookups,
            is_begun: true,
        };
        Some((turn, reads))
    }

    /// Sends the reads that wait when it is begun, which may be more than when the statement before ended.
    async fn send_next(mut self) {
        self.is_begun = true;
        let reads = self.lookups.0.lock().next();
        self.send(reads).await;
    }

    /// Sends reads in one statement.
    async fn send(self, mut reads: Vec<Waiting>) {
        // Those who gave up meanwhile need no answer.
        reads.retain(|read| !read.reply.is_closed());
        if reads.is_empty() {
            return;
        }
        let gets = reads.iter().flat_map(|read| &read.request.gets);
        let together = ReadRequest::of_keys(gets.cloned().collect());
        let mut answer = self.inner.read_cached(self.partition, &together).await;
        self.note(&answer);
        for read in reads {
            let keys = read.request.gets.len();
            let own = match &mut answer {
                Ok(all) => Ok(ReadResponse {
                    head: all.head,
                    gets: all.gets.drain(..keys).collect(),
                    pages: Vec::new(),
                }),
                Err(error) => Err(error.clone()),
            };
            // Whoever has asked may be gone.
            let _ = read.reply.send(own);
        }
    }

    /// Remembers how large an answer was.
    fn note(&self, answer: &Result<ReadResponse, EngineError>) {
        let Ok(answer) = answer else { return };
        let largest = answer.gets.iter().flatten().map(Bytes::len).max().unwrap_or_default();
        let mut queue = self.lookups.0.lock();
        queue.largest = largest.max(queue.largest / 2);
    }
}

impl Lookups {
    /// Ends a statement. Whether another one begins at once, for the reads that wait.
    fn end_and_begin(&self, now: Instant) -> bool {
        let mut queue = self.0.lock();
        queue.statements -= 1;
        let begins = !queue.waiting.is_empty() && queue.may_begin(now);
        if begins {
            queue.begin(now);
        }
        begins
    }

    /// Ends a statement, and the reads that wait: nothing will send them.
    fn end(&self) {
        let mut queue = self.0.lock();
        queue.statements -= 1;
        let ended = std::mem::take(&mut queue.waiting);
        drop(queue);
        drop(ended);
    }
}

impl Queue {
    /// Whether a statement may begin: none is under way, or the last one takes long.
    fn may_begin(&self, now: Instant) -> bool {
        let is_slow = self.begun.is_some_and(|begun| now.duration_since(begun) >= SLOW);
        self.statements == 0 || (self.statements < STATEMENTS && is_slow)
    }

    fn begin(&mut self, now: Instant) {
        self.statements += 1;
        self.begun = Some(now);
    }

    fn wait(&mut self, request: &ReadRequest) -> oneshot::Receiver<Result<ReadResponse, EngineError>> {
        let (reply, answer) = oneshot::channel();
        let request = request.clone();
        self.waiting.push(Waiting { request, reply });
        answer
    }

    /// The reads of the next statement.
    fn next(&mut self) -> Vec<Waiting> {
        let fitting = BYTES / (self.largest * KEYS).max(1);
        let count = self.waiting.len().min(READS).min(fitting.max(1));
        self.waiting.drain(..count).collect()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let runtime = Handle::try_current();
        let (true, Ok(runtime)) = (self.is_begun, runtime) else {
            return self.lookups.end();
        };
        if !self.lookups.end_and_begin(self.inner.monotonic.now()) {
            return;
        }
        let turn = Turn {
            inner: self.inner.clone(),
            partition: self.partition,
            lookups: self.lookups.clone(),
            is_begun: false,
        };
        // A runtime that is being shut down drops it at once.
        runtime.spawn(turn.send_next());
    }
}

impl Inner {
    /// Reads a few keys, with others that are asked for at the same time.
    pub(crate) async fn look_up(
        &self,
        partition: PartitionId,
        request: ReadRequest,
    ) -> Result<ReadResponse, EngineError> {
        let inner = self.this.upgrade().ok_or_else(closed)?;
        let read = match Turn::take(inner.clone(), partition, &request) {
            Ok(turn) => {
                let answer = self.read_cached(partition, &request).await;
                turn.note(&answer);
                drop(turn);
                answer
            }
            Err(answer) => self.wait(answered(&inner, partition, answer)).await.unwrap_or_else(Err),
        };
        if matches!(read, Err(EngineError::NoPartition(_))) {
            self.forget(partition);
        }
        read
    }
}

/// Waits for an answer. If it takes long, another statement begins.
async fn answered(
    inner: &Arc<Inner>,
    partition: PartitionId,
    mut answer: oneshot::Receiver<Result<ReadResponse, EngineError>>,
) -> Result<ReadResponse, EngineError> {
    loop {
        let until = inner.monotonic.now() + PATIENCE;
        if let Some(answer) = inner.monotonic.timeout_at(until, &mut answer).await {
            return answer.map_err(|_| closed())?;
        }
        if let Some((turn, reads)) = Turn::take_for_those_who_wait(inner, partition) {
            tokio::spawn(turn.send(reads));
        }
    }
}

fn closed() -> EngineError {
    EngineError::Unavailable("the store is closed".to_owned())
}

#[cfg(test)]
mod tests;
