//! Slots for connections: as many as the process can serve. When all are taken, the least important connection is ended.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::clock::ServerClock;
use crate::timeouts::Activity;

/// Pause before looking again for a connection to end, if all were busy.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// A fixed number of slots.
#[derive(Debug)]
pub struct Slots {
    clock: ServerClock,
    limit: usize,
    taken: Mutex<Taken>,
    count: Arc<AtomicUsize>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    connections: HashMap<u64, Arc<Connection>>,
    next: u64,
}

#[derive(Debug)]
struct Connection {
    activity: Arc<Activity>,
    /// Notifies the connection, once, that it must end.
    leave: Notify,
}

impl Slots {
    /// `limit` slots.
    pub fn new(limit: usize, clock: ServerClock) -> Slots {
        Slots {
            clock,
            limit,
            taken: Mutex::default(),
            count: Arc::default(),
            freed: Notify::new(),
        }
    }

    /// The number of slots in use.
    pub fn count(&self) -> Arc<AtomicUsize> {
        self.count.clone()
    }

    /// A slot for a new connection. If none is free, the least important connection is ended; if all are busy, waits for one of them.
    pub async fn take(self: &Arc<Self>) -> Slot {
        loop {
            if let Some(slot) = self.try_take() {
                return slot;
            }
            self.end_one();
            let _ = timeout(RETRY_INTERVAL, self.freed.notified()).await;
        }
    }

    fn try_take(self: &Arc<Self>) -> Option<Slot> {
        let mut taken = self.taken.lock();
        if taken.connections.len() >= self.limit {
            return None;
        }
        let connection = Arc::new(Connection {
            activity: Activity::new(&self.clock),
            leave: Notify::new(),
        });
        let id = taken.next;
        taken.next += 1;
        taken.connections.insert(id, connection.clone());
        self.count.store(taken.connections.len(), Ordering::Relaxed);
        Some(Slot {
            id,
            connection,
            slots: self.clone(),
        })
    }

    /// Ends one connection, if any is not busy.
    pub fn end_one(&self) {
        let taken = self.taken.lock();
        let candidates = taken.connections.iter();
        let spared = candidates
            .filter_map(|(id, connection)| Some(((connection.activity.eviction_rank()?, *id), connection)))
            .min_by_key(|(order, _)| *order);
        if let Some((_, connection)) = spared {
            connection.leave.notify_one();
        }
    }

    /// Resolves when no connection is left.
    pub async fn all_free(&self) {
        while !self.taken.lock().connections.is_empty() {
            self.freed.notified().await;
        }
    }
}

/// The slot of one connection; freed when it is dropped.
#[derive(Debug)]
pub struct Slot {
    id: u64,
    connection: Arc<Connection>,
    slots: Arc<Slots>,
}

impl Slot {
    /// The state of its connection.
    pub fn activity(&self) -> Arc<Activity> {
        self.connection.activity.clone()
    }

    /// Resolves when the connection must end for another one.
    pub async fn must_end(&self) {
        self.connection.leave.notified().await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken.lock();
        taken.connections.remove(&self.id);
        self.slots.count.store(taken.connections.len(), Ordering::Relaxed);
        drop(taken);
        self.slots.freed.notify_one();
    }
}

#[cfg(test)]
mod tests;
