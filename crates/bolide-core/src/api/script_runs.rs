//! Runs of scripts: stored procedures, and writes with triggers.

use std::sync::Arc;

use super::Account;
use crate::container::Container;
use crate::response::ChargedResult;
use crate::runtime::RequestContext;
use crate::scripts::{ExecuteProcedure, Executed, TriggeredWrite, TriggeredWritten};

impl Account {
    /// Executes a stored procedure: everything it writes is one commit, or nothing is (TTL-252). Verdicts, `_ts` and all of its reads
    /// are at the server time of its start.
    ///
    /// # Errors
    /// - `NotFound`: there is no stored procedure of this name.
    /// - `Forbidden`: it is blocked, because it kept violating its limits.
    /// - `ScriptSyntax`, `ScriptFailed`, `ScriptTimeout`, `TooLarge`: it did not come to its end; nothing was changed.
    /// - `Throttled`: too many scripts run or wait.
    /// - `PartitionKeyMismatch`: the key has the wrong number of components.
    pub async fn execute_procedure(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        execute: ExecuteProcedure,
    ) -> ChargedResult<Executed> {
        self.script_runner().execute_procedure(ctx, container, execute).await
    }

    /// Writes an item with triggers. What the triggers write, and the write itself, are one commit, or nothing is.
    ///
    /// # Errors
    /// - `BadRequest`: a trigger is not there, or not for this kind of write; or a trigger leaves a body that is no document of the
    ///   same logical partition.
    /// - `Forbidden`: a trigger is blocked, because it kept violating its limits.
    /// - what the triggers and the write are refused with.
    pub async fn write_with_triggers(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        triggered: TriggeredWrite,
    ) -> ChargedResult<TriggeredWritten> {
        self.script_runner()
            .write_with_triggers(ctx, container, triggered)
            .await
    }
}
