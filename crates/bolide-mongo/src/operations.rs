//! The commands that run now, for `currentOp` and `killOp`, and what ends them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Instant;

use bolide_model::time::Monotonic;
use bolide_mql::context::Interrupt;
use bolide_mql::{Code, Error, Result};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::sessions::SessionId;

/// A running command.
#[derive(Debug)]
pub struct Operation {
    /// Its number, for `killOp`.
    pub id: i32,
    /// The name of the command.
    pub command: &'static str,
    /// `database.collection`, or the database if the command has no collection.
    pub namespace: String,
    /// The number of its connection.
    pub connection: i32,
    /// The address of the client.
    pub client: Arc<str>,
    /// The name of the client's application.
    pub application: Arc<str>,
    /// The name of its sender; `None` without authentication.
    pub user: Option<Arc<str>>,
    /// Its session.
    pub session: Option<SessionId>,
    /// When it began.
    pub started: Instant,
    killed: Arc<Kill>,
}

/// Whether a command must end.
#[derive(Debug, Default)]
struct Kill {
    is_killed: AtomicBool,
    notify: Notify,
}

impl Kill {
    fn kill(&self) {
        self.is_killed.store(true, Ordering::Relaxed);
        self.notify.notify_one();
    }
}

/// What is known of a command when it begins.
#[derive(Debug)]
pub struct Begun {
    /// The name of the command.
    pub command: &'static str,
    /// `database.collection`, or the database if the command has no collection.
    pub namespace: String,
    /// The number of its connection.
    pub connection: i32,
    /// The address of the client.
    pub client: Arc<str>,
    /// The name of the client's application.
    pub application: Arc<str>,
    /// The name of the sender; `None` without authentication.
    pub user: Option<Arc<str>>,
    /// The session.
    pub session: Option<SessionId>,
}

/// The running commands of a server.
#[derive(Debug)]
pub struct Operations {
    monotonic: Monotonic,
    running: Mutex<HashMap<i32, Arc<Operation>>>,
    last: AtomicI32,
}

impl Operations {
    /// Nothing runs yet.
    pub fn new(monotonic: Monotonic) -> Operations {
        Operations {
            monotonic,
            running: Mutex::default(),
            last: AtomicI32::new(0),
        }
    }

    /// Registers a command until the result is dropped.
    pub fn begin(self: &Arc<Self>, begun: Begun) -> Running {
        let mut running = self.running.lock();
        let id = loop {
            let id = self.last.fetch_add(1, Ordering::Relaxed) & i32::MAX;
            if id != 0 && !running.contains_key(&id) {
                break id;
            }
        };
        let operation = Arc::new(Operation {
            id,
            command: begun.command,
            namespace: begun.namespace,
            connection: begun.connection,
            client: begun.client,
            application: begun.application,
            user: begun.user,
            session: begun.session,
            started: self.monotonic.now(),
            killed: Arc::default(),
        });
        running.insert(id, operation.clone());
        Running {
            operation,
            operations: self.clone(),
        }
    }

    /// The running commands.
    pub fn all(&self) -> Vec<Arc<Operation>> {
        let mut all: Vec<_> = self.running.lock().values().cloned().collect();
        all.sort_by_key(|operation| operation.id);
        all
    }

    /// Ends a command; does nothing if it does not run.
    pub fn kill(&self, id: i32) {
        if let Some(operation) = self.running.lock().get(&id) {
            operation.killed.kill();
        }
    }

    /// Ends all commands.
    pub fn kill_all(&self) {
        for operation in self.running.lock().values() {
            operation.killed.kill();
        }
    }

    /// Whether no command runs.
    pub fn is_empty(&self) -> bool {
        self.running.lock().is_empty()
    }

    /// Ends the commands of a session, except for one.
    pub fn kill_session(&self, session: &SessionId, except: i32) {
        for operation in self.running.lock().values() {
            if operation.session.as_ref() == Some(session) && operation.id != except {
                operation.killed.kill();
            }
        }
    }
}

/// A running command; dropped when it ends.
#[derive(Debug)]
pub struct Running {
    operation: Arc<Operation>,
    operations: Arc<Operations>,
}

impl Running {
    /// Its number, for `killOp`.
    pub fn id(&self) -> i32 {
        self.operation.id
    }

    /// Resolves when the command is killed.
    pub async fn killed(&self) {
        self.operation.killed.notify.notified().await;
    }

    /// What ends the command's computations: a kill, or its time limit.
    pub fn interrupt(&self, deadline: Option<Instant>) -> Arc<dyn Interrupt> {
        Arc::new(OperationInterrupt {
            killed: self.operation.killed.clone(),
            deadline,
            monotonic: self.operations.monotonic.clone(),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.operations.running.lock().remove(&self.operation.id);
    }
}

/// Ends a command that is killed or over its time limit.
struct OperationInterrupt {
    killed: Arc<Kill>,
    deadline: Option<Instant>,
    monotonic: Monotonic,
}

impl Interrupt for OperationInterrupt {
    fn check(&self, _: u64) -> Result<()> {
        if self.killed.is_killed.load(Ordering::Relaxed) {
            return Err(interrupted());
        }
        match self.deadline {
            Some(deadline) if self.monotonic.now() >= deadline => Err(time_limit_exceeded()),
            _ => Ok(()),
        }
    }
}

/// The error of a command that comes when the server stops.
pub fn shutting_down() -> Error {
    let text = "The server is in quiesce mode and will shut down";
    Error::new(Code::SHUTDOWN_IN_PROGRESS, text)
}

/// The error of a command while the account's content is replaced by a snapshot. Drivers repeat it, and change streams go on.
pub fn replaced() -> Error {
    let text = "operation was interrupted: the account is replaced by a snapshot";
    Error::new(Code::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE, text)
}

/// The error of a command that was killed.
pub fn interrupted() -> Error {
    Error::new(Code::INTERRUPTED, "operation was interrupted")
}

/// The error of a command that took longer than its `maxTimeMS`.
pub fn time_limit_exceeded() -> Error {
    Error::new(Code::MAX_TIME_MS_EXPIRED, "operation exceeded time limit")
}

#[cfg(test)]
mod tests;
