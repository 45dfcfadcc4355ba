//! From a message to a reply: the checks that are the same for all commands.
//!
//!   1. The first field names the command; its row tells the rest.
//!   2. The sender is authenticated and may run it.
//!   3. The fields that may be on any command are read.
//!   4. Its session is used. The handler runs, until it ends, is killed, takes too long, or its client is gone.
//!   5. The reply gets the fields that every reply has.

mod authorization;

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bolide_core::MemoryShare;
use bolide_mql::{Code, Error, Result};
use bson::raw::{RawBsonRef, cstr};
use bson::{RawArrayBuf, RawDocument, RawDocumentBuf, rawdoc};
use futures_util::FutureExt as _;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::global::GlobalArguments;
use super::table::{Command, Rights};
use crate::client::Client;
use crate::fail_points::FailCommand;
use crate::message::OpMsg;
use crate::namespace;
use crate::operations::{self, Begun};
use crate::state::{MongoState, timestamp};
use crate::transactions::SessionTransaction;

/// Codes after which a client may send a retryable write again.
const RETRYABLE: [i32; 13] = [6, 7, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436];
/// Codes that tell a client that the server is not the primary any more, or stops.
const NOT_PRIMARY: [i32; 8] = [91, 189, 10058, 10107, 11600, 11602, 13435, 13436];
/// MongoDB's code for a message without database.
const NO_DATABASE: i32 = 40571;

/// Commands that have `opcounters` of their own.
const COUNTED_BY_HANDLERS: [&str; 6] = ["aggregate", "delete", "find", "getMore", "insert", "update"];

/// A command to run.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The message.
    pub message: &'a OpMsg,
    /// The database, if the message's form names it outside of the document.
    pub database: Option<&'a str>,
}

/// What is sent back.
pub enum Answer {
    /// A reply.
    Reply(CompleteReply),
    /// Nothing: the connection is closed, as a fail point demands.
    Close,
}

/// A reply with all fields.
pub struct CompleteReply {
    /// The document.
    pub body: RawDocumentBuf,
    /// Memory that is held until it is sent.
    pub memory: MemoryShare,
    /// See [`Reply::may_repeat`].
    pub may_repeat: bool,
}

/// Runs a command; `gone` resolves when its client has left.
pub async fn dispatch(
    state: &Arc<MongoState>,
    client: &Client,
    request: Request<'_>,
    gone: impl Future<Output = ()> + Send,
) -> Answer {
    let mut labels = Labels::default();
    let result = match Call::new(state, client, request) {
        Ok(call) => call.run(&mut labels, gone).await,
        Err(error) => Err(error.into()),
    };
    let reply = match result {
        Ok(reply) => {
            let mut body = reply.body;
            body.append(cstr!("ok"), 1.0);
            CompleteReply {
                body,
                memory: reply.memory,
                may_repeat: reply.may_repeat,
            }
        }
        Err(Ended::Error(error)) => CompleteReply {
            body: error_document(state, &error, &labels),
            memory: MemoryShare::default(),
            may_repeat: false,
        },
        Err(Ended::Close) => return Answer::Close,
    };
    Answer::Reply(with_times(state, reply).await)
}

/// The reply to a message that cannot be read.
pub async fn refuse(state: &MongoState, error: &Error) -> RawDocumentBuf {
    let reply = CompleteReply {
        body: error_document(state, error, &Labels::default()),
        memory: MemoryShare::default(),
        may_repeat: false,
    };
    with_times(state, reply).await.body
}

/// Why there is no successful reply.
enum Ended {
    Error(Error),
    Close,
}

impl From<Error> for Ended {
    fn from(error: Error) -> Ended {
        Ended::Error(error)
    }
}

/// What determines the labels of an error.
#[derive(Debug, Default)]
struct Labels {
    is_retryable_write: bool,
    is_in_transaction: bool,
    /// Set by a fail point: these instead.
    given: Option<Vec<String>>,
}

impl Labels {
    fn of(&self, code: Code) -> Vec<&str> {
        if let Some(given) = &self.given {
            return given.iter().map(String::as_str).collect();
        }
        let is_transient = [Code::NO_SUCH_TRANSACTION, Code::WRITE_CONFLICT].contains(&code);
        if self.is_in_transaction && (is_transient || RETRYABLE.contains(&code.0)) {
            return vec!["TransientTransactionError"];
        }
        if self.is_retryable_write && RETRYABLE.contains(&code.0) {
            return vec!["RetryableWriteError"];
        }
        Vec::new()
    }
}

/// A command whose row is known.
struct Call<'a> {
    state: &'a Arc<MongoState>,
    client: &'a Client,
    message: &'a OpMsg,
    command: &'static Command,
    database: &'a str,
    /// The collection, or just the database.
    namespace: String,
}

