//! Places for connections: as many as the process can carry. When all are taken, whoever can be spared makes room.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::clock::ServerClock;
use crate::timeouts::Pulse;

/// Rest before another connection is looked for that can be spared, when all were at work.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Places for so many connections.
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
    pulse: Arc<Pulse>,
    /// It must make room. Told once.
    leave: Notify,
}

impl Slots {
    /// Places for `limit` connections.
    pub fn new(limit: usize, clock: ServerClock) -> Slots {
        Slots {
            clock,
            limit,
            taken: Mutex::default(),
            count: Arc::default(),
            freed: Notify::new(),
        }
    }

    /// How many are taken.
    pub fn count(&self) -> Arc<AtomicUsize> {
        self.count.clone()
    }

    /// A place for a new connection. When there is none, the connection that can be spared most readily is ended; when all are at work, one of them
    /// is waited for.
    pub async fn take(self: &Arc<Self>) -> Slot {
        loop {
            if let Some(slot) = self.try_take() {
                return slot;
            }
            self.shed();
            let _ = timeout(LOOK_AGAIN, self.freed.notified()).await;
        }
    }

    fn try_take(self: &Arc<Self>) -> Option<Slot> {
        let mut taken = self.taken.lock();
        if taken.connections.len() >= self.limit {
            return None;
        }
        let connection = Arc::new(Connection {
            pulse: Pulse::new(&self.clock),
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

    /// Ends one connection, if any can be spared.
    pub fn shed(&self) {
        let taken = self.taken.lock();
        let candidates = taken.connections.iter();
        let spared = candidates
            .filter_map(|(id, connection)| Some(((connection.pulse.dispensability()?, *id), connection)))
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

/// The place of one connection; given back when it is dropped.
#[derive(Debug)]
pub struct Slot {
    id: u64,
    connection: Arc<Connection>,
    slots: Arc<Slots>,
}

impl Slot {
    /// What its connection is doing.
    pub fn pulse(&self) -> Arc<Pulse> {
        self.connection.pulse.clone()
    }

    /// Resolves when the connection must make room for another.
    pub async fn is_taken_away(&self) {
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
