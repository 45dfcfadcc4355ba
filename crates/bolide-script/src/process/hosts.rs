//! The pool of processes: started on demand, lent out, kept for the next script, and ended.

use std::ffi::OsString;
use std::io::{self, BufReader, PipeReader, PipeWriter, pipe};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_model::time::Monotonic;
use parking_lot::{Condvar, Mutex};

use super::lease::{FunctionCalls, Lease};
use super::serve::serve_thread;
use super::supervision::{Runner, Supervision};
use crate::call::{Call, Finished};
use crate::error::{Problem, ScriptError};
use crate::grant::{Cancel, Grant};
use crate::host::Host;

/// How often running scripts are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// How long an idle process is kept before it is ended.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Where scripts run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Hosting {
    /// Scripts are refused.
    #[default]
    None,
    /// In processes: this program, started with these arguments, which must call [`super::serve_process`].
    Processes {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        arguments: Vec<OsString>,
    },
    /// On threads of this process. A script cannot be interrupted inside a built-in function then: for tests only.
    Threads,
}

/// See the module. Dropping it ends all processes.
pub struct Hosts {
    inner: Arc<Inner>,
}

/// The state shared by the supervisor and the users of processes.
pub(super) struct Inner {
    clock: Monotonic,
    hosting: Hosting,
    max_idle: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lent: Vec<Arc<Supervision>>,
    idle: Vec<Idle>,
    is_closed: bool,
    has_supervisor: bool,
}

struct Idle {
    runner: Runner,
    pipes: Pipes,
    since: Instant,
}

/// The pipes to and from a process.
pub(super) struct Pipes {
    pub to: PipeWriter,
    pub from: BufReader<PipeReader>,
}

impl Hosts {
    /// A pool without processes. At most `max_idle` are kept for later scripts. `clock` measures the time of scripts; processes use the machine's clock.
    pub fn new(hosting: Hosting, max_idle: usize, clock: Monotonic) -> Hosts {
        Hosts {
            inner: Arc::new(Inner {
                clock,
                hosting,
                max_idle,
                state: Mutex::default(),
                changed: Condvar::new(),
            }),
        }
    }

    /// Runs a script to its end. Blocks its thread meanwhile, for little more than the grant's time, unless the host is slower.
    ///
    /// # Errors
    /// Why it ended early. The caller must then undo the transaction behind the host.
    pub fn run(&self, call: &Call, grant: &Grant, host: &mut dyn Host) -> Result<Finished, ScriptError> {
        self.lease(grant.cancel.clone())?.run(call, grant, host)
    }

    /// Lends a process to the functions of a query. `grant.time` is set with each call.
    ///
    /// # Errors
    /// `Unavailable` if no process can be started.
    pub fn functions(&self, grant: &Grant) -> Result<FunctionCalls, ScriptError> {
        FunctionCalls::begin(self.lease(grant.cancel.clone())?, grant)
    }

    /// Ends all scripts, and their processes. No further script is run.
    pub fn close(&self) {
        let (lent, idle) = {
            let mut state = self.inner.state.lock();
            state.is_closed = true;
            (state.lent.clone(), std::mem::take(&mut state.idle))
        };
        self.inner.changed.notify_all();
        for supervision in lent {
            supervision.kill();
            // Ends it before this returns, even if it is lent out.
            supervision.runner.lock().end();
        }
        for mut idle in idle {
            idle.runner.end();
        }
    }

    /// Number of scripts that are running, including those that wait for their host, and of queries that have called a function.
    pub fn running(&self) -> usize {
        self.inner.state.lock().lent.len()
    }

    /// The ids of all processes. For tests.
    pub fn process_ids(&self) -> Vec<u32> {
        let state = self.inner.state.lock();
        let id = |runner: &Runner| match runner {
            Runner::Process(child) => Some(child.id()),
            Runner::Thread(_) => None,
        };
        let lent = state
            .lent
            .iter()
            .filter_map(|supervision| id(&supervision.runner.lock()));
        lent.chain(state.idle.iter().filter_map(|idle| id(&idle.runner)))
            .collect()
    }

