//! A process that is lent out: for one script, or for the functions of a query.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::frame::{Frame, malformed, receive};
use super::hosts::{Inner, Line};
use super::leash::Leash;
use super::message::{FROM_PROCESS_BYTES, FromProcess, TO_PROCESS_BYTES, ToProcess, invoke};
use crate::call::{Call, Finished};
use crate::error::{Problem, ScriptError};
use crate::grant::Grant;
use crate::host::{Host, OperationError, operate, to_json};
use crate::sandbox::out_of_time;

/// How much longer than its time a script may take to end by itself, before its process is killed.
const GRACE: Duration = Duration::from_millis(500);

/// See the module. Given back when it is dropped.
pub struct Lease {
    inner: Arc<Inner>,
    leash: Arc<Leash>,
    line: Option<Line>,
    /// Nothing is on its way, and another script may come.
    is_sound: bool,
}

impl Lease {
    pub fn new(inner: Arc<Inner>, leash: Arc<Leash>, line: Line) -> Lease {
        Lease {
            inner,
            leash,
            line: Some(line),
            is_sound: true,
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

    /// Does something that takes so long at most.
    fn watched<T>(
        &mut self,
        time: Duration,
        run: impl FnOnce(&mut Lease) -> io::Result<Result<T, ScriptError>>,
    ) -> Result<T, ScriptError> {
        self.is_sound = false;
        self.leash.set_until(Some(self.inner.clock().now() + time + GRACE));
        let ended = run(self);
        self.leash.set_until(None);
        let result = ended.unwrap_or_else(|error| Err(self.broken(&error)));
        // What took much memory may not have given it back.
        self.is_sound = match &result {
            Ok(_) => true,
            Err(error) => {
                !matches!(
                    error.problem,
                    Problem::Crashed | Problem::Unavailable | Problem::OutOfMemory
                ) && !self.leash.is_killed()
            }
        };
        result
    }

    /// Why the line broke.
    fn broken(&self, error: &io::Error) -> ScriptError {
        if self.leash.is_killed() {
            return out_of_time();
        }
        if error.kind() == io::ErrorKind::InvalidInput {
            return ScriptError::new(
                Problem::TooLarge,
                format!("the script with all it is given is too large. limit={TO_PROCESS_BYTES}"),
            );
        }
        let status = self.leash.life.lock().end();
        let status = status.map_or_else(String::new, |status| format!(" ({status})"));
        ScriptError::new(
            Problem::Crashed,
            format!("The script was ended: its process failed: {error}{status}"),
        )
    }

    fn send(&mut self, frame: Frame) -> io::Result<()> {
        frame.send(&mut self.line()?.to, TO_PROCESS_BYTES)
    }

    fn receive(&mut self) -> io::Result<FromProcess> {
        let bytes = receive(&mut self.line()?.from, FROM_PROCESS_BYTES)?;
        FromProcess::decode(&bytes).ok_or_else(malformed)
    }

    fn line(&mut self) -> io::Result<&mut Line> {
        self.line.as_mut().ok_or_else(malformed)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let line = self.line.take();
        // What it said unasked nobody wants to hear.
        let sound = line.filter(|line| self.is_sound && line.from.buffer().is_empty());
        self.inner.take_back(&self.leash, sound);
    }
}

/// Carries out an operation. An answer that is too long is a refusal.
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

/// The functions of a query, on one process.
pub struct FunctionCalls {
    lease: Lease,
    known: HashSet<String>,
}

impl FunctionCalls {
    pub(super) fn begin(mut lease: Lease, grant: &Grant) -> Result<FunctionCalls, ScriptError> {
        let sent = lease.send(ToProcess::Functions(grant.clone()).encode());
        if let Err(error) = sent {
            lease.is_sound = false;
            return Err(lease.broken(&error));
        }
        Ok(FunctionCalls {
            lease,
            known: HashSet::new(),
        })
    }

    /// Calls a function, which is given so much time. `source` is its text; it is compiled by the first call. `arguments` is the JSON text
    /// of an array; the result is JSON text, `None` for `undefined`.
    ///
    /// # Errors
    /// Whatever ended it. After a limit or a crash no further call is answered.
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
        if self.lease.is_sound && self.lease.send(ToProcess::Rest.encode()).is_err() {
            self.lease.is_sound = false;
        }
    }
}
