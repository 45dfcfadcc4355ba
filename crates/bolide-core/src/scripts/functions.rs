//! User-defined functions for the queries of a container: `udf.name(…)`.
//!
//! A page of a query that may call one has a sandbox on a thread of its own, started by the first call. Functions are compiled once
//! and share that sandbox. Each call, and all calls of a page together, have their time.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use bolide_model::{Error, ErrorKind, Result, UnixMillis, UnixSeconds};
use bolide_query::Udfs;
use bolide_script::{Functions, Limits, Pace, Problem, ScriptError, Settings};
use parking_lot::Mutex;

use super::run::script_error;
use super::watch::{GRACE, RUNS_FOR, Slot, THREAD_STACK_BYTES, Watch};
use super::{Conduct, ScriptKind};
use crate::account::Account;
use crate::catalog::Scripts;
use crate::container::Container;

/// How long one call may take.
const CALL: Duration = Duration::from_secs(1);

/// The functions of one page of a query.
pub(crate) struct QueryFunctions(Option<Arc<Caller>>);

/// Calls functions on their thread.
struct Caller {
    /// Server time of the page.
    now: UnixSeconds,
    scripts: Arc<Scripts>,
    pace: Arc<CallPace>,
    slot: Slot,
    thread: Mutex<Option<Sender<Request>>>,
    /// Why a call failed, where that is no error of the query itself.
    failure: Mutex<Option<Error>>,
}

struct Request {
    name: String,
    arguments: String,
    reply: SyncSender<Result<Option<String>, ScriptError>>,
}

impl QueryFunctions {
    /// The functions for a page of a query; none if its text cannot call any.
    ///
    /// # Errors
    /// `Unavailable` if too many scripts run.
    pub async fn for_query(
        account: &Account,
        container: &Container,
        text: &str,
        now: UnixMillis,
    ) -> Result<QueryFunctions> {
        if !may_call(text) {
            return Ok(QueryFunctions(None));
        }
        let slot = account.script_slots().take().await?;
        let pace = CallPace::new(now, None);
        Ok(QueryFunctions::new(container, now, pace, slot))
    }

    /// The functions for a page of a query that a script runs: they have no more time than the script.
    pub(super) fn for_script(container: &Container, text: &str, watch: &Arc<Watch>, slot: &Slot) -> QueryFunctions {
        if !may_call(text) {
            return QueryFunctions(None);
        }
        let now = UnixMillis(watch.now_ms());
        let pace = CallPace::new(now, Some(watch.clone()));
        QueryFunctions::new(container, now, pace, slot.clone())
    }

    fn new(container: &Container, now: UnixMillis, pace: Arc<CallPace>, slot: Slot) -> QueryFunctions {
        QueryFunctions(Some(Arc::new(Caller {
            now: now.seconds(),
            scripts: container.scripts(),
            pace,
            slot,
            thread: Mutex::default(),
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

/// Whether a query's text has the word by which functions are called.
fn may_call(text: &str) -> bool {
    text.contains("udf")
}

impl Udfs for Caller {
    fn call(&self, name: &str, arguments: &[String]) -> Result<Option<String>, String> {
        let Some(script) = self.scripts.by_id(ScriptKind::UserDefinedFunction, name) else {
            return Err(format!("'{name}' is not a recognized user-defined function name."));
        };
        let allowed = script.check_conduct(self.now);
        let answered = allowed.and_then(|()| self.ask(name, &script.conduct, arguments));
        answered.map_err(|error| {
            let message = error.message.clone();
            *self.failure.lock() = Some(error);
            message
        })
    }
}

impl Caller {
    fn ask(&self, name: &str, conduct: &Conduct, arguments: &[String]) -> Result<Option<String>> {
        let (reply, answer) = sync_channel(1);
        let request = Request {
            name: name.to_owned(),
            arguments: format!("[{}]", arguments.join(",")),
            reply,
        };
        let gone = || Error::internal("the thread of a user-defined function is gone");
        self.pace.begin();
        self.thread()?.send(request).map_err(|_| gone())?;
        let answered = answer.recv_timeout(CALL + GRACE);
        self.pace.end();
        match answered {
            Ok(result) => {
                conduct.ended(&result, self.now);
                result.map_err(|error| named(name, error))
            }
            Err(RecvTimeoutError::Disconnected) => Err(gone()),
            Err(RecvTimeoutError::Timeout) => {
                conduct.offended(self.now);
                tracing::warn!("a user-defined function did not end when told to; its thread is left behind");
                Err(Error::new(
                    ErrorKind::ScriptTimeout,
                    format!("The user-defined function was ended: it took too long. name=`{name}`"),
                ))
            }
        }
    }

    /// The thread, started when first needed.
    fn thread(&self) -> Result<Sender<Request>> {
        let mut thread = self.thread.lock();
        if let Some(sender) = &*thread {
            return Ok(sender.clone());
        }
        let (sender, requests) = channel();
        let (scripts, pace, slot) = (self.scripts.clone(), self.pace.clone(), self.slot.clone());
        std::thread::Builder::new()
            .name("udf".to_owned())
            .stack_size(THREAD_STACK_BYTES)
            .spawn(move || {
                serve(&requests, &scripts, pace);
                drop(slot);
            })
            .map_err(|error| Error::new(ErrorKind::Unavailable, format!("no thread for a script: {error}")))?;
        *thread = Some(sender.clone());
        Ok(sender)
    }
}

/// Answers calls until nobody can ask any more.
fn serve(requests: &Receiver<Request>, scripts: &Scripts, pace: Arc<CallPace>) {
    let settings = Settings {
        limits: Limits::default(),
        pace,
        random_seed: crate::query::random_seed(),
    };
    let mut functions = Functions::new(settings);
    for request in requests {
        let result = match &mut functions {
            Ok(functions) => answer(functions, scripts, &request),
            Err(error) => Err(error.clone()),
        };
        let _ = request.reply.send(result);
    }
}

fn answer(functions: &mut Functions, scripts: &Scripts, request: &Request) -> Result<Option<String>, ScriptError> {
    if functions.needs(&request.name)
        && let Some(script) = scripts.by_id(ScriptKind::UserDefinedFunction, &request.name)
    {
        functions.define(&request.name, &script.body)?;
    }
    functions.call(&request.name, &request.arguments)
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

/// The time of the calls of a page. `Date` stands still at the request's time, as everything in a query does (TTL-211).
struct CallPace {
    now: UnixMillis,
    script: Option<Arc<Watch>>,
    used: Mutex<Calls>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Calls {
    /// When the running call began.
    running: Option<Instant>,
    /// What the calls before it took.
    before: Duration,
}

impl CallPace {
    fn new(now: UnixMillis, script: Option<Arc<Watch>>) -> Arc<CallPace> {
        Arc::new(CallPace {
            now,
            script,
            used: Mutex::default(),
        })
    }

    fn begin(&self) {
        self.used.lock().running = Some(Instant::now());
    }

    fn end(&self) {
        let mut calls = self.used.lock();
        if let Some(began) = calls.running.take() {
            calls.before += began.elapsed();
        }
    }
}

impl Pace for CallPace {
    fn is_over(&self) -> bool {
        let calls = *self.used.lock();
        let running = calls.running.map_or(Duration::ZERO, |began| began.elapsed());
        running >= CALL
            || calls.before + running >= RUNS_FOR * 2
            || self.script.as_ref().is_some_and(|watch| watch.is_over())
    }

    fn now_ms(&self) -> i64 {
        self.now.0
    }
}
