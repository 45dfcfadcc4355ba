//! Reads of a few keys: those of one partition that are asked for at the same time share a statement.
//!
//! ```text
//!   first reads ──▶ a statement each, up to STATEMENTS at once
//!   later reads ──▶ wait ──▶ when one of these ends: one statement for all that wait
//! ```
//!
//! A statement costs the server and this process more than the rows of a key do. Nothing waits for a timer: a lone read is sent at once.

use std::sync::Arc;

use bolide_storage::{EngineError, PartitionId, ReadRequest, ReadResponse};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::engine::Inner;

/// Statements of one partition at once.
const STATEMENTS: usize = 2;
/// Reads of one statement. Each value has 2 MB at most, which bounds the memory of an answer.
const READS: usize = 64;
/// Keys of a read that is sent together with others.
const KEYS: usize = 2;

/// The reads of a partition that wait, and how many statements are under way.
#[derive(Default)]
pub(crate) struct Lookups(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    statements: usize,
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
}

impl Turn {
    /// A turn for a read, or its place among those that wait.
    fn take(
        inner: Arc<Inner>,
        partition: PartitionId,
        request: &ReadRequest,
    ) -> Result<Turn, oneshot::Receiver<Result<ReadResponse, EngineError>>> {
        let lookups = inner.partitions.get(partition).lookups.clone();
        let mut queue = lookups.0.lock();
        if queue.statements == STATEMENTS {
            let (reply, answer) = oneshot::channel();
            let request = request.clone();
            queue.waiting.push(Waiting { request, reply });
            return Err(answer);
        }
        queue.statements += 1;
        drop(queue);
        Ok(Turn {
            inner,
            partition,
            lookups,
        })
    }

    /// Sends reads in one statement.
    async fn send(self, mut reads: Vec<Waiting>) {
        // Those who gave up meanwhile need no answer.
        reads.retain(|read| !read.reply.is_closed());
        if reads.is_empty() {
            return;
        }
        let gets = reads.iter().flat_map(|read| &read.request.gets);
        let together = ReadRequest {
            gets: gets.cloned().collect(),
            ..ReadRequest::default()
        };
        let mut answer = self.inner.read_now(self.partition, &together).await;
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
}

impl Drop for Turn {
    fn drop(&mut self) {
        let reads: Vec<Waiting> = {
            let mut queue = self.lookups.0.lock();
            let count = queue.waiting.len().min(READS);
            if count == 0 {
                queue.statements -= 1;
                return;
            }
            queue.waiting.drain(..count).collect()
        };
        let turn = Turn {
            inner: self.inner.clone(),
            partition: self.partition,
            lookups: self.lookups.clone(),
        };
        // Without a runtime nobody waits any more.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(turn.send(reads));
        }
    }
}

impl Inner {
    /// Reads a few keys, with others that are asked for at the same time.
    pub(crate) async fn look_up(
        &self,
        partition: PartitionId,
        request: ReadRequest,
    ) -> Result<ReadResponse, EngineError> {
        let gone = || EngineError::Unavailable("the store is closed".to_owned());
        let inner = self.this.upgrade().ok_or_else(gone)?;
        match Turn::take(inner, partition, &request) {
            Ok(turn) => {
                let answer = self.read_now(partition, &request).await;
                drop(turn);
                answer
            }
            Err(answer) => self.in_time(answer).await?.map_err(|_| gone())?,
        }
    }
}
