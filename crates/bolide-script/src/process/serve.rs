//! The process's side: one script at a time, each in its own sandbox.

use std::cell::RefCell;
use std::convert::Infallible;
use std::io::{self, BufReader, PipeReader, PipeWriter, Read, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bolide_model::time::Monotonic;

use super::confine;
use super::frame::{malformed, receive};
use super::message::{FROM_PROCESS_BYTES, FromProcess, RESULT_BYTES, TO_PROCESS_BYTES, ToProcess};
use crate::error::{Problem, ScriptError};
use crate::function::Functions;
use crate::grant::{Cancel, Deadline, Grant};
use crate::host::{OperationError, TextHost, to_json};
use crate::sandbox::Settings;

/// Stack of the thread that runs scripts: the engine's own, and what the host needs in addition.
pub(super) const STACK_BYTES: usize = 4 * 1024 * 1024;

/// Serves scripts on standard input and output until the input ends. A process must call this first and do nothing else.
///
/// The process gives up most of its rights (files, memory, processes), and ends when its input is closed, whatever a script does: so it ends with the server.
///
/// Returns only the error that kept it from serving.
pub fn serve_process() -> io::Error {
    match try_serve_process() {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

fn try_serve_process() -> io::Result<Infallible> {
    confine::lower_limits()?;
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    thread.spawn(|| {
        let serve = || {
            serve(
                io::stdin().lock(),
                io::stdout().lock(),
                &Cancel::default(),
                &Monotonic::system(),
                confine::limit_processor_time,
            )
        };
        let served = std::panic::catch_unwind(serve);
        std::process::exit(i32::from(served.is_err()));
    })?;
    confine::forbid_processes()?;
    confine::wait_for_hangup(&io::stdin());
    // A script may still be running: it ends with the process.
    std::process::exit(0);
}

/// Serves scripts on a thread of this process, which cannot be interrupted inside a built-in function. For tests.
pub(super) fn serve_thread(from: PipeReader, to: PipeWriter, cancel: Cancel, clock: Monotonic) -> io::Result<()> {
    let serve = move || {
        // It ends when the pipe does.
        let _ = serve(from, to, &cancel, &clock, |_| {});
    };
    let builder = std::thread::Builder::new().name("script".to_owned());
    builder.stack_size(STACK_BYTES).spawn(serve).map(drop)
}

/// Serves until the connection breaks. `limit` gets the time limit of each call before it begins.
fn serve(
    from: impl Read + 'static,
    to: impl Write + 'static,
    cancel: &Cancel,
    clock: &Monotonic,
    limit: impl Fn(Duration),
) -> io::Result<Infallible> {
    let pipes = Rc::new(RefCell::new(Pipes {
        from: BufReader::new(from),
        to,
    }));
    let mut functions: Option<Session> = None;
    loop {
        let message = pipes.borrow_mut().receive()?;
        match message {
            ToProcess::Run(grant, call) => {
                functions = None;
                limit(grant.time);
                let asking = RemoteHost(pipes.clone());
                let result = crate::call::run_with(&call, settings(&grant, cancel, clock), asking);
                pipes.borrow_mut().send(&FromProcess::Done(result))?;
            }
            ToProcess::Functions(grant) => functions = Some(Session::new(grant, cancel, clock)),
            ToProcess::Invoke {
                name,
                source,
                time,
                arguments,
            } => {
                limit(time);
                let session = functions.as_mut().ok_or_else(malformed)?;
                let result = session.invoke(&name, source.as_deref(), time, &arguments);
                pipes.borrow_mut().send(&FromProcess::Returned(result))?;
            }
            ToProcess::Rest => functions = None,
            ToProcess::Accepted(_) | ToProcess::Reply(_) => return Err(malformed()),
        }
    }
}

fn settings(grant: &Grant, cancel: &Cancel, clock: &Monotonic) -> Settings {
    Settings {
        limits: grant.limits,
        pace: Deadline::start(grant, cancel, clock),
        random_seed: grant.random_seed,
    }
}

/// The pipes to and from the server.
struct Pipes<R, W> {
    from: BufReader<R>,
    to: W,
}

impl<R: Read, W: Write> Pipes<R, W> {
    fn receive(&mut self) -> io::Result<ToProcess> {
        let bytes = receive(&mut self.from, TO_PROCESS_BYTES)?;
        ToProcess::decode(&bytes).ok_or_else(malformed)
    }

    fn send(&mut self, message: &FromProcess) -> io::Result<()> {
        message.encode().send(&mut self.to, FROM_PROCESS_BYTES)
    }

    fn ask(&mut self, message: &FromProcess) -> io::Result<ToProcess> {
        self.send(message)?;
        self.receive()
    }
}

/// A host at the other end of the pipes. If they break, the process is about to end.
struct RemoteHost<R, W>(Rc<RefCell<Pipes<R, W>>>);

impl<R: Read, W: Write> TextHost for RemoteHost<R, W> {
    fn accepts(&mut self) -> bool {
        let answer = self.0.borrow_mut().ask(&FromProcess::Accepts);
        matches!(answer, Ok(ToProcess::Accepted(true)))
    }

    fn operate(&mut self, operation: String) -> String {
        let refused = |number, message: &str| {
            to_json(Err(OperationError {
                number,
                message: message.to_owned(),
            }))
        };
        let message = FromProcess::Operate(operation);
        if message.encode().bytes() > FROM_PROCESS_BYTES {
            return refused(413, "The operation is too large.");
        }
        match self.0.borrow_mut().ask(&message) {
            Ok(ToProcess::Reply(text)) => text,
            _ => refused(500, "The script's transaction is over."),
        }
    }
}

/// The functions of a query. Their sandbox is made within the time of the first call.
struct Session {
    settings: Settings,
    functions: Option<Functions>,
    deadline: Arc<Deadline>,
}

impl Session {
    fn new(grant: Grant, cancel: &Cancel, clock: &Monotonic) -> Session {
        let deadline = Deadline::start(&grant, cancel, clock);
        let settings = Settings {
            limits: grant.limits,
            pace: deadline.clone(),
            random_seed: grant.random_seed,
        };
        Session {
            settings,
            functions: None,
            deadline,
        }
    }

    fn invoke(
        &mut self,
        name: &str,
        source: Option<&str>,
        time: Duration,
        arguments: &str,
    ) -> Result<Option<String>, ScriptError> {
        self.deadline.restart(time);
        let functions = match &mut self.functions {
            Some(functions) => functions,
            empty => empty.insert(Functions::new(self.settings.clone())?),
        };
        if let Some(source) = source
            && functions.needs(name)
        {
            functions.define(name, source)?;
        }
        match functions.call(name, arguments)? {
            Some(text) if text.len() > RESULT_BYTES => Err(ScriptError::new(
                Problem::TooLarge,
                format!("the result of the function is too large. limit={RESULT_BYTES}"),
            )),
            result => Ok(result),
        }
    }
}
