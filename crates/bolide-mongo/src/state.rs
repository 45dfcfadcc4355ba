//! State shared by all connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Instant;

use bolide_core::Account;
use bolide_model::UnixMillis;
use bolide_model::time::Monotonic;
use bson::oid::ObjectId;
use bson::{RawDocumentBuf, Timestamp, rawdoc};
use tokio::sync::watch;
use uuid::Uuid;

use crate::authentication::Credentials;
pub use crate::cluster_time::timestamp;
use crate::cursors::Cursors;
use crate::fail_points::FailPoints;
use crate::metrics::Metrics;
use crate::operations::Operations;
use crate::sessions::Sessions;
use crate::snapshots::Snapshots;
use crate::transactions::Transactions;
use crate::users::Users;

/// Options of the front end.
#[derive(Debug)]
pub struct MongoOptions {
    /// The users and their passwords.
    pub credentials: Credentials,
    /// Whether clients must authenticate. Otherwise everybody may do everything.
    pub requires_authentication: bool,
    /// The name of the replica set.
    pub set_name: String,
    /// `host:port` for clients; `None`: the local address of their connection.
    pub advertised: Option<String>,
    /// Whether `configureFailPoint` exists.
    pub faults_enabled: bool,
    /// Maximum number of connections, for `serverStatus`.
    pub max_connections: usize,
    /// Facts on the machine.
    pub host: Host,
}

/// The machine, as `hostInfo` and `serverStatus` report it.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Its memory, or that of its container, in MiB.
    pub memory_mib: i64,
    /// The port of the listener.
    pub port: u16,
}

/// See the module.
pub struct MongoState {
    /// The database.
    pub account: Arc<Account>,
    /// See [`MongoOptions`].
    pub options: MongoOptions,
    /// The users whom commands have created.
    pub users: Users,
    /// Logical sessions.
    pub sessions: Sessions,
    /// The transactions of sessions.
    pub transactions: Transactions,
    /// Snapshots of reads outside of transactions.
    pub snapshots: Snapshots,
    /// Open cursors.
    pub cursors: Cursors,
    /// Running commands.
    pub operations: Arc<Operations>,
    /// Injected errors.
    pub fail_points: FailPoints,
    /// Counters.
    pub metrics: Metrics,
    /// The identity of this process as a member of the replica set (`electionId`, `topologyVersion.processId`).
    pub process_id: ObjectId,
    /// Parameters that can be set.
    pub ttl_monitor: TtlMonitorParameters,
    started: Instant,
    connections: AtomicI32,
    requests: AtomicI32,
    stopping: watch::Sender<bool>,
}

/// `topologyVersion`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopologyVersion {
    /// The process, new for every start.
    pub process_id: ObjectId,
    /// Counts the changes since the start.
    pub counter: i64,
}

impl TopologyVersion {
    /// As hello and errors have it.
    pub fn to_document(self) -> RawDocumentBuf {
        rawdoc! { "processId": self.process_id, "counter": self.counter }
    }
}

/// Parameters that tools and tests set, and that change nothing: expiry is exact without a monitor.
#[derive(Debug)]
pub struct TtlMonitorParameters {
    /// `ttlMonitorSleepSecs`.
    pub sleep_seconds: AtomicI32,
    /// `ttlMonitorEnabled`.
    pub is_enabled: AtomicBool,
}

impl MongoState {
    /// The state of a front end for `account`.
    pub fn new(account: Arc<Account>, options: MongoOptions) -> MongoState {
        let monotonic = account.monotonic().clone();
        MongoState {
            users: Users::default(),
            sessions: Sessions::new(monotonic.clone()),
            transactions: Transactions::new(monotonic.clone()),
            snapshots: Snapshots::new(monotonic.clone()),
            cursors: Cursors::new(monotonic.clone()),
            operations: Arc::new(Operations::new(monotonic.clone())),
            fail_points: FailPoints::default(),
            metrics: Metrics::default(),
            process_id: process_id(account.server_time()),
            ttl_monitor: TtlMonitorParameters {
                sleep_seconds: AtomicI32::new(60),
                is_enabled: AtomicBool::new(true),
            },
            started: monotonic.now(),
            connections: AtomicI32::new(0),
            requests: AtomicI32::new(0),
            stopping: watch::Sender::new(false),
            account,
            options,
        }
    }

    /// The clock for durations and timeouts.
    pub fn monotonic(&self) -> &Monotonic {
        self.account.monotonic()
    }

    /// The time of the newest commit at server time `now`, or a later one, as a timestamp of the replica set's log.
    pub fn operation_time(&self, now: UnixMillis) -> Timestamp {
        timestamp(self.account.commit_time(now))
    }

    /// When the front end was started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The next number of a connection.
    pub fn next_connection(&self) -> i32 {
        self.connections.fetch_add(1, Ordering::Relaxed).wrapping_add(1) & i32::MAX
    }

    /// The next `requestID` of a reply.
    pub fn next_request_id(&self) -> i32 {
        self.requests.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// New commands are refused from now on, and commands that wait for something end.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Whether the server stops.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// The version of what hello says: it changes once, when the server stops, so that clients tell that from earlier errors.
    pub fn topology_version(&self) -> TopologyVersion {
        TopologyVersion {
            process_id: self.process_id,
            counter: i64::from(self.is_stopping()),
        }
    }

    /// Resolves when the server stops.
    pub async fn stopped(&self) {
        let mut receiver = self.stopping.subscribe();
        // The sender lives as long as the state.
        let _ = receiver.wait_for(|is_stopping| *is_stopping).await;
    }

    /// Forgets sessions and cursors that were unused for too long.
    pub fn expire(&self) {
        for session in self.sessions.expire() {
            self.cursors.end_session(&session);
            self.transactions.end_session(&session);
        }
        self.transactions.expire();
        self.snapshots.expire();
        self.cursors.expire();
    }
}

/// An id that is new for every start and later than those of earlier ones.
fn process_id(now: UnixMillis) -> ObjectId {
    let mut bytes = [0; 12];
    let seconds = u32::try_from(now.seconds().0).unwrap_or(u32::MAX);
    bytes[..4].copy_from_slice(&seconds.to_be_bytes());
    bytes[4..].copy_from_slice(&Uuid::new_v4().as_bytes()[..8]);
    ObjectId::from_bytes(bytes)
}

#[cfg(test)]
mod tests;
