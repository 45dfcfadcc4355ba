//! Runs of scripts: stored procedures, and writes with triggers.

use std::sync::Arc;

use super::Account;
use crate::container::Container;
use crate::response::ChargedResult;
use crate::runtime::RequestContext;
use crate::scripts::{ExecuteProcedure, Executed, TriggeredWrite, TriggeredWritten};

impl Account {
    /// Executes a stored procedure: either everything it writes becomes one commit, or nothing is written (TTL-252). Expiry, `_ts` and all of its
    /// reads use the server time of its start.
    ///
    /// # Errors
    /// - `NotFound`: there is no stored procedure with this name.
    /// - `Forbidden`: it is blocked, because it repeatedly exceeded its limits.
    /// - `ScriptSyntax`, `ScriptFailed`, `ScriptTimeout`, `TooLarge`: it did not complete; nothing was changed.
    /// - `Throttled`: too many scripts run or wait.
    /// - `PartitionKeyMismatch`: the key has the wrong number of components.
    pub async fn execute_procedure(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        execute: ExecuteProcedure,
    ) -> ChargedResult<Executed> {
        // It may have been made through another server.
        self.refresh_if_shared().await?;
        let execute_it =
            |execute| Box::pin(async move { self.script_runner().execute_procedure(ctx, container, execute).await });
        self.by_current_settings(container, execute, execute_it).await
    }

    /// Writes an item with triggers. Either the triggers' writes and the write itself become one commit, or nothing is written.
    ///
    /// # Errors
    /// - `BadRequest`: a trigger does not exist, or is not for this kind of write; or a trigger leaves a body that is not a document of the
    ///   same logical partition.
    /// - `Forbidden`: a trigger is blocked, because it repeatedly exceeded its limits.
    /// - the errors of the triggers and of the write.
    pub async fn write_with_triggers(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        triggered: TriggeredWrite,
    ) -> ChargedResult<TriggeredWritten> {
        self.refresh_if_shared().await?;
        let write = |triggered| {
            Box::pin(async move {
                self.script_runner()
                    .write_with_triggers(ctx, container, triggered)
                    .await
            })
        };
        self.by_current_settings(container, triggered, write).await
    }
}
