//! Server-side JavaScript: stored procedures, triggers and user-defined functions (cosmos-rest §11).
//!
//! ```text
//!   request ──▶ place ──▶ turn of the partition ──steps── serve ◀─channel─▶ thread ◀─pipes─▶ process: bolide-script
//!                              │                            │
//!                           commit, or nothing          ScriptTransaction: one logical partition, live items only
//! ```
//!
//! A stored procedure, or a write with its triggers, has the partition for itself ([`crate::partition::exclusive`]): its steps see one head
//! with their own effects, and what it wrote is one commit with one LSN, or nothing. Reads of others go on; their writes wait, at most
//! as long as a script may run ([`budget`]), and then have the partition for as long ([`crate::partition::orders`]). The script itself runs in a process,
//! which is killed when it is late or when nobody waits for it any more; a thread of its own speaks with the process, so that no worker or
//! listener waits for it. User-defined functions run in such a process too, one for each page of a query ([`functions`]). How many run at
//! once is bounded ([`places`]).

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

/// Where scripts run.
pub use bolide_script::Hosting as ScriptHosting;
/// Serves scripts in a process for them.
pub use bolide_script::serve_process as serve_scripts;
pub(crate) use execute::ScriptRunner;
pub use execute::{ExecuteProcedure, Executed};
pub(crate) use functions::QueryFunctions;
pub use permits::ScriptFigures;
pub(crate) use permits::ScriptPermits;
#[cfg(test)]
pub(crate) use permits::TRANSACTION_TIMEOUT;
pub use trigger::{ItemWrite, TriggeredWrite, TriggeredWritten};
