//! A held snapshot that a server reads over its link to the store. A read without an answer ends it, as the end of the connection does on which PostgreSQL
//! holds one.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bolide_storage::{EngineFuture, HeldSnapshot, HoldError, PartitionId, ReadRequest, ReadResponse};

use super::network::Line;

/// See the module.
pub struct LinkedSnapshot {
    line: Line,
    held: Arc<dyn HeldSnapshot>,
    is_lost: AtomicBool,
}

impl LinkedSnapshot {
    pub fn new(line: Line, held: Arc<dyn HeldSnapshot>) -> LinkedSnapshot {
        LinkedSnapshot {
            line,
            held,
            is_lost: AtomicBool::new(false),
        }
    }
}

impl fmt::Debug for LinkedSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.held.fmt(f)
    }
}

impl HeldSnapshot for LinkedSnapshot {
    fn read(&self, partition: PartitionId, request: ReadRequest) -> EngineFuture<'_, Result<ReadResponse, HoldError>> {
        Box::pin(async move {
            if self.is_lost.load(Ordering::SeqCst) {
                return Err(HoldError::Expired);
            }
            let held = self.held.clone();
            let read = move |_| async move { held.read(partition, request).await };
            let answer = self.line.ask(format!("read held {partition}"), read).await;
            answer.unwrap_or_else(|| {
                self.is_lost.store(true, Ordering::SeqCst);
                Err(HoldError::Expired)
            })
        })
    }
}
