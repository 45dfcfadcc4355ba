//! Server-side JavaScript: stored procedures, triggers and user-defined functions (cosmos-rest §11).
//!
//! ```text
//!   request ──▶ permit ──▶ exclusive transaction ─steps── serve ◀─channel─▶ thread ◀─pipes─▶ process: bolide-script
//!                              │                            │
//!                           commit, or nothing          ScriptTransaction: one logical partition, live items only
//! ```
//!
//! A stored procedure, or a write with its triggers, has the partition to itself ([`crate::partition::exclusive`]): its steps see one head and their
//! own effects, and its writes become one commit with one LSN, or are discarded. Other reads continue; other writes wait, at most as long as a script
//! may run ([`budget`]), and then have the partition for the same time ([`crate::partition::orders`]). The script itself runs in a process, which is
//! killed when its time is over or when nobody waits for it any more. A separate thread communicates with the process, so that no worker or listener
//! waits for it. User-defined functions run in such a process too, one for each page of a query ([`functions`]). The number of scripts that run at
//! once is limited ([`permits`]).

mod budget;
mod execute;
#[cfg(test)]
mod fixture;
mod functions;
mod permits;
mod run;
mod system;
mod transaction;
mod trigger;

/// How the processes for scripts are started.
pub use bolide_script::Hosting as ScriptHosting;
/// Maps the refusal of an operation to the error that a script sees.
pub use bolide_script::OperationError;
/// Runs scripts, as the main function of such a process.
pub use bolide_script::serve_process as serve_scripts;
pub(crate) use execute::ScriptRunner;
pub use execute::{ExecuteProcedure, Executed};
pub(crate) use functions::QueryFunctions;
pub use permits::ScriptFigures;
pub(crate) use permits::ScriptPermits;
#[cfg(test)]
pub(crate) use permits::TRANSACTION_TIMEOUT;
pub use trigger::{ItemWrite, TriggeredWrite, TriggeredWritten};
