//! `currentOp`.

use bolide_mql::Result;
use bson::raw::CStr;
use bson::{RawArrayBuf, RawDocumentBuf, rawdoc};

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