impl<'a> Call<'a> {
    fn new(state: &'a Arc<MongoState>, client: &'a Client, request: Request<'a>) -> Result<Call<'a>> {
        let document = request.message.command();
        let (name, value) = match document.iter().next() {
            Some(Ok((name, value))) => (name.as_str(), Some(value)),
            _ => ("", None),
        };
        let command = Command::named(name).filter(|command| command.exists_in(state));
        let command =
            command.ok_or_else(|| Error::new(Code::COMMAND_NOT_FOUND, format!("no such command: '{name}'")))?;
        let database = database(document, request.database)?;
        let namespace = match value {
            Some(RawBsonRef::String(collection)) => format!("{database}.{collection}"),
            _ => database.to_owned(),
        };
        Ok(Call {
            state,
            client,
            message: request.message,
            command,
            database,
            namespace,
        })
    }

    async fn run(self, labels: &mut Labels, gone: impl Future<Output = ()> + Send) -> Result<Reply, Ended> {
        if !COUNTED_BY_HANDLERS.contains(&self.command.name) {
            self.state.metrics.operations.command.add(1);
        }
        let fault = self.inject_fault().await?;
        labels.given = fault.as_ref().and_then(|fault| fault.error_labels.clone());
        let (grants, user) = self.authorize().await?;
        let mut arguments = Arguments::of_command(self.command.name, self.message)?;
        let global = GlobalArguments::parse(&mut arguments, user.clone())?;
        labels.is_in_transaction = global
            .transaction
            .is_some_and(|transaction| transaction.is_multi_statement);
        labels.is_retryable_write = global.transaction.is_some() && !labels.is_in_transaction;
        if let Some(error) = fault.as_ref().and_then(FailCommand::error) {
            return Err(error.into());
        }
        self.check(&global)?;
        if let Some(session) = &global.session {
            self.state.sessions.touch(session)?;
        }
        let running = self.state.operations.begin(Begun {
            command: self.command.name,
            namespace: self.namespace.clone(),
            connection: self.client.connection,
            client: self.client.remote(),
            application: self.client.application_name(),
        });
        let transaction = self.transaction(&global)?;
        let deadline = global.max_time.filter(|_| self.command.has_time_limit());
        let context = CommandContext {
            state: self.state,
            client: self.client,
            command: self.command,
            message: self.message,
            database: self.database,
            transaction: transaction.clone(),
            grants,
            user,
            deadline: deadline.map(|limit| self.state.monotonic().now() + limit),
            running: &running,
            global,
        };
        let result = execute(&context, arguments, gone).await;
        if let Some(transaction) = transaction
            && result.as_ref().map_or(true, |reply| reply.aborts_transaction)
        {
            transaction.fail();
        }
        let mut reply = result?;
        let fault = fault.and_then(|fault| fault.write_concern_error);
        add_write_concern_error(&context, fault, labels, &mut reply);
        Ok(reply)
    }

    /// Applies the fail point for this command, if there is one.
    async fn inject_fault(&self) -> Result<Option<FailCommand>, Ended> {
        if !self.state.options.faults_enabled || self.command.name == "configureFailPoint" {
            return Ok(None);
        }
        let points = &self.state.fail_points;
        let fault = points.take(self.command.name, self.client.application(), &self.namespace);
        if let Some(time) = fault.as_ref().and_then(|fault| fault.block) {
            self.state.monotonic().sleep(time).await;
        }
        match fault {
            Some(fault) if fault.closes_connection => Err(Ended::Close),
            fault => Ok(fault),
        }
    }

    /// Returns the transaction that the command is part of, or begins it.
    fn transaction(&self, global: &GlobalArguments) -> Result<Option<Arc<SessionTransaction>>> {
        let (Some(transaction), Some(session)) = (global.transaction, &global.session) else {
            return Ok(None);
        };
        let transactions = &self.state.transactions;
        if !transaction.is_multi_statement {
            transactions.supersede(session, transaction.number)?;
            return Ok(None);
        }
        if transaction.starts {
            return transactions.begin(session, transaction.number).map(Some);
        }
        let found = transactions.find(session, transaction.number)?;
        if !["abortTransaction", "commitTransaction"].contains(&self.command.name) {
            found.check_in_progress()?;
        }
        Ok(Some(found))
    }

    /// Checks what depends on the fields that may be on any command.
    fn check(&self, global: &GlobalArguments) -> Result<()> {
        let name = self.command.name;
        if self.state.is_stopping() {
            return Err(operations::shutting_down());
        }
        if global.is_api_strict && !self.command.is_in_stable_api {
            let text = format!("Provided apiStrict:true, but the command {name} is not in API Version 1");
            return Err(Error::new(Code::API_STRICT_ERROR, text));
        }
        let is_in_transaction = global
            .transaction
            .is_some_and(|transaction| transaction.is_multi_statement);
        if is_in_transaction && !self.command.is_in_transactions {
            let text = format!("Cannot run '{name}' in a multi-document transaction.");
            return Err(Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, text));
        }
        Ok(())
    }
}

