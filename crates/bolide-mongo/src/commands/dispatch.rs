//! From a message to a reply: the checks that are the same for all commands.
//!
//!   1. The first field names the command; its row tells the rest.
//!   2. The sender is authenticated and may run it.
//!   3. The fields that may be on any command are read.
//!   4. Its session is used. The handler runs, until it ends, is killed, takes too long, or its client is gone.
//!   5. The reply gets the fields that every reply has.

mod authorization;
mod labels;
mod outcome;
mod repeat;
mod replies;
mod target;

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bolide_core::{Consumed, MemoryShare};
use bolide_model::RequestUnits;
use bolide_mql::{Code, Error, Result};
use bson::RawDocumentBuf;
use bson::raw::cstr;
use futures_util::FutureExt as _;

use super::arguments::Arguments;
use super::concerns::ReadConcernLevel;
use super::context::{CommandContext, Reply};
use super::data::views;
use super::global::GlobalArguments;
use super::table::{Command, Rights};
use crate::client::{self, Client};
use crate::codes;
use crate::fail_points::FailCommand;
use crate::message::OpMsg;
use crate::namespace;
use crate::operations::{self, Begun};
use crate::state::MongoState;
use crate::transactions::SessionTransaction;
use labels::Labels;
use replies::{add_write_concern_error, error_document, with_times};

/// Commands that have `opcounters` of their own.
const COUNTED_BY_HANDLERS: [&str; 6] = ["aggregate", "delete", "find", "getMore", "insert", "update"];

/// How often they are, at most.
const AGAIN: usize = 10;

