//! The messages between the server and a script's process.
//!
//! ```text
//!   server ── Run ──────────────▶ process        server ── Functions, Invoke ──▶ process
//!          ◀─ Accepts, Operate ──                       ◀─ Returned ───────────
//!          ── Accepted, Reply ──▶                       ── Invoke … ───────────▶
//!          ◀─ Done ──────────────                       ── Rest ───────────────▶
//! ```

use std::time::Duration;

use super::frame::{Fields, Frame};
use crate::call::{Call, Finished, Kind};
use crate::error::{Problem, ScriptError};
use crate::grant::{Cancel, Grant};
use crate::sandbox::Limits;

/// Longest frame to a process: a script with its bodies, or a page of a query.
pub const TO_PROCESS_BYTES: usize = 32 * 1024 * 1024;
/// Longest frame from a process: an operation with a document, a result.
pub const FROM_PROCESS_BYTES: usize = 8 * 1024 * 1024;
/// Longest result of a user-defined function, as JSON text: as long as a page.
pub const RESULT_BYTES: usize = 4 * 1024 * 1024;
/// Longest text of an error; the rest is dropped.
const MESSAGE_BYTES: usize = 64 * 1024;

/// Messages from the server.
pub enum ToProcess {
    /// Run a stored procedure or trigger.
    Run(Grant, Call),
    /// Whether one more operation is accepted.
    Accepted(bool),
    /// The result of an operation, in the prelude's format.
    Reply(String),
    /// Functions of a query will follow.
    Functions(Grant),
    /// Call a function.
    Invoke {
        name: String,
        /// Its text, if the process may not have it yet.
        source: Option<String>,
        time: Duration,
        /// JSON text of an array.
        arguments: String,
    },
    /// Drop the functions.
    Rest,
}

/// Messages from a process.
#[derive(Debug, PartialEq)]
pub enum FromProcess {
    /// Asks whether one more operation is accepted.
    Accepts,
    /// An operation, in the prelude's format.
    Operate(String),
    /// A run has ended.
    Done(Result<Finished, ScriptError>),
    /// A function has returned.
    Returned(Result<Option<String>, ScriptError>),
}

impl ToProcess {
    pub fn encode(&self) -> Frame {
        match self {
            ToProcess::Run(grant, call) => put_call(put_grant(Frame::new(0), grant), call),
            ToProcess::Accepted(is_accepted) => Frame::new(1).flag(*is_accepted),
            ToProcess::Reply(text) => Frame::new(2).text(text),
            ToProcess::Functions(grant) => put_grant(Frame::new(3), grant),
            ToProcess::Invoke {
                name,
                source,
                time,
                arguments,
            } => invoke(name, source.as_deref(), *time, arguments),
            ToProcess::Rest => Frame::new(5),
        }
    }

    pub fn decode(bytes: &[u8]) -> Option<ToProcess> {
        let mut fields = Fields::of(bytes);
        let message = match fields.tag()? {
            0 => ToProcess::Run(grant(&mut fields)?, call(&mut fields)?),
            1 => ToProcess::Accepted(fields.flag()?),
            2 => ToProcess::Reply(fields.text()?),
            3 => ToProcess::Functions(grant(&mut fields)?),
            4 => ToProcess::Invoke {
                name: fields.text()?,
                source: fields.optional()?,
                time: Duration::from_micros(fields.number()?),
                arguments: fields.text()?,
            },
            5 => ToProcess::Rest,
            _ => return None,
        };
        fields.end(message)
    }
}

/// The frame of [`ToProcess::Invoke`], without copying its texts.
pub fn invoke(name: &str, source: Option<&str>, time: Duration, arguments: &str) -> Frame {
    let frame = Frame::new(4).text(name).optional(source);
    frame.number(micros(time)).text(arguments)
}

impl FromProcess {
    pub fn encode(&self) -> Frame {
        match self {
            FromProcess::Accepts => Frame::new(0),
            FromProcess::Operate(text) => Frame::new(1).text(text),
            FromProcess::Done(Ok(finished)) => {
                let frame = Frame::new(2).optional(finished.body.as_deref());
                frame.text(&finished.log)
            }
            FromProcess::Done(Err(error)) => put_error(Frame::new(3), error),
            FromProcess::Returned(Ok(result)) => Frame::new(4).optional(result.as_deref()),
            FromProcess::Returned(Err(error)) => put_error(Frame::new(5), error),
        }
    }

