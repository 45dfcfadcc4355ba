//! The engine with its limits: one runtime and one context, for one call or one query, on one thread.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use rquickjs::context::intrinsic;
use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, FromJs, Function, Object, Runtime, Value};

use crate::error::{Problem, ScriptError};
use crate::host::Pace;

const SANDBOX: &str = include_str!("prelude/sandbox.js");

/// Size limits of a script.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Memory of the engine for one call, including the engine's own.
    pub memory_bytes: usize,
    /// Stack of the engine. The stack of the thread must be larger, for the host and a reserve.
    pub stack_bytes: usize,
    /// Largest request or response body, as JSON text.
    pub message_bytes: usize,
    /// Log text that is kept; the rest is dropped.
    pub log_bytes: usize,
}

impl Default for Limits {
    /// 64 MB, 512 KB, 2 MB, 4 KB.
    fn default() -> Limits {
        Limits {
            memory_bytes: 64 * 1024 * 1024,
            stack_bytes: 512 * 1024,
            message_bytes: 2 * 1024 * 1024,
            log_bytes: 4 * 1024,
        }
    }
}

/// The settings of a call.
#[derive(Clone)]
pub struct Settings {
    /// Its size limits.
    pub limits: Limits,
    /// Its time.
    pub pace: Arc<dyn Pace>,
    /// Seed of `Math.random`.
    pub random_seed: u64,
}

/// State that lives as long as the engine and is shared with its callbacks.
pub(crate) struct Shared {
    pub settings: Settings,
    pub log: RefCell<String>,
    is_interrupted: Cell<bool>,
    random: RefCell<fastrand::Rng>,
}

/// The built-in objects of the context.
type Intrinsics = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
);

/// An engine that is ready to run scripts.
pub(crate) struct Sandbox {
    context: Context,
    runtime: Runtime,
    pub shared: Rc<Shared>,
}

