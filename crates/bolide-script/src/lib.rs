//! Server-side JavaScript in a sandbox: stored procedures, triggers and user-defined functions.
//!
//! ```text
//!   source ──▶ sandbox (QuickJS, limits) ──▶ script ──operations──▶ Host ──▶ whoever has the documents
//!                  ▲                            │
//!                Pace: the time, and whether it is over
//! ```
//!
//! The crate knows no storage and no HTTP: documents go in and out as JSON texts through a [`Host`], and a [`Pace`] says when a script
//! must end. A script reaches nothing else: there are no modules, timers, files or sockets, and each call has a context of its own that
//! is gone when the call is. Two scripts in JavaScript come first in each context: `prelude/sandbox.js` makes the language safe and
//! deterministic, `prelude/context.js` gives stored procedures and triggers their `getContext()`.
//!
//! # Limits
//!
//! Time is asked for at every call, loop and regular expression step, through [`Pace::is_over`]; memory and stack are limited by the
//! engine ([`Limits`]). What ends by a limit cannot be caught by the script. Native code of the engine that would run for long without
//! asking is guarded in the sandbox, and `Proxy`, by which guards could be deceived, is left out.

mod call;
mod error;
mod function;
mod host;
mod sandbox;

pub use call::{Call, Finished, Kind, run};
pub use error::{Problem, ScriptError};
pub use function::Functions;
pub use host::{Document, Host, Operation, OperationError, Pace, Reply};
pub use sandbox::{Limits, Settings};
