//! User-defined functions for the queries of a container: `udf.name(…)`.
//!
//! A page of a query takes a place and a process for them with its first call. Functions are compiled once and share a sandbox
//! there. Each call, and all calls of a page together, have their time.

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

/// What part of a script's time one call has, and how many times that time all calls of a page have.
const CALL_PART: u32 = 5;
const PAGE_TIMES: u32 = 2;
/// Between looks whether the query is still waited for.
const LOOK: Duration = Duration::from_millis(20);

/// The functions of one page of a query.
pub(crate) struct QueryFunctions(Option<Arc<Caller>>);

/// Calls functions in their process.
struct Caller {
    clock: Monotonic,
    /// Server time of the page. `Date` stands still at it, as everything in a query does (TTL-211).
    now: UnixMillis,
    scripts: Arc<Scripts>,
    place: Where,
    /// Of a script, if it is one that runs the query: the functions have no more time than it has.
    script: Option<Arc<ScriptBudget>>,
    cancel: Cancel,
    call_time: Duration,
    calls: Mutex<Calls>,
    /// Why a call failed, where that is no error of the query itself.
    failure: Mutex<Option<Error>>,
}

/// Where functions run.
enum Where {
    /// In the place of the script that runs the query.
    Here(ScriptPermit),
    /// In a place of their own, for which the first call waits, unless a change of the container waits for the query.
    Own(Arc<ScriptPermits>, Handle, Ending),
}

/// The calls of a page.
struct Calls {
    /// A place of their own, once it was taken.
    place: Option<ScriptPermit>,
    process: Option<FunctionCalls>,
    /// Of a process beside that of the script which runs the query.
    _memory: Option<MemoryShare>,
    /// What is left of the page's time.
    left: Duration,
}

impl QueryFunctions {
    /// The functions for a page of a query; none if its text cannot call any.
    pub fn for_query(
        clock: &Monotonic,
        places: &Arc<ScriptPermits>,
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
            place: Where::Own(places.clone(), Handle::current(), container.ending().clone()),
            script: None,
            cancel: Cancel::default(),
            call_time: places.time / CALL_PART,
            calls: Calls::lasting(places.time * PAGE_TIMES),
            failure: Mutex::default(),
        })))
    }

    /// The functions for a page of a query that a script runs, in the script's place.
    pub(super) fn for_script(
        container: &Container,
        text: &str,
        running: &Running,
        place: &ScriptPermit,
    ) -> QueryFunctions {
        if !may_call(text) {
            return QueryFunctions(None);
        }
        let budget = &running.budget;
        QueryFunctions(Some(Arc::new(Caller {
            clock: budget.clock().clone(),
            now: budget.now(),
            scripts: container.scripts(),
            place: Where::Here(place.clone()),
            script: Some(budget.clone()),
            cancel: running.cancel.clone(),
            call_time: budget.time() / CALL_PART,
            calls: Calls::lasting(budget.time() * PAGE_TIMES),
            failure: Mutex::default(),
        })))
    }

    /// What an execution calls.
    pub fn udfs(&self) -> Option<Arc<dyn Udfs>> {
        self.0.clone().map(|caller| caller as Arc<dyn Udfs>)
    }

    /// The result of a page, with the failure of a function in the place of the query's error.
    pub fn or_failure<T>(&self, result: Result<T>) -> Result<T> {
        let failure = self.0.as_ref().and_then(|caller| caller.failure.lock().take());
        match (result, failure) {
            (Err(_), Some(failure)) => Err(failure),
            (result, _) => result,
        }
    }
}

/// Nobody waits for the page any more: a call that still runs is ended.
impl Drop for QueryFunctions {
    fn drop(&mut self) {
        if let Some(caller) = &self.0 {
            // A script that runs the query goes on after it.
            if caller.script.is_none() {
                caller.cancel.cancel();
            }
        }
    }
}

/// Whether a query's text has the word by which functions are called.
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
            let message = error.message.clone();
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

    /// A place of their own. Waits on this thread, which is none that serves connections, as long as the query is waited for.
    fn wait_for_place(&self, places: &Arc<ScriptPermits>, runtime: &Handle, ending: &Ending) -> Result<ScriptPermit> {
        let (sender, taken) = sync_channel(1);
        let places = places.clone();
        runtime.spawn(async move {
            // Nobody may wait any more: then it is given back.
            let _ = sender.send(places.for_query().await);
        });
        loop {
            match taken.recv_timeout(LOOK) {
                Ok(place) => return place,
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
            place: None,
            process: None,
            _memory: None,
            left: time,
        })
    }

    /// The process, lent when first needed.
    fn process(&mut self, caller: &Caller) -> Result<&mut FunctionCalls> {
        if self.process.is_none() {
            let place = match &caller.place {
                Where::Here(place) => {
                    self._memory = Some(place.more_memory()?);
                    place
                }
                Where::Own(places, runtime, ending) => {
                    self.place.insert(caller.wait_for_place(places, runtime, ending)?)
                }
            };
            let lent = place.hosts().functions(&caller.grant());
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
    let problem = error.problem;
    let error = script_error(error);
    match problem {
        Problem::Syntax | Problem::Thrown { .. } => Error {
            message: format!("{} In the user-defined function '{name}'.", error.message),
            ..error
        },
        _ => Error {
            message: format!("{} name=`{name}`", error.message),
            ..error
        },
    }
}
