//! `getLastRequestStatistics`.

use bolide_mql::Result;
use bson::rawdoc;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};

/// `{getLastRequestStatistics: 1}` → `{CommandName, RequestCharge, RequestDurationInMilliSeconds}` of the previous command of the connection.
///
/// The writes of a transaction are charged when it commits, and no command is told their charge.
///
/// Source: mongo.md §15.
pub async fn run(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    arguments.finish()?;
    let Some(last) = context.client.last_request() else {
        return Ok(Reply::default());
    };
    let reply = rawdoc! {
        "CommandName": last.command,
        "RequestCharge": last.charge.rounded().0,
        "RequestDurationInMilliSeconds": i64::try_from(last.duration.as_millis()).unwrap_or(i64::MAX),
    };
    Ok(reply.into())
}

#[cfg(test)]
mod tests;
