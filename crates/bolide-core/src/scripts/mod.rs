//! Server-side JavaScript: stored procedures, triggers and user-defined functions (cosmos-rest §11).
//!
//! ```text
//!   request ──▶ turn of the partition ──steps── serve ◀─channel─▶ thread: bolide-script
//!                    │                            │
//!                 commit, or nothing          Scene: one logical partition, live items only
//! ```
//!
//! A stored procedure, or a write with its triggers, has the partition for itself ([`crate::partition::turn`]): its steps see one head
//! with their own effects, and what it wrote is one commit with one LSN, or nothing. Reads of others go on; their writes wait, at most
//! as long as a script may run ([`watch`]). The script itself runs on a thread of its own, so that no worker or listener waits for it.
//! User-defined functions run on such a thread too, one for each page of a query ([`functions`]).

mod conduct;
mod execute;
mod functions;
mod resource;
mod run;
mod scene;
mod trigger;
mod watch;

pub(crate) use conduct::Conduct;
pub use execute::{ExecuteProcedure, Executed};
pub(crate) use functions::QueryFunctions;
pub use resource::{Script, ScriptDraft, ScriptKind, ScriptName, TriggerFires, TriggerOperation, TriggerTime};
pub use trigger::{ItemWrite, TriggeredWrite, TriggeredWritten};
pub(crate) use watch::Slots;