    pub fn decode(bytes: &[u8]) -> Option<FromProcess> {
        let mut fields = Fields::of(bytes);
        let message = match fields.tag()? {
            0 => FromProcess::Accepts,
            1 => FromProcess::Operate(fields.text()?),
            2 => FromProcess::Done(Ok(Finished {
                body: fields.optional()?,
                log: fields.text()?,
            })),
            3 => FromProcess::Done(Err(error(&mut fields)?)),
            4 => FromProcess::Returned(Ok(fields.optional()?)),
            5 => FromProcess::Returned(Err(error(&mut fields)?)),
            _ => return None,
        };
        fields.end(message)
    }
}

fn put_grant(frame: Frame, grant: &Grant) -> Frame {
    let limits = &grant.limits;
    [
        limits.memory_bytes as u64,
        limits.stack_bytes as u64,
        limits.message_bytes as u64,
        limits.log_bytes as u64,
        grant.random_seed,
        grant.now_ms.cast_unsigned(),
        micros(grant.time),
    ]
    .into_iter()
    .fold(frame, Frame::number)
    .flag(grant.is_clock_running)
}

/// A grant as sent. It is cancelled by ending the process.
fn grant(fields: &mut Fields<'_>) -> Option<Grant> {
    let mut size = || usize::try_from(fields.number()?).ok();
    let limits = Limits {
        memory_bytes: size()?,
        stack_bytes: size()?,
        message_bytes: size()?,
        log_bytes: size()?,
    };
    Some(Grant {
        limits,
        random_seed: fields.number()?,
        now_ms: fields.number()?.cast_signed(),
        time: Duration::from_micros(fields.number()?),
        is_clock_running: fields.flag()?,
        cancel: Cancel::default(),
    })
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn put_call(frame: Frame, call: &Call) -> Frame {
    let (kind, operation, request, response) = match &call.kind {
        Kind::Procedure { arguments } => (0, "", arguments.as_str(), ""),
        Kind::PreTrigger { operation, request } => (1, *operation, request.as_str(), ""),
        Kind::PostTrigger {
            operation,
            request,
            response,
        } => (2, *operation, request.as_str(), response.as_str()),
    };
    let frame = frame.small(kind).text(operation).text(request).text(response);
    let frame = frame.text(&call.source).text(&call.self_link).text(&call.alt_link);
    frame.text(&call.partition_key).flag(call.is_logging)
}

fn call(fields: &mut Fields<'_>) -> Option<Call> {
    let kind = fields.small()?;
    let (operation, request, response) = (fields.text()?, fields.text()?, fields.text()?);
    let kind = match kind {
        0 => Kind::Procedure { arguments: request },
        1 => Kind::PreTrigger {
            operation: known_operation(&operation)?,
            request,
        },
        2 => Kind::PostTrigger {
            operation: known_operation(&operation)?,
            request,
            response,
        },
        _ => return None,
    };
    Some(Call {
        kind,
        source: fields.text()?,
        self_link: fields.text()?,
        alt_link: fields.text()?,
        partition_key: fields.text()?,
        is_logging: fields.flag()?,
    })
}

fn known_operation(name: &str) -> Option<&'static str> {
    let known = ["Create", "Replace", "Upsert", "Update", "Delete"];
    known.into_iter().find(|known| *known == name)
}

fn put_error(frame: Frame, error: &ScriptError) -> Frame {
    let (problem, number) = match error.problem {
        Problem::Syntax => (0, 0),
        Problem::Thrown { number } => (1, number),
        Problem::OutOfTime => (2, 0),
        Problem::OutOfMemory => (3, 0),
        Problem::TooLarge => (4, 0),
        Problem::Crashed => (5, 0),
        Problem::Unavailable => (6, 0),
    };
    let message = &error.message[..error.message.floor_char_boundary(MESSAGE_BYTES)];
    frame.small(problem).small(number).text(message)
}

fn error(fields: &mut Fields<'_>) -> Option<ScriptError> {
    let (problem, number) = (fields.small()?, fields.small()?);
    let problem = match problem {
        0 => Problem::Syntax,
        1 => Problem::Thrown { number },
        2 => Problem::OutOfTime,
        3 => Problem::OutOfMemory,
        4 => Problem::TooLarge,
        5 => Problem::Crashed,
        // A process never reports that no process could be started.
        _ => return None,
    };
    let message = fields.text().filter(|message| message.len() <= MESSAGE_BYTES)?;
    Some(ScriptError { problem, message })
}
