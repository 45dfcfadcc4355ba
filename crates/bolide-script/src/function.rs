//! User-defined functions of one query: compiled at the first call, and called many times.

use std::collections::HashMap;

use rquickjs::{Function, Object, Persistent};

use crate::error::{Problem, ScriptError};
use crate::sandbox::{Sandbox, Settings};

/// Calls one compiled function with the JSON text of its arguments.
const CALLER: &str = "(function () { 'use strict'; const { parse, stringify } = JSON; const { apply } = Reflect; \
    return { call: (main, text) => stringify(apply(main, undefined, parse(text))) }; })()";

/// The functions of a query, in their own sandbox. Stays on its thread.
pub struct Functions {
    // Dropped before the sandbox that contains them.
    compiled: HashMap<String, Persistent<Function<'static>>>,
    caller: Option<Persistent<Function<'static>>>,
    sandbox: Sandbox,
}

impl Functions {
    /// Starts a sandbox.
    ///
    /// # Errors
    /// Only if there is not enough memory for it.
    pub fn new(settings: Settings) -> Result<Functions, ScriptError> {
        let sandbox = Sandbox::new(settings)?;
        let caller = sandbox.enter(|ctx, sandbox| {
            let object: Object = sandbox.check(ctx, ctx.eval(CALLER))?;
            let call: Function = sandbox.check(ctx, object.get("call"))?;
            Ok::<_, ScriptError>(Persistent::save(ctx, call))
        })?;
        Ok(Functions {
            compiled: HashMap::new(),
            caller: Some(caller),
            sandbox,
        })
    }

    /// Whether [`Functions::call`] needs the source of this function.
    pub fn needs(&self, name: &str) -> bool {
        !self.compiled.contains_key(name)
    }

    /// Compiles a function under a name.
    ///
    /// # Errors
    /// `Syntax`, or a limit.
    pub fn define(&mut self, name: &str, source: &str) -> Result<(), ScriptError> {
        let compiled = self.sandbox.enter(|ctx, sandbox| {
            let main = sandbox.compile(ctx, source)?;
            Ok::<_, ScriptError>(Persistent::save(ctx, main))
        })?;
        self.compiled.insert(name.to_owned(), compiled);
        Ok(())
    }

    /// Calls a function that was defined. `arguments` is the JSON text of an array; the result is JSON text, `None` for `undefined`.
    ///
    /// # Errors
    /// An exception, or a limit.
    pub fn call(&self, name: &str, arguments: &str) -> Result<Option<String>, ScriptError> {
        let (Some(main), Some(caller)) = (self.compiled.get(name), &self.caller) else {
            return Err(ScriptError::new(
                Problem::Syntax,
                format!("there is no function of this name. name=`{name}`"),
            ));
        };
        let (main, caller) = (main.clone(), caller.clone());
        let result = self.sandbox.enter(|ctx, sandbox| {
            let main = sandbox.check(ctx, main.restore(ctx))?;
            let caller = sandbox.check(ctx, caller.restore(ctx))?;
            let result = sandbox.check(ctx, caller.call::<_, Option<String>>((main, arguments)));
            // A promise is not a result; its queued jobs must not wait for the next call.
            sandbox.run_jobs(ctx)?;
            result
        })?;
        self.sandbox.check_time()?;
        Ok(result)
    }
}
