//! `currentOp`, and the stage `$currentOp`.

use bolide_mql::{Code, Error, Result};
use bson::raw::CStr;
use bson::{RawArrayBuf, RawDocument, RawDocumentBuf, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use crate::operations::Operation;
use crate::state::MongoState;

/// `{currentOp: 1}` → `{inprog}`. Its filters are not supported: they belong to the stage `$currentOp`.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    arguments.ignore(&["$all", "$ownOps", "$truncateOps"]);
    arguments.finish()?;
    let mut operations = RawArrayBuf::new();
    for operation in context.state.operations.all() {
        operations.push(describe(context.state, &operation));
    }
    Ok(rawdoc! { "inprog": operations }.into())
}

/// `{$currentOp: {allUsers?, …}}` → a document for each running command: of the sender, or with `allUsers` of everybody.
///
/// # Errors
/// `Unauthorized` for those of others; `NotImplemented` for what does not run; of the options.
pub fn of_stage(context: &CommandContext<'_>, options: &RawDocument) -> Result<Vec<RawDocumentBuf>> {
    let mut fields = Arguments::of_document("$currentOp", options)?;
    let is_of_all = fields.strict_boolean("allUsers")?.unwrap_or(false);
    for idle in ["idleConnections", "idleCursors", "idleSessions", "backtrace"] {
        // Without them the answer is the same as if there were none.
        if fields.strict_boolean(idle)? == Some(true) && idle != "idleSessions" {
            let text = format!("$currentOp.{idle}: only running commands can be shown");
            return Err(Error::new(Code::NOT_IMPLEMENTED, text));
        }
    }
    // There is one member, and nothing is cut off.
    for option in ["localOps", "truncateOps", "targetAllNodes"] {
        fields.strict_boolean(option)?;
    }
    fields.finish()?;
    if is_of_all {
        context.require_monitoring()?;
    }
    let operations = context.state.operations.all().into_iter();
    let shown = operations.filter(|operation| is_of_all || operation.user == context.user);
    Ok(shown.map(|operation| describe(context.state, &operation)).collect())
}

/// A running command, as `currentOp` and `$currentOp` show it.
pub fn describe(state: &MongoState, operation: &Operation) -> RawDocumentBuf {
    let mut command = RawDocumentBuf::new();
    if let Ok(name) = <&CStr>::try_from(operation.command) {
        command.append(name, 1);
    }
    let running = state.monotonic().since(operation.started);
    rawdoc! {
        "type": "op",
        "host": state.options.host.name.as_str(),
        "desc": format!("conn{}", operation.connection),
        "connectionId": operation.connection,
        "client": &*operation.client,
        "appName": &*operation.application,
        "active": true,
        "opid": operation.id,
        "secs_running": i64::try_from(running.as_secs()).unwrap_or(i64::MAX),
        "microsecs_running": i64::try_from(running.as_micros()).unwrap_or(i64::MAX),
        "op": "command",
        "ns": operation.namespace.as_str(),
        "command": command,
    }
}
