//! Scripts in processes of their own, which can be ended for certain.
//!
//! ```text
//!   thread of the server ──▶ Hosts::run ──frames──▶ process: serve_process ──▶ sandbox
//!        operations ◀──────────────────────────────────┘
//!   overseer: kills a process that is over its time, or whose script was cancelled
//! ```
//!
//! The engine asks whether it may go on where its bytecode runs, not inside its own functions, and a thread cannot be ended from
//! outside. A process can. Each runs one script at a time ([`serve`]); [`Hosts`] starts them when they are needed, keeps a few for
//! the next scripts, and ends the one that is late, breaks the protocol ([`message`], [`frame`]) or is no longer waited for. A process
//! inherits nothing of the server but its pipes, gives up what it does not need ([`confine`]), and ends when the server does.

mod confine;
mod frame;
mod hosts;
mod lease;
mod leash;
mod message;
mod serve;

pub use hosts::{Hosting, Hosts};
pub use lease::FunctionCalls;
pub use serve::serve_process;
