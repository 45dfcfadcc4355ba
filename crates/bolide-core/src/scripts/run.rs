//! Runs a script on its thread, and carries out its operations in the partition's exclusive transaction.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use bolide_model::{Error, ErrorKind, Reason, Result};
use bolide_script::{Call, Cancel, Finished, Host, Operation, OperationError, Problem, Reply, ScriptError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::budget::{Running, ScriptBudget};
use super::permits::ScriptPermit;
use super::transaction::{ScriptRequest, ScriptResponse, ScriptTransaction};
use crate::container::ScriptQuarantine;
use crate::partition::exclusive::{ExclusiveEnd, ExclusiveTransaction};

const OUT_OF_TIME: &str = "The script was ended: it did not complete within the time it is given.";

/// A message from a script's thread.
enum Message {
    /// An operation to be decided in the exclusive transaction.
    ScriptRequest(ScriptRequest, SyncSender<Result<ScriptResponse>>),
    /// The script has ended.
    Done(Result<Finished, ScriptError>),
}

/// Runs a script in an exclusive transaction, to its end. When this future is dropped, the script is cancelled.
///
/// # Errors
/// `Refused` with the reason why the script failed; `Stale` if the head moved.
pub(super) async fn run(
    exclusive: &mut ExclusiveTransaction,
    transaction: &Arc<ScriptTransaction>,
    budget: &Arc<ScriptBudget>,
    permit: &ScriptPermit,
    call: Call,
    quarantine: &ScriptQuarantine,
) -> Result<Finished, ExclusiveEnd> {
    let (sender, mut messages) = unbounded_channel();
    // What the script still does after this function has returned has no effect.
    let until_the_end = CancelOnDrop(Cancel::default());
    let running = Running::new(budget.clone(), until_the_end.0.clone());
    let host = Remote {
        transaction: transaction.clone(),
        running: Arc::new(running),
        permit: permit.clone(),
        sender,
    };
    spawn(call, host)?;
    serve(exclusive, transaction, budget, &mut messages, quarantine).await
}

/// Cancels a script when it is not served any more.
struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

async fn serve(
    exclusive: &mut ExclusiveTransaction,
    transaction: &ScriptTransaction,
    budget: &ScriptBudget,
    messages: &mut UnboundedReceiver<Message>,
    quarantine: &ScriptQuarantine,
) -> Result<Finished, ExclusiveEnd> {
    loop {
        let clock = budget.clock();
        let message = clock.timeout_at(clock.now() + budget.timeout(), messages.recv()).await;
        match message {
            Some(Some(Message::ScriptRequest(ask, reply))) => {
                let answer = match transaction.answer(exclusive, budget, ask).await {
                    Ok(answer) => Ok(answer),
                    // An error of the server ends the script.
                    Err(ExclusiveEnd::Refused(error)) if is_fatal(&error.kind) => return Err(error.into()),
                    Err(ExclusiveEnd::Refused(error)) => Err(error),
                    Err(ExclusiveEnd::Stale) => return Err(ExclusiveEnd::Stale),
                };
                // A thread that has ended has sent its reason.
                let _ = reply.send(answer);
            }
            Some(Some(Message::Done(result))) => {
                quarantine.ended(&result, exclusive.now().seconds());
                return Ok(result.map_err(script_error)?);
            }
            Some(None) => return Err(Error::internal("a script's thread ended without a word").into()),
            None => {
                // Its process was killed, but its thread is still busy with an operation.
                quarantine.offended(exclusive.now().seconds());
                return Err(out_of_time().into());
            }
        }
    }
}

fn spawn(call: Call, mut host: Remote) -> Result<()> {
    let body = move || {
        let (grant, permit) = (host.running.grant(), host.permit.clone());
        let mut result = permit.hosts().run(&call, &grant, &mut host);
        if host.running.was_late() {
            // The script may have handled the error with which its operation was aborted, before its process was killed.
            result = Err(ScriptError {
                problem: Problem::OutOfTime,
                message: OUT_OF_TIME.to_owned(),
            });
        }
        // The permit is released before the message is sent; the host holds it too.
        let sender = host.sender.clone();
        drop((permit, host));
        let _ = sender.send(Message::Done(result));
    };
    std::thread::Builder::new()
        .name("script".to_owned())
        .spawn(body)
        .map(|_| ())
        .map_err(|error| Error::new(ErrorKind::Unavailable, format!("no thread for a script: {error}")))
}

/// The script's side of the channel: sends requests to the exclusive transaction.
struct Remote {
    transaction: Arc<ScriptTransaction>,
    running: Arc<Running>,
    permit: ScriptPermit,
    sender: UnboundedSender<Message>,
}

impl Remote {
    fn ask(&self, ask: ScriptRequest) -> Result<ScriptResponse> {
        let gone = || Error::new(ErrorKind::Unavailable, "the script's transaction is over");
        let (reply, answer) = sync_channel(1);
        self.sender
            .send(Message::ScriptRequest(ask, reply))
            .map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }
}

impl Host for Remote {
    fn accepts(&mut self) -> bool {
        self.running.accepts()
    }

    fn operate(&mut self, operation: Operation) -> Result<Reply, OperationError> {
        if self.running.budget.is_excessive() {
            return Err(self.permit.refused(&Reason::TransactionTooLarge.into()));
        }
        let answered = match operation {
            // Results are computed on this thread; only the items come from the exclusive transaction.
            Operation::Query {
                text,
                parameters,
                page_size,
                continuation,
            } => {
                let query = super::transaction::ScriptQuery {
                    text,
                    parameters,
                    page_size,
                    continuation,
                };
                self.transaction
                    .query(&query, &self.running, |from| self.ask(ScriptRequest::Items { from }))
            }
            operation => self
                .ask(ScriptRequest::Point(operation))
                .and_then(|answer| match answer {
                    ScriptResponse::Reply(reply) => Ok(reply),
                    ScriptResponse::Items(_) => Err(Error::internal("items are no reply")),
                }),
        };
        answered.map_err(|error| self.permit.refused(&error))
    }
}

/// Returns the error of a script whose time is over.
pub(super) fn out_of_time() -> Error {
    Error::new(ErrorKind::ScriptTimeout, OUT_OF_TIME)
}

/// Returns the error of a request whose script failed.
pub(super) fn script_error(error: ScriptError) -> Error {
    if error.problem == Problem::Crashed {
        tracing::warn!("{error}");
    }
    let kind = match error.problem {
        Problem::Syntax => ErrorKind::ScriptSyntax,
        Problem::Thrown { number } => ErrorKind::ScriptFailed { number },
        Problem::OutOfTime => ErrorKind::ScriptTimeout,
        Problem::OutOfMemory | Problem::Crashed => ErrorKind::ScriptFailed { number: 0 },
        Problem::Unavailable => ErrorKind::Unavailable,
        Problem::TooLarge => ErrorKind::TooLarge,
    };
    Error::new(kind, error.message)
}

/// Tells whether an error is one of the server, which scripts must not handle.
fn is_fatal(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Unavailable | ErrorKind::StorageFull | ErrorKind::Corrupt | ErrorKind::Internal | ErrorKind::Timeout
    )
}

#[cfg(test)]
mod tests;
