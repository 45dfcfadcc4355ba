//! A process that is lent to one script, or to the functions of a query.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::frame::{Frame, malformed, receive};
use super::hosts::{Inner, Pipes};
use super::message::{FROM_PROCESS_BYTES, FromProcess, TO_PROCESS_BYTES, ToProcess, invoke};
use super::supervision::Supervision;
use crate::call::{Call, Finished};
use crate::error::{Problem, ScriptError};
use crate::grant::Grant;
use crate::host::{Host, OperationError, operate, to_json};
use crate::sandbox::out_of_time;

/// How much longer than its time limit a script may take to end by itself, before its process is killed.
const GRACE_PERIOD: Duration = Duration::from_millis(500);

/// See the module. Returned to the pool when it is dropped.
pub struct Lease {
    inner: Arc<Inner>,
    supervision: Arc<Supervision>,
    pipes: Option<Pipes>,
    /// No message is pending, and another script may run in it.
    is_reusable: bool,
}

impl Lease {
    pub fn new(inner: Arc<Inner>, supervision: Arc<Supervision>, pipes: Pipes) -> Lease {
        Lease {
            inner,
            supervision,
            pipes: Some(pipes),
            is_reusable: true,
        }
    }

    /// Runs one script.
    pub fn run(mut self, call: &Call, grant: &Grant, host: &mut dyn Host) -> Result<Finished, ScriptError> {
        self.watched(grant.time, |lease| {
            lease.send(ToProcess::Run(grant.clone(), call.clone()).encode())?;
            loop {
                let answer = match lease.receive()? {
                    FromProcess::Accepts => ToProcess::Accepted(host.accepts()).encode(),
                    FromProcess::Operate(text) => reply(host, &text),
                    FromProcess::Done(result) => return Ok(result),
                    FromProcess::Returned(_) => return Err(malformed()),
                };
                lease.send(answer)?;
            }
        })
    }

    /// Runs `work` with a time limit.
    fn watched<T>(
        &mut self,
        time: Duration,
        run: impl FnOnce(&mut Lease) -> io::Result<Result<T, ScriptError>>,
    ) -> Result<T, ScriptError> {
        self.is_reusable = false;
        self.supervision
            .set_until(Some(self.inner.clock().now() + time + GRACE_PERIOD));
        let ended = run(self);
        self.supervision.set_until(None);
        let result = ended.unwrap_or_else(|error| Err(self.broken(&error)));
        // A process that used much memory may not have returned it to the system.
        self.is_reusable = match &result {
            Ok(_) => true,
            Err(error) => {
                !matches!(
                    error.problem,
                    Problem::Crashed | Problem::Unavailable | Problem::OutOfMemory
                ) && !self.supervision.is_killed()
            }
        };
        result
    }

    /// The reason why the connection broke.
    fn broken(&self, error: &io::Error) -> ScriptError {
        if self.supervision.is_killed() {
            return out_of_time();
        }
        if error.kind() == io::ErrorKind::InvalidInput {
            return ScriptError::new(
                Problem::TooLarge,
                format!("the script with all it is given is too large. limit={TO_PROCESS_BYTES}"),
            );
        }
        let status = self.supervision.runner.lock().end();
        let status = status.map_or_else(String::new, |status| format!(" ({status})"));
        ScriptError::new(
            Problem::Crashed,
            format!("The script was ended: its process failed: {error}{status}"),
        )
    }

    fn send(&mut self, frame: Frame) -> io::Result<()> {
        frame.send(&mut self.pipes()?.to, TO_PROCESS_BYTES)
    }

    fn receive(&mut self) -> io::Result<FromProcess> {
        let bytes = receive(&mut self.pipes()?.from, FROM_PROCESS_BYTES)?;
        FromProcess::decode(&bytes).ok_or_else(malformed)
    }

    fn pipes(&mut self) -> io::Result<&mut Pipes> {
        self.pipes.as_mut().ok_or_else(malformed)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let pipes = self.pipes.take();
        // A process that sent more than it was asked for is not used again.
        let reusable = pipes.filter(|pipes| self.is_reusable && pipes.from.buffer().is_empty());
        self.inner.take_back(&self.supervision, reusable);
    }
}

/// Carries out an operation. A result that is too long becomes an error.
fn reply(host: &mut dyn Host, text: &str) -> Frame {
    let frame = ToProcess::Reply(to_json(operate(host, text))).encode();
    if frame.bytes() <= TO_PROCESS_BYTES {
        return frame;
    }
    let refused = to_json(Err(OperationError {
        number: 413,
        message: "The answer to the operation is too large.".to_owned(),
    }));
    ToProcess::Reply(refused).encode()
}

/// The functions of a query, in one process.
pub struct FunctionCalls {
    lease: Lease,
    known: HashSet<String>,
}

impl FunctionCalls {
    pub(super) fn begin(mut lease: Lease, grant: &Grant) -> Result<FunctionCalls, ScriptError> {
        let sent = lease.send(ToProcess::Functions(grant.clone()).encode());
        if let Err(error) = sent {
            lease.is_reusable = false;
            return Err(lease.broken(&error));
        }
        Ok(FunctionCalls {
            lease,
            known: HashSet::new(),
        })
    }

    /// Calls a function with a time limit. `source` is its text, compiled at the first call. `arguments` is the JSON text of an array; the result is
    /// JSON text, `None` for `undefined`.
    ///
    /// # Errors
    /// Why it ended early. After a limit or a crash every further call fails.
    pub fn call(
        &mut self,
        name: &str,
        source: &str,
        arguments: &str,
        time: Duration,
    ) -> Result<Option<String>, ScriptError> {
        let source = Some(source).filter(|_| !self.known.contains(name));
        let result = self.lease.watched(time, |lease| {
            lease.send(invoke(name, source, time, arguments))?;
            match lease.receive()? {
                FromProcess::Returned(result) => Ok(result),
                _ => Err(malformed()),
            }
        });
        if result.is_ok() && source.is_some() {
            self.known.insert(name.to_owned());
        }
        result
    }
}

impl Drop for FunctionCalls {
    fn drop(&mut self) {
        if self.lease.is_reusable && self.lease.send(ToProcess::Rest.encode()).is_err() {
            self.lease.is_reusable = false;
        }
    }
}
