//! `connPoolStats`.

use bolide_mql::Result;
use bson::rawdoc;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};

/// `{connPoolStats: 1}` → no connections, because there are no other members.
pub async fn run(_: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    arguments.finish()?;
    let reply = rawdoc! {
        "numClientConnections": 0,
        "numAScopedConnections": 0,
        "totalInUse": 0,
        "totalAvailable": 0,
        "totalCreated": 0,
        "totalRefreshing": 0,
        "pools": {},
        "hosts": {},
        "replicaSets": {},
    };
    Ok(reply.into())
}
