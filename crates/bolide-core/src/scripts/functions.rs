//! User-defined functions for the queries of a container: `udf.name(…)`.
//!
//! The first call in a page of a query takes a permit and a process. Functions are compiled once and share a sandbox there. Each call has a time
//! limit, and so do all calls of a page together.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use bolide_model::time::Monotonic;
use bolide_model::{Error, ErrorKind, Result, UnixMillis};
use bolide_query::Udfs;
use bolide_script::{Cancel, FunctionCalls, Grant, Limits, Problem, ScriptError};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::budget::{Running, ScriptBudget};
use super::permits::{ScriptPermit, ScriptPermits};
use super::run::script_error;
use crate::container::{Container, Script, ScriptKind, Scripts};
use crate::executor::Ending;
use crate::memory::MemoryShare;

/// Divisor and multiple of a script's time limit: one call may take a fifth of it, all calls of a page twice as long.
const CALL_PART: u32 = 5;
const PAGE_TIMES: u32 = 2;
/// Interval between two checks whether the query is still waited for.
const LOOK: Duration = Duration::from_millis(20);

/// The functions of one page of a query.
pub(crate) struct QueryFunctions(Option<Arc<Caller>>);

/// Calls functions in their process.
struct Caller {
    clock: Monotonic,
    /// Server time of the page. `Date` always returns it, as everything in a query does (TTL-211).
    now: UnixMillis,
    scripts: Arc<Scripts>,
    permit: Where,
    /// The budget of the script that runs the query, if a script runs it: the functions have no more time than the script has left.
    script: Option<Arc<ScriptBudget>>,
    cancel: Cancel,
    call_time: Duration,
    calls: Mutex<Calls>,
    /// The error of a failed call, if it is not an error of the query itself.
    failure: Mutex<Option<Error>>,
}

/// The permit under which functions run.
enum Where {
    /// The permit of the script that runs the query.
    Here(ScriptPermit),
    /// A permit of their own. The first call waits for it, until a change of the container asks the query to end.
    Own(Arc<ScriptPermits>, Handle, Ending),
}

/// The calls of a page.
struct Calls {
    /// Their own permit, once it is taken.
    permit: Option<ScriptPermit>,
    process: Option<FunctionCalls>,
    /// Memory of a process in addition to that of the script which runs the query.
    _memory: Option<MemoryShare>,
    /// Remaining time of the page.
    left: Duration,
}

impl QueryFunctions {
    /// Returns the functions for a page of a query. It has none if the query's text cannot call any.
    pub fn for_query(
        clock: &Monotonic,
        permits: &Arc<ScriptPermits>,
        container: &Container,
        text: &str,
        now: UnixMillis,
    ) -> QueryFunctions {
        if !may_call(text) {
            return QueryFunctions(None);
        }
        QueryFunctions(Some(Arc::new(Caller {
            clock: clock.clone(),
            now,
            scripts: container.scripts(),
            permit: Where::Own(permits.clone(), Handle::current(), container.ending().clone()),
            script: None,
            cancel: Cancel::default(),
            call_time: permits.time / CALL_PART,
            calls: Calls::lasting(permits.time * PAGE_TIMES),
            failure: Mutex::default(),
        })))
    }

    /// Returns the functions for a page of a query that a script runs, under the script's permit.
    pub(super) fn for_script(
        container: &Container,
        text: &str,
        running: &Running,
        permit: &ScriptPermit,
    ) -> QueryFunctions {
        if !may_call(text) {
            return QueryFunctions(None);
        }
        let budget = &running.budget;
        QueryFunctions(Some(Arc::new(Caller {
            clock: budget.clock().clone(),
            now: budget.now(),
            scripts: container.scripts(),
            permit: Where::Here(permit.clone()),
            script: Some(budget.clone()),
            cancel: running.cancel.clone(),
            call_time: budget.time() / CALL_PART,
            calls: Calls::lasting(budget.time() * PAGE_TIMES),
            failure: Mutex::default(),
        })))
    }

    /// Returns the functions for the execution of the query to call.
    pub fn udfs(&self) -> Option<Arc<dyn Udfs>> {
        self.0.clone().map(|caller| caller as Arc<dyn Udfs>)
    }

    /// Returns the result of a page, with the error of a failed function instead of the query's error.
    pub fn or_failure<T>(&self, result: Result<T>) -> Result<T> {
        let failure = self.0.as_ref().and_then(|caller| caller.failure.lock().take());
        match (result, failure) {
            (Err(_), Some(failure)) => Err(failure),
            (result, _) => result,
        }
    }
}

