//! A script on its thread, and the service of its operations in the partition's turn.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use bolide_model::{Error, ErrorKind, Result};
use bolide_script::{Call, Finished, Host, Operation, OperationError, Problem, Reply, ScriptError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::Conduct;
use super::scene::{Answer, Ask, Scene};
use super::watch::{Slot, THREAD_STACK_BYTES, Watch};
use crate::partition::turn::{Turn, TurnEnd};

/// What comes from a script's thread.
enum Message {
    /// A step to be decided in the turn.
    Ask(Ask, SyncSender<Result<Answer>>),
    /// It is over.
    Done(Result<Finished, ScriptError>),
}

/// Runs a script in a turn, to its end.
///
/// # Errors
/// `Refused` with why the script failed; `Stale` as the turn says.
pub(super) async fn run(
    turn: &mut Turn,
    scene: &Arc<Scene>,
    watch: &Arc<Watch>,
    slot: &Slot,
    call: Call,
    conduct: &Conduct,
) -> Result<Finished, TurnEnd> {
    let (sender, mut messages) = unbounded_channel();
    spawn(call, scene.clone(), watch.clone(), slot.clone(), sender)?;
    let ended = serve(turn, scene, watch, &mut messages, conduct).await;
    if ended.is_err() {
        // Whatever it still does has no effect any more.
        watch.stop();
    }
    ended
}

async fn serve(
    turn: &mut Turn,
    scene: &Scene,
    watch: &Watch,
    messages: &mut UnboundedReceiver<Message>,
    conduct: &Conduct,
) -> Result<Finished, TurnEnd> {
    loop {
        let message = tokio::time::timeout(watch.left(), messages.recv()).await;
        match message {
            Ok(Some(Message::Ask(ask, reply))) => {
                let answer = match scene.answer(turn, watch, ask).await {
                    Ok(answer) => Ok(answer),
                    // What is no fault of the script ends it.
                    Err(TurnEnd::Refused(error)) if is_fatal(&error.kind) => return Err(error.into()),
                    Err(TurnEnd::Refused(error)) => Err(error),
                    Err(TurnEnd::Stale) => return Err(TurnEnd::Stale),
                };
                // A thread that is gone has said why.
                let _ = reply.send(answer);
            }
            Ok(Some(Message::Done(result))) => {
                conduct.ended(&result, turn.now().seconds());
                return Ok(result.map_err(script_error)?);
            }
            Ok(None) => return Err(Error::internal("a script's thread ended without a word").into()),
            Err(_) => {
                tracing::warn!("a script did not end when told to; its thread is left behind");
                conduct.offended(turn.now().seconds());
                return Err(script_error(ScriptError {
                    problem: Problem::OutOfTime,
                    message: "The script was ended: it did not complete within the time it is given.".to_owned(),
                })
                .into());
            }
        }
    }
}

fn spawn(call: Call, scene: Arc<Scene>, watch: Arc<Watch>, slot: Slot, sender: UnboundedSender<Message>) -> Result<()> {
    let body = move || {
        let host = Remote {
            scene,
            watch: watch.clone(),
            sender: sender.clone(),
        };
        let result = bolide_script::run(&call, watch.settings(), host);
        let _ = sender.send(Message::Done(result));
        drop(slot);
    };
    std::thread::Builder::new()
        .name("script".to_owned())
        .stack_size(THREAD_STACK_BYTES)
        .spawn(body)
        .map(|_| ())
        .map_err(|error| Error::new(ErrorKind::Unavailable, format!("no thread for a script: {error}")))
}

/// The script's side: asks whoever has the turn.
struct Remote {
    scene: Arc<Scene>,
    watch: Arc<Watch>,
    sender: UnboundedSender<Message>,
}

impl Remote {
    fn ask(&self, ask: Ask) -> Result<Answer> {
        let gone = || Error::new(ErrorKind::Unavailable, "the script's transaction is over");
        let (reply, answer) = sync_channel(1);
        self.sender.send(Message::Ask(ask, reply)).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }
}

impl Host for Remote {
    fn accepts(&mut self) -> bool {
        self.watch.accepts()
    }

    fn operate(&mut self, operation: Operation) -> Result<Reply, OperationError> {
        let answered = match operation {
            // Rows are made on this thread: only the items come from the turn.
            Operation::Query {
                text,
                parameters,
                page_size,
                continuation,
            } => {
                let query = super::scene::ScriptQuery {
                    text,
                    parameters,
                    page_size,
                    continuation,
                };
                self.scene
                    .query(&query, &self.watch, |from| self.ask(Ask::Items { from }))
            }
            operation => self.ask(Ask::Point(operation)).and_then(|answer| match answer {
                Answer::Reply(reply) => Ok(reply),
                Answer::Items(_) => Err(Error::internal("items are no reply")),
            }),
        };
        answered.map_err(|error| OperationError {
            number: number_of(&error.kind),
            message: error.message,
        })
    }
}

/// The error of a request whose script failed.
pub(super) fn script_error(error: ScriptError) -> Error {
    let kind = match error.problem {
        Problem::Syntax => ErrorKind::ScriptSyntax,
        Problem::Thrown { number } => ErrorKind::ScriptFailed { number },
        Problem::OutOfTime => ErrorKind::ScriptTimeout,
        Problem::OutOfMemory => ErrorKind::ScriptFailed { number: 0 },
        Problem::TooLarge => ErrorKind::TooLarge,
    };
    Error::new(kind, error.message)
}

/// Whether an error is the server's, so that no script should handle it.
fn is_fatal(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Unavailable | ErrorKind::StorageFull | ErrorKind::Corrupt | ErrorKind::Internal | ErrorKind::Timeout
    )
}

/// What a script sees as the number of an error: the status that a client would get. Source: cosmos-rest §11.3.
fn number_of(kind: &ErrorKind) -> u32 {
    match kind {
        ErrorKind::NotFound | ErrorKind::OwnerNotFound => 404,
        ErrorKind::Conflict | ErrorKind::UniqueKeyConflict => 409,
        ErrorKind::PreconditionFailed | ErrorKind::PatchConditionFailed => 412,
        ErrorKind::TooLarge => 413,
        ErrorKind::Forbidden => 403,
        ErrorKind::ScriptTimeout => 408,
        kind if is_fatal(kind) => 500,
        _ => 400,
    }
}