    fn lease(&self, cancel: Cancel) -> Result<Lease, ScriptError> {
        let inner = &self.inner;
        let (mut idle, is_closed) = {
            let mut state = inner.state.lock();
            (state.idle.pop(), state.is_closed)
        };
        if is_closed {
            return Err(unavailable("the database is closing"));
        }
        // The system may have ended an idle process.
        while idle.as_mut().is_some_and(|idle| !idle.runner.is_alive()) {
            idle = inner.state.lock().idle.pop();
        }
        let (runner, pipes) = match idle {
            Some(idle) => (idle.runner, idle.pipes),
            None => inner.start().map_err(|error| unavailable(&error.to_string()))?,
        };
        let supervision = Arc::new(Supervision::new(runner, cancel));
        inner.supervise(supervision.clone())?;
        Ok(Lease::new(inner.clone(), supervision, pipes))
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.close();
    }
}

impl Inner {
    fn start(&self) -> io::Result<(Runner, Pipes)> {
        let (input, to) = pipe()?;
        let (from, output) = pipe()?;
        let runner = match &self.hosting {
            Hosting::None => return Err(io::Error::other("no way to run scripts is set up")),
            Hosting::Processes { program, arguments } => {
                let mut command = Command::new(program);
                command.args(arguments).env_clear().current_dir("/");
                command.stdin(input).stdout(output).stderr(Stdio::null());
                #[cfg(unix)]
                {
                    use std::os::unix::process::CommandExt as _;
                    // Signals of a terminal must reach only the server.
                    command.process_group(0);
                }
                Runner::Process(command.spawn()?)
            }
            Hosting::Threads => {
                let cancel = Cancel::default();
                serve_thread(input, output, cancel.clone(), self.clock.clone())?;
                Runner::Thread(cancel)
            }
        };
        let from = BufReader::new(from);
        Ok((runner, Pipes { to, from }))
    }

    /// Starts supervising a script.
    fn supervise(self: &Arc<Inner>, supervision: Arc<Supervision>) -> Result<(), ScriptError> {
        let mut state = self.state.lock();
        if state.is_closed {
            drop(state);
            supervision.runner.lock().end();
            return Err(unavailable("the database is closing"));
        }
        if !state.has_supervisor {
            let inner = self.clone();
            let supervisor = std::thread::Builder::new().name("script-supervisor".to_owned());
            if let Err(error) = supervisor.spawn(move || inner.run_supervisor()) {
                drop(state);
                supervision.runner.lock().end();
                return Err(unavailable(&error.to_string()));
            }
            state.has_supervisor = true;
        }
        state.lent.push(supervision);
        self.changed.notify_all();
        Ok(())
    }

    /// Ends processes that are late or no longer needed, until there is nothing left to supervise.
    fn run_supervisor(&self) {
        let mut state = self.state.lock();
        loop {
            let now = self.clock.now();
            for supervision in &state.lent {
                supervision.check(now);
            }
            state.idle.retain_mut(|idle| {
                let is_kept = now.duration_since(idle.since) < IDLE_TIMEOUT;
                if !is_kept {
                    idle.runner.end();
                }
                is_kept
            });
            if state.lent.is_empty() && (state.idle.is_empty() || state.is_closed) {
                state.has_supervisor = false;
                return;
            }
            let nap = if state.lent.is_empty() {
                IDLE_TIMEOUT
            } else {
                CHECK_INTERVAL
            };
            self.changed.wait_for(&mut state, nap);
        }
    }

    pub fn clock(&self) -> &Monotonic {
        &self.clock
    }

    /// Takes back a process: kept if it is `reusable`, with its pipes.
    pub fn take_back(&self, supervision: &Arc<Supervision>, reusable: Option<Pipes>) {
        let mut state = self.state.lock();
        state.lent.retain(|lent| !Arc::ptr_eq(lent, supervision));
        let mut runner = supervision.runner.lock();
        let is_wanted = !state.is_closed && state.idle.len() < self.max_idle && !supervision.is_killed();
        match reusable.filter(|_| is_wanted) {
            Some(pipes) => {
                // The lease is no longer supervised.
                let runner = std::mem::replace(&mut *runner, Runner::Thread(Cancel::default()));
                let since = self.clock.now();
                state.idle.push(Idle { runner, pipes, since });
            }
            None => {
                drop(state);
                runner.end();
            }
        }
    }
}

pub(super) fn unavailable(why: &str) -> ScriptError {
    ScriptError::new(
        Problem::Unavailable,
        format!("there is no process for the script: {why}"),
    )
}
