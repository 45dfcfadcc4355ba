//! What a handler gets, and what it returns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bolide_core::{Consumed, MemoryShare, RequestContext};
use bolide_mql::context::Interrupt;
use bolide_mql::{Code, Context, Error, Result};
use bson::RawDocumentBuf;

use super::global::GlobalArguments;
use super::privileges::Grants;
use super::table::{Command, Rights};
use crate::client::Client;
use crate::codes;
use crate::message::OpMsg;
use crate::operations::Running;
use crate::state::MongoState;
use crate::transactions::SessionTransaction;

/// One command, whose sender may run it.
pub struct CommandContext<'a> {
    /// State shared by all connections.
    pub state: &'a Arc<MongoState>,
    /// The connection.
    pub client: &'a Client,
    /// The row of the command.
    pub command: &'static Command,
    /// The message.
    pub message: &'a OpMsg,
    /// `$db`, a valid name.
    pub database: &'a str,
    /// The fields that may be on any command.
    pub global: GlobalArguments,
    /// The transaction that the command is part of.
    pub transaction: Option<Arc<SessionTransaction>>,
    /// What the sender may do.
    pub grants: Grants,
    /// The name of the sender; `None` without authentication.
    pub user: Option<Arc<str>>,
    /// When the command must have ended, by `maxTimeMS`.
    pub deadline: Option<Instant>,
    /// Its registration.
    pub running: &'a Running,
    /// The request units that it has consumed.
    pub consumed: Consumed,
    /// Whether the connection is closed instead of a reply.
    pub closes_connection: AtomicBool,
}

impl CommandContext<'_> {
    /// Begins a request on data: reads server time.
    ///
    /// # Errors
    /// The engine's clock is too uncertain.
    pub async fn begin(&self) -> Result<RequestContext> {
        self.state.account.begin().await.map_err(|error| codes::error(&error))
    }

    /// Closes the connection when the command has ended, as a fail point demands.
    pub fn close_connection(&self) {
        self.closes_connection.store(true, Ordering::Relaxed);
    }

    /// What the query language needs to know of the command, at the time of `request`. Collation and variables are added by the handler.
    pub fn language(&self, request: &RequestContext) -> Context {
        Context {
            cluster_time: Some(self.state.operation_time(request.now)),
            interrupt: self.interrupt(),
            ..Context::new(request.now)
        }
    }

    /// Ends the command's computations when it is killed or late.
    pub fn interrupt(&self) -> Arc<dyn Interrupt> {
        self.running.interrupt(self.deadline)
    }

    /// Checks a right that depends on the arguments, such as that to write by `$out`.
    ///
    /// # Errors
    /// `Unauthorized`.
    pub fn require(&self, rights: Rights) -> Result<()> {
        self.require_on(rights, self.database)
    }

    /// Checks a right on another database.
    ///
    /// # Errors
    /// `Unauthorized`.
    pub fn require_on(&self, rights: Rights, database: &str) -> Result<()> {
        match self.grants.allow(rights, database) {
            true => Ok(()),
            false => Err(self.unauthorized(database)),
        }
    }

    /// Checks that the sender may see what other users do on the server.
    ///
    /// # Errors
    /// `Unauthorized`.
    pub fn require_monitoring(&self) -> Result<()> {
        match self.grants.allow_monitoring(self.database) {
            true => Ok(()),
            false => Err(self.unauthorized(self.database)),
        }
    }

    /// The error for a sender who may not do on a database what the command does.
    pub fn unauthorized(&self, database: &str) -> Error {
        let text = format!("not authorized on {database} to execute command {}", self.command.name);
        Error::new(Code::UNAUTHORIZED, text)
    }
}

/// A successful reply, without the fields that every reply has.
#[derive(Debug, Default)]
pub struct Reply {
    /// Its fields.
    pub body: RawDocumentBuf,
    /// Memory that is held until it is sent.
    pub memory: MemoryShare,
    /// Whether a statement failed, which aborts a transaction.
    pub aborts_transaction: bool,
    /// Whether a command that otherwise reads has written, so that a write concern applies to it.
    pub has_written: bool,
    /// Whether the same command may be answered again and again without further requests, if its sender allows it.
    pub may_repeat: bool,
}

impl From<RawDocumentBuf> for Reply {
    fn from(body: RawDocumentBuf) -> Reply {
        Reply {
            body,
            ..Reply::default()
        }
    }
}
