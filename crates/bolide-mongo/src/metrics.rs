//! What `serverStatus` reports: counters since the start.

use std::sync::atomic::{AtomicI64, Ordering};

/// A number that only grows, or a level. Signed, because BSON has no unsigned numbers.
#[derive(Debug, Default)]
pub struct Counter(AtomicI64);

impl Counter {
    /// Adds one for each of `count` things.
    pub fn add_all(&self, count: usize) {
        self.add(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Adds `by`, which may be negative for a level.
    pub fn add(&self, by: i64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    /// The current value.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of a server.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Open connections.
    pub connections: Counter,
    /// Connections since the start.
    pub connections_created: Counter,
    /// Commands that run.
    pub active: Counter,
    /// Bytes of messages.
    pub bytes_in: Counter,
    /// Bytes of replies.
    pub bytes_out: Counter,
    /// Messages.
    pub requests: Counter,
    /// Commands by kind.
    pub operations: OperationCounters,
}

/// `opcounters` of `serverStatus`.
#[derive(Debug, Default)]
pub struct OperationCounters {
    /// Inserted documents.
    pub insert: Counter,
    /// `find` and `aggregate`.
    pub query: Counter,
    /// Update statements.
    pub update: Counter,
    /// Delete statements.
    pub delete: Counter,
    /// `getMore`.
    pub get_more: Counter,
    /// All other commands.
    pub command: Counter,
}
