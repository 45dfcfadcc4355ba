//! Server-side JavaScript in a sandbox: stored procedures, triggers and user-defined functions.
//!
//! ```text
//!   source ──▶ sandbox (QuickJS, limits) ──▶ script ──operations──▶ Host ──▶ the documents
//!                  ▲                            │
//!                Pace: the time, and whether it is over
//! ```
//!
//! The crate knows no storage and no HTTP: documents go in and out as JSON texts through a [`Host`], and a [`Pace`] says when a script must end. A
//! script can reach nothing else: there are no modules, timers, files or sockets, and each call has its own context, which is dropped with the call.
//! Two scripts in JavaScript run first in each context: `prelude/sandbox.js` makes the language safe and deterministic, `prelude/context.js` provides
//! `getContext()` for stored procedures and triggers.
//!
//! # Limits
//!
//! The time limit is checked at every call, loop and regular expression step, through [`Pace::is_over`]; the engine limits memory and stack
//! ([`Limits`]). A script cannot catch the end by a limit. Built-in functions of the engine do not check the time, and guarding each of them would
//! never be complete, so servers run scripts in processes ([`Hosts`]), which are killed when they are late.

mod call;
mod error;
mod function;
mod grant;
mod host;
mod process;
mod sandbox;

pub use call::{Call, Finished, Kind, run};
pub use error::{Problem, ScriptError};
pub use function::Functions;
pub use grant::{Cancel, Grant};
pub use host::{Document, Host, Operation, OperationError, Pace, Reply};
pub use process::{FunctionCalls, Hosting, Hosts, serve_process};
pub use sandbox::{Limits, Settings};