/// Cancels a call that is still running, because nobody waits for the page any more.
impl Drop for QueryFunctions {
    fn drop(&mut self) {
        if let Some(caller) = &self.0 {
            // A script that runs the query continues after it.
            if caller.script.is_none() {
                caller.cancel.cancel();
            }
        }
    }
}

/// Tells whether a query's text contains the word by which functions are called.
fn may_call(text: &str) -> bool {
    text.contains("udf")
}

impl Udfs for Caller {
    fn call(&self, name: &str, arguments: &[String]) -> Result<Option<String>, String> {
        let Some(script) = self.scripts.by_id(ScriptKind::UserDefinedFunction, name) else {
            return Err(format!("'{name}' is not a recognized user-defined function name."));
        };
        let allowed = script.check_quarantine(self.now.seconds());
        let answered = allowed.and_then(|()| self.ask(name, script, arguments));
        answered.map_err(|error| {
            let message = error.to_string();
            *self.failure.lock() = Some(error);
            message
        })
    }
}

impl Caller {
    fn ask(&self, name: &str, script: &Script, arguments: &[String]) -> Result<Option<String>> {
        let mut calls = self.calls.lock();
        let script_left = self.script.as_ref().map_or(Duration::MAX, |script| script.left());
        let time = self.call_time.min(calls.left).min(script_left);
        if time.is_zero() {
            return Err(took_too_long(name));
        }
        let arguments = format!("[{}]", arguments.join(","));
        let process = calls.process(self)?;
        let began = self.clock.now();
        let result = process.call(name, &script.body, &arguments, time);
        calls.left = calls.left.saturating_sub(self.clock.since(began));
        script.quarantine.ended(&result, self.now.seconds());
        result.map_err(|error| named(name, error))
    }

    /// Waits for a permit of their own, as long as somebody waits for the query. Blocks this thread, which serves no connections.
    fn wait_for_permit(&self, permits: &Arc<ScriptPermits>, runtime: &Handle, ending: &Ending) -> Result<ScriptPermit> {
        let (sender, taken) = sync_channel(1);
        let permits = permits.clone();
        runtime.spawn(async move {
            // If nobody waits any more, the permit is released.
            let _ = sender.send(permits.for_query().await);
        });
        loop {
            match taken.recv_timeout(LOOK) {
                Ok(permit) => return permit,
                Err(RecvTimeoutError::Timeout) if !self.cancel.is_cancelled() && !ending.is_wanted() => {}
                Err(_) => {
                    return Err(Error::new(
                        ErrorKind::Unavailable,
                        "nobody waits for the query any more",
                    ));
                }
            }
        }
    }

    fn grant(&self) -> Grant {
        Grant {
            limits: Limits::default(),
            random_seed: crate::sql::random_seed(),
            now_ms: self.now.0,
            is_clock_running: false,
            time: Duration::ZERO,
            cancel: self.cancel.clone(),
        }
    }
}

impl Calls {
    fn lasting(time: Duration) -> Mutex<Calls> {
        Mutex::new(Calls {
            permit: None,
            process: None,
            _memory: None,
            left: time,
        })
    }

    /// Returns the process, which is started at the first call.
    fn process(&mut self, caller: &Caller) -> Result<&mut FunctionCalls> {
        if self.process.is_none() {
            let permit = match &caller.permit {
                Where::Here(permit) => {
                    self._memory = Some(permit.more_memory()?);
                    permit
                }
                Where::Own(permits, runtime, ending) => {
                    self.permit.insert(caller.wait_for_permit(permits, runtime, ending)?)
                }
            };
            let lent = permit.hosts().functions(&caller.grant());
            self.process = Some(lent.map_err(script_error)?);
        }
        self.process
            .as_mut()
            .ok_or_else(|| Error::internal("a process was just lent"))
    }
}

fn took_too_long(name: &str) -> Error {
    Error::new(
        ErrorKind::ScriptTimeout,
        format!("The user-defined function was ended: it took too long. name=`{name}`"),
    )
}

fn named(name: &str, error: ScriptError) -> Error {
    let message = match error.problem {
        Problem::Syntax | Problem::Thrown { .. } => {
            format!("{} In the user-defined function '{name}'.", error.message)
        }
        _ => format!("{} name=`{name}`", error.message),
    };
    script_error(ScriptError { message, ..error })
}