/// The database of a command.
fn database<'a>(document: &'a RawDocument, outside: Option<&'a str>) -> Result<&'a str> {
    let database = match (outside, document.get("$db")) {
        (Some(database), _) => database,
        (None, Ok(Some(RawBsonRef::String(database)))) => database,
        _ => return Err(Error::new(NO_DATABASE, "OP_MSG requests require a $db argument")),
    };
    namespace::check_database(database)?;
    Ok(database)
}

/// Runs the handler. Commands that only read end early when nobody waits for them; others always run to their end.
async fn execute(
    context: &CommandContext<'_>,
    arguments: Arguments<'_>,
    gone: impl Future<Output = ()> + Send,
) -> Result<Reply> {
    let work = AssertUnwindSafe((context.command.handler)(context, arguments)).catch_unwind();
    let result = if context.command.rights == Rights::Write {
        work.await
    } else {
        tokio::select! {
            // Work first: a command that is done at once is done although its client has closed the connection, as after `endSessions`.
            biased;
            result = work => result,
            () = context.running.killed() => Ok(Err(operations::interrupted())),
            () = late(context) => Ok(Err(operations::time_limit_exceeded())),
            () = gone => Ok(Err(Error::new(Code::INTERRUPTED, "the client has left"))),
        }
    };
    result.unwrap_or_else(|panic| {
        let message = panic_message(panic.as_ref());
        tracing::error!(message, command = context.command.name, "a command panicked");
        Err(Error::new(
            Code::INTERNAL_ERROR,
            "an internal error, which the server's log has",
        ))
    })
}

/// Resolves when the command's time is over.
async fn late(context: &CommandContext<'_>) {
    match context.deadline {
        Some(deadline) => context.state.monotonic().sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
}

/// Adds what a client must know although its write succeeded. A client that asked for no acknowledgement gets none.
fn add_write_concern_error(
    context: &CommandContext<'_>,
    fault: Option<RawDocumentBuf>,
    labels: &mut Labels,
    reply: &mut Reply,
) {
    let concern = &context.global.write_concern;
    let is_write = context.command.rights == Rights::Write;
    if is_write && concern.is_unacknowledged() {
        reply.body = RawDocumentBuf::new();
        return;
    }
    let error = fault.or_else(|| concern.error().filter(|_| is_write));
    if let Some(error) = error {
        let code = Code(error.get_i32("code").unwrap_or_default());
        append_labels(&mut reply.body, &labels.of(code));
        reply.body.append(cstr!("writeConcernError"), error);
    }
}

/// The document of an error.
fn error_document(state: &MongoState, error: &Error, labels: &Labels) -> RawDocumentBuf {
    let name = match error.code.name() {
        Some(name) => name.to_owned(),
        None => format!("Location{}", error.code.0),
    };
    let mut document = rawdoc! {
        "ok": 0.0,
        "errmsg": error.message.as_str(),
        "code": error.code.0,
        "codeName": name,
    };
    let details = error.details.as_deref();
    for (key, value) in details.into_iter().flat_map(|details| details.iter()).flatten() {
        document.append(key, value);
    }
    append_labels(&mut document, &labels.of(error.code));
    if NOT_PRIMARY.contains(&error.code.0) {
        // So the client knows whether it has seen this change of the server's state already.
        document.append(cstr!("topologyVersion"), state.topology_version().to_document());
    }
    document
}

fn append_labels(document: &mut RawDocumentBuf, labels: &[&str]) {
    if labels.is_empty() {
        return;
    }
    let mut array = RawArrayBuf::new();
    for label in labels {
        array.push(*label);
    }
    document.append(cstr!("errorLabels"), array);
}

/// Adds the times that a member of a replica set reports.
async fn with_times(state: &MongoState, mut reply: CompleteReply) -> CompleteReply {
    let time = timestamp(state.account.shown_time().await);
    let signature = bson::Binary {
        subtype: bson::spec::BinarySubtype::Generic,
        bytes: vec![0; 20],
    };
    let cluster_time = rawdoc! {
        "clusterTime": time,
        "signature": { "hash": signature, "keyId": 0_i64 },
    };
    reply.body.append(cstr!("$clusterTime"), cluster_time);
    reply.body.append(cstr!("operationTime"), time);
    reply
}

#[cfg(test)]
mod tests;
