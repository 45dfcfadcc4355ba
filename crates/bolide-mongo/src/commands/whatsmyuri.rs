//! `whatsmyuri`.

use bolide_mql::Result;
use bson::rawdoc;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};

/// `{whatsmyuri: 1}` → `{you: "ip:port"}`.
pub async fn run(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    arguments.finish()?;
    Ok(rawdoc! { "you": context.client.peer.remote.to_string() }.into())
}
