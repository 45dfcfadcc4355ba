//! State shared by all connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Instant;

use bolide_core::{Account, RecentRequests};
use bolide_model::UnixMillis;
use bolide_model::time::Monotonic;
use bolide_mql::Error;
use bson::oid::ObjectId;
use bson::{RawDocumentBuf, Timestamp, rawdoc};
use tokio::sync::watch;
use uuid::Uuid;

use crate::authentication::Credentials;
pub use crate::cluster_time::timestamp;
use crate::cursors::Cursors;
use crate::fail_points::FailPoints;
use crate::metrics::Metrics;
use crate::operations::{self, Operations};
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
    /// The requests that were answered last, over all protocols.
    pub recent_requests: Arc<RecentRequests>,
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

/// See the module. When the account's content is replaced by a snapshot, another state takes the place of this one.
pub struct MongoState {
    /// The database.
    pub account: Arc<Account>,
    /// See [`MongoOptions`].
    pub options: Arc<MongoOptions>,
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
    pub fail_points: Arc<FailPoints>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// The identity of this process as a member of the replica set (`electionId`, `topologyVersion.processId`).
    pub process_id: ObjectId,
    /// Parameters that can be set.
    pub ttl_monitor: Arc<TtlMonitorParameters>,
    started: Instant,
    connections: Arc<AtomicI32>,
    requests: Arc<AtomicI32>,
    phase: watch::Sender<Phase>,
}

/// Whether the state is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    InUse,
    /// Another state takes its place, for another content of the account.
    Replaced,
    /// The server stops.
    Stopping,
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
        MongoState::fresh(account, Arc::new(options))
    }

    fn fresh(account: Arc<Account>, options: Arc<MongoOptions>) -> MongoState {
        let monotonic = account.monotonic().clone();
        MongoState {
            users: Users::default(),
            sessions: Sessions::new(monotonic.clone()),
            transactions: Transactions::new(monotonic.clone()),
            snapshots: Snapshots::new(monotonic.clone()),
            cursors: Cursors::new(monotonic.clone()),
            operations: Arc::new(Operations::new(monotonic.clone())),
            fail_points: Arc::default(),
            metrics: Arc::default(),
            process_id: process_id(account.server_time()),
            ttl_monitor: Arc::new(TtlMonitorParameters {
                sleep_seconds: AtomicI32::new(60),
                is_enabled: AtomicBool::new(true),
            }),
            started: monotonic.now(),
            connections: Arc::default(),
            requests: Arc::default(),
            phase: watch::Sender::new(Phase::InUse),
            account,
            options,
        }
    }

    /// The state for another account in the place of this one, which has no sessions, transactions and cursors yet. What belongs to the server and not
    /// to the account is kept; so clients see the same member of the replica set.
    pub(crate) fn successor(&self, account: Arc<Account>) -> MongoState {
        MongoState {
            fail_points: self.fail_points.clone(),
            metrics: self.metrics.clone(),
            process_id: self.process_id,
            ttl_monitor: self.ttl_monitor.clone(),
            started: self.started,
            connections: self.connections.clone(),
            requests: self.requests.clone(),
            ..MongoState::fresh(account, self.options.clone())
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
        self.phase.send_replace(Phase::Stopping);
    }

    /// Another state takes the place of this one: connections wait for it, and commands end as far as they can without an unknown outcome.
    pub(crate) fn retire(&self) {
        self.phase.send_replace(Phase::Replaced);
        self.operations.kill_all();
    }

    /// Whether the server stops.
    pub fn is_stopping(&self) -> bool {
        *self.phase.borrow() == Phase::Stopping
    }

    /// Whether another state takes the place of this one.
    pub fn is_replaced(&self) -> bool {
        *self.phase.borrow() == Phase::Replaced
    }

    /// The error of a command that cannot go on because the state is no longer in use.
    pub fn ending(&self) -> Error {
        match self.is_replaced() {
            true => operations::replaced(),
            false => operations::shutting_down(),
        }
    }

    /// The version of what hello says: it changes once, when the server stops, so that clients tell that from earlier errors.
    pub fn topology_version(&self) -> TopologyVersion {
        TopologyVersion {
            process_id: self.process_id,
            counter: i64::from(self.is_stopping()),
        }
    }

    /// Resolves when the server stops, or when another state takes the place of this one.
    pub async fn stopped(&self) {
        let mut receiver = self.phase.subscribe();
        // The sender lives as long as the state.
        let _ = receiver.wait_for(|phase| *phase != Phase::InUse).await;
    }

    /// Closes all cursors and ends all transactions. They have references to the state, which without this would stay in memory.
    pub(crate) fn clear(&self) {
        self.cursors.clear();
        self.transactions.clear();
        self.snapshots.clear();
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
