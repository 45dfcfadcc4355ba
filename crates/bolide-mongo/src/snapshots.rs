//! Snapshots for reads at one time outside of transactions: `readConcern: {level: "snapshot", atClusterTime?}`.
//!
//! The first read gets the time of its snapshot, and names it in the reads that are to see the same. The snapshot of a database stays readable for a minute;
//! with too many, the oldest ends before. A time that no read got can be read while nothing was written since.
//!
//! Source: mongo.md §7; the specification of snapshot sessions.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use bolide_core::{Account, OpenTransaction};
use bolide_model::UnixMillis;
use bolide_model::time::Monotonic;
use bolide_mql::{Code, Error, Result};
use bson::Timestamp;
use parking_lot::Mutex;

use crate::cluster_time::{millis, timestamp};
use crate::codes;
use crate::limits;

/// The snapshots of a server.
pub struct Snapshots {
    monotonic: Monotonic,
    state: Mutex<State>,
}

struct State {
    /// The newest time that was given to a snapshot. Each gets a later one: a write may come between two reads in one millisecond.
    last: Timestamp,
    /// The newest one that was ahead of server time. What was written until then may have been written before or after it.
    last_ahead: Timestamp,
    open: HashMap<(String, Timestamp), Snapshot>,
}

struct Snapshot {
    read: SnapshotRead,
    began: Instant,
}

/// What one command reads.
#[derive(Clone)]
pub struct SnapshotRead {
    /// The time, as the client names it.
    pub at: Timestamp,
    /// What it reads; `None` if the database has no collections.
    pub view: Option<Arc<OpenTransaction>>,
    /// The names of the collections.
    names: Arc<HashSet<String>>,
}

impl SnapshotRead {
    /// Checks that a collection which does not exist now did not exist then.
    ///
    /// # Errors
    /// `SnapshotUnavailable`.
    pub fn check_missing(&self, collection: &str) -> Result<()> {
        if !self.names.contains(collection) {
            return Ok(());
        }
        let text = format!("the collection {collection} was dropped since the time of the snapshot");
        Err(Error::new(Code::SNAPSHOT_UNAVAILABLE, text))
    }
}

impl Snapshots {
    /// None yet.
    pub fn new(monotonic: Monotonic) -> Snapshots {
        Snapshots {
            monotonic,
            state: Mutex::new(State {
                last: Timestamp { time: 0, increment: 0 },
                last_ahead: Timestamp { time: 0, increment: 0 },
                open: HashMap::new(),
            }),
        }
    }

    /// Returns the snapshot of a database at a time, or at the time of the command, `now`.
    ///
    /// # Errors
    /// `InvalidOptions` for a time in the future; `SnapshotTooOld`; too many snapshots are held. That the data of this time is not stored any more may also
    /// show when it is read.
    pub async fn read(
        &self,
        account: &Account,
        database: &str,
        at: Option<Timestamp>,
        now: UnixMillis,
    ) -> Result<SnapshotRead> {
        if let Some(at) = at {
            if let Some(known) = self.state.lock().open.get(&(database.to_owned(), at)) {
                return Ok(known.read.clone());
            }
            self.check_past(at, timestamp(account.commit_time(now)))?;
        }
        let mut collections = account.list_collections(database);
        // Sharded collections are in no snapshot.
        collections.retain(|container| !container.is_sharded());
        let view = match collections.first() {
            None => None,
            Some(container) => {
                let judged = match at {
                    Some(at) => (millis(at).min(now), true),
                    None => (now, false),
                };
                let held = i64::try_from(limits::SNAPSHOT.as_millis()).unwrap_or(i64::MAX);
                let until = UnixMillis(now.0.saturating_add(held));
                let begun = account.begin_snapshot(container, judged, until).await;
                let begun = begun.map_err(|error| codes::error(&error))?;
                Some(Arc::new(OpenTransaction::new(begun)))
            }
        };
        let names = collections.iter().map(|container| container.properties().id.clone());
        let names = Arc::new(names.collect());
        let mut state = self.state.lock();
        let (is_new, at) = (
            at.is_none(),
            at.unwrap_or_else(|| state.next(timestamp(account.commit_time(now)))),
        );
        let read = SnapshotRead { at, view, names };
        if is_new {
            state.make_room();
        }
        if read.view.is_some() && state.open.len() < limits::SNAPSHOTS {
            let began = self.monotonic.now();
            let read = read.clone();
            state.open.insert((database.to_owned(), at), Snapshot { read, began });
        }
        Ok(read)
    }

    fn check_past(&self, at: Timestamp, now: Timestamp) -> Result<()> {
        let invalid = |text: String| Err(Error::new(Code::INVALID_OPTIONS, text));
        if at.time == 0 && at.increment == 0 {
            return invalid("atClusterTime cannot be a null timestamp".to_owned());
        }
        let newest = self.state.lock().last.max(now);
        if at > newest {
            return invalid(format!(
                "readConcern atClusterTime value must not be greater than the current clusterTime. Requested clusterTime: {at}; current clusterTime: \
                 {newest}"
            ));
        }
        if at <= self.state.lock().last_ahead {
            return Err(Error::new(
                Code::SNAPSHOT_TOO_OLD,
                "the data of this time is not stored any more",
            ));
        }
        Ok(())
    }

    /// Ends all snapshots.
    pub fn clear(&self) {
        self.state.lock().open.clear();
    }

    /// Ends the snapshots whose time is over.
    pub fn expire(&self) {
        let now = self.monotonic.now();
        let is_over = |snapshot: &Snapshot| now.duration_since(snapshot.began) >= limits::SNAPSHOT;
        self.state.lock().open.retain(|_, snapshot| !is_over(snapshot));
    }
}

impl State {
    /// Returns the time of a new snapshot, later than those of all others.
    fn next(&mut self, now: Timestamp) -> Timestamp {
        let Timestamp { time, increment } = self.last;
        let after = match increment.checked_add(1) {
            Some(increment) => Timestamp { time, increment },
            None => Timestamp {
                time: time.saturating_add(1),
                increment: 1,
            },
        };
        let next = now.max(after);
        self.last = next;
        if next > now {
            self.last_ahead = next;
        }
        next
    }

    /// Ends the oldest snapshot if there are too many.
    fn make_room(&mut self) {
        if self.open.len() < limits::SNAPSHOTS {
            return;
        }
        let oldest = self.open.iter().min_by_key(|((_, at), snapshot)| (snapshot.began, *at));
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.open.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests;
