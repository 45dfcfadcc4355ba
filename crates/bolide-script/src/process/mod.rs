//! Runs scripts in separate processes, which can always be ended.
//!
//! ```text
//!   thread of the server ──▶ Hosts::run ──frames──▶ process: serve_process ──▶ sandbox
//!        operations ◀──────────────────────────────────┘
//!   supervisor: kills a process that is over its time, or whose script was cancelled
//! ```
//!
//! The engine checks for interruption while its bytecode runs, but not inside its built-in functions, and a thread cannot be ended from outside. A
//! process can. Each process runs one script at a time ([`serve`]). [`Hosts`] starts processes on demand, keeps a few for the next scripts, and ends
//! those that are late, break the protocol ([`message`], [`frame`]) or are no longer waited for. A process inherits nothing from the server except
//! its pipes, gives up rights that it does not need ([`confine`]), and ends when the server ends.

mod confine;
mod frame;
mod hosts;
mod lease;
mod message;
mod serve;
mod supervision;

pub use hosts::{Hosting, Hosts};
pub use lease::FunctionCalls;
pub use serve::serve_process;
