//! One run of a stored procedure or trigger.
//!
//!   1. A new [`Sandbox`] gets `getContext()` from `prelude/context.js`.
//!   2. The script is compiled and called; its operations are queued.
//!   3. The [`Host`] carries them out one after the other and calls their callbacks, until none is left.
//!   4. The body that the script sets is the result.

use std::cell::RefCell;
use std::rc::Rc;

use rquickjs::{Ctx, Function, Object};
use serde_json::{Value, json};

use crate::error::{Problem, ScriptError};
use crate::host::{Host, Parsing, TextHost};
use crate::sandbox::{Sandbox, Settings, thrown};

const CONTEXT: &str = include_str!("prelude/context.js");

/// The kind of script, with the bodies it can read. JSON texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A stored procedure.
    Procedure {
        /// Its arguments: an array, an object like one, or `null`, as `Function.apply` takes them.
        arguments: String,
    },
    /// Runs before a write. It may change the request's body.
    PreTrigger {
        /// `Create`, `Replace`, `Upsert` or `Delete`.
        operation: &'static str,
        /// The document to be written; `null` for a delete.
        request: String,
    },
    /// Runs after a write, in the same transaction. It may change the response's body.
    PostTrigger {
        /// As for a pre-trigger.
        operation: &'static str,
        /// The document as sent.
        request: String,
        /// The document as stored; `null` for a delete.
        response: String,
    },
}

/// A script to run, with its context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The source.
    pub source: String,
    /// The kind of script.
    pub kind: Kind,
    /// The collection's link by resource ids.
    pub self_link: String,
    /// The collection's link by names.
    pub alt_link: String,
    /// The collection's partition key definition, as JSON text.
    pub partition_key: String,
    /// Whether the output of `console.log` is kept.
    pub is_logging: bool,
}

/// The result of a script that ended normally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The body that it set: of the response, or for a pre-trigger of the request. JSON text; `None` for JavaScript's `undefined`.
    pub body: Option<String>,
    /// Its log.
    pub log: String,
}

/// Runs a script to its end on this thread.
///
/// # Errors
/// Why it ended early. The caller must then undo the transaction behind the host.
pub fn run(call: &Call, settings: Settings, host: impl Host + 'static) -> Result<Finished, ScriptError> {
    run_with(call, settings, Parsing(host))
}

/// As [`run`], with a host that gets operations as the prelude writes them.
pub(crate) fn run_with(
    call: &Call,
    settings: Settings,
    host: impl TextHost + 'static,
) -> Result<Finished, ScriptError> {
    let sandbox = Sandbox::new(settings)?;
    let body = sandbox.enter(|ctx, sandbox| run_inside(ctx, sandbox, call, host))?;
    sandbox.check_time()?;
    let limit = sandbox.shared.settings.limits.message_bytes;
    if body.as_ref().is_some_and(|body| body.len() > limit) {
        return Err(ScriptError::new(
            Problem::TooLarge,
            format!("the body that the script leaves is too large. limit={limit}"),
        ));
    }
    let log = sandbox.shared.log.take();
    Ok(Finished { body, log })
}

fn run_inside(
    ctx: &Ctx<'_>,
    sandbox: &Sandbox,
    call: &Call,
    host: impl TextHost + 'static,
) -> Result<Option<String>, ScriptError> {
    let native = natives(ctx, sandbox, host)?;
    let prelude: Function = sandbox.check(ctx, ctx.eval(CONTEXT))?;
    let setup = sandbox.check(ctx, ctx.json_parse(setup(call, sandbox).to_string()))?;
    let script: Object = sandbox.check(ctx, prelude.call((native, setup)))?;
    let function = |name: &str| sandbox.check(ctx, script.get::<_, Function>(name));
    let (start, step, finish, describe) = (
        function("start")?,
        function("step")?,
        function("finish")?,
        function("describe")?,
    );

    let main = sandbox.compile(ctx, &call.source)?;
    let arguments = match &call.kind {
        Kind::Procedure { arguments } => arguments,
        _ => "[]",
    };
    let checked = |result: rquickjs::Result<bool>| match result {
        Err(rquickjs::Error::Exception) => Err(exception(ctx, sandbox, &describe)),
        other => sandbox.check(ctx, other),
    };
    checked(start.call::<_, ()>((main, arguments)).map(|()| true))?;
    sandbox.run_jobs(ctx)?;
    while checked(step.call(()))? {
        sandbox.run_jobs(ctx)?;
    }
    let mut body = None;
    checked(finish.call::<_, Option<String>>(()).map(|text| {
        body = text;
        true
    }))?;
    Ok(body)
}

/// The exception that the script did not catch, with its number.
fn exception<'js>(ctx: &Ctx<'js>, sandbox: &Sandbox, describe: &Function<'js>) -> ScriptError {
    let value = ctx.catch();
    let restored = ctx.throw(value.clone());
    let plain = sandbox.check::<()>(ctx, Err(restored)).expect_err("it was thrown");
    if !matches!(plain.problem, Problem::Thrown { .. } | Problem::Syntax) {
        return plain;
    }
    let Ok(text) = describe.call::<_, String>((value,)) else {
        // Describing the exception also exceeded a limit.
        let _ = ctx.catch();
        return sandbox.check_time().err().unwrap_or(plain);
    };
    let described: Value = serde_json::from_str(&text).unwrap_or_default();
    let text = |name: &str| described[name].as_str().unwrap_or_default();
    let number = described["number"]
        .as_u64()
        .and_then(|number| u32::try_from(number).ok());
    thrown(number.unwrap_or(0), text("message"), text("stack"))
}

fn setup(call: &Call, sandbox: &Sandbox) -> Value {
    let (kind, operation, request, response) = match &call.kind {
        // The request of a procedure is the text of its arguments; its response is a text to which the script appends.
        Kind::Procedure { arguments } => ("procedure", "", json!(arguments), json!("")),
        Kind::PreTrigger { operation, request } => ("pre", *operation, parsed(request), Value::Null),
        Kind::PostTrigger {
            operation,
            request,
            response,
        } => ("post", *operation, parsed(request), parsed(response)),
    };
    json!({
        "kind": kind,
        "operation": operation,
        "request": request,
        "response": response,
        "selfLink": call.self_link,
        "altLink": call.alt_link,
        "partitionKey": call.partition_key,
        "maxBytes": sandbox.shared.settings.limits.message_bytes,
        "isLogging": call.is_logging,
    })
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// The functions of the host, for use by the prelude only.
fn natives<'js>(ctx: &Ctx<'js>, sandbox: &Sandbox, host: impl TextHost + 'static) -> Result<Object<'js>, ScriptError> {
    let object = sandbox.check(ctx, Object::new(ctx.clone()))?;
    let host = Rc::new(RefCell::new(host));
    let asked = host.clone();
    let accepts = Function::new(ctx.clone(), move || asked.borrow_mut().accepts());
    let operate = Function::new(ctx.clone(), move |text: String| host.borrow_mut().operate(text));
    let shared = sandbox.shared.clone();
    let log = Function::new(ctx.clone(), move |line: String| shared.note(&line));
    let accepts = sandbox.check(ctx, accepts)?;
    let operate = sandbox.check(ctx, operate)?;
    let log = sandbox.check(ctx, log)?;
    sandbox.check(ctx, object.set("accepts", accepts))?;
    sandbox.check(ctx, object.set("operate", operate))?;
    sandbox.check(ctx, object.set("log", log))?;
    Ok(object)
}