impl Sandbox {
    /// Starts an engine, with the guards of the sandbox in place.
    pub fn new(settings: Settings) -> Result<Sandbox, ScriptError> {
        let runtime = Runtime::new().map_err(|_| out_of_memory())?;
        runtime.set_memory_limit(settings.limits.memory_bytes);
        runtime.set_max_stack_size(settings.limits.stack_bytes);
        let shared = Rc::new(Shared {
            random: RefCell::new(fastrand::Rng::with_seed(settings.random_seed)),
            settings,
            log: RefCell::default(),
            is_interrupted: Cell::new(false),
        });
        let watched = shared.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || {
            let is_over = watched.settings.pace.is_over();
            watched.is_interrupted.set(is_over || watched.is_interrupted.get());
            is_over
        })));
        let context = Context::custom::<Intrinsics>(&runtime).map_err(|_| out_of_memory())?;
        let sandbox = Sandbox {
            context,
            runtime,
            shared,
        };
        sandbox.enter(|ctx, sandbox| {
            let native = sandbox.natives(ctx)?;
            let guard: Function = sandbox.check(ctx, ctx.eval(SANDBOX))?;
            sandbox.check(ctx, guard.call::<_, ()>((native,)))
        })?;
        Ok(sandbox)
    }

    /// Runs Rust code inside the engine.
    pub fn enter<R>(&self, f: impl FnOnce(&Ctx<'_>, &Sandbox) -> R) -> R {
        self.context.with(|ctx| f(&ctx, self))
    }

    /// The functions that the sandbox itself needs: time and random numbers.
    pub fn natives<'js>(&self, ctx: &Ctx<'js>) -> Result<Object<'js>, ScriptError> {
        let object = self.check(ctx, Object::new(ctx.clone()))?;
        let shared = self.shared.clone();
        let now = Function::new(ctx.clone(), move || shared.settings.pace.now_ms() as f64);
        let shared = self.shared.clone();
        let random = Function::new(ctx.clone(), move || shared.random());
        let now = self.check(ctx, now)?;
        let random = self.check(ctx, random)?;
        self.check(ctx, object.set("now", now))?;
        self.check(ctx, object.set("random", random))?;
        Ok(object)
    }

    /// Compiles a script: one function expression, or declarations, of which the first function is used.
    pub fn compile<'js>(&self, ctx: &Ctx<'js>, source: &str) -> Result<Function<'js>, ScriptError> {
        let expression = source.trim().trim_end_matches(';');
        let compiled: Result<Value, ScriptError> = self.evaluate(ctx, format!("({expression}\n)"));
        let value = match (compiled, first_function(source)) {
            (Err(error), Some(name)) if error.problem == Problem::Syntax => self
                .evaluate(ctx, format!("{source}\n;{name}"))
                // The first error is usually the one that matters.
                .map_err(|_| error)?,
            (compiled, _) => compiled?,
        };
        Function::from_js(ctx, value).map_err(|_| {
            ScriptError::new(
                Problem::Syntax,
                "Encountered exception while compiling Javascript. Exception = the script is not a function",
            )
        })
    }

    fn evaluate<'js>(&self, ctx: &Ctx<'js>, source: String) -> Result<Value<'js>, ScriptError> {
        let mut options = rquickjs::context::EvalOptions::default();
        options.strict = false;
        options.filename = Some("script.js".to_owned());
        self.check(ctx, ctx.eval_with_options(source, options))
    }

    /// Runs the jobs that promises have queued.
    pub fn run_jobs(&self, ctx: &Ctx<'_>) -> Result<(), ScriptError> {
        while ctx.execute_pending_job() {
            self.check_time()?;
        }
        Ok(())
    }

    /// Whether the time limit was reached at any moment: a script cannot hide that.
    pub fn check_time(&self) -> Result<(), ScriptError> {
        if self.shared.is_interrupted.get() || self.shared.settings.pace.is_over() {
            return Err(out_of_time());
        }
        Ok(())
    }

    /// Converts an exception inside the engine into an error.
    pub fn check<T>(&self, ctx: &Ctx<'_>, result: rquickjs::Result<T>) -> Result<T, ScriptError> {
        result.catch(ctx).map_err(|caught| self.error_of(caught))
    }

    fn error_of(&self, caught: CaughtError<'_>) -> ScriptError {
        if self.shared.is_interrupted.get() {
            return out_of_time();
        }
        let mut number = None;
        let (name, message, stack) = match &caught {
            CaughtError::Exception(exception) => {
                number = exception.as_object().get::<_, f64>("number").ok();
                let name = exception.as_object().get::<_, String>("name").unwrap_or_default();
                (
                    name,
                    exception.message().unwrap_or_default(),
                    exception.stack().unwrap_or_default(),
                )
            }
            // If there is no memory even for an error, the engine throws null. Scripts rarely do that.
            CaughtError::Value(value) if value.is_null() => return out_of_memory(),
            CaughtError::Value(value) => {
                let text = value.as_string().and_then(|text| text.to_string().ok());
                (
                    String::new(),
                    text.unwrap_or_else(|| "a value that is no error".to_owned()),
                    String::new(),
                )
            }
            CaughtError::Error(error) => (String::new(), error.to_string(), String::new()),
        };
        match name.as_str() {
            "SyntaxError" => ScriptError::new(
                Problem::Syntax,
                format!(
                    "Encountered exception while compiling Javascript. Exception = SyntaxError: {message}\r\nStack trace: {stack}"
                ),
            ),
            "InternalError" if message.contains("out of memory") => out_of_memory(),
            _ => {
                let text = if name.is_empty() {
                    message
                } else {
                    format!("{name}: {message}")
                };
                thrown(number.and_then(whole).unwrap_or(0), &text, &stack)
            }
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // No part of the script may run any more, not even finalizers.
        self.runtime.set_interrupt_handler(Some(Box::new(|| true)));
    }
}

impl Shared {
    /// The next random number in [0, 1).
    pub fn random(&self) -> f64 {
        self.random.borrow_mut().f64()
    }

    /// Adds a line to the log; what exceeds the limit is dropped.
    pub fn note(&self, line: &str) {
        let mut log = self.log.borrow_mut();
        let free = self.settings.limits.log_bytes.saturating_sub(log.len());
        log.push_str(&line[..line.floor_char_boundary(free)]);
    }
}

/// The number of an error, if it is a valid one.
fn whole(number: f64) -> Option<u32> {
    let is_whole = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
    is_whole.then_some(number as u32)
}

/// An exception, in the service's words.
pub(crate) fn thrown(number: u32, message: &str, stack: &str) -> ScriptError {
    ScriptError::new(
        Problem::Thrown { number },
        format!("Encountered exception while executing Javascript. Exception = {message}\r\nStack trace: {stack}"),
    )
}

pub(crate) fn out_of_time() -> ScriptError {
    ScriptError::new(
        Problem::OutOfTime,
        "The script was ended: it did not complete within the time it is given.",
    )
}

fn out_of_memory() -> ScriptError {
    ScriptError::new(
        Problem::OutOfMemory,
        "The script was ended: it needs more memory than it may use.",
    )
}

/// The name of the first function that a source declares, at its start.
fn first_function(source: &str) -> Option<&str> {
    let rest = source.trim_start();
    let rest = rest.strip_prefix("async ").map_or(rest, str::trim_start);
    let rest = rest.strip_prefix("function")?.trim_start();
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'))?;
    (end > 0).then(|| &rest[..end])
}