/// Commands that cannot have a write concern: they never write.
const READS: [&str; 7] = [
    "count",
    "distinct",
    "find",
    "getMore",
    "listCollections",
    "listDatabases",
    "listIndexes",
];
/// Commands whose first field names a collection that may not be a view.
const NOT_ON_VIEWS: [&str; 13] = [
    "cloneCollectionAsCapped",
    "collStats",
    "compact",
    "convertToCapped",
    "createIndexes",
    "delete",
    "dropIndexes",
    "findAndModify",
    "insert",
    "listIndexes",
    "reIndex",
    "update",
    "validate",
];

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
        Ok(call) => {
            let begun = state.monotonic().now();
            let mut charge = RequestUnits(0.0);
            let result = call.run(&mut labels, &mut charge, gone).await;
            call.note(begun, charge, &result);
            result
        }
        Err(error) => {
            outcome::note_unknown(state, client, request, &error);
            Err(error.into())
        }
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
        let name = target::name(document);
        let command = Command::named(name).filter(|command| command.exists_in(state));
        let command =
            command.ok_or_else(|| Error::new(Code::COMMAND_NOT_FOUND, format!("no such command: '{name}'")))?;
        let database = target::database(document, request.database)?;
        let namespace = target::namespace(command, document, database);
        namespace::check_database_of(database, &namespace)?;
        Ok(Call {
            state,
            client,
            message: request.message,
            command,
            database,
            namespace,
        })
    }

    // Long: the steps of every command, in their order.
    async fn run(
        &self,
        labels: &mut Labels,
        charge: &mut RequestUnits,
        gone: impl Future<Output = ()> + Send,
    ) -> Result<Reply, Ended> {
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
        labels.ends_transaction = labels.is_in_transaction && self.ends_transaction();
        labels.is_retryable_write = global.transaction.is_some() && !labels.is_in_transaction;
        if let Some(error) = fault.as_ref().and_then(FailCommand::error) {
            return Err(error.into());
        }
        // After the injected errors: they are those of a server that has not found the cursor yet.
        labels.is_change_stream = self.is_get_more_of_change_stream();
        self.check(&global)?;
        self.check_is_collection()?;
        if let Some(session) = &global.session {
            self.state.sessions.touch(session)?;
        }
        let running = self.state.operations.begin(Begun {
            command: self.command.name,
            namespace: self.namespace.clone(),
            connection: self.client.connection,
            client: self.client.remote(),
            application: self.client.application_name(),
            user: user.clone(),
            session: global.session.clone(),
        });
        let transaction = self.transaction(&global)?;
        let deadline = self.time_limit(&global)?;
        let context = CommandContext {
            state: self.state,
            client: self.client,
            command: self.command,
            message: self.message,
            database: self.database,
            transaction,
            grants,
            user,
            deadline: deadline.map(|limit| self.state.monotonic().now() + limit),
            running: &running,
            consumed: Consumed::default(),
            closes_connection: AtomicBool::new(false),
            global,
        };
        self.look_for_collection().await?;
        // Of a transaction that creates collections, no command sees a part.
        self.state.account.settled().await;
        let begun = self.state.monotonic().now();
        let mut gone = std::pin::pin!(gone);
        let again = (self.state.account.has_shared_store() && self.only_reads(&context)).then(|| arguments.clone());
        let mut result = execute(&context, arguments, &mut gone).await;
        for times in 0..AGAIN {
            let (Err(error), Some(arguments)) = (&result, &again) else {
                break;
            };
            // Another server has changed the collection while it was read, or has removed it.
            match error.code {
                Code::QUERY_PLAN_KILLED => {}
                Code::NAMESPACE_NOT_FOUND if times == 0 => {}
                _ => break,
            }
            let account = &self.state.account;
            account.refresh_catalog().await.map_err(|error| codes::error(&error))?;
            result = execute(&context, arguments.clone(), &mut gone).await;
        }
        // Whatever has ended it: the content that it was for is gone.
        let result = result.map_err(|error| match self.state.is_replaced() {
            true => operations::replaced(),
            false => error,
        });
        self.conclude(&context, begun, &result);
        *charge = context.consumed.sum();
        if context.closes_connection.load(Ordering::Relaxed) {
            return Err(Ended::Close);
        }
        let mut reply = result?;
        let fault = fault.and_then(|fault| fault.write_concern_error);
        add_write_concern_error(&context, fault, labels, &mut reply);
        Ok(reply)
    }

    fn is_get_more_of_change_stream(&self) -> bool {
        let id = self.message.command().get("getMore").ok().flatten();
        let id = id.and_then(bolide_mql::value::number::whole);
        self.command.name == "getMore" && id.is_some_and(|id| self.state.cursors.is_change_stream(id))
    }

    /// Looks whether another server has made the collection, if it is not known here, or has changed what writes depend on: its indexes, its validator.
    /// Reads nothing if there is no other.
    async fn look_for_collection(&self) -> Result<()> {
        let Some((database, collection)) = self.namespace.split_once('.') else {
            return Ok(());
        };
        let account = &self.state.account;
        let writes = self.command.rights == Rights::Write && account.has_shared_store();
        if writes || account.find_collection(database, collection).is_none() {
            account.refresh_catalog().await.map_err(|error| codes::error(&error))?;
        }
        Ok(())
    }

    /// Refuses commands on views that only collections know.
    fn check_is_collection(&self) -> Result<()> {
        match self.namespace.split_once('.') {
            Some((database, collection)) if NOT_ON_VIEWS.contains(&self.command.name) => {
                views::refuse(self.state, database, collection)
            }
            _ => Ok(()),
        }
    }

    /// Applies the fail point for this command, if there is one.
    async fn inject_fault(&self) -> Result<Option<FailCommand>, Ended> {
        if !self.state.options.faults_enabled || self.command.name == "configureFailPoint" {
            return Ok(None);
        }
        let points = &self.state.fail_points;
        // The first hello tells the application's name itself.
        let metadata = self.message.command().get_document("client").ok();
        let application = match metadata.filter(|_| self.client.metadata().is_none()) {
            Some(metadata) => client::application_of(metadata),
            None => self.client.application(),
        };
        let fault = points.take(self.command.name, application, &self.namespace);
        if let Some(time) = fault.as_ref().and_then(|fault| fault.block) {
            self.state.monotonic().sleep(time).await;
        }
        match fault {
            Some(fault) if fault.closes_connection => Err(Ended::Close),
            fault => Ok(fault),
        }
    }

    /// Returns how long the command may take, if it has a limit that is kept.
    ///
    /// # Errors
    /// `MaxTimeMSExpired`, as a fail point demands.
    fn time_limit(&self, global: &GlobalArguments) -> Result<Option<Duration>> {
        let limit = global.max_time.filter(|_| self.command.has_time_limit());
        if limit.is_none() || !self.state.options.faults_enabled || self.command.name == "configureFailPoint" {
            return Ok(limit);
        }
        let points = &self.state.fail_points;
        match (points.always_late.take(), points.never_late.take()) {
            (Some(()), _) => Err(operations::time_limit_exceeded()),
            (None, Some(())) => Ok(None),
            (None, None) => Ok(limit),
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
        match transactions.find(session, transaction.number) {
            // The server may have been started again since it was committed.
            Err(error) if self.command.name == "commitTransaction" && error.code == Code::NO_SUCH_TRANSACTION => {
                Ok(None)
            }
            found if self.ends_transaction() => found.map(Some),
            found => {
                let found = found?;
                found.check_in_progress()?;
                Ok(Some(found))
            }
        }
    }

    /// Whether the command commits or aborts a transaction.
    fn ends_transaction(&self) -> bool {
        ["abortTransaction", "commitTransaction"].contains(&self.command.name)
    }

    /// Checks what depends on the fields that may be on any command.
    fn check(&self, global: &GlobalArguments) -> Result<()> {
        let name = self.command.name;
        if self.state.is_stopping() || self.state.is_replaced() {
            return Err(self.state.ending());
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
        self.check_concerns(global)
    }

    fn check_concerns(&self, global: &GlobalArguments) -> Result<()> {
        let (name, concern) = (self.command.name, &global.read_concern);
        let invalid = |text: String| Err(Error::new(Code::INVALID_OPTIONS, text));
        if global.write_concern.is_given() && READS.contains(&name) {
            return invalid(format!("Command {name} does not support writeConcern"));
        }
        match global.transaction.filter(|transaction| transaction.is_multi_statement) {
            Some(transaction) if concern.is_given && !transaction.starts => {
                invalid("Only the first command in a transaction may specify a readConcern".to_owned())
            }
            Some(_) if concern.at.is_some() => {
                let text =
                    "a transaction reads the data of the time of its first command: atClusterTime is not supported";
                Err(Error::new(Code::NOT_IMPLEMENTED, text))
            }
            None if concern.level == ReadConcernLevel::Snapshot && !self.command.reads_snapshots => invalid(format!(
                "Command {name} does not support {{ readConcern: {{ level: \"snapshot\" }} }} :: caused by :: read concern not supported"
            )),
            _ => Ok(()),
        }
    }
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

#[cfg(test)]
mod tests;
