//! The processes of an account: started when needed, lent out, kept for the next script, ended.

use std::ffi::OsString;
use std::io::{self, BufReader, PipeReader, PipeWriter, pipe};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_model::time::Monotonic;
use parking_lot::{Condvar, Mutex};

use super::lease::{FunctionCalls, Lease};
use super::leash::{Leash, Life};
use super::serve::serve_thread;
use crate::call::{Call, Finished};
use crate::error::{Problem, ScriptError};
use crate::grant::{Cancel, Grant};
use crate::host::Host;

/// How often running scripts are looked after.
const LOOK: Duration = Duration::from_millis(10);
/// How long a process waits for its next script before it is ended.
const IDLE: Duration = Duration::from_secs(30);

/// Where scripts run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Hosting {
    /// Nowhere: they are refused.
    #[default]
    None,
    /// In processes, started as this program with these arguments, which must call [`super::serve_process`].
    Processes {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        arguments: Vec<OsString>,
    },
    /// On threads of this process. A script cannot be ended inside a function of the engine then: for tests only.
    Threads,
}

/// See the module. Dropping it ends all of them.
pub struct Hosts {
    inner: Arc<Inner>,
}

/// What the overseer and the borrowers share.
pub(super) struct Inner {
    clock: Monotonic,
    hosting: Hosting,
    most_idle: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lent: Vec<Arc<Leash>>,
    idle: Vec<Idle>,
    is_closed: bool,
    has_overseer: bool,
}

struct Idle {
    life: Life,
    line: Line,
    since: Instant,
}

/// The pipes to and from a process.
pub(super) struct Line {
    pub to: PipeWriter,
    pub from: BufReader<PipeReader>,
}

impl Hosts {
    /// No process yet. At most `most_idle` are kept for later scripts. Scripts have their time by `clock`, in processes by the machine's.
    pub fn new(hosting: Hosting, most_idle: usize, clock: Monotonic) -> Hosts {
        Hosts {
            inner: Arc::new(Inner {
                clock,
                hosting,
                most_idle,
                state: Mutex::default(),
                changed: Condvar::new(),
            }),
        }
    }

    /// Runs a script to its end. Blocks its thread for as long, but no longer than the grant's time and a little more, if the host is no
    /// slower.
    ///
    /// # Errors
    /// What ended it early. Whoever made the transaction behind the host must undo it then.
    pub fn run(&self, call: &Call, grant: &Grant, host: &mut dyn Host) -> Result<Finished, ScriptError> {
        self.lease(grant.cancel.clone())?.run(call, grant, host)
    }

    /// Lends a process to the functions of a query. `grant.time` is given with each call.
    ///
    /// # Errors
    /// `Unavailable` if there is none.
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
        for leash in lent {
            leash.kill();
            // Gone before this returns, whoever has borrowed it.
            leash.life.lock().end();
        }
        for mut idle in idle {
            idle.life.end();
        }
    }

    /// How many scripts run, those included that wait for their host; and queries that have called a function.
    pub fn running(&self) -> usize {
        self.inner.state.lock().lent.len()
    }

    /// The ids of all processes, for tests.
    pub fn process_ids(&self) -> Vec<u32> {
        let state = self.inner.state.lock();
        let id = |life: &Life| match life {
            Life::Process(child) => Some(child.id()),
            Life::Thread(_) => None,
        };
        let lent = state.lent.iter().filter_map(|leash| id(&leash.life.lock()));
        lent.chain(state.idle.iter().filter_map(|idle| id(&idle.life)))
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
        // One may have been ended by the system while nobody looked.
        while idle.as_mut().is_some_and(|idle| !idle.life.is_alive()) {
            idle = inner.state.lock().idle.pop();
        }
        let (life, line) = match idle {
            Some(idle) => (idle.life, idle.line),
            None => inner.start().map_err(|error| unavailable(&error.to_string()))?,
        };
        let leash = Arc::new(Leash::new(life, cancel));
        inner.hold(leash.clone())?;
        Ok(Lease::new(inner.clone(), leash, line))
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.close();
    }
}

impl Inner {
    fn start(&self) -> io::Result<(Life, Line)> {
        let (input, to) = pipe()?;
        let (from, output) = pipe()?;
        let life = match &self.hosting {
            Hosting::None => return Err(io::Error::other("no way to run scripts is set up")),
            Hosting::Processes { program, arguments } => {
                let mut command = Command::new(program);
                command.args(arguments).env_clear().current_dir("/");
                command.stdin(input).stdout(output).stderr(Stdio::null());
                #[cfg(unix)]
                {
                    use std::os::unix::process::CommandExt as _;
                    // Signals of a terminal are for the server.
                    command.process_group(0);
                }
                Life::Process(command.spawn()?)
            }
            Hosting::Threads => {
                let cancel = Cancel::default();
                serve_thread(input, output, cancel.clone(), self.clock.clone())?;
                Life::Thread(cancel)
            }
        };
        let from = BufReader::new(from);
        Ok((life, Line { to, from }))
    }

    /// Looks after a script from now on.
    fn hold(self: &Arc<Inner>, leash: Arc<Leash>) -> Result<(), ScriptError> {
        let mut state = self.state.lock();
        if state.is_closed {
            drop(state);
            leash.life.lock().end();
            return Err(unavailable("the database is closing"));
        }
        if !state.has_overseer {
            let inner = self.clone();
            let overseer = std::thread::Builder::new().name("script-overseer".to_owned());
            if let Err(error) = overseer.spawn(move || inner.oversee()) {
                drop(state);
                leash.life.lock().end();
                return Err(unavailable(&error.to_string()));
            }
            state.has_overseer = true;
        }
        state.lent.push(leash);
        self.changed.notify_all();
        Ok(())
    }

    /// Ends what is late or not needed, until there is nothing left to look after.
    fn oversee(&self) {
        let mut state = self.state.lock();
        loop {
            let now = self.clock.now();
            for leash in &state.lent {
                leash.check(now);
            }
            state.idle.retain_mut(|idle| {
                let is_kept = now.duration_since(idle.since) < IDLE;
                if !is_kept {
                    idle.life.end();
                }
                is_kept
            });
            if state.lent.is_empty() && (state.idle.is_empty() || state.is_closed) {
                state.has_overseer = false;
                return;
            }
            let nap = if state.lent.is_empty() { IDLE } else { LOOK };
            self.changed.wait_for(&mut state, nap);
        }
    }

    pub fn clock(&self) -> &Monotonic {
        &self.clock
    }

    /// Takes back what was lent: kept if it is `sound`, with its line.
    pub fn take_back(&self, leash: &Arc<Leash>, sound: Option<Line>) {
        let mut state = self.state.lock();
        state.lent.retain(|lent| !Arc::ptr_eq(lent, leash));
        let mut life = leash.life.lock();
        let is_wanted = !state.is_closed && state.idle.len() < self.most_idle && !leash.is_killed();
        match sound.filter(|_| is_wanted) {
            Some(line) => {
                // The leash is not looked at any more.
                let life = std::mem::replace(&mut *life, Life::Thread(Cancel::default()));
                let since = self.clock.now();
                state.idle.push(Idle { life, line, since });
            }
            None => {
                drop(state);
                life.end();
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
